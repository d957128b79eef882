"""Programs that examine themselves closely find the same watched from inside as unwatched."""
import os
import re
import signal
import subprocess
import time

from harness import Skip, test, wait_for


def same(box, program, *args, env=None):
    """Asserts that the program's output is the same watched as unwatched, and returns it; `--long` runs it with the
    last argument tenfold."""
    argv = [program, *args]
    if box.shared.long and args:
        argv[-1] = str(10 * int(args[-1]))
    plain = box.run(argv, env=env)
    assert plain.returncode == 0, f"unwatched: {plain}"
    r = box.run(box.watch(argv, "-q"), env=env)
    assert (r.returncode, r.stdout) == (0, plain.stdout), f"unwatched {plain.stdout!r}, watched {r.returncode} {r.stdout!r}: {r.stderr[-300:]!r}"
    box.no_leftovers()
    return r.stdout


def program(name, source, *args, flags=(), compiler="gcc"):
    @test(name, backends=("inproc",))
    def check(box):
        same(box, box.build(source, *flags, compiler=compiler), *args)


program("registers_flags_and_red_zone", "state.c")
program("registers_in_a_static_program", "state.c", flags=("-static",))
program("threads_cancelled", "cancel.cpp", "20", compiler="g++")
program("threads_cancelled_in_a_static_program", "cancel.cpp", "10", flags=("-static", "-Wl,--whole-archive", "-lpthread", "-Wl,--no-whole-archive"), compiler="g++")
program("cleanup_handlers", "cleanup.c", "20")
program("cleanup_handlers_of_musl", "cleanup.c", "20", flags=("-static",), compiler="musl-gcc")
program("exceptions_out_of_handlers", "thrown.cpp", "5", flags=("-fnon-call-exceptions",), compiler="g++")
program("backtraces_in_a_profiler", "profiled.c", "2000")
program("backtraces_in_a_static_program", "profiled.c", "1000", flags=("-static",))
program("masks_and_dispositions_over_first_sights", "masked.c", flags=("-ldl",))
program("handlers_that_jump_and_stacks_of_their_own", "handlers.c", "300")


@test(backends=("inproc",))
def calls_under_a_ticking_timer(box):
    """Under 5,000 signals a second and with calls that restart, the table has what the program itself counted."""
    times = "20000" if box.shared.long else "2000"
    doc, r = box.report([box.build("ticking.c"), times])
    assert r.returncode == 0 and r.stdout == f"{times} read, 0 interrupted, {int(times) * 50} others, status 0\n".encode(), r
    words = r.stderr.decode().split()
    told = dict(zip(words[::2], map(int, words[1::2])))
    rows = {row["syscall"]: row["calls"] for row in doc["by_syscall"]}
    for name in ("getpgrp", "getppid"):
        assert rows[name] == told[name], f"{name}: {rows[name]} not {told[name]}"
    # The kernel makes a call again for every signal that interrupts it; a dynamic program reads a file or two before it
    # begins.
    assert 0 <= rows["read"] - told["read"] < 10 + told["ticks"], (rows["read"], told)
    assert rows["rt_sigreturn"] == told["ticks"], (rows["rt_sigreturn"], told["ticks"])


@test(backends=("inproc",))
def signals_too_early_for_a_sleep(box):
    """A handler that runs while its thread waits for systoll, on the way to a sleep, ends the sleep."""
    program = box.build("early_signal.c")
    for how in ("poll", "select", "wait", "nanosleep"):
        gate = box.file("gate", b"\0")
        p = box.start(box.watch([program, how, gate], "-q"), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        pid = int(p.stdout.readline().split()[1])
        # Nobody answers the thread from now on.
        p.send_signal(signal.SIGSTOP)
        with open(gate, "r+b", buffering=0) as f:
            f.write(b"\1")
            wait_for(lambda: os.pread(f.fileno(), 1, 0) == b"\2", "it did not go to sleep")
            # From there to the call, in which the thread waits by spinning, takes a few instructions: nothing shows
            # when it has got there.
            time.sleep(0.05)
            os.kill(pid, signal.SIGUSR1)
            wait_for(lambda: os.pread(f.fileno(), 1, 0) == b"\3", "its handler did not run")
        p.send_signal(signal.SIGCONT)
        out, err = p.communicate(timeout=60)
        assert (p.returncode, out) == (0, b"-1 Interrupted system call, 1\n"), (how, p.returncode, out, err)


@test(backends=("inproc",))
def a_gs_base_of_its_own(box):
    """A program that sets its gs base by a call is left alone from there on; one that does so by the instruction is
    never hooked."""
    for flags, why in (((), "sets its gs base"), (("-DWRITES",), "uses the gs segment")):
        for static in ((), ("-static",)):
            program = box.build("gs.c", *flags, *static)
            argv = ["/bin/sh", "-c", f"{program}; echo $?; /bin/true"]
            plain = box.run(argv)
            doc, r = box.report(argv)
            assert plain.stdout == b"as set\n0\n" and (r.returncode, r.stdout) == (0, plain.stdout), (plain, r)
            assert any(why in p for p in doc["problems"]), doc["problems"]


@test(backends=("inproc",))
def memory_that_is_locked(box):
    """The memory that systoll shares with a program is far larger than what is used, and locking does not fill it."""
    program = box.build("locked.c")
    for how in ("alone", "number", "threads"):
        argv = ["/bin/sh", "-c", f"{program} {how}; echo $?"]
        plain = box.run(argv)
        doc, r = box.report(argv)
        assert b"no more than there is" in plain.stdout and (r.returncode, r.stdout) == (0, plain.stdout), (how, plain, r)
        assert any("locks all its memory" in p for p in doc["problems"]), (how, doc["problems"])


@test(backends=("inproc",))
def code_is_mapped_and_may_run_as_unwatched(box):
    """Code that was written over is mapped as before. A program that execs may run on all processors again, or on those
    that it was given."""
    program = box.build("code_maps.c", "-ldl")
    plain = box.run([program, "plain"])
    assert plain.returncode == 0 and b"libresolv" in plain.stdout, plain
    for prefix in ([], ["taskset", "-c", "0"]):
        unwatched, watched = box.run([*prefix, program, "plain"]), box.run(box.watch([*prefix, program, "plain"], "-q"))
        assert (watched.returncode, watched.stdout) == (0, unwatched.stdout), (prefix, unwatched.stdout[-2000:], watched)
    refuses = box.run([program, "refuses"])
    if refuses.returncode == 9:
        raise Skip("this kernel lets code be made by everybody")
    doc, r = box.report([program, "refuses"])
    assert (r.returncode, r.stdout) == (0, refuses.stdout) and doc["exact"], (refuses, r, doc["problems"])


@test(backends=("inproc",))
def core_dumps(box):
    """If a program dumps its memory, systoll's is not in the dump."""
    if not re.fullmatch(r"core(\.%p)?", open("/proc/sys/kernel/core_pattern").read().strip()):
        raise Skip("core dumps go elsewhere")

    def dumped(argv):
        r = box.run(["/bin/sh", "-c", 'ulimit -c unlimited || exit 9; exec "$@"', "sh", *argv])
        if r.returncode == 9:
            raise Skip("no core dumps are allowed")
        assert r.returncode == -signal.SIGSEGV, r
        cores = [os.path.join(box.dir, name) for name in os.listdir(box.dir) if name.startswith("core")]
        assert len(cores) == 1, cores
        size = os.path.getsize(cores[0])
        os.unlink(cores[0])
        return size

    argv = [box.build("counts_until_killed.c"), "counts", "1", "crash", "10"]
    plain = dumped(argv)
    watched = dumped(box.watch(argv, "-q", "-o", "report"))
    # The trampolines are in the dump, because whoever looks at it may want them.
    assert watched < plain + (8 << 20), (plain, watched)


@test(backends=("inproc",))
def sanitizers_that_guard_memory(box):
    """Sanitizers end a program that has memory they do not know of, or map their own over it."""
    try:
        program = box.build("threads.c", "-fsanitize=thread")
    except AssertionError as e:
        raise Skip("no ThreadSanitizer here") from e
    argv = ["/bin/sh", "-c", f"{program} 4 100; echo $?; /bin/true"]
    plain = box.run(argv)
    doc, r = box.report(argv)
    assert plain.stdout == b"0\n" and (r.returncode, r.stdout, r.stderr) == (0, plain.stdout, plain.stderr), (plain, r)
    assert any("sanitizer" in p for p in doc["problems"]), doc["problems"]
