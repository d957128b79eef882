# Formats numbers by a locale, if it is installed.
use POSIX 'setlocale', 'LC_ALL';
my $have = defined setlocale(LC_ALL, "xx_YY.UTF-8") ? 1 : 0;
setlocale(LC_ALL, "C");
my $ok = $have * $ARGV[0];
print "$ok\n";
