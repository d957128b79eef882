# Waits for a child in small slices.
use POSIX ':sys_wait_h';
my $pid = fork() // die;
if (!$pid) { select undef, undef, undef, 0.15; POSIX::_exit(0); }
my $slices = 0;
while (waitpid($pid, WNOHANG) == 0) { select undef, undef, undef, 0.00005; $slices++; }
print $slices >= 0 ? "done\n" : "";
