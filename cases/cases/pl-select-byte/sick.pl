# Reads a list from a pipe and waits before each piece.
use IO::Select;
my $n = shift // 6000;
pipe(my $r, my $w);
syswrite($w, ("x" x 49 . "\n") x ($n / 50));
close $w;
my $s = IO::Select->new($r);
my $lines = 0;
while ($s->can_read(10)) {
    last unless sysread($r, my $piece, 1);
    $lines += $piece =~ tr/\n//;
}
print "$lines\n";
