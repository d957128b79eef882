<?php
$engine = proc_open(['php', '-n', '-r', '
    while (($l = fgets(STDIN)) !== false) {
        [$game, $n] = explode(" ", trim($l));
        $secret = crc32("game $game") % 1000000;
        echo ($n < $secret ? "higher" : ($n > $secret ? "lower" : "yes")) . "\n";
    }'], [['pipe', 'r'], ['pipe', 'w']], $pipes);
[$to, $from] = $pipes;
$moves = 0;
for ($game = 0; $game < 500; $game++) {
    [$lo, $hi] = [0, 999999];
    do {
        $n = intdiv($lo + $hi, 2);
        fwrite($to, "$game $n\n");
        fflush($to);
        $answer = trim(fgets($from));
        $moves++;
        if ($answer === 'higher') $lo = $n + 1;
        elseif ($answer === 'lower') $hi = $n - 1;
    } while ($answer !== 'yes');
    if ($game % 50 === 0) echo "game $game: $n\n";
}
fclose($to);
proc_close($engine);
echo "$moves moves\n";
