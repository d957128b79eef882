# Packs each log into a file of its own: one program for each is the job.
rm -rf logs packed && mkdir logs packed
seq 120000 | split -l 3000 - logs/
for log in logs/*; do
    gzip -1 -c "$log" > "packed/${log##*/}.gz"
done
set -- packed/*
echo $#
