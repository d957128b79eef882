"""A log that may be taken away: before each line, is it still there?"""
import os
import sys


def main(n):
    log = open("there.tmp", "ab", buffering=0)
    for i in range(n):
        if not os.path.exists("there.tmp"):
            log = open("there.tmp", "ab", buffering=0)
        log.write(b"request %d: %s\n" % (i, b"x" * 4200))
    print(os.path.getsize("there.tmp"))
    os.remove("there.tmp")


main(int(sys.argv[1]))
