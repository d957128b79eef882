#!/bin/bash
# A metronome: 150 beats a minute, one bar of three and one of two.
set -u
beat=0
for bar in 3 2; do
	for (( i = 1; i <= bar; i++ )); do
		beat=$((beat + 1))
		if (( i == 1 )); then
			echo "beat $beat TICK"
		else
			echo "beat $beat tock"
		fi
		sleep 0.4
	done
done
