"""The same, with the size counted by the program."""
import os
import sys


def main(n):
    size = 0
    with open("sized.tmp", "wb", buffering=0) as log:
        for i in range(n):
            if size > 1 << 30:
                break
            size += log.write(b"%d: %s\n" % (i, b"x" * 4200))
        print(size)
    os.remove("sized.tmp")


main(int(sys.argv[1]))
