"""Loads a library, uses it and lets go of it, for each item."""
import _ctypes
import ctypes
import sys

n = 0
for i in range(int(sys.argv[1])):
    library = ctypes.CDLL("libcrypt.so.1")
    n += library is not None
    _ctypes.dlclose(library._handle)
print(n)
