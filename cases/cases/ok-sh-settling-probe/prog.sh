instrument() {
    local last=0 channel=0 now
    while read -r word arg; do
        now=${EPOCHREALTIME/./}
        case $word in
            select) channel=$arg last=$now ;;
            read)
                if (( now - last < 95000 )); then last=$now; echo "unsettled"
                else echo "channel $channel: $(( channel * 7919 % 1009 )) mV"; fi ;;
        esac
    done
}
coproc DEV { instrument; }
for channel in 1 2 3 4 5 6 7 8; do
    echo "select $channel" >&"${DEV[1]}"
    sleep 0.11
    echo read >&"${DEV[1]}"
    read -r answer <&"${DEV[0]}"
    echo "$answer"
done
eval "exec ${DEV[1]}>&-"
wait
