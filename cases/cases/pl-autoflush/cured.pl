# Prints a table.
print "$_ ", $_ * $_, "\n" for 0 .. $ARGV[0] - 1;
