"""An event loop with a timer every 50 ms and a peer that sends a line every 210 ms."""
import os, select, time

r, w = os.pipe()
if os.fork() == 0:
    os.close(r)
    for i in range(4):
        time.sleep(0.21)
        os.write(w, b"line\n")
    os._exit(0)
os.close(w)
ticks, lines, due = 0, 0, time.monotonic() + 0.05
while True:
    ready, _, _ = select.select([r], [], [], max(0, due - time.monotonic()))
    if ready:
        if not os.read(r, 64):
            break
        lines += 1
    if time.monotonic() >= due:
        ticks, due = ticks + 1, due + 0.05
os.wait()
print(lines, "lines")
