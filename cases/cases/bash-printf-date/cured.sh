# Stamps each line by the shell itself.
for i in $(seq "$1"); do printf -v year '%(%Y)T' -1; [ "$year" -gt 2000 ] && printf '%s %s\n' ok "$i"; done
