fconfigure stdout -buffering line
set n 0; set sum 0
while {[gets stdin line] >= 0 && $line ne "end"} { incr n; incr sum $line }
puts "$n notes, sum $sum"
