# Waits for a pipe or the next of many deadlines.
use strict;
use warnings;
use IO::Poll qw(POLLIN);
use Time::HiRes qw(time);
my $n = $ARGV[0] || 60;
pipe(my $in, my $out) or die;
my $fired = 0;
my $due = time + 0.0029;
while ($fired < $n) {
    my $left = $due - time;
    if ($left <= 0) {
        $fired++;
        $due = time + 0.0029;
        next;
    }
    my ($fd, $mask) = (fileno($in), POLLIN);
    IO::Poll::_poll(int($left * 1000), $fd, $mask);
}
print "$fired\n";
