# Counts with the shell's own arithmetic.
i=0
while [ "$i" -lt "$1" ]; do i=$((i + 1)); done
echo "$i"
