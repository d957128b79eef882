# A durable server under load.
rm -rf data; mkdir data
redis-server --port 0 --unixsocket "$PWD/data/s" --dir "$PWD/data" --save '' --appendonly yes --appendfsync everysec > /dev/null &
until [ -S data/s ]; do sleep 0.02; done
redis-benchmark -s data/s -n "$1" -c 4 -t set -q > /dev/null
redis-cli -s data/s dbsize
redis-cli -s data/s shutdown nosave > /dev/null 2>&1
wait
