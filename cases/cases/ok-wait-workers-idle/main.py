"""The main thread prepares work that four workers take from a queue; preparing is what takes time."""
import queue, threading, time

work, done = queue.Queue(), []
def worker():
    while (job := work.get()) is not None:
        done.append(job * 2)
pool = [threading.Thread(target=worker) for _ in range(4)]
for t in pool:
    t.start()
for i in range(40):
    until = time.perf_counter() + 0.015
    while time.perf_counter() < until:
        pass
    work.put(i)
for _ in pool:
    work.put(None)
for t in pool:
    t.join()
print(sum(done))
