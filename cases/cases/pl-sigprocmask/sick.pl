# Guards each update against a signal.
use POSIX ':signal_h';
my $set = POSIX::SigSet->new(SIGHUP);
my $old = POSIX::SigSet->new;
my $sum = 0;
for my $i (1 .. $ARGV[0]) {
    sigprocmask(SIG_BLOCK, $set, $old);
    $sum += $i;
    sigprocmask(SIG_SETMASK, $old);
}
print "$sum\n";
