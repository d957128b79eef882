#!/bin/bash
# Watches the feed of a meter and raises an alarm when three readings in a row are too high.
set -u

feed() {
    local i value
    for ((i = 0; i < 24; i++)); do
        sleep 0.03
        value=$((i * 37 % 101))
        echo "reading $i $value"
    done
    echo "end"
}

declare -i high=0 alarms=0 n=0 sum=0

handle() {
    local number=$1 value=$2
    n+=1
    sum+=value
    if ((value > 50)); then
        high+=1
    else
        high=0
    fi
    if ((high == 2)); then
        alarms+=1
        echo "alarm at reading $number"
    fi
}

exec 3< <(feed)
exec 4<> <(:) # nothing ever comes here: sleeps without a process
while :; do
    if ! read -r -t 0 -u 3; then
        read -r -t 0.004 -u 4
        continue
    fi
    IFS= read -r line <&3
    case $line in
        end) break ;;
        reading*)
            set -- $line
            handle "$2" "$3"
            ;;
    esac
done
exec 3<&-
echo "readings $n, sum $sum, alarms $alarms"
