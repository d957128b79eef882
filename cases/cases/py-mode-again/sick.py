"""Writes sessions in passes, and sets the mode of their files after each."""
import os
import sys
import tempfile

NAMES = [f"session{i}" for i in range(24)]


def save(folder, name, text):
    path = os.path.join(folder, name)
    fd = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
    os.pwrite(fd, text.encode(), 0)
    os.close(fd)
    os.chmod(path, 0o600)


def main(passes):
    with tempfile.TemporaryDirectory() as folder:
        for n in range(passes):
            for name in NAMES:
                save(folder, name, f"{name} {n}" * 200)
        print(sum(os.path.getsize(os.path.join(folder, name)) for name in NAMES))


main(int(sys.argv[1]))
