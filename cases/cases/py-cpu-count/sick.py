"""Sizes each batch by the number of processors."""
import os
import sys

print(sum(os.cpu_count() > 0 for _ in range(int(sys.argv[1]))))
