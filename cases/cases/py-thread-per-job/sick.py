"""A thread for each of many tiny jobs."""
import sys
import threading

n = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
done = []
for i in range(n):
    t = threading.Thread(target=lambda i=i: done.append(i % 11))
    t.start()
    t.join()
print(sum(done))
