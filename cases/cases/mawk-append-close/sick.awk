{ print $1 * 2 >> "bin/out"; close("bin/out") }
END { print NR }
