#!/usr/bin/perl
# Sorts more numbers than it wants to hold in memory: sorted runs go to spill files, which are then merged.
use strict;
use warnings;
use IO::Handle;
use File::Temp qw(tempdir);

my $MAX = 2_000;
my $dir = tempdir('spill-XXXXXX', DIR => '.', CLEANUP => 1);
my @runs;

sub spill {
    my ($rows) = @_;
    my $name = sprintf '%s/run%03d', $dir, scalar @runs;
    open my $fh, '>', $name or die "$name: $!";
    print {$fh} join("\n", sort { $a <=> $b } @$rows), "\n";
    $fh->flush or die "$name: $!";
    $fh->sync or die "$name: $!";    # be sure that it is there before the memory goes
    close $fh or die "$name: $!";
    push @runs, $name;
}

sub merge {
    my ($emit) = @_;
    my (@fh, @head);
    for my $name (@runs) {
        open my $fh, '<', $name or die "$name: $!";
        push @fh, $fh;
        push @head, scalar <$fh>;
        unlink $name;
    }
    while (1) {
        my $best = -1;
        for my $i (0 .. $#head) {
            next unless defined $head[$i];
            $best = $i if $best < 0 || $head[$i] < $head[$best];
        }
        last if $best < 0;
        $emit->($head[$best] + 0);
        $head[$best] = readline $fh[$best];
    }
}

my ($seed, @rows) = (42);
for (1 .. 40_000) {
    $seed = ($seed * 1103515245 + 12345) % 2147483648;
    push @rows, $seed % 1_000_000;
    if (@rows == $MAX) { spill(\@rows); @rows = () }
}
spill(\@rows) if @rows;

my ($n, $last, $wrong, $median) = (0, -1, 0, 0);
merge(sub { $n++; $wrong++ if $_[0] < $last; $last = $_[0]; $median = $last if $n == 20_000 });
print "rows $n, out of order $wrong, median $median, max $last\n";
