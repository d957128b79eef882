"""Counts jobs in a file that other processes count in too: each count is read under its own lock."""
import fcntl
import os
import struct
import sys
import tempfile

rounds = int(sys.argv[1])
jobs, feed = os.pipe()
if os.fork() == 0:
    for n in range(rounds):
        os.write(feed, struct.pack("<Q1016x", n))
    os._exit(0)
os.close(feed)
with tempfile.TemporaryFile() as made:
    made.write(bytes(4096))
    made.flush()
    table = made.fileno()
    while len(job := os.read(jobs, 1024)) == 1024:
        n, = struct.unpack_from("<Q", job)
        at = n * 8 % 4096
        fcntl.lockf(table, fcntl.LOCK_EX, 8, at)
        count, = struct.unpack("<Q", os.pread(table, 8, at))
        os.pwrite(table, struct.pack("<Q", count + n), at)
        fcntl.lockf(table, fcntl.LOCK_UN, 8, at)
    os.wait()
    print(sum(struct.unpack("<512Q", os.pread(table, 4096, 0))))
