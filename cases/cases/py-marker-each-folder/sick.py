"""Walks a tree, and asks each folder for a marker that none has."""
import itertools
import os
import sys

folders = itertools.islice(os.walk("/usr/share"), int(sys.argv[1]))
print(sum(os.access(os.path.join(at, name), os.R_OK) for at, _, _ in folders for name in (".skip", ".nosync")))
