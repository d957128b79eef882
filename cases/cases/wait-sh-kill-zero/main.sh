# Runs small jobs one by one, each in the background with a watcher of its end.
n=$1
for ((i = 0; i < n; i++)); do
    (for ((k = 0; k < 300; k++)); do :; done) &
    job=$!
    if [ -z "$2" ]; then
        while kill -0 $job 2>/dev/null; do sleep 0.1; done
    else
        wait $job
    fi
done
echo "$n jobs"
