"""A log that is moved away fifty times a second: before each line, is it still there?"""
import os
import sys
import threading
import time


def rotate(stop, moved):
    while not stop.wait(0.02):
        try:
            os.rename("live.tmp", f"live.tmp.{len(moved)}")
            moved.append(f"live.tmp.{len(moved)}")
        except FileNotFoundError:
            pass


def main(n):
    stop, moved = threading.Event(), []
    rotator = threading.Thread(target=rotate, args=(stop, moved))
    rotator.start()
    log = open("live.tmp", "ab", buffering=0)
    for i in range(n):
        if not os.path.exists("live.tmp"):
            log = open("live.tmp", "ab", buffering=0)
        log.write(b"request %d: %s\n" % (i, b"x" * 4200))
        if i % 50 == 0:
            time.sleep(0.002)
    stop.set()
    rotator.join()
    files = [name for name in moved + ["live.tmp"] if os.path.exists(name)]
    print(sum(map(os.path.getsize, files)))
    for name in files:
        os.remove(name)


main(int(sys.argv[1]))
