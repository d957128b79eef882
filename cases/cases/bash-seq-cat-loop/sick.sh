# Reads a small file in each round.
sum=0
for i in $(seq "$1"); do sum=$((sum + $(cat data/n))); done
echo "$sum"
