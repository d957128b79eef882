"""No line of any screen is wider than a terminal of 60, 80, 120 or 200 columns, if it can break."""
import fcntl
import os
import pty
import re
import select
import struct
import termios
import time

from harness import test, text

WIDTHS = (60, 80, 120, 200)
LIMIT = 100
# Lines that may be longer, because they are code or must be pasted as they stand.
WHOLE = re.compile(r"^\s*(keep it|docker|kubernetes|systemd|shell|Environment=|ENV |export |LD_PRELOAD=)|^ {15}|https://")
SICK = "import time, os\nfor i in range(3000):\n    print(i, time.localtime(i).tm_hour, os.getpid() > 0, flush=True)\n"


def at_terminal(box, argv, width):
    """Returns what a command writes to a terminal of so many columns, as lines without colours."""
    pid, fd = pty.fork()
    if pid == 0:
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 50, width, 0, 0))
        os.chdir(box.dir)
        os.execvpe(argv[0], argv, dict(box.env, TERM="xterm"))
    seen, end = b"", time.monotonic() + LIMIT
    while time.monotonic() < end:
        if not select.select([fd], [], [], 1)[0]:
            continue
        try:
            piece = os.read(fd, 65536)
        except OSError:
            break
        if not piece:
            break
        seen += piece
    os.close(fd)
    os.waitpid(pid, 0)
    plain = re.sub(rb"\x1b(\[[0-9;?]*[A-Za-z]|[()][A-Z0-9])", b"", seen)
    # Text that a progress line wrote over is not seen; a line that ends with a carriage return is one line.
    return [line.rstrip("\r").rsplit("\r", 1)[-1] for line in text(plain).split("\n")]


def columns(line):
    return len(line)


def wide(box, argv, width):
    def breaks(line):
        # A single word, or an indented one, can't be broken.
        return len(line.split()) > 1 and not WHOLE.search(line)

    return [line for line in at_terminal(box, argv, width) if columns(line) > width and breaks(line)]


def hold(box, commands, widths=WIDTHS):
    wrong = []
    for argv in commands:
        for width in widths:
            lines = wide(box, [box.systoll, *argv], width)
            if lines:
                wrong.append((" ".join(argv), width, lines[:3]))
    assert not wrong, "\n".join(map(repr, wrong))


@test(users=("root",))
def reports(box):
    script = box.file("sick.py", SICK)
    record = os.path.join(box.dir, "sick.rec")
    r = box.run([box.systoll, "run", "-q", "--save", record, "--", "/usr/bin/python3", script])
    assert r.returncode == 0, text(r.stderr)
    kinds = ("caller", "api", "library", "line", "process", "thread", "fd")
    hold(
        box,
        [
            ["report", record],
            ["report", "--all", record],
            ["report", "-k", record],
            ["report", "--fds", record],
            *(["report", "--by", kind, record] for kind in kinds),
            ["diff", record, record],
        ],
    )
    # strace's table has strace's columns.
    hold(box, [["report", "-c", record], ["report", "-c", "-w", record]], (80, 120, 200))


@test(users=("root",))
def commands_that_run(box):
    hold(
        box,
        [
            ["run", "--", "/bin/ls", "/"],
            ["prove", "--pairs", "8", "--watched", "1", "--vs", "true", "--", "sh", "-c", ":"],
            ["prove", "--pairs", "8", "--vs", "echo a", "--", "echo", "b"],
            ["prove", "--limit", "1s", "--vs", "sleep 0.3", "--", "sleep", "0.4"],
            ["prove", "--cure", "tz-unset", "--", "/bin/true"],
        ],
    )


@test(users=("root",))
def pages(box):
    words = ("run", "report", "import", "prove", "diff", "check", "bisect", "cure", "demo", "box", "doctor", "explain", "causes", "completions")
    hold(
        box,
        [
            ["causes"],
            ["doctor"],
            ["explain", "tz-unset"],
            ["explain", "process-per-item"],
            ["cure", "--print", "tz-unset"],
            ["--help"],
            *([word, "--help"] for word in words),
            ["explain", "tz-unsett"],
            ["nonsense"],
            ["run", "-e", "opennat", "--", "true"],
        ],
    )
