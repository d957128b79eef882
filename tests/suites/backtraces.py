"""Unwinding through a signal's frame gives the same frames with and without systoll, even if the unwinder recognises
the frame by the bytes that a handler returns to, as in Go and musl."""
import re
import subprocess

from harness import test, text, tool


def frames_in_a_handler(box, argv, watched, function):
    """Returns the functions of gdb's backtrace in `function`, which a signal runs, innermost first; and what the
    program printed before."""
    gdb = tool("gdb")
    p = box.start(box.watch(argv, "-q") if watched else argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    said, ready = p.stdout.readline(), p.stdout.readline().split()
    assert ready[:1] == [b"ready"], (said, ready, p.communicate()[1][-400:])
    pid = int(ready[1])
    commands = ["set auto-load off", "handle SIGUSR1 SIGURG nostop noprint pass", f"break {function}", f"shell kill -USR1 {pid}", "continue", "bt", "delete", "detach"]
    r = box.run([gdb, "-q", "-nx", "-batch", "-p", str(pid), *(a for c in commands for a in ("-ex", c))])
    out, err = p.communicate(b"x\n", timeout=60)
    assert p.returncode == 6, (p.returncode, out, err[-400:])
    box.no_leftovers()
    trace = re.findall(r"^#\d+ +(?:0x[0-9a-f]+ in )?(<signal handler called>|\S+)", text(r.stdout), re.M)
    assert trace, text(r.stdout)[-1500:] + text(r.stderr)[-400:]
    return trace, said


def sees_the_same(box, argv, function, through=True):
    """Asserts that backtraces in a handler are as deep watched as unwatched, and that all calls are counted. `through`:
    gdb goes on beyond the signal's frame."""
    (plain, said), (watched, said_watched) = (frames_in_a_handler(box, argv, w, function) for w in (False, True))
    assert said == said_watched, (said, said_watched)
    for trace in (plain, watched) if through else ():
        at = trace.index("<signal handler called>") if "<signal handler called>" in trace else None
        assert at and trace[0].endswith(function) and len(trace) > at + 1 and "??" not in trace[: at + 2], (plain, watched)
    doc, r = box.report(argv, input=b"x\n")
    counts = {row["syscall"]: row["calls"] for row in doc["by_syscall"]}
    assert r.returncode == 6 and r.stdout.startswith(said), (r, said)
    assert counts.get("rt_sigreturn") == 20 and doc["exact"], (counts.get("rt_sigreturn"), doc["problems"])
    return plain, watched


@test(backends=("inproc",))
def go(box):
    # Go's own signals come at any time, and to any thread.
    box.env = dict(box.env, GODEBUG="asyncpreemptoff=1")
    sees_the_same(box, [box.build("notified.go")], "runtime.sigtrampgo")


@test(backends=("inproc",))
def musl(box):
    for flags in (["-static"], []):
        argv = [box.build("handled.c", "-fexceptions", "-Wl,--eh-frame-hdr", *flags, compiler="musl-gcc")]
        # The shared C library names this function's neighbours but not the function, and gdb relies on names.
        plain, watched = sees_the_same(box, argv, "handler", through=bool(flags))
        assert plain == watched, (plain, watched)


@test(backends=("inproc",))
def musl_without_names(box):
    """Only the bytes tell that it is a signal's frame: they are left as they are, and systoll says that these calls are
    not counted."""
    argv = [box.build("handled.c", "-fexceptions", "-Wl,--eh-frame-hdr", "-static", "-s", compiler="musl-gcc")]
    plain = box.run(argv, input=b"x\n")
    doc, r = box.report(argv, input=b"x\n")
    depths = lambda r: r.stdout.splitlines()[0]  # noqa: E731
    assert plain.returncode == r.returncode == 6 and depths(plain) == depths(r), (plain, r)
    assert not doc["exact"] and any("can't be counted" in p for p in doc["problems"]), doc["problems"]
