use strict; use warnings;
use Digest::MD5 qw(md5_hex);

my $mix = '';
my %kind;
sub classify {
    my ($line) = @_;
    my @w = $line =~ /(\w+)=("(?:[^"\\]|\\.)*"|\S+)/g;
    my %f = @w;
    my $k = $f{level} eq 'warn' && $f{msg} =~ /(\d+) of (\d+)/ ? ($1 * 2 > $2 ? 'late' : 'slow') : $f{level};
    $mix = md5_hex($mix . join ',', map { "$_:$f{$_}" } sort keys %f) for 1 .. 4;
    return $k;
}

sub guarded {
    my ($line) = @_;
    my $k;
    eval {
        local $SIG{ALRM} = sub { die "took too long\n" };
        alarm 3;
        $k = classify($line);
        alarm 0;
    };
    die $@ if $@;
    return $k;
}

for my $i (1 .. 8000) {
    my $level = $i % 5 ? 'info' : 'warn';
    my $line = qq(time=$i level=$level user=u@{[$i % 113]} msg="step @{[$i % 40]} of 40, \\"job $i\\"" ) . join ' ', map { "k$_=v" . $i * $_ % 71 } 1 .. 14;
    $kind{guarded($line)}++;
}
print "$_ $kind{$_}\n" for sort keys %kind;
print "$mix\n";
