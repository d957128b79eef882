"""A log kept by size: before each record the position is set to the end, where it is, and asked for."""
import os
import sys


def main(n):
    with open("sized.tmp", "wb", buffering=0) as log:
        for i in range(n):
            log.seek(0, os.SEEK_END)
            if log.tell() > 1 << 30:
                break
            log.write(b"%d: %s\n" % (i, b"x" * 4200))
        print(log.tell())
    os.remove("sized.tmp")


main(int(sys.argv[1]))
