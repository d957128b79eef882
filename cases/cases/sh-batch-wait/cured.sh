#!/bin/bash
# Converts files four at a time; some are big.
set -u
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

convert() {
	# the remote converter: answers when it is done
	if (( $1 % 4 == 1 )); then
		sleep 0.5
	else
		sleep 0.01
	fi
	echo "file $1: $(( $1 * $1 % 37 )) pages" >"$out/$1"
}

running=0
for i in {1..16}; do
	convert "$i" &
	running=$((running + 1))
	if (( running == 4 )); then
		wait -n; running=$((running - 1))
	fi
done
wait
cat "$out"/{1..16}
