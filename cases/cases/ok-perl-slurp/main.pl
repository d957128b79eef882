# Sorts the lines of a file.
open my $in, '<', 'data/in' or die;
my @lines = sort { $a <=> $b } <$in>;
open my $out, '>', 'data/out' or die;
print $out $_ for @lines;
close $out;
print -s 'data/out', "\n";
