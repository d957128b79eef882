"""Objects of one pack: the file is opened, sought, read and closed for each."""
import os
import sys
import zlib


def make(path):
    with open(path, "wb") as f:
        f.write(bytes(range(256)) * 4096)


def item(path, at):
    with open(path, "rb", buffering=0) as f:
        f.seek(at)
        return f.read(2000)


def main(n):
    make("pack.tmp")
    seal = 0
    for i in range(n):
        seal = zlib.crc32(item("pack.tmp", i * 37 * 211 % 1000000), seal)
    os.remove("pack.tmp")
    print(seal)


main(int(sys.argv[1]))
