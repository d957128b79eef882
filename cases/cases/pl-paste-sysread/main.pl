# Text is pasted into a raw terminal; another process is the terminal.
use strict;
use POSIX ();

my ($lines, $way) = @ARGV;
open(my $keyboard, "+<", "/dev/ptmx") or die;
my $number = pack("i", 0);
ioctl($keyboard, 0x40045431, $number) or die;    # TIOCSPTLCK
ioctl($keyboard, 0x80045430, $number) or die;    # TIOCGPTN
open(my $tty, "+<", "/dev/pts/" . unpack("i", $number)) or die;
my $termios = POSIX::Termios->new;
$termios->getattr(fileno $tty);
$termios->setlflag(0);
$termios->setiflag(0);
$termios->setattr(fileno $tty, POSIX::TCSANOW());

my $pid = fork;
if (!$pid) {
    close $tty;
    my $text = join("", map { sprintf("%05d some text that is pasted\n", $_) } 1 .. $lines) . "\004";
    $text = substr($text, syswrite($keyboard, $text)) while length $text;
    sleep 60;
    POSIX::_exit(0);
}
select(undef, undef, undef, 0.02);
my ($keys, $sum, $end) = (0, 0, 0);
until ($end) {
    sysread($tty, my $typed, $way eq "cured" ? 4096 : 1) or die;
    for my $key (split //, $typed) {
        if ($key eq "\004") { $end = 1; last }
        $keys++;
        $sum = ($sum * 31 + ord $key) % 65521;
    }
}
kill 9, $pid;
waitpid $pid, 0;
print "$keys keys, $sum\n";
