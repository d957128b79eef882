"""Two processes append to one log, in turns."""
import fcntl
import os
import sys

n = int(sys.argv[1])
open("data/log", "w").close()
child = os.fork()
fd = os.open("data/log", os.O_WRONLY | os.O_APPEND)
for i in range(n):
    fcntl.flock(fd, fcntl.LOCK_EX)
    os.write(fd, (f"{child > 0} {i} " + "x" * 600 + "\n").encode())
    fcntl.flock(fd, fcntl.LOCK_UN)
if child:
    os.waitpid(child, 0)
    print(os.path.getsize("data/log") > 0)
else:
    os._exit(0)
