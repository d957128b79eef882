<?php
// Converts the amounts of an export into euros.

function rate(string $currency): float
{
    $rates = include __DIR__ . '/rates.inc.php';
    return $rates[$currency] ?? 1.0;
}

function row(int $i): array
{
    $cur = ['USD', 'GBP', 'SEK', 'PLN', 'EUR'][$i % 5];
    $lines = [];
    for ($k = 0; $k < 60; $k++) {
        $lines[] = ['sku' => "s$k", 'n' => 1 + ($i + $k) % 4, 'price' => 100 + ($i * $k) % 350];
    }
    return ['id' => $i, 'currency' => $cur, 'lines' => $lines];
}

function convert(array $row): array
{
    $rate = rate($row['currency']);
    $text = json_encode($row);
    $back = json_decode($text, true);
    $sum = 0.0;
    foreach ($back['lines'] as $line) {
        $sum += round($line['n'] * $line['price'] * $rate, 2);
    }
    $words = preg_split('/[^a-z0-9]+/', $text);
    sort($words);
    return [$row['id'], $sum, hash('sha256', implode(' ', $words))];
}

file_put_contents(__DIR__ . '/rates.inc.php', "<?php\nreturn ['USD' => 0.92, 'GBP' => 1.17, 'SEK' => 0.088, 'PLN' => 0.23];\n");
$total = 0.0;
$check = '';
for ($i = 0; $i < 4000; $i++) {
    [$id, $sum, $hash] = convert(row($i));
    $total += $sum;
    $check = md5($check . $hash);
}
unlink(__DIR__ . '/rates.inc.php');
printf("total %.2f EUR, check %s\n", $total, $check);
