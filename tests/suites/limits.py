"""Under resource limits systoll gives a clear error or watches in another way; it never aborts."""
import os
import resource
import signal
import struct
import subprocess

from harness import BOTH, Skip, test, text

SAYS = ["/bin/sh", "-c", "echo hello; exit 3"]
KIB, MIB = 1 << 10, 1 << 20
# Names of the limits below which the kernel ends systoll before it has printed a word: its data or its whole size, and
# some for the C library.
OWN_DATA_AND_SOME, OWN_AND_A_MIB = "own data", "own size"

# Limit, amount, and words that must be said if it keeps systoll from watching so.
HARD = {
    "RLIMIT_FSIZE": (0, 100 * KIB, 64 * MIB),
    "RLIMIT_AS": (OWN_AND_A_MIB, 40 * MIB, 400 * MIB, 20_000 * MIB),
    "RLIMIT_DATA": (OWN_DATA_AND_SOME, 2 * MIB, 5 * MIB, 40 * MIB),
    "RLIMIT_STACK": (64 * KIB, 200 * KIB, 2 * MIB),
    "RLIMIT_NOFILE": (4, 6, 9),
    "RLIMIT_CPU": (1, 2),
    "RLIMIT_MEMLOCK": (0,),
    "RLIMIT_RSS": (0,),
    "RLIMIT_SIGPENDING": (0,),
    "RLIMIT_MSGQUEUE": (0,),
    "RLIMIT_CORE": (0,),
}


def loaded(program):
    """Yields the program's segments that are loaded: first address, end, flags (ELF-64: p_type 1 is PT_LOAD)."""
    with open(program, "rb") as f:
        head = f.read(64)
        (at,), (size, count) = struct.unpack_from("<Q", head, 32), struct.unpack_from("<HH", head, 54)
        f.seek(at)
        headers = [struct.unpack_from("<IIQQQQQQ", f.read(size)) for _ in range(count)]
    return [(vaddr, vaddr + memory, flags) for kind, flags, _, vaddr, _, _, memory, _ in headers if kind == 1]


def own_size(program):
    """Returns the bytes of address space that the program's file takes."""
    return max(end for _, end, _ in loaded(program)) - min(start for start, _, _ in loaded(program))


def own_data(program):
    """Returns the bytes of the segments that it can write to (PF_W is 2), in whole pages."""
    return sum(-(-end // 4096) * 4096 - start // 4096 * 4096 for start, end, flags in loaded(program) if flags & 2)


def under(name, soft, hard=None):
    number = getattr(resource, name)

    def limit():
        most = resource.getrlimit(number)[1]
        resource.setrlimit(number, (soft, most if hard is None else hard))

    return limit


def told_or_watched(r, what):
    """Asserts that the command has ended as by itself with a report, or that a line says why there is none."""
    err = text(r.stderr)
    assert r.returncode >= 0, f"{what}: killed by {signal.Signals(-r.returncode).name}: {err[-300:]}"
    if r.returncode == 3:
        assert r.stdout == b"hello\n" and "system calls" in err, f"{what}: {r.stdout} {err[-300:]}"
    else:
        assert r.returncode in (125, 126, 127) and err.strip(), f"{what}: {r.returncode} {err!r}"
        assert "panicked" not in err and "fatal" not in err, f"{what}: {err[-300:]}"
        assert "ulimit" in err or "Too many open files" in err or "--backend" in err or "libraries" in err, f"{what}: {err}"
    return err


@test(backends=(None, *BOTH))
def each_limit_names_its_consequence(box):
    for name, values in HARD.items():
        for value in values:
            if value == OWN_AND_A_MIB:
                value = own_size(box.systoll) + MIB
            elif value == OWN_DATA_AND_SOME:
                value = own_data(box.systoll) + 192 * KIB
            what = f"{name} {value}"
            r = box.run(box.watch(SAYS), preexec_fn=under(name, value, value))
            told_or_watched(r, what)


@test()
def a_limit_of_files_or_addresses_has_another_way_take_over(box):
    """A program that can't be watched from inside is watched by ptrace, and systoll says why."""
    for name, value, why in (("RLIMIT_FSIZE", 100 * KIB, "can't share memory"), ("RLIMIT_AS", 400 * MIB, "ulimit -v")):
        r = box.run(box.watch(SAYS), preexec_fn=under(name, value, value))
        err = told_or_watched(r, name)
        able = "in-process" in err
        assert r.returncode == 3 and (able or "because inproc can't" in err and why in err), err
        assert name != "RLIMIT_AS" or not able, err


@test(backends=BOTH)
def limits_that_may_be_raised_are_the_commands_all_the_same(box):
    """Limits that systoll raises for itself are given back: the command sees, and meets, its own."""
    script = ["/bin/sh", "-c", "ulimit -a; head -c 300000 /dev/zero > big; echo $?"]
    for name, value in (("RLIMIT_FSIZE", 200 * KIB), ("RLIMIT_CPU", 30), ("RLIMIT_NOFILE", 50), ("RLIMIT_DATA", 600 * MIB)):
        seen = []
        for argv in (script, box.watch(script, "-q", "-o", "report")):
            r = box.run(argv, preexec_fn=under(name, value))
            seen.append((r.returncode, r.stdout))
        assert seen[0] == seen[1], f"{name}: unwatched {seen[0]}, watched {seen[1]}"


@test(backends=(None, *BOTH))
def without_futex(box):
    """In a sandbox that refuses futex(2) there are no threads, so only ptrace is used, and nothing aborts."""
    filtered, program = box.build("nofutex.c"), box.build("untraced.c", "-static")
    for errno in ("1", "38"):
        if box.run([filtered, errno, program, "0", "plain"]).returncode != 7:
            raise Skip("no seccomp filter here, or the program needs futex itself")
        r = box.run([filtered, errno, *box.watch([program, "0", "plain"])])
        err = text(r.stderr)
        if box.backend == "inproc":
            assert r.returncode == 125 and "futex(2) is refused" in err, (r.returncode, err)
        else:
            assert r.returncode == 7 and "system calls" in err, (r.returncode, err)


# System calls that sandboxes refuse to programs, by number: single calls; those that Docker's default profile has
# refused to processes without CAP_SYS_PTRACE; and those that systemd's SystemCallFilter=@system-service leaves out, of
# the ones that a tool like this may use (ptrace, perf_event_open, pidfd_getfd, kcmp, bpf).
KEPT_BACK = {
    "ptrace": ("101", "ptrace"), "process_vm_readv": ("310", "process_vm_readv"), "readlink": ("89", "readlink"),
    "memfd_create": ("319", "memfd_create"), "two of them": ("101,319", "ptrace, memfd_create"),
    "docker": ("101,310,311,312,298,321", "ptrace"), "@system-service": ("101,298,438,312,321", "ptrace"),
}


@test(backends=(None, *BOTH))
def a_killing_filter_is_reported(box):
    """A sandbox kills whoever makes a certain call: systoll says which, and does not end silently."""
    filtered = box.build("killing_filter.c")
    if box.run([filtered, "999", "kill", "/bin/sh", "-c", "exit 7"]).returncode != 7:
        raise Skip("no seccomp filter here")
    for kind, (numbers, name) in KEPT_BACK.items():
        for action in ("kill", "trap", "errno"):
            r = box.run([filtered, numbers, action, *box.watch(SAYS)])
            err = text(r.stderr)
            what = f"{kind} {action}: {r.returncode} {err[-400:]}"
            assert r.returncode in (3, 125), what
            if r.returncode == 3:
                assert r.stdout == b"hello\n" and "system calls" in err, what
            elif action != "errno":
                assert f"kills who calls {name}" in err and "sandbox" in err, what
            else:
                assert "can't" in err, what


@test(backends=("inproc",))
def thousands_of_threads_at_once(box):
    """Each thread gets counters when it is made: no count is lost, and no thread waits for another's."""
    for threads in (5000, 12000):
        argv = [box.build("many_threads.c"), str(threads)]
        if box.run(argv).returncode != 0:
            raise Skip(f"{threads} threads can't be had here")
        doc, r = box.report(argv)
        made = next(s["calls"] for s in doc["by_syscall"] if s["syscall"] == "getppid")
        assert r.returncode == 0 and doc["exact"] and doc["threads"] == threads + 1, (doc["exact"], doc["threads"], doc["problems"])
        assert made == 20 * threads, made


@test(users=("nobody",))
def without_another_process(box):
    """If no process and no thread can be made, systoll says so and does not crash."""
    if os.getuid() != 0:
        raise Skip("needs root to choose a user with few processes")
    for most in (1, 2, 3):
        # The limit must come after setpriv, which itself becomes that user; a shell that only execs sets it.
        script = f"ulimit -u {most}; exec \"$@\""
        argv = ["/bin/bash", "-c", script, "bash", *box.watch(SAYS)]
        # Nobody else has this user.
        user = ["setpriv", "--reuid=54321", "--regid=54321", "--clear-groups", "--inh-caps=-all", "--bounding-set=-all"]
        r = subprocess.run([*user, *argv], cwd="/", env=box.env, capture_output=True, timeout=60)
        err = text(r.stderr)
        assert r.returncode in (3, 125) and "systoll" in err, (most, r.returncode, err)
        assert "panicked" not in err, err
