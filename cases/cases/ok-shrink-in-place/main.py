"""Rewrites a file in place: what was longer is cut to what is written now."""
import os
import sys
import tempfile

total = 0
with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
    for n in range(int(sys.argv[1])):
        fd = os.open(f"{folder}/{n // 2}", os.O_WRONLY | os.O_CREAT)
        size = os.write(fd, b"x" * (3000 - n % 2000))
        os.ftruncate(fd, size)
        os.close(fd)
        total += size
print(total)
