<?php
$server = stream_socket_server('tcp://127.0.0.1:0');
$address = stream_socket_get_name($server, false);
$pid = pcntl_fork();
if ($pid === 0) {
    $c = stream_socket_accept($server);
    while (($line = fgets($c)) !== false) {
        while (($h = fgets($c)) !== false && trim($h) !== '');
        preg_match('#/item/(\d+)#', $line, $m);
        $body = json_encode(['id' => (int)$m[1], 'price' => $m[1] * 37 % 991, 'text' => str_repeat('x', 300)]);
        fwrite($c, "HTTP/1.1 200 OK\r\nContent-Length: " . strlen($body) . "\r\n\r\n" . $body);
    }
    exit(0);
}
fclose($server);

function get($s, string $path): array {
    fwrite($s, "GET $path HTTP/1.1\r\nHost: shop\r\n\r\n");
    stream_set_timeout($s, 0, 120000);
    $answer = stream_get_contents($s);
    [$head, $body] = explode("\r\n\r\n", $answer, 2);
    return json_decode($body, true);
}

$s = stream_socket_client("tcp://$address");
for ($i = 1; $i <= 10; $i++) {
    $item = get($s, "/item/" . $i * 11);
    echo $item['id'], ' costs ', $item['price'], "\n";
}
fclose($s);
pcntl_waitpid($pid, $status);
