# Guards the batch against a signal.
use POSIX ':signal_h';
my $set = POSIX::SigSet->new(SIGHUP);
my $old = POSIX::SigSet->new;
my $sum = 0;
sigprocmask(SIG_BLOCK, $set, $old);
$sum += $_ for 1 .. $ARGV[0];
sigprocmask(SIG_SETMASK, $old);
print "$sum\n";
