# Counts the files of 40 folders in turns, by whole paths.
use strict;
use warnings;
use Cwd;
use File::Temp;

my $home  = getcwd();
my $root  = File::Temp->newdir;
my $total = 0;
for my $i (0 .. 39) {
    mkdir "$root/$i";
    open my $out, '>', "$root/$i/size" or die;
    close $out;
}
for my $n (1 .. $ARGV[0]) {
    $total++ if -e "$root/" . $n % 40 . '/size';
}
print "$total\n";
