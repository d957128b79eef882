# Prints the slots of a rota: the name of each, and its place among the days.
number=$1
slot() {                      # number: name and place, through standard output
    day=$(($1 % 7)) hour=$(($1 * 5 % 24))
    echo "d$day-h$hour"
}
n=0 sum=0
while [ $n -lt $number ]; do
    name=$(slot $n)
    sum=$(((sum * 31 + ${#name} + ${name#*h}) % 1000003))
    n=$((n + 1))
done
echo "$name $sum"
