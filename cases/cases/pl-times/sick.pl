# Charges each step's processor time.
my $last = 0;
for (1 .. $ARGV[0]) { my ($user) = times; $last = $user; }
print $last >= 0 ? "ok\n" : "odd\n";
