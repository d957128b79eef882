"""Looks in each folder for a name that some have."""
import itertools
import os
import sys

folders = itertools.islice(os.walk("/usr/share"), int(sys.argv[1]))
print(sum(os.access(os.path.join(at, "copyright"), os.R_OK) for at, _, _ in folders))
