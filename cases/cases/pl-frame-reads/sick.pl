#!/usr/bin/perl
# The parent parses a feed and hands its records, framed, to a worker process that aggregates them.
use strict;
use warnings;

my $N = 80_000;

sub next_frame {
    my ($in) = @_;
    my $got = sysread $in, my $head, 4;
    return unless $got;
    my $len  = unpack 'N', $head;
    my $body = '';
    while (length $body < $len) {
        sysread $in, $body, $len - length $body, length $body or die "short frame";
    }
    return $body;
}

sub worker {
    my ($in, $out) = @_;
    my (%sum, $n);
    while (defined(my $frame = next_frame($in))) {
        my ($id, $region, $amount) = split /;/, $frame;
        $sum{$region} += $amount;
        $n++;
    }
    print {$out} "$n records\n";
    print {$out} "$_ $sum{$_}\n" for sort keys %sum;
    close $out;
}

pipe my $feed_r, my $feed_w or die $!;
pipe my $res_r,  my $res_w  or die $!;
my $pid = fork // die "fork: $!";
if (!$pid) {
    close $feed_w;
    close $res_r;
    worker($feed_r, $res_w);
    exit 0;
}
close $feed_r;
close $res_w;
my $out = '';
for my $i (1 .. $N) {
    my $rec = join ';', $i, ('north', 'south', 'east', 'west')[$i * 7 % 4], $i * 31 % 997, 'some more text';
    $out .= pack('N', length $rec) . $rec;
    if (length $out > 30_000) { print {$feed_w} $out; $out = '' }
}
print {$feed_w} $out;
close $feed_w;
print while <$res_r>;
waitpid $pid, 0;
exit $? >> 8;
