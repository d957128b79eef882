#!/usr/bin/perl
# Sends text messages through a gateway that allows one every 5 ms and refuses the rest.
use strict;
use warnings;
use IO::Handle;
use Socket;
use Time::HiRes qw(time sleep);

my $GAP = 0.005;

sub gateway {
    my ($s) = @_;
    my ($credit, $last, $accepted) = (2, time, 0);
    while (defined(my $line = <$s>)) {
        my $now = time;
        $credit += ($now - $last) / $GAP;
        $credit = 2 if $credit > 2;
        $last   = $now;
        if ($credit >= 1) {
            $credit--;
            $accepted++;
            print {$s} "202 accepted $accepted\n";
        }
        else {
            print {$s} "429 too fast\n";
        }
    }
    exit 0;
}

socketpair my $mine, my $theirs, AF_UNIX, SOCK_STREAM, PF_UNSPEC or die "socketpair: $!";
$_->autoflush(1) for $mine, $theirs;
my $pid = fork // die "fork: $!";
if (!$pid) {
    close $mine;
    gateway($theirs);
}
close $theirs;

my ($sent, $refused, $due) = (0, 0, time);
for my $i (1 .. 150) {
    my $wait = $due - time;
    sleep $wait if $wait > 0;
    $due = time + $GAP * 1.1;
    print {$mine} "to +49170$i: your parcel $i has arrived\n";
    my $answer = <$mine>;
    if   ($answer =~ /^202/) { $sent++ }
    else                     { $refused++ }
}
close $mine;
waitpid $pid, 0;
print "sent $sent, refused $refused\n";
