proc accept {s host port} {
    fconfigure $s -buffering line -blocking 0
    fileevent $s readable [list question $s]
}
proc question {s} {
    if {[gets $s line] < 0} { if {[eof $s]} { close $s }; return }
    # the data base takes its time
    after 5 [list answer $s [expr {$line * 37 % 991}]]
}
proc answer {s v} { puts $s $v }

set listener [socket -server accept -myaddr 127.0.0.1 0]
set port [lindex [fconfigure $listener -sockname] 2]
set s [socket 127.0.0.1 $port]
fconfigure $s -buffering line -blocking 0
fileevent $s readable {if {[gets $s line] >= 0} { set reply $line }}

proc ask {q} {
    global s reply
    set reply ""
    puts $s $q
    vwait reply
    return $reply
}
for {set i 1} {$i <= 12} {incr i} { puts "$i: [ask [expr {$i * 13}]]" }
close $s
close $listener
