# Waits for a child by asking without end.
use POSIX ':sys_wait_h';
my $pid = fork() // die;
if (!$pid) { select undef, undef, undef, 0.1; POSIX::_exit(0); }
1 while waitpid($pid, WNOHANG) == 0;
print "done\n";
