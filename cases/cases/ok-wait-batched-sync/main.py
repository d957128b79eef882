"""Writes a log that must survive a crash: a sync for each batch of a thousand entries."""
import os

log = os.open("data/log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
for batch in range(12):
    os.write(log, b"".join(b"entry %d %d\n" % (batch, i) for i in range(1000)))
    os.fsync(log)
print(os.fstat(log).st_size)
