"""Jobs go through a pipe, a byte each that says which: the worker takes many at a time, and needs them all."""
import os
import sys
import threading

rounds, burst = int(sys.argv[1]), 40
ear, bell = os.pipe()
done = threading.Semaphore(0)
total = 0


def work():
    global total
    seen = 0
    while seen < rounds * burst:
        jobs = os.read(ear, 4096)
        total += sum(jobs)
        before, seen = seen // burst, seen + len(jobs)
        for _ in range(seen // burst - before):
            done.release()


worker = threading.Thread(target=work)
worker.start()
for r in range(rounds):
    for n in range(burst):
        # Each job is decided on its own, and started at once.
        os.write(bell, bytes([(r * 7 + n * 13) % 251]))
    done.acquire()
worker.join()
print(total)
