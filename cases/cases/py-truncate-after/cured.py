"""Writes new files."""
import os
import sys
import tempfile

total = 0
with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
    for n in range(int(sys.argv[1])):
        fd = os.open(f"{folder}/f", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        size = os.write(fd, b"census" * 100)
        os.close(fd)
        total += size
print(total)
