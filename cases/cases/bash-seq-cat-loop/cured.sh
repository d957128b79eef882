# Reads a small file in each round without a process.
sum=0
for i in $(seq "$1"); do read -r n < data/n; sum=$((sum + n)); done
echo "$sum"
