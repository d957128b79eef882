declare -A used
mapfile -t lines < files.txt
for line in "${lines[@]}"; do
    set -- $line; user=$1 group=$2 size=$3
    case $group in
        g0) continue ;;
        g*) used[$user]=$(( ${used[$user]:-0} + size )) ;;
    esac
    name=${user#u}; key=$(( name * 31 % 7 ))
    total[$key]=$(( ${total[$key]:-0} + size % 13 ))
done
for u in u1 u7 u36; do echo "$u ${used[$u]}"; done
echo "${total[@]}"
