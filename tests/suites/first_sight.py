"""The first lines of a report: a healthy program gets two, what takes most of the time is named, a port means a whole
server, and reports go where nothing else is written."""
import json
import os
import socket
import subprocess
import time

from harness import test, text, tool

HEALTHY = (["true"], ["ls", "-la", "/etc"], ["sort", "/etc/passwd"], ["awk", "BEGIN { print 1 }"], ["gzip", "-kc", "/etc/passwd"], ["find", "/etc", "-maxdepth", "1"],
           ["tar", "cf", "out.tar", "/etc/passwd"], ["grep", "-r", "root", "/etc/apt"], ["cat", "/etc/hostname"], ["id"], ["date"], ["uname", "-a"])


def free_port():
    """Returns a port on which nothing listens."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def until(what, limit=60):
    """Waits until `what` returns true."""
    end = time.monotonic() + limit
    while not what():
        assert time.monotonic() < end, "it never was so"
        time.sleep(0.02)


def report(box, argv, *flags, **kwargs):
    """Returns the report on a program, in lines of 100 columns."""
    r = box.run(box.watch(argv, *flags), env={**box.env, "COLUMNS": "100"}, **kwargs)
    return text(r.stderr[r.stderr.rindex(b"systoll  "):]).splitlines()


@test(users=("root",))
def a_healthy_program_gets_two_lines(box):
    for name, *arguments in HEALTHY:
        lines = report(box, [tool(name), *arguments])
        assert len(lines) == 2 and "nothing found worth your time: " in lines[1], (name, lines)
        assert len(report(box, [tool(name), *arguments], "--all")) > 3, name


SLEEPS = """import time
def nap():
    time.sleep(1.2)
nap()
"""


@test()
def a_sleep_is_named_with_its_line(box):
    with open(os.path.join(box.dir, "nap.py"), "w") as f:
        f.write(SLEEPS)
    lines = report(box, ["/usr/bin/python3", "nap.py"])
    said = " ".join(" ".join(lines).split())
    assert "nothing found worth your time" not in said, lines
    assert "of the time is spent waiting in" in said and "nanosleep" in said and "nap.py:3 in nap" in said, lines


@test(users=("root",))
def a_port_means_a_server_with_its_workers(box):
    port = free_port()
    code = (f"import os, socket, time\ns = socket.socket(); s.bind(('127.0.0.1', {port})); s.listen()\n"
            "if os.fork() == 0:\n    s.close()\n    while True: time.sleep(0.05)\n"
            "if os.fork() == 0: os.execv('/bin/sleep', ['sleep', '60'])\n"
            "while True: time.sleep(0.05)\n")
    p = box.start(["/usr/bin/python3", "-c", code], stdin=-3, start_new_session=True)
    try:
        until(lambda: len(children(p.pid)) == 2 and any(name(pid) == "sleep" for pid in children(p.pid)))
        worker, other = sorted(children(p.pid), key=lambda pid: name(pid) == "sleep")
        r = box.run([box.systoll, "attach", "--for", "0.5s", "--json", f":{port}"])
        assert r.returncode == 0, r.stderr
        doc = json.loads(r.stdout)
        pids = {process["pid"] for process in doc["processes"]}
        assert pids == {p.pid, worker}, (pids, p.pid, worker, other)
        assert any("1 descendant" in problem and "--tree" in problem for problem in doc["problems"]), doc["problems"]
        r = box.run([box.systoll, "attach", "--for", "0.5s", str(p.pid)])
        assert b"2 descendants" in r.stdout and b"systoll  " not in r.stderr, (r.stdout, r.stderr)
        r = box.run([box.systoll, "attach", "--for", "0.5s", "--tree", "--json", str(p.pid)])
        assert {process["pid"] for process in json.loads(r.stdout)["processes"]} >= {p.pid, worker}, r.stdout
    finally:
        os.killpg(p.pid, 9)
        p.wait()


def children(pid):
    """Returns the ids of a process's children."""
    found = []
    for entry in os.listdir("/proc"):
        try:
            with open(f"/proc/{entry}/stat") as f:
                stat = f.read()
        except OSError:
            continue
        if entry.isdigit() and int(stat.rsplit(")", 1)[1].split()[1]) == pid:
            found.append(int(entry))
    return found


def name(pid):
    """Returns the name of a process; empty if it has ended."""
    try:
        with open(f"/proc/{pid}/comm") as f:
            return f.read().strip()
    except OSError:
        return ""


@test(users=("root",))
def a_trace_on_standard_input_needs_no_name(box):
    trace = b'openat(AT_FDCWD, "/etc/hostname", O_RDONLY) = 3\nread(3, "a\\n", 4096) = 2\nclose(3) = 0\n' * 4
    r = box.run([box.systoll, "import"], input=trace)
    assert r.returncode == 0 and b"12 system calls" in r.stdout, (r.returncode, r.stdout, r.stderr)


@test(users=("root",))
def a_suggestion_is_like_what_was_typed(box):
    said = text(box.run([box.systoll, "run", "--nope", "--", "true"]).stderr)
    assert "similar" not in said, said
    assert "--json" in text(box.run([box.systoll, "run", "--jsno", "--", "true"]).stderr)


@test(users=("root",))
def help_groups_hold_what_they_say(box):
    for command in ("run", "attach"):
        shown = text(box.run([box.systoll, command, "--help"]).stdout)
        fleet = shown.split("In a fleet")[1].split("Examples:")[0]
        options = {word for word in fleet.replace(",", " ").split() if word.startswith("-")}
        assert options <= {"--service", "--release", "--host"}, options
        assert subprocess.call([box.systoll, command, "--rounds", "--help"], stdout=-3) == 0


@test(users=("root",))
def long_calls_leave_out_waiting_for_work(box):
    code = "import threading, time\nlock = threading.Event()\nt = threading.Thread(target=lambda: [time.sleep(0.03) for _ in range(5)] and lock.set())\nt.start()\nlock.wait()\nt.join()\n"
    lines = report(box, ["/usr/bin/python3", "-c", code], "--longer", "20ms")
    listed = [line for line in lines if "   at +" in line]
    assert len(listed) >= 5 and not any("futex" in line for line in listed), lines
    assert any("waited for work" in line and "futex" in line for line in lines), lines
    every = report(box, ["/usr/bin/python3", "-c", code], "--longer", "20ms", "--all")
    assert any("futex" in line and "   at +" in line for line in every), every
