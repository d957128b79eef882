"""Goes through a tree of files once, asks each for its size, and adds them up."""
import os
import sys

total = files = 0
for folder, _, names in os.walk(sys.argv[1]):
    for name in names:
        total += os.lstat(os.path.join(folder, name)).st_size
        files += 1
print(files, total)
