use strict;
use warnings;
use IO::Socket::INET;

# A client of a length-prefixed store protocol: header and body of each request.
my $listener = IO::Socket::INET->new(Listen => 4, LocalAddr => '127.0.0.1', Proto => 'tcp') or die "listen: $!";
my $port = $listener->sockport;

sub take {
    my ($s, $n) = @_;
    my $buf = '';
    while (length $buf < $n) {
        my $got = sysread $s, $buf, $n - length $buf, length $buf;
        return undef unless $got;
    }
    return $buf;
}

sub serve {
    my $c = $listener->accept or exit 1;
    while (defined(my $head = take($c, 8))) {
        my ($op, $len) = unpack 'NN', $head;
        my $body = take($c, $len) // last;
        syswrite $c, pack('N', unpack('%32C*', $body) * ($op + 1));
    }
    exit 0;
}

my $pid = fork // die "fork: $!";
serve() if $pid == 0;
close $listener;

my $s = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port, Proto => 'tcp') or die "connect: $!";
for my $i (0 .. 39) {
    my $body = "record $i " . 'x' x ($i % 7);
    syswrite $s, pack('NN', $i % 3, length $body) . $body;
    my $answer = take($s, 4) // die 'closed';
    printf "%d %d\n", $i, unpack 'N', $answer;
}
close $s;
waitpid $pid, 0;
