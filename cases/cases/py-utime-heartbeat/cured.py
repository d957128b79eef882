"""A worker that touches its heartbeat file for each request, as the arbiter looks at it once a second."""
import os
import sys
import tempfile

n = int(sys.argv[1]) if len(sys.argv) > 1 else 5000
fd, path = tempfile.mkstemp()
total = 0
for i in range(n):
    total += i * i % 7
    if i % 1000 == 0:
        os.utime(path, (i, i))
os.unlink(path)
print(total)
