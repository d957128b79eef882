"""Keeps a counter that must survive a crash: each time a whole new file, brought to the disk, then given the name."""
import os, sys

n = int(sys.argv[1])
for i in range(n):
    new = os.open("data/counter.new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    os.write(new, b"%d\n" % i)
    os.fsync(new)
    os.close(new)
    os.rename("data/counter.new", "data/counter")
print(n, "counts")
