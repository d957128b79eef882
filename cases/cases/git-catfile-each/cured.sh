# Sizes of all objects by one process.
git -C repo rev-list --objects --all --no-object-names | sort | git -C repo cat-file --batch-check='%(objectsize)'
