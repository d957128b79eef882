"""Running processes in which something is unusual when they are entered, while they are watched, or when they are left:
nothing is left in them without a word, and no count is called exact that is not."""
import contextlib
import json
import os
import signal
import subprocess
import time

from harness import Skip, test, text, tool, wait_for
from suites.attach import Running, attach, calls, changed_code, is_as_it_was, is_fine, is_hooked, maps, ours_in, watched

CGROUPS = "/sys/fs/cgroup"


@test()
def calls_of_code_in_no_file_are_not_called_exact(box):
    for where in ("copy", "private", "shared", "deleted", "memfd", "any", "patched"):
        run = Running(box, where, program="code_in_no_file.c")
        doc = watched(box, run.pid, lambda: run.ask("500"))
        counted = calls(doc, "getppid" if where == "patched" else "getpid")
        assert counted == 500 or not doc["exact"] and doc["problems"], (where, counted, doc["problems"])
        assert not ours_in(run.pid) and run.end() == 0


@test()
def a_program_without_such_code_is_exact(box):
    run = Running(box, "0")
    doc = watched(box, run.pid, lambda: run.ask("ppid 5"))
    assert doc["exact"] and not any("in no file" in p for p in doc["problems"]), doc["problems"]
    is_fine(run)


@test()
def what_forked_siblings_have_elsewhere_is_not_taken_for_ours(box):
    doc, _ = box.report([box.build("forked_cancel.c"), "30", "200"])
    assert doc["exact"] and calls(doc, "getpgid") == 30 * 200, (calls(doc, "getpgid"), doc["problems"])


@test()
def sampled_times_of_calls_under_way_make_sense(box):
    for _ in range(3):
        run = Running(box, "3", program="busy_calls.c")
        doc = watched(box, run.pid, lambda: time.sleep(0.3), "--time", "sampled")
        assert doc["exact"], doc["problems"]
        assert not any("make no sense" in problem for problem in doc["problems"]), doc["problems"]
        assert run.end() == 0


def stays_halted(pid):
    """Asserts that a process is stopped by a signal. A thread that is let go stops again within a moment."""
    def halted():
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rsplit(")", 1)[1].split()[0] == "T"

    wait_for(halted, "it was made to go on", 2)


@test()
def a_process_that_is_stopped_meanwhile_is_left_as_it_was(box):
    run = Running(box, "0")
    p, out = attach(box, run.pid, "--for", "5s")
    wait_for(lambda: is_hooked(run.pid) or p.poll() is not None)
    assert run.ask("ppid 9") == "done"
    # The process waits in a call of its own again. In the middle of systoll's code it could not be left while it is stopped.
    time.sleep(1)
    os.kill(run.pid, signal.SIGSTOP)
    _, err = p.communicate(timeout=60)
    assert p.returncode == 0, (p.returncode, text(err))
    is_as_it_was(run.pid)
    stays_halted(run.pid)
    with open(out) as f:
        assert calls(json.load(f), "getppid") == 9
    os.kill(run.pid, signal.SIGCONT)
    assert run.ask("ppid 9") == "done"
    is_fine(run)


@test()
def what_a_killed_systoll_left_in_a_stopped_process_is_taken_out(box):
    run = Running(box, "0")
    p, _ = attach(box, run.pid)
    wait_for(lambda: is_hooked(run.pid) or p.poll() is not None)
    p.kill()
    p.communicate(timeout=20)
    # A thread that waited for the answer of the killed systoll comes out of its code before the process is stopped.
    assert run.ask("ppid 9") == "done"
    time.sleep(1)
    os.kill(run.pid, signal.SIGSTOP)
    assert ours_in(run.pid)
    r = box.run([box.systoll, "attach", "--clean", str(run.pid)])
    assert r.returncode == 0, text(r.stderr)
    is_as_it_was(run.pid)
    stays_halted(run.pid)
    os.kill(run.pid, signal.SIGCONT)
    assert run.ask("ppid 9") == "done"
    is_fine(run)


@contextlib.contextmanager
def group(controller, pid):
    """A control group of a process's own: of the first version with this controller. Gives its folder."""
    folder = os.path.join(CGROUPS, controller, f"systoll-test-{pid}")
    try:
        os.mkdir(folder)
    except OSError as e:
        raise Skip(f"no control group of {controller} (version 1) can be made: {e.strerror}") from e
    try:
        put(folder, "tasks", pid)
        yield folder
    finally:
        with contextlib.suppress(OSError):
            put(os.path.dirname(folder), "tasks", pid)
        os.rmdir(folder)


def put(folder, file, value):
    with open(os.path.join(folder, file), "w") as f:
        f.write(str(value))


@test(users=("root",))
def a_frozen_process_is_not_said_to_be_refused_by_the_kernel(box):
    run = Running(box, "0")
    with group("freezer", run.pid) as folder:
        put(folder, "freezer.state", "FROZEN")
        try:
            began = time.monotonic()
            r = box.run([box.systoll, "attach", "--for", "1s", str(run.pid)])
            took = time.monotonic() - began
        finally:
            put(folder, "freezer.state", "THAWED")
    said = text(r.stderr)
    assert r.returncode == 125 and "does not stop" in said and "frozen" in said and "SYS_PTRACE" not in said, said
    assert took > 1.5, f"it waited {took:.2f} s only"
    is_as_it_was(run.pid)
    assert run.ask("ppid 3") == "done"
    is_fine(run)


@test(users=("root",))
def a_process_that_is_frozen_while_it_is_watched_is_not_said_to_be_as_it_was(box):
    run = Running(box, "0")
    with group("freezer", run.pid) as folder:
        p, _ = attach(box, run.pid, "--for", "1500ms")
        wait_for(lambda: is_hooked(run.pid) or p.poll() is not None)
        put(folder, "freezer.state", "FROZEN")
        try:
            _, err = p.communicate(timeout=60)
        finally:
            put(folder, "freezer.state", "THAWED")
    assert p.returncode == 125 and f"systoll attach --clean {run.pid}" in text(err), (p.returncode, text(err))
    r = box.run([box.systoll, "attach", "--clean", str(run.pid)])
    assert r.returncode == 0, text(r.stderr)
    is_as_it_was(run.pid)
    is_fine(run)


@test(users=("root",))
def nothing_stays_in_a_process_that_gets_hardly_any_of_the_processor(box):
    """Whether it can be entered or not: each errand of it takes seconds."""
    run = Running(box, "0")
    with group("cpu", run.pid) as folder:
        put(folder, "cpu.cfs_period_us", 1_000_000)
        put(folder, "cpu.cfs_quota_us", 1_000)
        for _ in range(3):
            r = box.run([box.systoll, "attach", "-q", "--for", "1ms", str(run.pid)], limit=90)
            said = text(r.stderr)
            for _ in range(6):
                if r.returncode == 0 or "attach --clean" not in said and "come back" not in said:
                    break
                r = box.run([box.systoll, "attach", "--clean", str(run.pid)], limit=90)
                said = text(r.stderr)
            assert not changed_code(run.pid), (said, changed_code(run.pid))
            assert not ours_in(run.pid), (said, ours_in(run.pid))
        put(folder, "cpu.cfs_quota_us", -1)
    is_fine(run)


@test()
def of_several_that_enter_a_process_at_once_one_does_and_the_others_name_it(box):
    for _ in range(3):
        run = Running(box, "0")
        command = [box.systoll, "attach", "-q", "-o", "/dev/null", "--for", "1500ms", str(run.pid)]
        all_three = [box.start(command, stdin=subprocess.DEVNULL, stderr=-1) for _ in range(3)]
        ended = [(p, text(p.communicate(timeout=60)[1])) for p in all_three]
        assert sorted(p.returncode for p, _ in ended) == [0, 125, 125], [(p.returncode, err) for p, err in ended]
        for p, err in ended:
            assert p.returncode == 0 or "traces it already" in err or "a systoll watches it" in err, err
        is_as_it_was(run.pid)
        is_fine(run)


@test()
def a_process_without_room_for_descriptors_is_refused_for_that(box):
    for most in (3, 5):
        run = Running(box, "0")
        assert box.run([tool("prlimit"), "--pid", str(run.pid), f"--nofile={most}:"]).returncode == 0
        r = box.run([box.systoll, "attach", "--for", "1s", str(run.pid)])
        assert r.returncode == 125 and "Too many open files" in text(r.stderr), (most, text(r.stderr))
        is_as_it_was(run.pid)
        is_fine(run)


@test()
def a_process_that_ends_meanwhile_is_not_said_to_share_its_memory(box):
    for wait in range(12):
        p = box.start(["sleep", f"0.{30 + wait}"])
        time.sleep(0.2)
        r = box.run([box.systoll, "attach", "-q", "--for", "1ms", str(p.pid)])
        assert "kthreadd" not in text(r.stderr) and "in common" not in text(r.stderr), text(r.stderr)
        p.wait()
