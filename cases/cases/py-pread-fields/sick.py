"""Sums two fields of each record of a table, by a read for each field."""
import os
import struct
import sys
import tempfile

records = int(sys.argv[1])
with tempfile.TemporaryFile() as made:
    made.write(b"".join(struct.pack("<8xI52xI28x", n, n % 7) for n in range(records)))
    made.flush()
    table, total = made.fileno(), 0
    for n in range(records):
        value, = struct.unpack("<I", os.pread(table, 4, n * 96 + 8))
        weight, = struct.unpack("<I", os.pread(table, 4, n * 96 + 64))
        total += value * weight
print(total)
