"""One set of programs under inproc, ptrace and strace: the same tables, calls and errors by errno.

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
import os

from harness import test, tool
from suites.counts import RESULTLESS, strace_table

RUNS = 4
INTERRUPTED = {"EINTR", "ERESTARTSYS", "ERESTARTNOINTR", "ERESTARTNOHAND", "ERESTART_RESTARTBLOCK"}
# Calls the kernel goes on with through restart_syscall.
RESUMED = {"nanosleep", "clock_nanosleep", "poll", "futex"}
PYTHON = "/usr/bin/python3"


def table(doc):
    """-> {syscall: (calls, {errno: calls})}"""
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
    """Errors of one kind only, as strace -c has them."""
    return {k: (n, {"interrupted": sum(e.values())} if e else {}) for k, (n, e) in rows.items()}


def differences(ours, theirs, stops=False):
    """What in our table is not as in a tracer's."""
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
    same_tables(box, [tool("gcc"), "-c", "-pipe", "-o", os.path.join(box.dir, "a.o"), os.path.join(box.dir, "a.c")])


@test(users=("nobody",), backends=("inproc",))
def calls_made_again_are_counted_again(box):
    """A timer interrupts reads and a loop: every handler, every read and every call of the loop."""
    for how in ({}, MUSL):
        doc, r = box.report([box.build("restarts.c", **how)])
        assert r.returncode == 0 and r.stdout == b"100\n", (r.returncode, r.stdout)
        assert doc["exact"], doc["problems"]
        rows, handled = table(doc), int(r.stderr)
        assert handled and rows["rt_sigreturn"][0] == rows["getuid"][0] == handled, (handled, rows["rt_sigreturn"], rows["getuid"])
        assert rows["getppid"] == (100_000, {}), rows["getppid"]
        calls, errors = rows["read"]
        # The loader reads too.
        assert set(errors) == {"interrupted"} and 100 <= calls - errors["interrupted"] <= 102, rows["read"]
        assert errors["interrupted"] <= handled
