"""The same, with the pack open for as long as it is used."""
import os
import sys
import zlib


def make(path):
    with open(path, "wb") as f:
        f.write(bytes(range(256)) * 4096)


def main(n):
    make("pack.tmp")
    seal = 0
    with open("pack.tmp", "rb", buffering=0) as f:
        for i in range(n):
            seal = zlib.crc32(os.pread(f.fileno(), 2000, i * 37 * 211 % 1000000), seal)
    os.remove("pack.tmp")
    print(seal)


main(int(sys.argv[1]))
