"""Sizes each batch by the number of processors."""
import os
import sys

count = os.cpu_count()
print(sum(count > 0 for _ in range(int(sys.argv[1]))))
