# Writes hits to a file, which is locked around all.
use strict;
use warnings;
use Fcntl qw(:flock);
my $n = $ARGV[0] || 3000;
open(my $f, '+>', 'data/hits') or die;
flock($f, LOCK_EX) or die;
for my $i (1 .. $n) {
    syswrite($f, sprintf("%08d\n", $i));
}
flock($f, LOCK_UN) or die;
print -s 'data/hits', "\n";
