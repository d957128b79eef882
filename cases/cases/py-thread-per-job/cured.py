"""A thread for each of many tiny jobs."""
import sys
import threading

n = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
done = []
for i in range(n):
    done.append(i % 11)
print(sum(done))
