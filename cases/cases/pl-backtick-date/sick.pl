# Stamps each line by a process.
my @lines;
for (1 .. $ARGV[0]) { chomp(my $year = `date +%Y`); push @lines, $year > 2000 ? "ok" : "odd"; }
print scalar(@lines), " $lines[0]\n";
