#!/usr/bin/perl
# Delivers mails into a maildir (tmp -> new) and lets the reader take them over (new -> cur).
use strict;
use warnings;
use File::Temp qw(tempdir);

my $box = tempdir('maildir-XXXXXX', DIR => '.', CLEANUP => 1);
mkdir "$box/$_" or die "$box/$_: $!" for qw(tmp new cur);

my $count = 0;

sub deliver {
    my ($to, $text) = @_;
    my $name = sprintf '1764300000.M%06dP%d.host', ++$count, 4711;
    die "exists: $name" if lstat "$box/tmp/$name";
    open my $fh, '>', "$box/tmp/$name" or die "$name: $!";
    print {$fh} "To: $to\n\n$text\n";
    close $fh or die "$name: $!";
    link "$box/tmp/$name", "$box/new/$name" or die "$name: $!";
    unlink "$box/tmp/$name";
}

sub take_over {
    my ($handle) = @_;
    opendir my $dh, "$box/new" or die $!;
    for my $name (sort grep { !/^\./ } readdir $dh) {
        my $size = (stat "$box/new/$name")[7];
        open my $fh, '<', "$box/new/$name" or next;    # another reader may have it
        local $/;
        $handle->(scalar <$fh>, $size);
        rename "$box/new/$name", "$box/cur/$name:2,S" or die "$name: $!";
    }
    closedir $dh;
}

my ($mails, $bytes, %to) = (0, 0);
for my $round (1 .. 60) {
    for my $i (1 .. 40) {
        deliver('user' . ($round * $i % 17) . '@example.org', "mail $i of round $round\n" x (1 + $i % 30));
    }
    take_over(sub {
        my ($text, $size) = @_;
        $mails++;
        $bytes += $size;
        $to{$1} += length $text if $text =~ /^To: (\S+)/;
    });
}
print "mails $mails, bytes $bytes, receivers ", scalar(keys %to), "\n";
