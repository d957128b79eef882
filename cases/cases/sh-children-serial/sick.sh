mkdir -p probes
probe() {
    sleep 0.15                  # the answer of the host
    n=0
    while [ $n -lt 300 ]; do n=$((n + $1)); done
    echo "$1 up $n" > probes/$1
}
for host in 1 2 3 4 5 6 7; do
    probe $host &
    wait $!
done
wait
for host in 1 2 3 4 5 6 7; do
    read -r line < probes/$host
    echo "$line"
done
