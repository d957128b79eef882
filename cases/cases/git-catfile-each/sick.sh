# Sizes of all objects, one process each.
git -C repo rev-list --objects --all --no-object-names | sort | while read -r id; do git -C repo cat-file -s "$id"; done
