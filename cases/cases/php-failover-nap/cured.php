<?php
// A feed importer. The configured first host is gone (refuses), the second serves.

function serve($server): void
{
    while (($c = @stream_socket_accept($server, 10)) !== false) {
        $q = trim((string) fgets($c));
        if ($q === 'quit') {
            fclose($c);
            return;
        }
        usleep(2000); // the feed's disk
        fwrite($c, strlen($q) . ':' . (crc32($q) % 1000) . "\n");
        fclose($c);
    }
}

function ask(array $hosts, string $q): string
{
    for ($try = 0; $try < 6; $try++) {
        $host = $hosts[$try % count($hosts)];
        $s = @stream_socket_client("tcp://$host", $errno, $error, 1.0);
        if ($s === false) {
            if ($try % count($hosts) === count($hosts) - 1) {
                usleep(110000);
            }
            continue;
        }
        fwrite($s, "$q\n");
        $a = trim((string) fgets($s));
        fclose($s);
        return $a;
    }
    throw new RuntimeException("no host for $q");
}

$gone = stream_socket_server('tcp://127.0.0.1:0');
$dead = stream_socket_get_name($gone, false);
fclose($gone);
$server = stream_socket_server('tcp://127.0.0.1:0');
$live = stream_socket_get_name($server, false);
$pid = pcntl_fork();
if ($pid === 0) {
    serve($server);
    exit(0);
}
fclose($server);
for ($i = 0; $i < 12; $i++) {
    echo "feed $i ", ask([$dead, $live], str_repeat('f', $i % 5) . "eed$i"), "\n";
}
ask([$live], 'quit');
pcntl_waitpid($pid, $status);
