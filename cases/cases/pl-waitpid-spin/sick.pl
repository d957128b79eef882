# Waits for a child by asking without end. The child ends when a tenth of a second of processor time has
# gone into that: on a busy machine time alone may pass without a question.
use POSIX ':sys_wait_h';
my $parent = $$;
my $pid = fork() // die;
sub ticks { open(my $stat, '<', "/proc/$parent/stat") or POSIX::_exit(1); my @f = split / /, <$stat>; $f[13] + $f[14] }
if (!$pid) { do { select undef, undef, undef, 0.02 } while (ticks() < 10); POSIX::_exit(0); }
1 while waitpid($pid, WNOHANG) == 0;
print "done\n";
