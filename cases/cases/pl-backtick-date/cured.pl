# Stamps each line.
use POSIX 'strftime';
my @lines;
for (1 .. $ARGV[0]) { my $year = strftime("%Y", gmtime); push @lines, $year > 2000 ? "ok" : "odd"; }
print scalar(@lines), " $lines[0]\n";
