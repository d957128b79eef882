# Asks a person, who takes a moment for each answer.
person() { for answer in yes no yes yes; do sleep 0.2; echo $answer; done; }
person | {
    yes=0
    while read -r answer; do
        if [ "$answer" = yes ]; then yes=$((yes + 1)); fi
    done
    echo "$yes yes"
}
