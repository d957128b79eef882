"""Gives each item a time limit."""
import signal
import sys

signal.signal(signal.SIGALRM, lambda *_: sys.exit("too slow"))
total = 0
for i in range(int(sys.argv[1])):
    signal.setitimer(signal.ITIMER_REAL, 5)
    total += i * i % 7
    signal.setitimer(signal.ITIMER_REAL, 0)
print(total)
