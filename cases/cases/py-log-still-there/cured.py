"""The same, with a look once a second."""
import os
import sys
import time


def main(n):
    log, looked = open("there.tmp", "ab", buffering=0), time.monotonic()
    for i in range(n):
        if time.monotonic() - looked >= 1:
            looked = time.monotonic()
            if not os.path.exists("there.tmp"):
                log = open("there.tmp", "ab", buffering=0)
        log.write(b"request %d: %s\n" % (i, b"x" * 4200))
    print(os.path.getsize("there.tmp"))
    os.remove("there.tmp")


main(int(sys.argv[1]))
