# Counts the files of 40 folders in turns, each of which it goes into and comes back from.
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
    chdir "$root/" . $n % 40 or die;
    $total++ if -e 'size';
    chdir $home or die;
}
print "$total\n";
