"""Loads a library and uses it for each item."""
import ctypes
import sys

n = 0
library = ctypes.CDLL("libcrypt.so.1")
for i in range(int(sys.argv[1])):
    n += library is not None
print(n)
