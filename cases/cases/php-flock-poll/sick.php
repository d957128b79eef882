<?php
// Three importers update one catalogue; while one writes, the others have to wait.

const CATALOGUE = __DIR__ . '/catalogue.json';

final class Catalogue
{
    private $file;

    public function lock(): void
    {
        $this->file = fopen(CATALOGUE, 'c+');
        while (!flock($this->file, LOCK_EX | LOCK_NB)) {
            usleep(500);
        }
    }

    public function update(string $supplier, int $price): void
    {
        $text = stream_get_contents($this->file);
        $data = $text === '' ? [] : json_decode($text, true);
        $data[$supplier] = ($data[$supplier] ?? 0) + $price;
        usleep(12000); // stands for the pictures that are scaled here
        rewind($this->file);
        ftruncate($this->file, 0);
        fwrite($this->file, json_encode($data));
    }

    public function unlock(): void
    {
        fflush($this->file);
        flock($this->file, LOCK_UN);
        fclose($this->file);
    }
}

if ($argc > 1) {
    $c = new Catalogue();
    for ($i = 1; $i <= 14; $i++) {
        $c->lock();
        $c->update($argv[1], $i);
        $c->unlock();
        usleep(1000); // fetches the next article
    }
    exit(0);
}

$workers = [];
foreach (['alpha', 'beta', 'gamma'] as $supplier) {
    $workers[] = proc_open([PHP_BINARY, __FILE__, $supplier], [], $pipes);
}
foreach ($workers as $w) {
    proc_close($w);
}
$data = json_decode(file_get_contents(CATALOGUE), true);
unlink(CATALOGUE);
ksort($data);
foreach ($data as $supplier => $sum) {
    echo "$supplier: $sum\n";
}
