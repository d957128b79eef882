#!/bin/bash
# Two workers process a spool; an item is claimed by renaming it, the shared tally is guarded by a lock folder.
set -u
spool=$(mktemp -d ./spool.XXXXXX)
trap 'rm -rf "$spool"' EXIT

lock() {
    local pause=0.001
    until mkdir "$spool/lock" 2>/dev/null; do
        sleep "$pause"
        [[ $pause == 0.001 ]] && pause=0.004
    done
}

unlock() {
    rmdir "$spool/lock"
}

tally() {
    local add=$1 now
    lock
    now=$(<"$spool/tally")
    echo $((now + add)) > "$spool/tally"
    unlock
}

worker() {
    local me=$1 item n
    for item in "$spool"/item*; do
        # someone else may have been faster
        mv "$item" "$spool/busy.$me" 2>/dev/null || continue
        [[ -f $spool/busy.$me ]] || continue
        n=$(<"$spool/busy.$me")
        echo "$n" >> "$spool/done.$me"
        tally "$n"
        rm "$spool/busy.$me"
    done
}

echo 0 > "$spool/tally"
for ((i = 1; i <= 50; i++)); do
    echo "$i" > "$spool/item$(printf %03d "$i")"
done
worker a &
worker b &
wait
cat "$spool"/done.* > "$spool/all"
echo "items $(wc -l < "$spool/all"), each once: $(sort -u "$spool/all" | wc -l), tally $(<"$spool/tally")"
