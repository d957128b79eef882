"""A worker that is woken through a pipe, unless a wake is under way."""
import os
import sys
import threading
from collections import deque

rounds, burst = int(sys.argv[1]), 40
ear, bell = os.pipe()
items, guard, done = deque(), threading.Lock(), threading.Semaphore(0)
awake = False
taken = 0


def work():
    global taken, awake
    while taken < rounds * burst:
        os.read(ear, 4096)
        with guard:
            awake = False
            while items:
                items.popleft()
                taken += 1
                if taken % burst == 0:
                    done.release()


worker = threading.Thread(target=work)
worker.start()
for _ in range(rounds):
    with guard:
        for n in range(burst):
            items.append(n)
            if not awake:
                awake = True
                os.write(bell, b"\0")
    done.acquire()
worker.join()
print(taken)
