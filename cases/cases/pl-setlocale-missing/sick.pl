# Formats numbers by a locale that is not installed.
use POSIX 'setlocale', 'LC_ALL';
my $ok = 0;
for (1 .. $ARGV[0]) { $ok += defined setlocale(LC_ALL, "xx_YY.UTF-8") ? 1 : 0; setlocale(LC_ALL, "C"); }
print "$ok\n";
