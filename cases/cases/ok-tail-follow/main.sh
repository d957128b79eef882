# A reader follows a log while a writer appends to it.
: > data/log
tail -n +1 -f data/log > data/seen &
reader=$!
{ for i in 1 2 3 4 5 6 7 8 9 10; do echo $i; sleep 0.02; done; } > data/log
sleep 0.2
kill $reader
wait $reader 2>/dev/null
wc -l < data/seen
