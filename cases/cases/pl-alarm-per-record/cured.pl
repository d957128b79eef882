# Gives all records a time limit.
$SIG{ALRM} = sub { die "too slow\n" };
my $sum = 0;
alarm 10;
$sum += $_ % 7 for 1 .. $ARGV[0];
alarm 0;
print "$sum\n";
