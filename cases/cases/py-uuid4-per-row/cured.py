"""Gives each row a random id, and prints how many differ."""
import os
import sys
import uuid

n = int(sys.argv[1])
ids = set()
for start in range(0, n, 256):
    block = os.urandom(16 * min(256, n - start))
    ids |= {uuid.UUID(bytes=block[i:i + 16], version=4) for i in range(0, len(block), 16)}
print(len(ids))
