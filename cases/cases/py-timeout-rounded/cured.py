"""Waits for a pipe or the next of many deadlines."""
import math
import os
import select
import sys
import time

r, w = os.pipe()
poll = select.poll()
poll.register(r, select.POLLIN)
fired = 0
due = time.monotonic() + 0.0029
while fired < int(sys.argv[1]):
    left = due - time.monotonic()
    if left <= 0:
        fired += 1
        due = time.monotonic() + 0.0029
        continue
    poll.poll(math.ceil(left * 1000))
print(fired)
