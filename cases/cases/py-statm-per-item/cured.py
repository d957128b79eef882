"""Watches its own memory while it works."""
import sys

peak = 0
with open("/proc/self/statm", "rb", 0) as f:
    for i in range(0, int(sys.argv[1]), 100):
        f.seek(0)
        peak = max(peak, int(f.read().split()[1]))
print(peak > 0)
