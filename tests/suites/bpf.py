"""Calls that the kernel counts for --backend bpf: the same tables as strace's and ptrace's, nothing missed, nothing left behind.

The tests watch the kernel's system calls one at a time (only_kernel_tracer), since whoever does so makes each call on the
machine dearer. All but one run as root, as this backend must.
"""
import ctypes
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import time
import tomllib

from harness import Skip, test, tool, wait_for
from suites.backends_agree import PYTHON, RUNS, strace, table, totals

CASES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "cases", "cases")
NUMBER_OF_BPF = {"x86_64": 321, "aarch64": 280}
GET_NEXT_ID, GET_BY_ID, GET_INFO = 11, 13, 15


def needs_bpf(box):
    r = box.run([box.systoll, "run", "-q", "--backend", "bpf", "--", "/bin/true"])
    if r.returncode:
        raise Skip(r.stderr.decode().strip()[:200])


def counted(name=None, **options):
    """Registers a test that the kernel counts in."""

    def register(function):
        def check(box):
            with box.only_kernel_tracer():
                needs_bpf(box)
                # The kernel removes the programs of the run before a moment after its end.
                wait_for(lambda: not ours(), "the kernel removes the programs", limit=10)
                box.backend = "bpf"
                function(box)

        check.__module__ = function.__module__
        return test(name or function.__name__, users=("root",), **options)(check)

    return register


def exact(doc):
    assert doc["backend"] == "bpf" and doc["exact"] and doc["lost"] == 0, (doc["backend"], doc["problems"])
    sums = [re.match(r"(\d+) calls entered, as many as returned \((\d+)\) and never returned \((\d+)\); 0 have", p) for p in doc["problems"]]
    sums = [[int(n) for n in m.groups()] for m in sums if m]
    assert len(sums) == 1 and sums[0][0] == sums[0][1] + sums[0][2], doc["problems"]
    assert doc["calls"] == sums[0][1] and doc["unreturned"] == sums[0][2], (doc["calls"], doc["unreturned"], sums)


def calls_of(doc, name):
    return next((row["calls"] for row in doc["by_syscall"] if row["syscall"] == name), 0)


def unlike(ours, theirs):
    """Returns the rows in which two tables differ. Both are a tracer's view: a call that the kernel makes again is there twice."""
    return [f"{name}: {ours.get(name)} not {theirs.get(name)}" for name in sorted({*ours, *theirs}) if ours.get(name) != theirs.get(name)]


def same_tables(box, argv, chance=(), **kwargs):
    """Runs argv in turns under bpf, ptrace and strace until their tables agree."""
    seen = {"bpf": [], "ptrace": [], "strace": []}

    def best(other, read):
        return min((unlike(read(a), read(b)) for a in seen["bpf"] for b in seen[other]), key=len)

    for _ in range(RUNS):
        for backend in ("bpf", "ptrace"):
            box.backend = backend
            doc, _ = box.report(argv, **kwargs)
            if backend == "bpf":
                exact(doc)
            seen[backend].append({k: v for k, v in table(doc).items() if k not in chance})
        seen["strace"].append({k: v for k, v in strace(box, argv, **kwargs).items() if k not in chance})
        by_errno, by_total = best("ptrace", dict), best("strace", totals)
        if not by_errno and not by_total:
            return
    assert not by_errno, "ptrace's: " + "; ".join(by_errno)
    assert not by_total, "strace's: " + "; ".join(by_total)


def program(name, argv, **options):
    @counted(name)
    def check(box):
        same_tables(box, argv(box), **options)


MUSL = {"compiler": "musl-gcc"}
program("mix", lambda b: [b.build("mix.c")])
program("mix_static_glibc", lambda b: [b.build("mix.c", "-static")])
program("mix_musl_static", lambda b: [b.build("mix.c", "-static", **MUSL)])
program("spawn", lambda b: [b.build("spawn.c")])
program("signals", lambda b: [b.build("signals.c")], chance={"wait4"})
program("handlers_and_contexts", lambda b: [b.build("sigcalls.c")])
program("execthread", lambda b: [b.build("execthread.c")])
program("threads", lambda b: [b.build("threads.c"), "4", "1000"], chance={"futex"})
program("forks_100", lambda b: [b.build("forks.c"), "100"])
program("fork_vfork_clone_exec", lambda b: [b.build("family.c")])
program("perl", lambda b: [tool("perl"), "-e", "my %h; $h{$_ % 7}++ for 1..1000; open F, '<', '/etc/passwd'; my @l = <F>; -e '/nonexistent' for 1..50"])
program("python", lambda b: [PYTHON, "-E", "-s", "-c", "import json, os; print(json.dumps({'n': 1})); [os.path.exists('/nonexistent') for _ in range(50)]"])
program("sqlite", lambda b: [tool("sqlite3"), "-batch", ":memory:", "create table t(a); insert into t values(1),(2); select sum(a) from t;"])
program("git_version", lambda b: [tool("git"), "--version"])
program("shell_pipeline", lambda b: ["/bin/sh", "-c", "for i in 1 2 3; do echo $i | /bin/cat; done; /bin/true; exit 3"])
program("script", lambda b: [b.file("script", "#!/bin/sh\n/bin/echo $0 $1\nexec /bin/true\n", 0o755), "x"])
for filtered in ("list", "deny", "strict", "inherit"):
    program(f"under_a_filter_{filtered}", lambda b, how=filtered: [b.build("confined.c"), how])


@counted()
def the_same_processes_and_exit(box):
    """Programs, their processes and the command's exit are ptrace's."""
    # A program that has ended when it is asked for its file has the name by which it was executed: no link's, here.
    argv = [os.path.realpath("/bin/sh"), "-c", "/bin/true; /bin/cat /dev/null; (exit 2); exit 7"]
    shown = []
    for backend in ("bpf", "ptrace"):
        box.backend = backend
        doc, r = box.report(argv)
        assert r.returncode == 7 and doc["exit"] == {"code": 7}, (r.returncode, doc["exit"])
        shown.append(sorted((p["exe"].rsplit("/", 1)[-1], p["instances"]) for p in doc["processes"]))
    assert shown[0] == shown[1], shown


@counted()
def killed_by_a_signal(box):
    doc, r = box.report(["/bin/sh", "-c", "kill -9 $$"])
    assert r.returncode == -signal.SIGKILL and doc["exit"] == {"signal": 9}, (r.returncode, doc["exit"])


@counted()
def none_of_2000_programs_is_missed(box):
    doc, _ = box.report(["/bin/sh", "-c", "i=0; while [ $i -lt 2000 ]; do /bin/true; i=$((i+1)); done"])
    exact(doc)
    ends = next(row for row in doc["by_syscall"] if row["syscall"] == "exit_group")
    assert calls_of(doc, "execve") == 2001 and ends["unreturned"] == 2001, (calls_of(doc, "execve"), ends)
    assert sum(p["instances"] for p in doc["processes"]) == 4001, doc["processes"]


@counted()
def ten_million_calls_of_four_threads(box):
    doc, _ = box.report([box.build("parents.c"), "4", "2500000"])
    exact(doc)
    assert calls_of(doc, "getppid") == 10_000_000, calls_of(doc, "getppid")


@counted()
def a_call_costs_little_more(box):
    """The price of a call, counted by caller and timed, in multiples of a plain one: some 4, and more on a busy machine."""
    argv = [box.build("parents.c"), "1", "1000000"]
    plain, watched = [], []
    for _ in range(5):
        for times, command in ((plain, argv), (watched, box.watch(argv, "-q"))):
            before = time.monotonic()
            assert box.run(command).returncode == 0
            times.append(time.monotonic() - before)
    start = min(timed(box, box.watch(["/bin/true"], "-q")) for _ in range(3))
    times = (min(watched) - start) / min(plain)
    print(f"      a counted and timed getppid takes {times:.2f} times as long as a plain one, a start {1e3 * start:.0f} ms")
    assert times < 6, (times, plain, watched)


def timed(box, argv):
    before = time.monotonic()
    assert box.run(argv).returncode == 0
    return time.monotonic() - before


@test(users=("nobody",))
def without_rights_it_says_which(box):
    """Nothing is run, and the error names the capabilities and the command that has them."""
    box.backend = "bpf"
    r = box.run(box.watch(["/bin/sh", "-c", "echo ran"], "-q"))
    said = r.stderr.decode()
    assert r.returncode == 125 and r.stdout == b"", (r.returncode, r.stdout)
    assert "CAP_BPF and CAP_PERFMON" in said and "sudo systoll run --backend bpf" in said, said
    doctor = box.run([box.systoll, "doctor"])
    assert doctor.returncode == 0 and b"CAP_BPF" in doctor.stdout, doctor.stdout


@counted()
def capabilities_suffice(box):
    """An ordinary user with CAP_BPF and CAP_PERFMON counts; with one of them, the error names the other."""
    os.chmod(box.dir, 0o777)
    for have, lacks in (("bpf,perfmon", None), ("bpf", "CAP_PERFMON"), ("perfmon", "CAP_BPF")):
        names = ",".join(f"+{name}" for name in have.split(","))
        user = [tool("setpriv"), "--reuid=65534", "--regid=65534", "--clear-groups", f"--inh-caps=-all,{names}", f"--ambient-caps=-all,{names}"]
        r = box.run([*user, *box.watch(["/bin/true"], "-c")])
        if lacks is None:
            assert r.returncode == 0 and b"execve" in r.stderr, r.stderr
        else:
            assert r.returncode == 125 and f"takes {lacks},".encode() in r.stderr, (have, r.stderr)


@counted()
def what_it_does_not_do_is_refused(box):
    for flags in (("--longer", "1ms"), ("--elide", "getpid")):
        r = box.run(box.watch(["/bin/true"], *flags))
        assert r.returncode == 125 and b"bpf" in r.stderr, r.stderr


def found(box, argv):
    """Returns the findings of a run: the cause of each, and its line."""
    doc, _ = box.report(argv)
    users = [(f["cause"] or f["kind"], f["user"] or {}) for f in doc["findings"]]
    return {(cause, os.path.basename(user.get("file") or ""), user.get("line")) for cause, user in users}, doc


def findings(case):
    """Registers a test that the findings of one of cases/ are those of the in-process backend, with their lines."""

    @counted(f"findings_{case}")
    def check(box):
        shutil.copytree(os.path.join(CASES, case), box.dir, dirs_exist_ok=True)
        with open(os.path.join(box.dir, "case.toml"), "rb") as f:
            told = tomllib.load(f)
        built = box.run(["/bin/sh", "-c", told["build"]])
        assert built.returncode == 0, built.stderr
        shown = {}
        # Which calls are sampled is drawn by lot, and a price near a threshold falls on either side of it.
        for _ in range(3):
            for box.backend in ("inproc", "bpf"):
                shown[box.backend], doc = found(box, shlex.split(told["run"]))
            if shown["inproc"] == shown["bpf"]:
                break
        assert shown["inproc"] and shown["inproc"] == shown["bpf"], (shown, doc["problems"])


for case in (
    "c-byte-reader", "c-epoll-ctl-churn", "c-fcntl-toggle", "c-fstat-per-read", "c-getrandom-u32", "c-localtime-log", "c-log-getpid-gettid",
    "c-lseek-read", "c-malloc-trim", "c-mprotect-toggle", "c-poll-zero-spin", "c-proc-reread", "c-realpath-lookup", "c-sendto-small", "c-swapcontext",
):
    findings(case)


WAITER = r"""
#include <poll.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>
static int there[2], back[2];
static void *serve(void *none)
{
    char c;
    struct timespec pause = {0, 4000000};
    while (read(there[0], &c, 1) == 1) {
        nanosleep(&pause, 0);
        write(back[1], &c, 1);
    }
    return none;
}
int main(void)
{
    pthread_t thread;
    char c = 'x';
    pipe(there);
    pipe(back);
    pthread_create(&thread, 0, serve, 0);
    for (int i = 0; i < 60; i++) {
        write(there[1], &c, 1);
        read(back[0], &c, 1);
        poll(0, 0, 3);
    }
    close(there[1]);
    pthread_join(thread, 0);
    return 0;
}
"""


@counted()
def where_the_wall_went(box):
    """Long waits, what they are for and where they are, are those that the in-process backend keeps."""
    program = os.path.join(box.dir, "waiter")
    built = box.run([tool("gcc"), "-g", "-O1", "-o", program, box.file("waiter.c", WAITER), "-lpthread"])
    assert built.returncode == 0, built.stderr
    shown = {}
    for box.backend in ("inproc", "bpf"):
        doc, _ = box.report([program])
        waits = [w for w in doc["wall"]["waits"] if w["ns"] > 100_000_000]
        lines = {row["syscall"]: row["user"]["line"] for row in doc["rows"] if row["calls"] >= 50 and row["user"]}
        shown[box.backend] = {(w["waits_for"], w["syscall"], lines[w["syscall"]]) for w in waits}
        assert all(abs(w["calls"] - 60) <= 6 for w in waits), waits
    assert shown["bpf"] == shown["inproc"] and len(shown["bpf"]) == 2, (shown, doc["wall"])
    # The time that a call waited is none that it cost.
    assert doc["toll_ns"] < 0.1 * doc["wall_ns"], (doc["toll_ns"], doc["wall_ns"])


@counted()
def samples_that_are_lost_are_counted(box):
    """More processes than samples can be taken of: what is lost is said, no call is, and the counts are exact."""
    script = "i=0; while [ $i -lt 300 ]; do /bin/true & /bin/cat /dev/null & i=$((i+1)); done; wait"
    doc, _ = box.report(["/bin/sh", "-c", script])
    exact(doc)
    assert calls_of(doc, "execve") == 601, calls_of(doc, "execve")
    lost = [p for p in doc["problems"] if re.match(r"\d+ of the calls that were to be sampled were lost", p)]
    print(f"      {lost}")


@counted()
def each_caller_has_its_calls(box):
    """Calls by two lines of one function of the C library count for each of them, as the in-process backend counts them."""
    source = """#include <unistd.h>
    static void often(void) { for (int i = 0; i < 60000; i++) getppid(); }
    static void rarely(void) { for (int i = 0; i < 20000; i++) getppid(); }
    int main(void) { sleep(1); for (int i = 0; i < 5; i++) { often(); rarely(); } return 0; }
    """
    program = os.path.join(box.dir, "callers")
    built = box.run([tool("gcc"), "-g", "-O1", "-fno-inline", "-o", program, box.file("callers.c", source)])
    assert built.returncode == 0, built.stderr
    doc, _ = box.report([program])
    exact(doc)
    calls = {}
    for row in doc["rows"]:
        if row["syscall"] == "getppid" and row["user"]:
            function = row["user"]["function"]
            calls[function] = calls.get(function, 0) + row["calls"]
    early = sum(int(m.group(1)) for m in (re.match(r"(\d+) calls came before", p) for p in doc["problems"]) if m)
    print(f"      {calls}, {early} before their callers were known")
    assert sum(calls.values()) == 400_000, calls
    assert abs(calls["often"] - 300_000) <= early and abs(calls["rarely"] - 100_000) <= early, (calls, early)


@counted()
def programs_of_another_machine_are_let_go(box):
    source = box.file("old.s", ".globl _start\n_start: mov $20, %eax\nint $0x80\nmov $1, %eax\nxor %ebx, %ebx\nint $0x80\n")
    old = os.path.join(box.dir, "old")
    r = box.run(["/bin/sh", "-c", f"{tool('as')} --32 -o {old}.o {source} && {tool('ld')} -m elf_i386 -o {old} {old}.o && {old}"])
    if r.returncode:
        raise Skip("no 32-bit program can be made or run here")
    doc, r = box.report(["/bin/sh", "-c", f"{old}; /bin/true"])
    assert r.returncode == 0 and not doc["exact"], doc["problems"]
    assert any("old is a program of another machine" in p for p in doc["problems"]), doc["problems"]
    # Its number of getpid is writev's here.
    assert calls_of(doc, "execve") == 3 and calls_of(doc, "writev") == 0, doc["by_syscall"]


def loaded():
    """Returns the names of the BPF programs in the kernel."""
    call, names, last = ctypes.CDLL(None, use_errno=True).syscall, [], 0
    number = NUMBER_OF_BPF[os.uname().machine]

    def bpf(command, *words):
        attr = (ctypes.c_uint32 * 32)(*words)
        return call(number, command, attr, ctypes.sizeof(attr)), attr

    while True:
        failed, attr = bpf(GET_NEXT_ID, last)
        if failed:
            return names
        last = attr[1]
        fd, _ = bpf(GET_BY_ID, last)
        if fd >= 0:
            info = ctypes.create_string_buffer(232)
            address = ctypes.addressof(info)
            bpf(GET_INFO, fd, len(info), address & 0xffffffff, address >> 32)
            names.append(info.raw[64:80].split(b"\0")[0].decode())
            os.close(fd)


def ours():
    return [name for name in loaded() if name.startswith("systoll_")]


@counted()
def killed_systoll_leaves_nothing(box):
    """SIGKILL of systoll: the program runs on and ends as it would, and no program of ours stays in the kernel."""
    argv = [box.build("parents.c"), "2", "1000", "asked"]
    p = box.start(box.watch(argv, "-q"), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert p.stdout.readline() == b"ready\n"
    assert len(ours()) == 6, ours()
    p.kill()
    p.wait(timeout=60)
    wait_for(lambda: not ours(), "the kernel removes the programs", limit=10)
    p.stdin.write(b"go\n")
    p.stdin.flush()
    assert p.stdout.readline() == b"done\n"
    p.stdin.close()
    box.no_leftovers(within=5)


@counted()
def nothing_stays_after_a_run(box):
    box.report(["/bin/true"])
    wait_for(lambda: not ours(), "the kernel removes the programs", limit=10)


def attached(box, argv, flags=()):
    """Starts argv and attaches to it. Returns both."""
    p = box.start(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert p.stdout.readline() == b"ready\n"
    out = os.path.join(box.dir, "report.json")
    s = box.start([box.systoll, "attach", "--backend", "bpf", "-q", "--json", "-o", out, *flags, str(p.pid)], stderr=subprocess.PIPE)
    wait_for(lambda: s.poll() is not None or len(ours()) == 6, "systoll attaches")
    time.sleep(0.5)
    return p, s, out


@counted()
def a_running_process_is_entered_and_left(box):
    """All calls between entering and leaving are counted, of threads that begin meanwhile too; the process goes on."""
    p, s, out = attached(box, [box.build("parents.c"), "3", "50000", "asked"])
    p.stdin.write(b"go\n")
    p.stdin.flush()
    assert p.stdout.readline() == b"done\n"
    s.send_signal(signal.SIGINT)
    assert s.wait(timeout=60) == 0, s.stderr.read()
    with open(out) as f:
        doc = json.load(f)
    assert calls_of(doc, "getppid") == 150_000, (calls_of(doc, "getppid"), doc["problems"])
    assert doc["attached"]["left_running"] and p.poll() is None, doc["attached"]
    wait_for(lambda: not ours(), "the kernel removes the programs", limit=10)
    assert doc["processes"][0]["exe"].endswith(os.path.basename(box.build("parents.c"))), doc["processes"]
    p.stdin.close()
    assert p.wait(timeout=60) == 0


@counted()
def an_entered_process_may_end(box):
    p, s, out = attached(box, [box.build("parents.c"), "1", "1000", "asked"])
    p.stdin.write(b"go\n")
    p.stdin.close()
    assert p.wait(timeout=60) == 0 and s.wait(timeout=60) == 0, s.stderr.read()
    with open(out) as f:
        doc = json.load(f)
    exact(doc)
    assert calls_of(doc, "getppid") == 1000 and not doc["attached"]["left_running"], doc["attached"]
