"""Sums two fields of each record of a table, which it reads by the piece of many records."""
import os
import struct
import sys
import tempfile

records = int(sys.argv[1])
with tempfile.TemporaryFile() as made:
    made.write(b"".join(struct.pack("<8xI52xI28x", n, n % 7) for n in range(records)))
    made.flush()
    table, total = made.fileno(), 0
    for first in range(0, records, 680):
        block = os.pread(table, 680 * 96, first * 96)
        for value, weight in struct.iter_unpack("<8xI52xI28x", block):
            total += value * weight
print(total)
