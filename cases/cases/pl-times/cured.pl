# Charges the batch's processor time.
my $last = 0;
for (1 .. $ARGV[0]) { $last = $_; }
my ($user) = times;
print $user >= 0 ? "ok\n" : "odd\n";
