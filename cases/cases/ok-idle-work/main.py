"""Waits for work while there is none, and looks for more between its own steps while there is."""
import os
import select
import sys

r, w = os.pipe()
poll = select.poll()
poll.register(r, select.POLLIN)
total = 0
for i in range(int(sys.argv[1])):
    poll.poll(2)
    for step in range(4):
        total += sum(k * k for k in range(3000))
        if poll.poll(0):
            break
print(total)
