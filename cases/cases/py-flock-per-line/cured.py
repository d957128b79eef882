"""Numbers lines in a journal, all under the journal's lock."""
import fcntl
import os
import sys

journal = os.open("data/journal", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
fcntl.flock(journal, fcntl.LOCK_EX)
for i in range(int(sys.argv[1])):
    os.write(journal, f"{i}\n".encode())
fcntl.flock(journal, fcntl.LOCK_UN)
print(os.fstat(journal).st_size)
