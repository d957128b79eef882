set synth [open "|tclsh play.tcl" r+]
fconfigure $synth -buffering line
set due 0
set start [clock milliseconds]
set late 0
proc note {i} {
    global synth start done late
    if {$i == 40} { set done 1; return }
    puts $synth [expr {60 + $i * 7 % 12}]
    if {[clock milliseconds] - $start < $i * 25 - 2} { incr late }
    set next [expr {$start + ($i + 1) * 25 - [clock milliseconds]}]
    after [expr {$next > 0 ? $next : 0}] [list note [expr {$i + 1}]]
}
after 0 note 0
vwait done
puts $synth end
gets $synth answer
close $synth
puts "$answer, $late too early"
