"""`systoll explain --why-not` names the reason for which healthy calls that resemble a waste are kept silent."""
import json
import os

from harness import test, text

# Of each program: the call that resembles a waste, the reason that most of its calls must have, and the code. The line that makes the
# call ends with `# here`.
PROGRAMS = {
    "dialogue": ("write", "data-between", """
import os, socket
a, b = socket.socketpair()
for i in range(3000):
    os.write(a.fileno(), b"ask")  # here
    os.read(b.fileno(), 100)
"""),
    "stored": ("write", "stored-between", """
import os
f = os.open("log", os.O_CREAT | os.O_WRONLY)
for i in range(1500):
    os.write(f, b"line")  # here
    os.fdatasync(f)
"""),
    "mapped": ("pwrite64", "mapped-file", """
import mmap, os
f = os.open("rows", os.O_CREAT | os.O_RDWR)
os.truncate(f, 1 << 20)
m = mmap.mmap(f, 1 << 20)
for i in range(3000):
    os.pwrite(f, b"row " * 10, 40 * i)  # here
"""),
    "changing": ("newfstatat", "not-known", """
import os
open("state", "w").close()
for i in range(3000):
    os.utime("state", (i, i))
    os.stat("state")  # here
"""),
    "followed": ("newfstatat", "followed-file", """
import os
f = os.open("log", os.O_CREAT | os.O_RDONLY)
for i in range(3000):
    os.read(f, 4096)
    os.stat("log")  # here
"""),
    "locked": ("flock", "lock-is-wanted", """
import fcntl, os
f = open("lock", "w")
child = os.fork()
f = open("lock", "r+")
for i in range(2000):
    fcntl.flock(f, fcntl.LOCK_EX)  # here
    fcntl.flock(f, fcntl.LOCK_UN)
if child: os.wait()
"""),
    "shown": ("openat", "shown-between", """
import os
r, w = os.pipe()
for i in range(1500):
    f = os.open("status", os.O_CREAT | os.O_TRUNC | os.O_WRONLY)  # here
    os.write(f, b"%d" % i)
    os.close(f)
    os.write(w, b"look")
    os.read(r, 4)
"""),
    "masked": ("rt_sigprocmask", "keeps-signals-away", """
import signal
signal.signal(signal.SIGALRM, lambda *a: None)
signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
for i in range(20000):
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])  # here
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGALRM])
signal.setitimer(signal.ITIMER_REAL, 0)
"""),
}


def kept(box, name, code):
    """Returns the recording of a program, and the line that ends with `# here`."""
    path = box.file(f"{name}.py", code)
    line = next(n for n, line in enumerate(code.split("\n"), 1) if line.endswith("# here"))
    recording = os.path.join(box.dir, f"{name}.systoll")
    r = box.run([box.systoll, "run", "--save", recording, "--", "/usr/bin/python3", path])
    assert r.returncode == 0, text(r.stderr)
    return recording, line


def explained(box, what, recording, *flags):
    r = box.run([box.systoll, "explain", "--why-not", what, recording, *flags])
    assert r.returncode == 0, text(r.stderr)
    return text(r.stdout)


@test()
def a_healthy_call_s_reason_is_named(box):
    for name, (call, reason, code) in PROGRAMS.items():
        recording, line = kept(box, name, code)
        doc = json.loads(explained(box, f"{name}.py:{line}", recording, "--json"))
        of_call = [place for place in doc["places"] if place["syscall"] == call and place["calls"] >= 1000]
        assert of_call, (name, doc)
        reasons = {why["reason"]: why["calls"] for place in of_call for why in place["silent"]}
        seen = sum(place["sampled"] for place in of_call)
        assert reasons.get(reason, 0) > seen / 3, (name, seen, of_call)
        assert f"{reason}:" in explained(box, call, recording).replace("\n", " "), name


@test()
def what_is_reported_is_said_to_be(box):
    code = "import os\nfor i in range(20000):\n    os.getppid()  # here\n"
    recording, line = kept(box, "ids", code)
    shown = explained(box, f"ids.py:{line}", recording)
    assert "getppid at ids.py:3: 20,000 calls" in shown and "identity-per-op" in shown, shown
    r = box.run([box.systoll, "explain", "--why-not", "frobnicate", recording])
    assert r.returncode != 0 and "frobnicate" in text(r.stderr), text(r.stderr)
