# Stamps each line by a process.
for i in $(seq "$1"); do printf '%s %s\n' "$([ "$(date +%Y)" -gt 2000 ] && echo ok)" "$i"; done
