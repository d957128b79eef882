use strict; use warnings;
use Fcntl qw(:flock :seek O_RDWR O_CREAT O_TRUNC);

my $file = 'seq';
sysopen my $init, $file, O_RDWR | O_CREAT | O_TRUNC or die $!;
syswrite $init, sprintf '%012d', 1;
close $init;

my ($next, $end) = (0, 0);
sub draw {
    my ($seq, $n) = @_;
    flock($seq, LOCK_EX) or die $!;
    sysseek $seq, 0, SEEK_SET;
    sysread $seq, my $v, 12;
    sysseek $seq, 0, SEEK_SET;
    syswrite $seq, sprintf '%012d', $v + $n;
    flock($seq, LOCK_UN);
    return $v + 0;
}

sub next_id {
    my ($seq) = @_;
    ($next, $end) = do { my $v = draw($seq, 100); ($v, $v + 100) } if $next == $end;
    return $next++;
}

my @pipes;
for my $w (1 .. 3) {
    pipe my $r, my $wr or die $!;
    if (!fork) {
        close $r;
        sysopen my $seq, $file, O_RDWR or die $!;
        my ($n, $sum) = (0, 0);
        my %seen;
        for (1 .. 6000) { my $id = next_id($seq); $seen{$id}++ and die "twice"; my $h = 0; $h = ($h * 31 + $_ * $id) & 0xffff for 1 .. 40; $n++ }
        print $wr "$n\n";
        exit 0;
    }
    push @pipes, $r;
}
my $all = 0;
$all += readline $_ for @pipes;
1 while wait > 0;
print "$all numbers\n";
