"""Attaches to running processes by ptrace: calls are counted from the moment they are entered, and they run on as before.

The same program as in `attach` looks whether anything it sees has changed. Nothing of systoll is ever in the process, so these
tests run on every kind of machine."""
import contextlib
import json
import os
import random
import signal
import time

from harness import test, text, tool, wait_for
from suites.attach import Running, calls, is_as_it_was, is_fine


def tasks(pid):
    with contextlib.suppress(FileNotFoundError):
        return os.listdir(f"/proc/{pid}/task")
    return []


def field(pid, tid, name, file="status"):
    with open(f"/proc/{pid}/task/{tid}/{file}") as f:
        return next(line.split()[1] for line in f if line.startswith(name + ":"))


def tracers(pid):
    """Returns the tracers of a process's threads, 0 for none."""
    found = set()
    for tid in tasks(pid):
        with contextlib.suppress(OSError):
            found.add(int(field(pid, tid, "TracerPid")))
    return found


def reads(pid):
    """Returns how often the first thread has returned from a read, even if that begins anew."""
    return int(field(pid, pid, "syscr", "io"))


def attach(box, pid, *flags):
    """Starts systoll on a process. Returns its Popen and the path of its JSON."""
    out = os.path.join(box.dir, f"attached-{pid}.json")
    with contextlib.suppress(FileNotFoundError):
        os.unlink(out)
    return box.start([box.systoll, "attach", "--backend", "ptrace", "-q", *flags, "--json", "-o", out, str(pid)], stdin=-3, stdout=-1, stderr=-1), out


def watching(box, pid, *flags, waits=True):
    """Starts systoll on a process. Returns its Popen and the path of its JSON once every thread is traced, and the first one,
    if it `waits` in a read, was stopped in it: it makes no call any more that is not counted."""
    before = reads(pid)
    p, out = attach(box, pid, *flags)
    wait_for(lambda: p.poll() is not None or tracers(pid) == {p.pid} and (not waits or reads(pid) > before), "systoll did not enter")
    assert p.poll() is None, p.communicate()
    return p, out


def document(p, out):
    _, err = p.communicate(timeout=100)
    assert p.returncode == 0 and "panicked" not in text(err), (p.returncode, err)
    with open(out) as f:
        return json.load(f)


def watched(box, pid, during, *flags, waits=True):
    """Returns the report on a process that was watched during `during`."""
    p, out = watching(box, pid, *flags, waits=waits)
    during()
    p.send_signal(signal.SIGINT)
    return document(p, out)


def is_left(pid):
    assert tracers(pid) == {0}, tracers(pid)
    is_as_it_was(pid)


@test()
def what_it_does_meanwhile_is_counted_and_nothing_else(box):
    run = Running(box, "0")
    assert run.ask("ppid 77") == "done"

    def during():
        for line in ("ppid 1000", "stat 300", "fail 7", "thread 5", "fork 4"):
            assert run.ask(line) == "done"

    doc = watched(box, run.pid, during)
    # A thread and a child each make one call more.
    assert calls(doc, "getppid") == 1000 + 5 + 4, doc["by_syscall"]
    assert doc["exact"] and doc["lost"] == 0 and doc["backend"] == "ptrace", doc["problems"]
    assert calls(doc, "newfstatat") == 300
    opened = next(row for row in doc["by_syscall"] if row["syscall"] == "openat")
    assert (opened["calls"], opened["errors"]) == (7, {"ENOENT": 7}), opened
    assert doc["attached"]["left_running"] and doc["exit"] is None
    is_left(run.pid)
    assert run.ask("ppid 5") == "done"
    is_fine(run)


@test()
def children_are_left_out_where_they_are_not_wanted(box):
    run = Running(box, "0")

    def during():
        for line in ("ppid 300", "fork 7", "ppid 200"):
            assert run.ask(line) == "done"

    doc = watched(box, run.pid, during, "--no-children")
    # Each child makes one more.
    assert calls(doc, "getppid") == 500, doc["by_syscall"]
    assert len(doc["processes"]) == 1 and doc["exact"], (doc["processes"], doc["problems"])
    is_left(run.pid)
    is_fine(run)
    shell = box.start(["/bin/sh", "-c", "while read line; do /bin/true; echo done; done"], stdin=-1, stdout=-1)
    time.sleep(0.2)

    def programs():
        for _ in range(3):
            shell.stdin.write(b"go\n")
            shell.stdin.flush()
            assert shell.stdout.readline() == b"done\n"

    for flags in ((), ("--no-children",)):
        doc = watched(box, shell.pid, programs, *flags)
        exes = {os.path.basename(p["exe"]) for p in doc["processes"]}
        assert ("true" in exes) == (not flags) and not [p for p in doc["problems"] if "unwatched" in p], (exes, doc["problems"])
        is_left(shell.pid)
    shell.stdin.close()
    assert shell.wait(20) == 0


@test()
def threads_are_counted_each(box):
    run = Running(box, "4")
    per_thread = 500
    doc = watched(box, run.pid, lambda: run.ask(f"all {per_thread}"))
    # The workers make calls of getppid all the time, besides those that were asked for.
    assert calls(doc, "getppid") > 4 * per_thread and doc["exact"], (doc["by_syscall"], doc["problems"])
    is_left(run.pid)
    is_fine(run)


@test()
def waits_are_as_long_as_asked_and_signals_come_as_before(box):
    """The program makes eight kinds of calls that wait, and gets a signal 100 times a second."""
    run = Running(box, "2", "timer", "100", "sleepers")
    for _ in range(3):
        watched(box, run.pid, lambda: time.sleep(0.7), waits=False)
        is_left(run.pid)
    time.sleep(1.6)
    is_fine(run)


@test()
def often_in_and_out(box):
    run = Running(box, "2", "timer", "100", "sleepers")
    for n in range(100 if box.shared.long else 8):
        p, _ = attach(box, run.pid, "--for", "0.05s")
        _, err = p.communicate(timeout=60)
        assert p.returncode == 0, (n, err)
        is_left(run.pid)
    assert run.ask("ppid 3") == "done"
    is_fine(run)


@test()
def systoll_is_killed_at_any_moment(box):
    """The kernel lets the program go, which runs on with nothing to take out."""
    run = Running(box, "2", "timer", "100", "sleepers", "killed")
    chance = random.Random(7)
    for n in range(100 if box.shared.long else 10):
        p, _ = attach(box, run.pid, "--for", "0.02s")
        time.sleep(chance.random() * 0.6)
        p.kill()
        p.wait()
        assert run.process.poll() is None, f"round {n}: ended by {run.process.returncode}"
        assert run.ask("ppid 10") == "done"
        is_left(run.pid)
    is_fine(run)


@test()
def a_program_that_ends_meanwhile_ends_the_watching(box):
    run = Running(box, "0")
    p, out = watching(box, run.pid)
    assert run.ask("ppid 100") == "done" and run.end() == 0
    doc = document(p, out)
    assert calls(doc, "getppid") == 100 and not doc["attached"]["left_running"]


@test()
def the_watching_ends_after_so_many_calls(box):
    run = Running(box, "1")
    p, out = attach(box, run.pid, "--calls", "500")
    doc = document(p, out)
    assert doc["calls"] >= 500 and doc["attached"]["left_running"], doc["calls"]
    is_left(run.pid)
    is_fine(run)


@test()
def a_stopped_process_stays_stopped(box):
    run = Running(box, "1")
    os.kill(run.pid, signal.SIGSTOP)
    wait_for(lambda: field(run.pid, run.pid, "State") == "T", "the process did not stop")
    p, out = attach(box, run.pid, "--for", "0.5s")
    doc = document(p, out)
    assert doc["calls"] == 0, doc["by_syscall"]
    is_left(run.pid)
    assert field(run.pid, run.pid, "State") == "T"
    os.kill(run.pid, signal.SIGCONT)
    is_fine(run)


@test()
def what_may_not_be_entered_is_refused_with_a_reason(box):
    run = Running(box, "1")

    def refused(pid):
        r = box.run([box.systoll, "attach", "--backend", "ptrace", "--for", "1s", str(pid)])
        assert r.returncode == 125 and not r.stdout, (r.returncode, r.stdout)
        return text(r.stderr)

    thread = next(tid for tid in tasks(run.pid) if int(tid) != run.pid)
    said = refused(thread)
    assert f"it is a thread of process {run.pid}" in said and f"systoll attach {run.pid}" in said, said
    other = box.start([tool("strace"), "-f", "-o", "/dev/null", "-p", str(run.pid)], stderr=-1)
    wait_for(lambda: tracers(run.pid) == {other.pid}, "strace did not enter")
    said = refused(run.pid)
    assert f"process {other.pid} (strace) traces it already" in said, said
    other.send_signal(signal.SIGINT)
    other.communicate(timeout=60)
    wait_for(lambda: tracers(run.pid) == {0}, "strace did not leave")
    is_fine(run)
    said = refused(run.pid)
    assert "no process" in said or "no such process" in said, said


@test(users=("nobody",))
def nobody_enters_what_is_another_users(box):
    r = box.run([box.systoll, "attach", "--backend", "ptrace", "--for", "1s", "1"])
    said = text(r.stderr)
    assert r.returncode == 125 and "it belongs to another user" in said and "sudo systoll attach" in said, said


SCRIPT = """
import os
def work():
    os.stat("/etc")
print("ready", flush=True)
while True:
    work()
"""


@test()
def functions_of_a_running_script_are_named(box):
    p = box.start(["/usr/bin/python3", "-c", SCRIPT], stdin=-3, stdout=-1)
    assert p.stdout.readline() == b"ready\n"
    doc = watched(box, p.pid, lambda: time.sleep(0.5), waits=False)
    assert calls(doc, "newfstatat") > 20 and doc["exact"], (doc["by_syscall"], doc["problems"])
    frames = {f for row in doc["rows"] if row["syscall"] == "newfstatat" for f in row["stack"]}
    assert any("work" in f for f in frames), frames
    is_left(p.pid)
    assert p.poll() is None
    p.kill()
    p.communicate()
