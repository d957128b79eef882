# Prints a table with $| on.
$| = 1;
print "$_ ", $_ * $_, "\n" for 0 .. $ARGV[0] - 1;
