use strict; use warnings;
use Fcntl qw(:DEFAULT :seek F_SETLKW F_RDLCK F_WRLCK F_UNLCK);

my ($n, $size) = (64, 16);
sysopen my $init, 'accounts', O_RDWR | O_CREAT | O_TRUNC or die $!;
syswrite $init, join '', map { sprintf "%${size}d", 1000 } 1 .. $n;
close $init;

sub lock_record {
    my ($f, $type, $i) = @_;
    my $l = pack 's s x4 q q l x4', $type, SEEK_SET, $i * $size, $size, 0;
    fcntl($f, F_SETLKW, $l) or die "lock: $!";
}
sub get { my ($f, $i) = @_; sysseek $f, $i * $size, SEEK_SET; sysread $f, my $v, $size; $v + 0 }
sub set { my ($f, $i, $v) = @_; sysseek $f, $i * $size, SEEK_SET; syswrite $f, sprintf "%${size}d", $v }

my @pids;
for my $teller (1 .. 3) {
    push @pids, my $pid = fork;
    next if $pid;
    sysopen my $f, 'accounts', O_RDWR or die $!;
    my $x = $teller * 7919;
    for my $t (1 .. 2500) {
        $x = ($x * 1103515245 + 12345) & 0x7fffffff;
        my ($from, $to) = (($x >> 8) % $n, ($x >> 16) % $n);
        next if $from == $to;
        my @order = sort { $a <=> $b } $from, $to;
        lock_record($f, F_WRLCK, $_) for @order;
        my $sum = 1 + $x % 50;
        set($f, $from, get($f, $from) - $sum);
        set($f, $to, get($f, $to) + $sum);
        lock_record($f, F_UNLCK, $_) for @order;
        my $h = 0; $h = ($h * 31 + $_ * $x) & 0xffff for 1 .. 200;     # the receipt
    }
    exit 0;
}
waitpid $_, 0 for @pids;
open my $f, '<', 'accounts' or die $!;
my $all = 0; my $text = <$f>;
$all += $_ for unpack "(a$size)*", $text;
print "$all in $n accounts\n";
