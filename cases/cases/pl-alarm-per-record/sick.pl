# Gives each record a time limit.
$SIG{ALRM} = sub { die "too slow\n" };
my $sum = 0;
for my $i (1 .. $ARGV[0]) {
    alarm 10;
    $sum += $i % 7;
    alarm 0;
}
print "$sum\n";
