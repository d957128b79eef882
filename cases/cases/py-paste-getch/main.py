"""Text is pasted into a raw terminal, which another process is; keys come from getch()."""
import os
import pty
import select
import signal
import sys
import time
import tty

lines, way = int(sys.argv[1]), sys.argv[2]
keyboard, terminal = pty.openpty()
tty.setraw(terminal)
pid = os.fork()
if pid == 0:
    os.close(terminal)
    text = b"".join(b"%05d some text that is pasted\n" % line for line in range(lines)) + b"\x04"
    while text:
        text = text[os.write(keyboard, text) :]
    time.sleep(60)
    os._exit(0)
time.sleep(0.02)
typed = b""


def getch():
    """The next key."""
    global typed
    if not typed:
        select.select([terminal], [], [])
        typed = os.read(terminal, 4096 if way == "cured" else 1)
    key, typed = typed[0], typed[1:]
    return key


keys = total = 0
while (key := getch()) != 4:
    keys += 1
    total = (total * 31 + key) % 65521
os.kill(pid, signal.SIGKILL)
os.waitpid(pid, 0)
print(keys, "keys,", total)
