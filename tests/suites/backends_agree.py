"""The in-process backend, the ptrace backend and strace show the same tables for one set of programs: calls, and errors by errno.

The rules, and why they are no loopholes:

- Where a signal interrupts a call, the kernel has words of its own (ERESTARTSYS ...) which tracers
  see and programs don't: a program sees EINTR, or nothing where the call is made again. All of
  them are one errno here.
- A call that is made again by a handler's end counts twice, everywhere. One that is made again
  without a handler (the thread was stopped and continued, or restart_syscall) is one call to the
  program and to inproc, two to a tracer: allowed only as far as the tracer's table has the extra
  call as an interrupted one, and only in programs that stop or sleep.
- strace lists neither exit nor exit_group, nor do we count what does not return.

Programs vary a little by themselves (a hash seed, who comes first at a futex), so of a few runs of
each any two may agree; what chance decides by nature is named with the program.
"""
import json
import os
import resource
import signal
import struct

from harness import test, tool, wait_for
from suites.counts import RESULTLESS, strace_table

RUNS = 4
INTERRUPTED = {"EINTR", "ERESTARTSYS", "ERESTARTNOINTR", "ERESTARTNOHAND", "ERESTART_RESTARTBLOCK"}
# Calls that the kernel continues through restart_syscall.
RESUMED = {"nanosleep", "clock_nanosleep", "poll", "futex"}
PYTHON = "/usr/bin/python3"


def table(doc):
    """Returns {syscall: (calls, {errno: calls})}."""
    rows = {}
    for row in doc["by_syscall"]:
        if row["calls"]:
            errors = {}
            for errno, n in row["errors"].items():
                errno = "interrupted" if errno in INTERRUPTED else errno
                errors[errno] = errors.get(errno, 0) + n
            rows[row["syscall"]] = row["calls"], {k: v for k, v in errors.items() if v}
    return rows


def totals(rows):
    """Returns the calls and errors, with errors as one number like in strace -c."""
    return {k: (n, {"interrupted": sum(e.values())} if e else {}) for k, (n, e) in rows.items()}


def differences(ours, theirs, stops=False):
    """Returns the differences of our table from a tracer's."""
    theirs, bad, resumed = dict(theirs), [], 0
    again, failed = theirs.pop("restart_syscall", (0, {}))
    again -= sum(failed.values())
    for name in sorted(set(ours) | set(theirs)):
        (calls, errors), (more, their_errors) = ours.get(name, (0, {})), theirs.get(name, (0, {}))
        unseen = their_errors.get("interrupted", 0) - errors.get("interrupted", 0)
        others = [{k: v for k, v in e.items() if k != "interrupted"} for e in (errors, their_errors)]
        extra = more - calls
        if name in RESUMED and unseen > extra >= 0:
            resumed, unseen = resumed + unseen - extra, extra
        if others[0] != others[1] or unseen != extra or extra and not (stops and extra > 0):
            bad.append(f"{name}: {ours.get(name)} not {theirs.get(name)}")
    if resumed != again:
        bad.append(f"restart_syscall: {resumed} not {again}")
    return bad


def strace(box, argv, **kwargs):
    rows = strace_table(box, argv, **kwargs)
    return {k: (n, {"interrupted": e} if e and k not in RESULTLESS else {}) for k, (n, e) in rows.items()}


def same_tables(box, argv, stops=False, chance=(), exact=True, **kwargs):
    """Runs argv in turns under all three until their tables agree."""
    seen = {"inproc": [], "ptrace": [], "strace": []}

    def best(other, ours, theirs):
        return min((differences(ours(a), theirs(b), stops) for a in seen["inproc"] for b in seen[other]), key=len)

    for _ in range(RUNS):
        for backend in ("inproc", "ptrace"):
            box.backend = backend
            doc, r = box.report(argv, **kwargs)
            assert doc["backend"] == backend and doc["lost"] == 0, (doc["backend"], doc["problems"])
            assert doc["exact"] is exact or backend == "ptrace", f"{backend}: {doc['problems']}"
            seen[backend].append({k: v for k, v in table(doc).items() if k not in chance})
        seen["strace"].append({k: v for k, v in strace(box, argv, **kwargs).items() if k not in chance})
        by_errno, by_total = best("ptrace", dict, dict), best("strace", totals, dict)
        if not by_errno and not by_total:
            return
    assert not by_errno, "ptrace's: " + "; ".join(by_errno)
    assert not by_total, "strace's: " + "; ".join(by_total)


def program(name, argv, users=("nobody",), **options):
    @test(name, users=users)
    def check(box):
        same_tables(box, argv(box), **options)


EVERYBODY = ("root", "nobody")
MUSL = {"compiler": "musl-gcc"}

program("glibc", lambda b: [b.build("mix.c")], users=EVERYBODY)
program("glibc_static", lambda b: [b.build("mix.c", "-static")])
program("glibc_static_pie", lambda b: [b.build("mix.c", "-static-pie")])
program("musl", lambda b: [b.build("mix.c", **MUSL)], users=EVERYBODY)
program("musl_static", lambda b: [b.build("mix.c", "-static", **MUSL)])
program("musl_signals", lambda b: [b.build("signals.c", **MUSL)], stops=True)
program("musl_spawn", lambda b: [b.build("spawn.c", **MUSL)])
program("musl_threads", lambda b: [b.build("threads.c", **MUSL), "4", "1000"], chance={"futex"})
program("threads", lambda b: [b.build("threads.c"), "4", "1000"], chance={"futex"})
program("fork_vfork_clone_exec", lambda b: [b.build("family.c")], users=EVERYBODY)
program("handlers_static", lambda b: [b.build("sigcalls.c", "-static")])
program("spawn", lambda b: [b.build("spawn.c")])
program("forks", lambda b: [b.build("forks.c"), "40"])
program("exec_from_a_thread", lambda b: [b.build("execthread.c")])
program("signals", lambda b: [b.build("signals.c")], stops=True)
program("handlers_and_contexts", lambda b: [b.build("sigcalls.c")])
program("clocks", lambda b: [b.build("clocks.c"), "100"])
program("shell_pipeline", lambda b: ["/bin/sh", "-c", "for i in 1 2 3; do echo $i | /bin/cat; done; /bin/true; exit 3"])
program("perl", lambda b: [tool("perl"), "-e", "my %h; $h{$_ % 7}++ for 1..1000; open F, '<', '/etc/passwd'; my @l = <F>; -e '/nonexistent' for 1..50"])
program("python", lambda b: [PYTHON, "-E", "-s", "-c", "import json, os; print(json.dumps({'n': 1})); [os.path.exists('/nonexistent') for _ in range(50)]"])
program("ruby", lambda b: [tool("ruby"), "--disable-gems", "-e", "puts (1..100).sum; 20.times { File.exist?('/nonexistent') }"], chance={"munmap", "mmap", "futex"})
program("sqlite", lambda b: [tool("sqlite3"), "-batch", "t.db", "drop table if exists t; create table t(a); insert into t values(1),(2); select sum(a) from t;"])
program("script", lambda b: [b.file("script", "#!/bin/sh\n/bin/echo $0 $1\nexec /bin/true\n", 0o755), "x"])
program("tar_gzip", lambda b: ["/bin/sh", "-c", "tar cf a.tar -C /usr/include linux/if.h && gzip -nf a.tar && gzip -t a.tar.gz"])


@test(users=("nobody",))
def git_log(box):
    git = tool("git")
    script = f"{git} init -q repo && cd repo && {git} config user.email a@example.org && {git} config user.name A && echo 1 > f && {git} add f && {git} commit -qm 1"
    assert box.run(["/bin/sh", "-c", script]).returncode == 0
    same_tables(box, [git, "-C", os.path.join(box.dir, "repo"), "--no-pager", "log", "--oneline"])


@test(users=("nobody",))
def gcc_compile(box):
    box.file("a.c", "#include <stdio.h>\nint main(void) { return puts(\"x\") < 0; }\n")
    # A child that ends may or may not interrupt the wait for the other one.
    argv = [tool("gcc"), "-c", "-pipe", "-o", os.path.join(box.dir, "a.o"), os.path.join(box.dir, "a.c")]
    same_tables(box, argv, chance={"wait4"})


@test(users=("nobody",), backends=("inproc",))
def calls_made_again_are_counted_again(box):
    """A timer interrupts reads and a loop: every handler, every read and every call of the loop is counted."""
    for how in ({}, MUSL):
        doc, r = box.report([box.build("restarts.c", **how)])
        assert r.returncode == 0 and r.stdout == b"100\n", (r.returncode, r.stdout)
        assert doc["exact"], doc["problems"]
        rows, handled = table(doc), int(r.stderr)
        assert handled and rows["rt_sigreturn"][0] == rows["getuid"][0] == handled, (handled, rows["rt_sigreturn"], rows["getuid"])
        assert rows["getppid"] == (100_000, {}), rows["getppid"]
        calls, errors = rows["read"]
        # The loader makes reads, too.
        assert set(errors) == {"interrupted"} and 100 <= calls - errors["interrupted"] <= 102, rows["read"]
        assert errors["interrupted"] <= handled


def completed(path):
    with open(path, "rb") as f:
        return sum(n for n, *_ in struct.iter_unpack("q56x", f.read(512)))


def mortal_counts(doc):
    rows = {row["syscall"]: row for row in doc["by_syscall"]}
    ours = [rows[name] for name in ("getppid", "getuid") if name in rows]
    return sum(r["calls"] for r in ours), sum(r["unreturned"] for r in ours)


@test(users=("nobody",), backends=("inproc",))
def killed_in_mid_loop(box):
    """After kill -9 every completed call is counted, and at most one more for each thread."""
    out = os.path.join(box.dir, "report.json")
    for number, threads in enumerate((1, 4)):
        path = os.path.join(box.dir, f"counts{number}")
        p = box.start(box.watch([box.build("counts_until_killed.c"), path, str(threads), "loop", "0"], "-q", "--json", "-o", out))
        wait_for(lambda: os.path.exists(path) and os.path.getsize(path) and completed(path) > 100_000)
        with open(f"/proc/{p.pid}/task/{p.pid}/children") as f:
            children = f.read().split()
        for child in children:
            with open(f"/proc/{child}/comm") as f:
                if f.read().startswith("counts_until"):
                    os.kill(int(child), signal.SIGKILL)
        assert p.wait(timeout=60) == -signal.SIGKILL, p.returncode
        with open(out) as f:
            calls, unreturned = mortal_counts(json.load(f))
        kept = completed(path)
        assert kept <= calls + unreturned and calls <= kept + threads, (kept, calls, unreturned)


@test(users=("nobody",), backends=("inproc",))
def ended_abruptly(box):
    """_exit and a crash lose no calls."""
    for end, code in (("exit", 5), ("crash", -signal.SIGSEGV)):
        path = os.path.join(box.dir, end)
        doc, r = box.report([box.build("counts_until_killed.c"), path, "4", end, "50000"], preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE, (0, 0)))
        assert r.returncode == code, r.returncode
        assert doc["exact"] and mortal_counts(doc) == (200_000, 0) and completed(path) == 200_000, (mortal_counts(doc), doc["problems"])


def mixed_calls(box, calls):
    doc, r = box.report([box.build("counts_until_killed.c"), os.path.join(box.dir, "counts"), "8", "exit", str(calls)])
    assert r.returncode == 5 and doc["exact"], doc["problems"]
    rows = table(doc)
    assert rows["getppid"] == rows["getuid"] == (4 * calls, {}), (rows["getppid"], rows["getuid"])


@test(users=("nobody",), backends=("inproc",))
def eight_threads_to_the_call(box):
    mixed_calls(box, 200_000)


@test(users=("nobody",), backends=("inproc",), long=True)
def eight_threads_forty_million_calls(box):
    mixed_calls(box, 5_000_000)


@test(users=("nobody",), backends=("inproc",))
def confined_by_itself(box):
    """A program that installs a filter runs as unwatched, and is counted or said not to be."""
    program = box.build("confined.c")
    for how, status in (("list", 7), ("deny", 7), ("inherit", 7), ("strict", 6)):
        plain = box.run([program, how])
        doc, r = box.report([program, how])
        assert (r.returncode, r.stdout) == (plain.returncode, plain.stdout) and r.returncode == status, (how, r.returncode, r.stdout, plain)
        rows = table(doc)
        if how in ("inherit", "strict"):
            # A thread under the strict mode may not read its clock, which our code would do.
            assert not doc["exact"] and any("watched" in p for p in doc["problems"]), doc["problems"]
        else:
            assert rows["getppid"] == (50, {}), rows["getppid"]
            assert rows.get("getuid") == ((50, {"EPERM": 50}) if how == "deny" else None), rows.get("getuid")


def vdso_calls(box, argv):
    return box.report(argv)[0]["vdso_calls"]


@test(users=("nobody",), backends=("inproc",))
def calls_of_the_vdso_are_counted(box):
    for flags in ({}, {"compiler": "musl-gcc"}):
        clocks = box.build("clocks.c", **flags)
        one, many = vdso_calls(box, [clocks, "1"]), vdso_calls(box, [clocks, "1001"])
        # Each round makes four calls of the vDSO in either C library: musl's time and gettimeofday call clock_gettime.
        assert many - one == 4000, (flags, one, many)
    loop = "import time\nfor _ in range(%d): time.time()"
    none, many = (vdso_calls(box, [PYTHON, "-E", "-s", "-S", "-c", loop % n]) for n in (0, 1000))
    assert 1000 <= many - none <= 1010, (none, many)
