"""Gives the batch a time limit."""
import signal
import sys

signal.signal(signal.SIGALRM, lambda *_: sys.exit("too slow"))
total = 0
signal.setitimer(signal.ITIMER_REAL, 5)
for i in range(int(sys.argv[1])):
    total += i * i % 7
signal.setitimer(signal.ITIMER_REAL, 0)
print(total)
