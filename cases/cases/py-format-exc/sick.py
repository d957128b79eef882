"""Reports a failed item with its trace."""
import sys
import traceback


def work(i):
    raise ValueError(i)


total = 0
for i in range(int(sys.argv[1])):
    try:
        work(i)
    except ValueError:
        total += len(traceback.format_exc()) > 0
print(total)
