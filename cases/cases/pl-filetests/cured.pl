#!/usr/bin/perl
# Builds a mailing: each row names a text and an attachment; attachments must be usable.
use strict;
use warnings;
use Digest::MD5 qw(md5_hex);

my $dir = 'attachments';
my $FILES = 60;

sub prepare {
    mkdir $dir or die "$dir: $!";
    for my $i (0 .. $FILES - 1) {
        open my $fh, '>', "$dir/att$i.txt" or die $!;
        print {$fh} "attachment $i\n" x ($i % 6);    # every sixth is empty
        close $fh;
    }
}

my %seen;

sub usable {
    my ($path) = @_;
    return $seen{$path} //= (-f $path && -r _ && -s _ && -M _ < 365) ? 1 : 0;
}

sub render {
    my ($row) = @_;
    my $text = join ' ', map { ucfirst } split /[\s_]+/, $row->{text};
    $text =~ s/(\d+)/<$1>/g;
    $text =~ s/\b([aeiou])(\w+)/$2$1/gi;
    my %count;
    $count{lc $_}++ for $text =~ /\w+/g;
    my @by = sort { $count{$b} <=> $count{$a} || $a cmp $b } keys %count;
    my $top = join ',', map { "$_=$count{$_}" } grep { defined } @by[0 .. 4];
    return "To: $row->{to}\nX-Words: $top\n\n$text\n";
}

prepare();
my ($sent, $skipped, $sum) = (0, 0, '');
for my $i (1 .. 7000) {
    my $row = {
        to   => "user$i\@example.org",
        text => join(' ', map { 'word_' . ($i * $_ % 23) . '_of_item' } 1 .. 12),
        att  => sprintf('%s/att%d.txt', $dir, $i * 7 % $FILES),
    };
    my $mail = render($row);
    if (usable($row->{att})) { $sent++; $sum = md5_hex($sum . $mail) }
    else                     { $skipped++ }
}
unlink glob "$dir/*";
rmdir $dir;
print "sent $sent, skipped $skipped, $sum\n";
