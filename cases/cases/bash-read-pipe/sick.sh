# Adds up numbers from a pipe.
total=0
seq "$1" | { while read -r n; do total=$((total + n)); done; echo "$total"; }
