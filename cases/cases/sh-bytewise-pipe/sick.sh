#!/bin/bash
# Sums a price list by class; the list comes from a generator.
set -u
declare -A sum count

generate() {
    local i
    for ((i = 0; i < 2500; i++)); do
        echo "$i;c$((i % 7));$((i * 31 % 997))"
    done
}

# the checksum of the till: some arithmetic for each row
check() {
    local x=$1 k
    for ((k = 0; k < 40; k++)); do
        x=$(((x * 1103515245 + 12345) % 2147483648))
    done
    result=$x
}

add() {
    local id=$1 class=$2 n=$3
    check $((id + n))
    sum[$class]=$(((${sum[$class]:-0} + result) % 1000003))
    count[$class]=$((${count[$class]:-0} + n))
}

total() {
    while IFS=';' read -r id class n; do
        add "$id" "$class" "$n"
    done < <(generate)
}

total
for class in c0 c1 c2 c3 c4 c5 c6; do
    echo "$class: ${count[$class]} pieces, check ${sum[$class]}"
done
