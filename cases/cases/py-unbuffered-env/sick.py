"""Prints a table, line by line."""
import sys

for i in range(int(sys.argv[1])):
    sys.stdout.write(f"{i} {i * i}\n")
