"""A producer hands items to two consumers."""
import queue
import sys
import threading

n = int(sys.argv[1])
items = queue.Queue(64)
totals = []


def consume():
    total = 0
    while (item := items.get()) is not None:
        total += item
    totals.append(total)


threads = [threading.Thread(target=consume) for _ in range(2)]
for t in threads:
    t.start()
for i in range(n):
    items.put(i)
for t in threads:
    items.put(None)
for t in threads:
    t.join()
print(sum(totals))
