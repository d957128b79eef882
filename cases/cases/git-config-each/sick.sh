# Reads settings one by one.
for i in $(seq "$1"); do git config --file data/conf "k.n$i"; done
