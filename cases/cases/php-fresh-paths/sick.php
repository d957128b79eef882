<?php
class Templates {
    private array $text = [];
    public function __construct(private string $root) {}
    public function path(string $name): string {
        clearstatcache(true);
        $p = realpath("$this->root/$name");
        if ($p === false) throw new RuntimeException("no template $name");
        return $p;
    }
    public function render(string $name, array $vars): string {
        $p = $this->path($name);
        $t = $this->text[$p] ??= file_get_contents($p);
        $out = '';
        for ($row = 0; $row < 120; $row++) {
            $vars['price'] = ($vars['base'] * $row) % 991;
            foreach ($vars as $k => $v) $t2 = str_replace('{' . $k . '}', (string)$v, $t2 ?? $t);
            $out .= htmlspecialchars($t2) . "\n";
            unset($t2);
        }
        return $out;
    }
}

$t = new Templates(__DIR__ . '/themes/default/shop/templates/parts');
$h = '';
for ($i = 0; $i < 3500; $i++) {
    $h = hash('xxh64', $h . $t->render('t' . $i % 12 . '.html', ['name' => "article $i", 'base' => $i]));
}
echo $h, "\n";
