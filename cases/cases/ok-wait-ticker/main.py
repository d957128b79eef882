"""Samples the load twenty times a second, as a monitor does."""
import time

samples, due = [], time.monotonic()
for _ in range(16):
    due += 0.05
    time.sleep(max(0, due - time.monotonic()))
    with open("/proc/loadavg") as f:
        samples.append(f.read())
print(len(samples), "samples")
