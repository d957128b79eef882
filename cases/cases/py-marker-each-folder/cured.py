"""Walks a tree, and looks for a marker in each folder's listing."""
import itertools
import os
import sys

folders = itertools.islice(os.walk("/usr/share"), int(sys.argv[1]))
print(sum(name in names for _, _, names in folders for name in (".skip", ".nosync")))
