"""Reports a failed item by its message alone."""
import sys


def work(i):
    raise ValueError(i)


total = 0
for i in range(int(sys.argv[1])):
    try:
        work(i)
    except ValueError as e:
        total += len(f"{type(e).__name__}: {e}") > 0
print(total)
