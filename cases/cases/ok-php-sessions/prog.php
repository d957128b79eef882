<?php
// Two request workers share a visitor's session; each request puts something into the basket.

const SESSION = __DIR__ . '/sess_4711';

final class Session
{
    private $file;
    public array $data = [];

    public function open(): void
    {
        $this->file = fopen(SESSION, 'c+');
        flock($this->file, LOCK_EX);
        $text = stream_get_contents($this->file);
        $this->data = $text === '' ? [] : json_decode($text, true);
    }

    public function save(): void
    {
        rewind($this->file);
        ftruncate($this->file, 0);
        fwrite($this->file, json_encode($this->data));
        fflush($this->file);
        flock($this->file, LOCK_UN);
        fclose($this->file);
    }
}

function request(int $worker, int $i): void
{
    $s = new Session();
    $s->open();
    $s->data['basket'][$i % 10] = ($s->data['basket'][$i % 10] ?? 0) + $worker;
    $s->data['requests'] = ($s->data['requests'] ?? 0) + 1;
    $s->save();
    // the page itself
    $html = '';
    for ($k = 0; $k < 150; $k++) {
        $html .= '<li>' . htmlspecialchars("item $k & $i") . '</li>';
    }
    hash('sha256', $html);
}

if ($argc > 1) {
    for ($i = 0; $i < 1500; $i++) {
        request((int) $argv[1], $i);
    }
    exit(0);
}

$workers = [];
foreach ([1, 2] as $id) {
    $workers[] = proc_open([PHP_BINARY, __FILE__, (string) $id], [], $pipes);
}
$bad = 0;
foreach ($workers as $w) {
    $bad += proc_close($w) ? 1 : 0;
}
$data = json_decode(file_get_contents(SESSION), true);
unlink(SESSION);
printf("requests %d, pieces %d, failed workers %d\n", $data['requests'], array_sum($data['basket']), $bad);
