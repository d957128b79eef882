"""Reads a list from a pipe, a byte at a time, and waits before each."""
import os
import select
import sys

n = int(sys.argv[1]) if len(sys.argv) > 1 else 3000
r, w = os.pipe()
os.write(w, b"x" * 49 + b"\n" if n < 50 else (b"x" * 49 + b"\n") * (n // 50))
os.close(w)
lines = 0
while select.select([r], [], [])[0]:
    byte = os.read(r, 1)
    if not byte:
        break
    lines += byte == b"\n"
print(lines)
