"""Writes results, each name asked about by every layer that it goes through."""
import os
import sys
import tempfile


def free(path):
    return not os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path)


made = 0
with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
    for n in range(int(sys.argv[1])):
        path = os.path.join(folder, f"r{n}")
        if free(path):
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL))
            made += 1
print(made)
