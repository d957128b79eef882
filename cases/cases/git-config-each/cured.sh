# Reads settings in one go.
git config --file data/conf --get-regexp '^k\.' | while read -r _ value; do echo "$value"; done
