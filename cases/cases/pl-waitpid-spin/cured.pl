# Waits for a child.
use POSIX ':sys_wait_h';
my $pid = fork() // die;
if (!$pid) { select undef, undef, undef, 0.1; POSIX::_exit(0); }
waitpid($pid, 0);
print "done\n";
