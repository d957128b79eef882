# Counts records by the day of the week.
my %days;
$days{(localtime(1700000000 + 3600 * $_))[6]}++ for 1 .. $ARGV[0];
print join(" ", map { "$_:$days{$_}" } sort keys %days), "\n";
