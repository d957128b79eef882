# Asks a server, over a pair of sockets, for the square of each number.
use strict;
use Socket;
my ($n, $cured) = @ARGV;
socketpair(my $client, my $server, AF_UNIX, SOCK_STREAM, PF_UNSPEC) or die;
if (!fork) {
    close $client;
    while (sysread($server, my $line, 64)) { syswrite($server, ($line * $line) . "\n") }
    exit;
}
close $server;
my $sum = 0;
for my $i (1 .. $n) {
    syswrite($client, "$i\n");
    select(undef, undef, undef, 0.04) unless $cured;
    sysread($client, my $answer, 64);
    $sum += $answer;
}
close $client;
wait;
print "$sum\n";
