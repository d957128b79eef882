"""Counts the bytes of configuration files, if they may be read."""
import os
import sys

names = ["bin/conf%d" % i for i in range(20)]
for name in names:
    with open(name, "w") as f:
        f.write("x" * 40)
total, n = 0, int(sys.argv[1])
for i, name in enumerate(names):
    fd = os.open(name, os.O_RDONLY)
    total += len(os.read(fd, 4096)) * len(range(i, n, 20))
    os.close(fd)
print(total)
