"""Looks a tool up for each item."""
import shutil
import sys

print(sum(shutil.which("env") is not None for _ in range(int(sys.argv[1]))))
