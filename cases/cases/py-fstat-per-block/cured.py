"""Reads a file by blocks; asks for its size before each."""
import os
import sys
import tempfile

n = int(sys.argv[1]) if len(sys.argv) > 1 else 5000
fd, path = tempfile.mkstemp()
os.unlink(path)
os.ftruncate(fd, n * 4096)
at = 0
size = os.fstat(fd).st_size
while at < size:
    at += len(os.pread(fd, 4096, at))
print(at)
