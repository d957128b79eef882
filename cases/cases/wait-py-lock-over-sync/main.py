"""Workers that number their jobs by a shared counter and then do each job, which takes 10 ms."""
import fcntl, os, sys, time

workers, jobs = int(sys.argv[1]), int(sys.argv[2])
counter = os.open("data/counter", os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
os.write(counter, b"0".ljust(8))

def number():
    n = int(os.pread(counter, 8, 0))
    os.pwrite(counter, str(n + 1).encode().ljust(8), 0)
    return n

def work(cured):
    own = os.open("data/counter", os.O_RDWR)
    for _ in range(jobs):
        fcntl.lockf(own, fcntl.LOCK_EX)
        number()
        if cured:
            fcntl.lockf(own, fcntl.LOCK_UN)
        time.sleep(0.01)
        if not cured:
            fcntl.lockf(own, fcntl.LOCK_UN)

for _ in range(workers):
    if os.fork() == 0:
        work(len(sys.argv) > 3)
        os._exit(0)
for _ in range(workers):
    os.wait()
print(int(os.pread(counter, 8, 0)), "jobs")
