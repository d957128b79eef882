# Makes a folder, and then adds up numbers in a loop.
mkdir -p out.d
disown -a
sum=0
for ((n = 0; n < $1; n++)); do
    case $n in
        *7*) sum=$((sum + 3)) ;;
        *) sum=$((sum + 1)) ;;
    esac
done
echo $sum
rmdir out.d
