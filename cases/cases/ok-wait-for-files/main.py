"""Waits for files that another thread makes, each looked for until it is there."""
import os
import sys
import tempfile
import threading
import time

count = int(sys.argv[1])
looks = 0
with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:

    def make():
        for n in range(count):
            time.sleep(0.004)
            open(f"{folder}/{n}", "x").close()

    maker = threading.Thread(target=make)
    maker.start()
    for n in range(count):
        while not os.path.exists(f"{folder}/{n}"):
            looks += 1
            time.sleep(0.0015)
    maker.join()
print("done")
