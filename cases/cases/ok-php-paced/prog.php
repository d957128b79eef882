<?php
// Uploads to an API (another process) that allows one request per 50 ms and closes the connection on who is faster.

function api($server): void
{
    $c = stream_socket_accept($server, 10);
    $last = 0.0;
    while (($q = fgets($c)) !== false) {
        $now = microtime(true);
        if ($now - $last < 0.05) {
            fwrite($c, "banned\n");
            break;
        }
        $last = $now;
        fwrite($c, 'stored ' . (crc32($q) % 1000) . "\n");
    }
    fclose($c);
}

$server = stream_socket_server('tcp://127.0.0.1:0');
$name = stream_socket_get_name($server, false);
$pid = pcntl_fork();
if ($pid === 0) {
    api($server);
    exit(0);
}
fclose($server);
$s = stream_socket_client("tcp://$name");
$next = microtime(true);
for ($i = 0; $i < 24; $i++) {
    $wait = $next - microtime(true);
    if ($wait > 0) {
        usleep((int) ceil($wait * 1e6));
    }
    fwrite($s, "photo $i\n");
    $a = fgets($s);
    $next = microtime(true) + 0.0505;
    echo $i, ' ', $a;
    if (trim($a) === 'banned') {
        exit(1);
    }
}
fclose($s);
pcntl_waitpid($pid, $status);
