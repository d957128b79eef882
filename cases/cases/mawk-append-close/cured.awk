{ print $1 * 2 >> "bin/out" }
END { close("bin/out"); print NR }
