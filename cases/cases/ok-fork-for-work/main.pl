# Works on parts of a table, each in a process of its own, two at a time: the work is dear beside the fork.
use strict; use warnings;
my ($parts) = @ARGV;
my ($running, $sum) = (0, 0);
sub ended { wait; $sum += $? >> 8; $running-- }
for my $part (1 .. $parts) {
    ended() if $running == 2;
    my $pid = fork // die "fork: $!";
    if (!$pid) {
        my $x = $part;
        $x = ($x * 69069 + 1) % 4294967296 for 1 .. 60_000;
        exit $x % 100;
    }
    $running++;
}
ended() while $running;
print "$sum\n";
