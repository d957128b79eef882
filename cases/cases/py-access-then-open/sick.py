"""Counts the bytes of configuration files, if they may be read."""
import os
import sys

names = ["bin/conf%d" % i for i in range(20)]
for name in names:
    with open(name, "w") as f:
        f.write("x" * 40)
total = 0
for i in range(int(sys.argv[1])):
    name = names[i % 20]
    if os.path.exists(name) and os.access(name, os.R_OK) and os.path.isfile(name):
        fd = os.open(name, os.O_RDONLY)
        total += len(os.read(fd, 4096))
        os.close(fd)
print(total)
