"""run --until: a program is watched until it is ready, and the report is about its start alone."""
import json
import os
import pty
import signal
import subprocess
import time

from harness import BOTH, test
from suites.attach import free_port

# A server that searches, waits and reads before it listens, says that it does, and answers.
SERVER = """import os, signal, socket, sys, time
ended = lambda *_: (os.write(1, b"ended\\n"), os._exit(3))
signal.signal(signal.SIGTERM, ended)
for i in range(300): os.path.exists("/no/such/folder/%d" % i)
time.sleep(0.08)
s = socket.create_server(("127.0.0.1", int(sys.argv[1])))
os.write(1, b"[info] liste")
os.write(1, b"ning now\\n")
open("pid", "w").write(str(os.getpid()))
status = [b"503 Not yet", b"200 OK"]
while True:
    c, _ = s.accept()
    os.path.islink("/later")
    c.recv(1000)
    c.sendall(b"HTTP/1.1 " + (status.pop(0) if len(status) > 1 else status[0]) + b"\\r\\nContent-Length: 2\\r\\n\\r\\nok")
    c.close()
"""

def until(box, sign, command, *options, code=0, **kwargs):
    """Returns the report on a command up to a sign, and the result of the run."""
    r = run(box, box.watch(command, "--until", sign, "--json", "-o", "report.json", *options), code, **kwargs)
    with open(os.path.join(box.dir, "report.json")) as f:
        return json.load(f), r


def run(box, argv, code, **kwargs):
    r = box.run(argv, **kwargs)
    assert r.returncode == code, (r.returncode, r.stderr)
    return r


def server(box):
    box.file("server.py", SERVER)
    port = str(free_port())
    return ["/usr/bin/python3", "server.py", port], port


def looks_later(report):
    """Returns true if calls are in the report that the server makes only for a request."""
    return any(row["syscall"] in ("lstat", "accept4") and row["calls"] for row in report["rows"])


def is_about_the_start(report):
    assert report["until"]["seen"] and report["exit"] is None, report["until"]
    assert 70e6 < report["wall_ns"] < 20e9, report["wall_ns"]
    waited = {}
    for part in report["wall"]["waits"]:
        waited[part["waits_for"]] = waited.get(part["waits_for"], 0) + part["ns"]
    assert waited.get("clock", 0) >= 60e6, waited
    searched = {one["by"]: one["missing"] for one in report["start"]["searched"]}
    assert searched.get("python", 0) >= 300, searched
    assert report["start"]["opened"] > 0 and report["problems"] == [p for p in report["problems"] if "left running" not in p]


@test(backends=BOTH)
def the_start_of_a_server_ends_where_it_listens(box):
    command, port = server(box)
    report, r = until(box, "port:" + port, command)
    is_about_the_start(report)
    # It got SIGTERM, and ended by itself.
    assert r.stdout.endswith(b"ended\n"), r.stdout
    assert report["until"]["sign"] == "port:" + port


@test(backends=BOTH)
def a_line_is_seen_in_whatever_the_output_is(box):
    """A pipe, a file and a terminal get the same bytes as without systoll."""
    command, port = server(box)
    said = b"[info] listening now\n"
    report, r = until(box, "line:listening", command)
    is_about_the_start(report)
    assert r.stdout == said + b"ended\n" and not looks_later(report), r.stdout
    with open(os.path.join(box.dir, "out"), "wb") as out:
        report, r = until(box, "line:[info] listening", command, stdout=out)
    is_about_the_start(report)
    with open(os.path.join(box.dir, "out"), "rb") as out:
        assert out.read() == said + b"ended\n"


@test()
def a_terminal_stays_the_programs(box):
    command, port = server(box)
    ours, theirs = pty.openpty()
    report, r = until(box, "line:listening", command, stdout=theirs)
    os.close(theirs)
    is_about_the_start(report)
    assert os.read(ours, 1000).replace(b"\r\n", b"\n") == b"[info] listening now\nended\n"
    os.close(ours)


@test(backends=BOTH)
def a_file_and_an_answer_are_signs(box):
    command, port = server(box)
    report, r = until(box, "file:pid", command)
    is_about_the_start(report)
    assert not looks_later(report)
    # The file that an earlier run left is no sign; this run writes it anew.
    report, r = until(box, "file:pid", command)
    is_about_the_start(report)
    report, r = until(box, "answer:%s/health" % port, command)
    is_about_the_start(report)
    # The first answer says that it can't serve yet.
    assert sum(row["calls"] for row in report["rows"] if row["syscall"] == "accept4") >= 2


@test(backends=BOTH)
def main_begins_after_the_loader_and_the_interpreter(box):
    program = box.build("before_main.c")
    report, r = until(box, "main", [program])
    calls = {t["syscall"]: t["calls"] for t in report["by_syscall"]}
    assert report["until"]["seen"] and calls.get("getppid") == 50 and calls.get("getpgrp", 0) < 20, calls
    box.file("app.py", "import os, time\nos.stat('/own')\nwhile True: time.sleep(0.01)\n")
    report, r = until(box, "main", ["/usr/bin/python3", "app.py"])
    assert report["until"]["seen"] and report["wall_ns"] < 20e9
    opened = sum(t["calls"] for t in report["by_syscall"] if t["syscall"] == "openat")
    assert opened > 5 and not any(t["syscall"] == "clock_nanosleep" for t in report["by_syscall"]), report["by_syscall"]


@test()
def a_command_that_is_kept_goes_on(box):
    command, port = server(box)
    # What it writes to must not be a pipe, of which nobody would see the end.
    with open(os.path.join(box.dir, "out"), "wb") as out:
        report, r = until(box, "port:" + port, command, "--keep", stdout=out, stderr=out)
    assert report["until"]["seen"] and any("left running" in p for p in report["problems"]), report["problems"]
    with open(os.path.join(box.dir, "pid")) as f:
        pid = int(f.read())
    os.kill(pid, 0)
    os.kill(pid, signal.SIGKILL)


@test(backends=("inproc",))
def a_thread_that_asked_at_the_end_goes_on(box):
    """It would stand still for a quarter of a second, and make its call after a signal that was to interrupt the call."""
    box.file("accepts.py", """import os, signal, socket, sys
signal.signal(signal.SIGTERM, lambda *_: os._exit(3))
s = socket.create_server(("127.0.0.1", 0))
with open("new", "w") as f: f.write(str(os.getpid()))
os.rename("new", sys.argv[1])
while True: s.accept()
""")
    for n in range(30):
        ready = os.path.join(box.dir, "ready%d" % n)
        with open(os.path.join(box.dir, "out"), "wb") as out:
            until(box, "file:" + ready, ["/usr/bin/python3", "accepts.py", ready], "--keep", stdout=out, stderr=out)
        with open(ready) as f:
            pid = int(f.read())
        time.sleep(0.02)
        os.kill(pid, signal.SIGTERM)
        began = time.monotonic()
        while runs(pid) and time.monotonic() - began < 5:
            time.sleep(0.005)
        if runs(pid):
            os.kill(pid, signal.SIGKILL)
            raise AssertionError("the signal did not interrupt accept, run %d" % n)


def runs(pid):
    try:
        with open("/proc/%d/stat" % pid) as f:
            return f.read().rsplit(")")[1].split()[0] not in "ZX"
    except OSError:
        return False


@test()
def processes_of_the_command_end_too_and_one_that_stays_is_killed(box):
    box.file("stays.sh", "trap '' TERM\nsleep 100 & echo $! > child\nexec 1>ready\nwhile :; do sleep 1; done\n")
    began = time.time()
    report, r = until(box, "file:ready", ["/bin/sh", "stays.sh"])
    assert report["until"]["seen"] and time.time() - began < 60
    with open(os.path.join(box.dir, "child")) as f:
        pid = int(f.read())
    assert not os.path.exists("/proc/%d" % pid) or open("/proc/%d/stat" % pid).read().rsplit(")")[1].split()[0] == "Z"


@test()
def what_can_not_be_awaited_is_said(box):
    report, r = until(box, "line:never", ["/bin/echo", "hello"], code=125)
    assert b"line:never was not seen" in r.stderr and not report["until"]["seen"] and report["exit"] == {"code": 0}
    report, r = until(box, "line:never", ["/bin/sh", "-c", "exit 7"], code=7)
    assert b"was not seen" in r.stderr
    box.file("listen.py", "import socket, sys, time\ns = socket.create_server(('127.0.0.1', 0))\nprint(s.getsockname()[1], flush=True)\ntime.sleep(30)\n")
    other = subprocess.Popen(["/usr/bin/python3", os.path.join(box.dir, "listen.py")], stdout=subprocess.PIPE)
    try:
        port = other.stdout.readline().decode().strip()
        r = run(box, box.watch(["/bin/echo", "hello"], "--until", "port:" + port), 125)
        assert b"another program listens" in r.stderr and r.stdout == b"", r.stderr
    finally:
        other.kill()
        other.wait()
    for wrong in ("8080", "port:x", "line:", "soon"):
        r = run(box, box.watch(["/bin/echo", "hello"], "--until", wrong), 125)
        assert r.stdout == b"" and b"--until" in r.stderr, r.stderr
