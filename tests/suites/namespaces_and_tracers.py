"""Programs are watched in unusual places and company: namespaces, other tracers, crowds of processes."""
import json
import os
import signal
import subprocess
import time

from harness import Skip, test, text, tool


def same(box, argv, limit=120, **kwargs):
    """Asserts that exit code and output are the same. Returns the problems that the report has."""
    plain = box.run(argv, limit=limit, **kwargs)
    doc, r = box.report(argv, limit=limit, **kwargs)
    assert (r.returncode, r.stdout, r.stderr) == (plain.returncode, plain.stdout, plain.stderr), f"unwatched {plain}, watched {r}"
    box.no_leftovers()
    return doc, plain


def program(name, argv, expect=0, complete=None, users=("root", "nobody"), long=False, limit=120):
    """Registers a program. `complete`: words that a problem must contain if calls are missing; None: none may be."""

    @test(name, users=users, backends=("inproc",), long=long)
    def check(box):
        doc, plain = same(box, argv(box), limit=limit)
        assert expect is None or plain.returncode == expect, plain
        problems = doc["problems"]
        if complete is None:
            assert doc["exact"], problems
        else:
            assert any(complete in p for p in problems), problems


def unshare(flags, script, mounts=None):
    """Runs the script in namespaces of its own; skips the test if they, or what it `mounts`, are not allowed."""

    def argv(box):
        box.may("a namespace of its own is", "unshare", *flags, "/bin/sh", "-c", mounts or "true")
        return [tool("unshare"), *flags, "/bin/sh", "-c", script]

    return argv


SEES = "echo $$; id -u; /bin/ls / | wc -l; /bin/true; echo end"

program("pid_namespace", unshare(["-p", "-f", "--mount-proc"], SEES), complete="could not be examined", users=("root",))
program("user_namespace", unshare(["-U", "-r"], "id -u; /bin/true; echo end"), users=("root",))
program("made_in_a_user_namespace", lambda b: b.may("a namespace of its own is", "unshare", "-U", "true") or [b.build("newuser.c")])
program("no_descriptor_left", lambda b: ["/bin/sh", "-c", "ulimit -n 3; exec /bin/true"], expect=127, complete="/true ran unwatched: it could not map")
program("no_address_space_left", lambda b: ["/bin/sh", "-c", "ulimit -v 4000000; exec /bin/true"], complete="bounds its own memory")
program("mount_namespace", unshare(["-m"], "mount -t tmpfs none /mnt; /bin/ls /mnt; /bin/true; echo end", "mount -t tmpfs none /mnt"), users=("root",))
program("without_proc", unshare(["-m"], "umount -l /proc; /bin/ls /proc; /bin/true; echo end", "umount -l /proc"), users=("root",))
program("network_namespace", unshare(["-n"], "/bin/ls /sys/class/net; echo end"), users=("root",))
program("another_user", lambda b: [tool("setpriv"), "--reuid=65534", "--regid=65534", "--clear-groups", "/bin/sh", "-c", "id -u; /bin/true"], users=("root",))
program("without_random_addresses", lambda b: b.may("another personality is", "setarch", "-R", "true") or [tool("setarch"), "-R", "/bin/sh", "-c", "/bin/ls / | wc -l; exit 3"], expect=3)
program("no_new_privileges", lambda b: [tool("setpriv"), "--no-new-privs", "/bin/sh", "-c", "id -u; /bin/true"])


@test(backends=("inproc",), users=("root",))
def chroot(box):
    os.mkdir(os.path.join(box.dir, "jail"))
    os.link(box.build("state.c", "-static"), os.path.join(box.dir, "jail", "state"))
    doc, plain = same(box, [tool("chroot"), os.path.join(box.dir, "jail"), "/state"])
    assert plain.stdout == b"0 changes\n", plain
    assert not any("unwatched" in p for p in doc["problems"]), doc["problems"]


def sleeper(box):
    """Yields a watched program that is blocked in a call below functions with names: its Popen and its own pid."""
    source = box.build("waits.c")
    p = box.start(box.watch([source], "-q"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    line = p.stdout.readline().split()
    assert line[:1] == [b"ready"], (line, p.communicate()[1])
    return p, int(line[1])


def finished(box, p):
    p.stdin.write(b"x\n")
    p.stdin.flush()
    out, err = p.communicate(timeout=60)
    assert (p.returncode, out) == (5, b"went on\n"), (p.returncode, out, err[-400:])
    box.no_leftovers()


@test(backends=("inproc",))
def gdb_attaches_and_lets_go(box):
    gdb = tool("gdb")
    p, pid = sleeper(box)
    r = box.run([gdb, "-q", "-batch", "-p", str(pid), "-ex", "bt", "-ex", "detach"])
    trace = text(r.stdout)
    for name in ("innermost", "middle", "main"):
        assert name in trace, f"no {name} in {trace[-1500:]}"
    finished(box, p)


@test(backends=("inproc",))
def strace_attaches_and_lets_go(box):
    strace = tool("strace")
    p, pid = sleeper(box)
    log = os.path.join(box.dir, "log")
    s = box.start([strace, "-q", "-o", log, "-p", str(pid)], stderr=subprocess.PIPE)
    end = time.monotonic() + 30
    while not (os.path.exists(log) and os.path.getsize(log)) and time.monotonic() < end:
        time.sleep(0.02)
    finished(box, p)
    s.wait(timeout=30)
    with open(log) as f:
        seen = f.read()
    assert "read(0" in seen and "went on" in seen and "exit_group(5)" in seen, seen


program("strace_inside", lambda b: ["/bin/sh", "-c", f"{tool('strace')} -f -o log /bin/sh -c '/bin/ls /; exit 3'; echo $?; grep -c 'execve(' log"], complete="unwatched")
program("gdb_inside", lambda b: ["/bin/sh", "-c", f"{tool('gdb')} -q -batch -ex 'break innermost' -ex run -ex bt -ex kill {b.build('waits.c')} </dev/null 2>/dev/null | grep -c 'innermost\\|middle'"], complete="unwatched")


def thousands(what, long, short):
    """A crowd of processes or threads makes ten calls each: all are counted."""

    @test("thousands_of_" + what, backends=("inproc",))
    def check(box):
        n = long if box.shared.long else short
        doc, plain = same(box, [box.build("crowd.c"), what, str(n)], limit=240)
        calls = {row["syscall"]: row["calls"] for row in doc["by_syscall"]}
        assert plain.returncode == 0 and calls["getppid"] == 10 * n, (plain, calls.get("getppid"), doc["problems"])


thousands("threads", 4000, 600)
thousands("children", 2000, 300)


@test(backends=("inproc",))
def a_long_chain_of_execs(box):
    n = 1000 if box.shared.long else 60
    doc, plain = same(box, [box.build("crowd.c"), "execs", str(n)], limit=240)
    calls = {row["syscall"]: row["calls"] for row in doc["by_syscall"]}
    assert plain.returncode == 0 and (calls["getppid"], calls["execve"]) == (10 * (n + 1), n + 1), (plain, calls, doc["problems"])


def under_filter(box, how, argv):
    """Returns the report on argv if systoll itself runs under a filter of filtered.c."""
    out = os.path.join(box.dir, "report.json")
    r = box.run([box.build("filtered.c"), how, *box.watch(argv, "-q", "--json", "-o", out)])
    assert os.path.exists(out), f"{how}: no report (exit {r.returncode}): {text(r.stderr)[-400:]}"
    with open(out) as f:
        doc = json.load(f)
    os.unlink(out)
    return doc, r


@test()
def under_a_container_s_filter(box):
    """systoll tries out a filter under which it runs itself. If the filter allows its code, programs are watched from
    inside; otherwise by ptrace, before any of the program has run."""
    argv = ["/bin/sh", "-c", "/bin/true; /bin/echo x; exit 3"]
    free, plain = box.report(argv)
    inproc, ptrace = ("denied", "killed", "both-denied", "both-kills"), ("open-denied", "open-kills")
    for how, backend in [(how, "inproc") for how in inproc] + [(how, "ptrace") for how in ptrace]:
        doc, r = under_filter(box, how, argv)
        assert (r.returncode, r.stdout) == (3, b"x\n") == (plain.returncode, plain.stdout), (how, r)
        assert (doc["backend"], doc["exact"], doc["calls"]) == (backend, True, free["calls"]), (how, doc["backend"], doc["problems"], doc["calls"], free["calls"])
        assert any("seccomp filter we all live under" in p for p in doc["problems"]) == (backend == "ptrace"), (how, doc["problems"])
        assert not [f for f in os.listdir(box.dir) if f.startswith("core")]


@test(backends=("inproc",))
def a_filter_of_its_maker_s_is_another_matter(box):
    """A filter that was installed between systoll and the program is one that systoll has not tried."""
    doc, plain = same(box, [box.build("filtered.c"), "denied", "/bin/echo", "x"])
    assert plain.stdout == b"x\n" and any("filter of its maker's" in p for p in doc["problems"]), (plain, doc["problems"])


@test(backends=("inproc",))
def code_that_comes_later(box):
    """A file's code is hooked when it becomes executable; of code that is in no file, systoll says which calls it
    makes."""
    program = box.build("late_code.c")
    missed = {"made": 3, "again": 1, "two-early": 1, "two-late": 1, "in-place": 3}
    for how in ("file", "harmless", "harmless-in-place", *missed):
        doc, plain = same(box, [program, how])
        assert plain.returncode == 0, (how, plain)
        calls = {row["syscall"]: row["calls"] for row in doc["by_syscall"]}
        assert calls.get("getppid") == (100 if how == "file" else None), (how, calls)
        said = [p for p in doc["problems"] if "that is in no file" in p]
        assert ["are not counted" in p for p in said] == ([True] if how in missed else []), (how, doc["problems"])
        assert doc["exact"] == (how not in missed), (how, doc["problems"])
        sites = doc["sites"]
        assert sites["timed"] > 0 and sites["timed"] + sites["counted"] >= sites["on_arrival"] > 0, sites
        assert sites["not_covered"] == missed.get(how, 0), (how, sites)


@test(backends=("ptrace", "inproc"))
def calls_by_numbers_nobody_has(box):
    """x32 calls are told apart, numbers that no ABI has are not; both backends say the same."""
    doc, plain = same(box, [box.build("numbers_beyond.c")])
    if plain.stdout != b"800\n":
        raise Skip("the kernel has x32 calls")
    calls = {row["syscall"]: (row["calls"], row["errors"]) for row in doc["by_syscall"]}
    assert calls["getppid"] == (100, {}), calls["getppid"]
    for name, n in (("syscall_0x40000027", 100), ("syscall_0x4000006e", 200), ("syscall_0x40000200", 100), ("unknown_syscall", 400)):
        assert calls.get(name) == (n, {"ENOSYS": n}), (name, calls.get(name), doc["problems"])
    assert doc["exact"], doc["problems"]
