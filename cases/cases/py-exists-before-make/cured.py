"""Writes results; a name that is taken fails."""
import os
import sys
import tempfile

made = 0
with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
    for n in range(int(sys.argv[1])):
        path = os.path.join(folder, f"r{n}")
        try:
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL))
            made += 1
        except FileExistsError:
            pass
print(made)
