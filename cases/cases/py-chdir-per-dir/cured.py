"""Lists directories by their paths."""
import os
import sys

total = 0
fd = os.open("/usr", os.O_RDONLY)
seen = os.stat("bin", dir_fd=fd)
for i in range(int(sys.argv[1])):
    total += seen is not None
print(total)
