"""Attaches to running processes: they are entered, counted, and left as they were.

`attached.c` does as it is told, checks whether anything it sees has changed, and counts. A server's own load generator
tells what its clients see."""
import contextlib
import fcntl
import json
import os
import pty
import random
import select
import signal
import socket
import struct
import subprocess
import termios
import time

from harness import Skip, test, text, tool

OURS = 0x5000_0000_0000


class Running:
    """A running `attached.c`."""

    def __init__(self, box, *words, under=(), program="attached.c"):
        self.process = box.start([*under, box.build(program), *words], stdin=-1, stdout=-1)
        self.pid = self.process.pid
        assert self.process.stdout.readline() == b"ready\n"

    def ask(self, line):
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()
        return text(self.process.stdout.readline()).strip()

    def end(self):
        self.process.stdin.close()
        return self.process.wait(20)


def is_fine(run):
    """Asserts that the program itself has seen nothing wrong, and ends it."""
    wrong = run.ask("check")
    assert wrong == "fine", wrong
    assert run.end() == 0


def maps(pid):
    with open(f"/proc/{pid}/maps") as f:
        return [line.split(maxsplit=5) for line in f]


def ours_in(pid):
    """Returns the mappings in a process that are systoll's: its files, and nameless ones right below them. (V8 maps its
    own anywhere.)"""
    def is_ours(line):
        return "memfd:systoll" in line[-1] or OURS - 2**26 <= int(line[0].split("-")[0], 16) < OURS
    return [line for line in maps(pid) if is_ours(line)]


def changed_code(pid):
    """Returns the files whose code in a process differs from the file."""
    wrong = []
    for line in maps(pid):
        if len(line) < 6 or "x" not in line[1] or not line[5].startswith("/") or line[5].startswith("/memfd:") or "(deleted)" in line[5]:
            continue
        start, end = (int(x, 16) for x in line[0].split("-"))
        with open(f"/proc/{pid}/mem", "rb") as mem, open(line[5].strip(), "rb") as file:
            mem.seek(start)
            file.seek(int(line[2], 16))
            there, was = mem.read(end - start), file.read(end - start)
        # A process that ends meanwhile gives less than was asked for.
        if there != was[: len(there)].ljust(len(there), b"\0"):
            wrong.append((line[5].strip(), next(hex(i) for i in range(len(there)) if there[i : i + 1] != was[i : i + 1])))
    return wrong


def attach(box, pid, *flags, **kwargs):
    """Starts systoll on a process. Returns its Popen and the path of its JSON."""
    out = os.path.join(box.dir, f"attached-{pid}.json")
    with contextlib.suppress(FileNotFoundError):
        os.unlink(out)
    p = box.start([box.systoll, "attach", "-q", *flags, "--json", "-o", out, str(pid)], stdin=-3, stdout=-1, stderr=-1, **kwargs)
    return p, out


def until(what, limit=60):
    end = time.monotonic() + limit
    while not what():
        assert time.monotonic() < end, "it did not come to that"
        time.sleep(0.005)


def is_hooked(pid):
    return any("memfd:systoll" in line[-1] for line in maps(pid)) and bool(changed_code(pid))


def watched(box, pid, during, *flags):
    """Returns the report on a process that was watched during `during`."""
    p, out = attach(box, pid, *flags)
    until(lambda: is_hooked(pid) or p.poll() is not None)
    assert p.poll() is None, p.communicate()
    during()
    p.send_signal(signal.SIGINT)
    _, err = p.communicate(timeout=60)
    assert p.returncode == 0 and "panicked" not in text(err), (p.returncode, err)
    with open(out) as f:
        return json.load(f)


def calls(doc, name):
    return sum(row["calls"] for row in doc["by_syscall"] if row["syscall"] == name)


def is_as_it_was(pid):
    assert not ours_in(pid), ours_in(pid)
    assert not changed_code(pid), changed_code(pid)


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
    # Every place of the C library that makes calls was hooked.
    assert doc["exact"], doc["problems"]
    assert calls(doc, "newfstatat") == 300
    opened = next(row for row in doc["by_syscall"] if row["syscall"] == "openat")
    assert (opened["calls"], opened["errors"]) == (7, {"ENOENT": 7}), opened
    assert doc["attached"]["left_running"] and doc["exit"] is None
    is_as_it_was(run.pid)
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
    is_as_it_was(run.pid)
    is_fine(run)
    # A program that a child executes is not watched.
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
        is_as_it_was(shell.pid)
    shell.stdin.close()
    assert shell.wait(20) == 0


@test()
def threads_are_counted_each(box):
    run = Running(box, "6")
    per_thread = 2000
    doc = watched(box, run.pid, lambda: run.ask(f"all {per_thread}"), "--by", "thread")
    # The workers make calls of getppid all the time, besides those that were asked for.
    assert calls(doc, "getppid") > 6 * per_thread
    is_as_it_was(run.pid)
    is_fine(run)


@test()
def waits_are_as_long_as_asked_and_signals_come_as_before(box):
    """The program makes eight kinds of calls that wait, gets a signal 5,000 times a second, and uses data below the
    stack pointer and vector registers."""
    run = Running(box, "3", "timer", "5000", "sleepers")
    for _ in range(3):
        watched(box, run.pid, lambda: time.sleep(0.7))
        is_as_it_was(run.pid)
    time.sleep(1.6)
    is_fine(run)


@test()
def a_hundred_times_in_and_out(box):
    run = Running(box, "4", "timer", "1000", "sleepers")
    for n in range(100 if box.shared.long else 12):
        p, _ = attach(box, run.pid, "--for", "0.05s")
        _, err = p.communicate(timeout=60)
        assert p.returncode == 0, (n, err)
        is_as_it_was(run.pid)
    assert run.ask("ppid 3") == "done"
    is_fine(run)


@test()
def systoll_is_killed_at_any_moment(box):
    """The program runs on, and what systoll left in it is taken out afterwards."""
    run = Running(box, "3", "timer", "500", "sleepers", "killed")
    chance = random.Random(7)
    left = 0
    for n in range(100 if box.shared.long else 15):
        p, _ = attach(box, run.pid, "--for", "0.02s")
        time.sleep(chance.random() * 0.6)
        p.kill()
        p.wait()
        assert run.process.poll() is None, f"round {n}: ended by {run.process.returncode}"
        assert run.ask("ppid 10") == "done"
        left += bool(ours_in(run.pid))
        r = box.run([box.systoll, "attach", "--clean", str(run.pid)])
        assert r.returncode == 0, r.stderr
        is_as_it_was(run.pid)
    is_fine(run)


@test()
def what_was_left_is_taken_out(box):
    run = Running(box, "2")
    p, _ = attach(box, run.pid)
    until(lambda: is_hooked(run.pid))
    r = box.run([box.systoll, "attach", "--clean", str(run.pid)])
    assert r.returncode == 125 and "systoll watches it" in text(r.stderr), r.stderr
    r = box.run([box.systoll, "attach", "--for", "1s", str(run.pid)])
    assert r.returncode == 125 and "--clean" in text(r.stderr), r.stderr
    p.kill()
    p.wait()
    assert run.ask("ppid 10") == "done" and is_hooked(run.pid)
    r = box.run([box.systoll, "attach", "--clean", str(run.pid)])
    assert r.returncode == 0, r.stderr
    is_as_it_was(run.pid)
    r = box.run([box.systoll, "attach", "--clean", str(run.pid)])
    assert r.returncode == 0 and "is clean" in text(r.stderr), r.stderr
    assert run.ask("ppid 10") == "done"
    is_fine(run)


@test()
def a_program_that_ends_meanwhile_ends_the_watching(box):
    run = Running(box, "0")
    p, out = attach(box, run.pid)
    until(lambda: is_hooked(run.pid))
    assert run.ask("ppid 100") == "done" and run.end() == 0
    _, err = p.communicate(timeout=30)
    assert p.returncode == 0, err
    with open(out) as f:
        doc = json.load(f)
    assert calls(doc, "getppid") == 100 and not doc["attached"]["left_running"]


@test()
def what_may_not_be_entered_is_told_and_not_touched(box):
    run = Running(box, "0")
    os.kill(run.pid, signal.SIGSTOP)
    time.sleep(0.05)
    r = box.run([box.systoll, "attach", "--for", "1s", str(run.pid)])
    assert r.returncode == 125 and "stopped by a signal" in text(r.stderr) and f"kill -CONT {run.pid}" in text(r.stderr), r.stderr
    os.kill(run.pid, signal.SIGCONT)
    is_fine(run)
    r = box.run([box.systoll, "attach", "--for", "1s", "no-such-program-anywhere"])
    assert r.returncode == 125 and "there is no process" in text(r.stderr), r.stderr


FORBIDDEN = {
    # Numbers of prctl: PR_SET_NO_NEW_PRIVS, PR_SET_MDWE, PR_SET_DUMPABLE.
    "no new privileges": (38, 1),
    "no memory both written and executed": (65, 1),
    "not to be dumped": (4, 0),
}


@test()
def what_a_process_forbids_itself_is_in_nobodys_way_or_told(box):
    for name, (number, value) in FORBIDDEN.items():
        p = box.start(["/usr/bin/python3", "-c", (
            f"import ctypes, os, sys\nforbidden = ctypes.CDLL(None).prctl({number}, {value}, 0, 0, 0) == 0\n"
            "print('ready' if forbidden else 'unknown', flush=True)\n"
            "for line in sys.stdin: [os.getppid() for _ in range(100)]; print('done', flush=True)")], stdin=-1, stdout=-1)
        if p.stdout.readline() != b"ready\n":
            # An older kernel does not know this setting.
            p.kill()
            p.wait()
            continue
        if name == "not to be dumped" and box.user == "nobody":
            r = box.run([box.systoll, "attach", "--for", "1s", str(p.pid)])
            said = text(r.stderr)
            assert r.returncode == 125 and "may not be dumped" in said and f"sudo systoll attach {p.pid}" in said, said
        else:
            def during():
                p.stdin.write(b"go\n")
                p.stdin.flush()
                assert p.stdout.readline() == b"done\n"
            doc = watched(box, p.pid, during)
            assert calls(doc, "getppid") == 100 and doc["exact"], (name, doc["problems"])
            is_as_it_was(p.pid)
        p.stdin.close()
        assert p.wait(20) == 0, name


# A program whose own memory lies where systoll's would have to, as V8's may anywhere below 2^46.
IN_THE_WAY = f"""
import ctypes, sys
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
at = libc.mmap(ctypes.c_void_p({OURS + 2**36}), ctypes.c_size_t(1 << 18), 3, 0x100022, -1, ctypes.c_long(0))
ctypes.memset(at, 7, 1 << 18)
print("ready", flush=True); sys.stdin.readline()
sys.exit(set(ctypes.string_at(at, 1 << 18)) != {{7}})
"""


@test()
def memory_of_its_own_where_systolls_would_lie_is_left_alone(box):
    p = box.start(["/usr/bin/python3", "-c", IN_THE_WAY], stdin=-1, stdout=-1)
    assert p.stdout.readline() == b"ready\n"
    for words, code, said in ((["--for", "1s"], 125, "its own memory lies where"), (["--clean"], 0, "")):
        r = box.run([box.systoll, "attach", *words, str(p.pid)])
        assert r.returncode == code and said in text(r.stderr) and not changed_code(p.pid), r.stderr
    p.stdin.close()
    assert p.wait(20) == 0


@test(users=("root",))
def a_container_is_entered_by_the_command_that_is_told(box):
    """Its processes have a PID namespace, and a filter, of their own."""
    inside = [box.build("filtered.c"), "denied", box.build("attached.c"), "1"]
    p = box.start([tool("unshare"), "-p", "-f", "-m", "--mount-proc", *inside], stdin=-1, stdout=-1)
    assert p.stdout.readline() == b"ready\n"
    with open(f"/proc/{p.pid}/task/{p.pid}/children") as f:
        inner = f.read().split()[0]
    r = box.run([box.systoll, "attach", "--for", "1s", inner])
    told = text(r.stderr).split("sudo ")[-1].strip()
    assert r.returncode == 125 and told == f"nsenter -t {inner} -p unshare --mount-proc systoll attach 1", r.stderr
    out = os.path.join(box.dir, "inside.json")
    r = box.run(told.replace("systoll attach", f"{box.systoll} attach -q --for 0.2s --json -o {out}").split())
    assert r.returncode == 0, r.stderr
    with open(out) as f:
        assert json.load(f)["attached"]["left_running"]
    is_as_it_was(inner)
    p.stdin.close()
    assert p.wait(20) == 0


@test()
def a_32_bit_program_is_told_as_such(box):
    parts = [os.path.join(box.dir, name) for name in ("old.s", "old.o", "old")]
    with open(parts[0], "w") as f:
        f.write(".globl _start\n_start: mov $162, %eax\nmov $t, %ebx\nxor %ecx, %ecx\nint $0x80\njmp _start\n.data\nt: .long 0, 1000000\n")
    if box.run([tool("as"), "--32", "-o", parts[1], parts[0]]).returncode or box.run([tool("ld"), "-m", "elf_i386", "-o", parts[2], parts[1]]).returncode:
        raise Skip("no assembler for 32-bit programs")
    p = box.start([parts[2]])
    time.sleep(0.1)
    if p.poll() is not None:
        raise Skip("the kernel runs no 32-bit programs")
    for words in (["attach", "--for", "1s", str(p.pid)], ["prove", "--live", str(p.pid), "--elide", "getpid"]):
        r = box.run([box.systoll, *words])
        assert r.returncode == 125 and "it is a 32-bit program" in text(r.stderr), r.stderr
    p.kill()
    p.wait()


@test()
def a_container_is_named_by_its_group(box):
    r = box.run([box.systoll, "attach", "--for", "1s", "--container", "no-such-container"])
    assert r.returncode == 125 and "there is no process of a container no-such-container" in text(r.stderr), r.stderr


@test(users=("nobody",))
def nobody_enters_what_is_another_users(box):
    other = subprocess.Popen(["sleep", "60"])
    r = box.run([box.systoll, "attach", "--for", "1s", str(other.pid)])
    other.kill()
    other.wait()
    assert r.returncode == 125 and f"sudo systoll attach {other.pid}" in text(r.stderr), r.stderr


@test(users=("root",))
def root_enters_what_is_another_users_and_shares_nothing_that_can_be_written(box):
    program = box.build("attached.c")
    other = subprocess.Popen(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", program, "1"], stdin=-1, stdout=-1)
    assert other.stdout.readline() == b"ready\n"

    def during():
        other.stdin.write(b"ppid 500\n")
        other.stdin.flush()
        other.stdout.readline()
        # The process may only read its code file; its image is its own.
        rights = {line[1] for line in maps(other.pid) if "memfd:systoll" in line[-1]}
        assert rights == {"r--s", "r-xs", "rw-s"}, rights

    doc = watched(box, other.pid, during)
    assert calls(doc, "getppid") >= 500
    is_as_it_was(other.pid)
    other.stdin.close()
    assert other.wait(20) == 0


PYTHON = """
import os, sys, threading
stop = False
def work():
    n = 0
    while not stop:
        os.stat("/etc")
        n += 1
        if n % 50 == 0:
            open("/proc/self/status").read()
threads = [threading.Thread(target=work) for _ in range(16)]
[t.start() for t in threads]
print("ready", flush=True)
sys.stdin.readline()
stop = True
[t.join() for t in threads]
print("over", flush=True)
"""


@test()
def python_with_threads(box):
    p = box.start(["/usr/bin/python3", "-c", PYTHON], stdin=-1, stdout=-1)
    assert p.stdout.readline() == b"ready\n"
    for _ in range(3):
        doc = watched(box, p.pid, lambda: time.sleep(0.5))
        assert calls(doc, "newfstatat") > 100 and calls(doc, "openat") > 2, doc["by_syscall"]
        is_as_it_was(p.pid)
    assert p.communicate(b"\n", timeout=30)[0] == b"over\n" and p.returncode == 0


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


@contextlib.contextmanager
def server(box, argv, port):
    p = box.start(argv, stdin=-3, stdout=-3, stderr=-3)
    try:
        def answers():
            with socket.socket() as s:
                return s.connect_ex(("127.0.0.1", port)) == 0
        until(answers)
        yield p
    finally:
        p.terminate()
        p.wait(20)


@test()
def redis_under_load_loses_nothing(box):
    port = free_port()
    argv = [tool("redis-server"), "--port", str(port), "--save", "", "--bind", "127.0.0.1", "--dir", box.dir]
    bench = [tool("redis-benchmark"), "-p", str(port), "-n", "150000", "-c", "20", "-t", "get,set", "--csv"]
    with server(box, argv, port) as p:
        load = box.start(bench, stdin=-3, stdout=-1, stderr=-1)
        rounds = 0
        while load.poll() is None and rounds < 10:
            one, _ = attach(box, p.pid, "--for", "0.3s")
            assert one.wait(60) == 0, one.communicate()
            is_as_it_was(p.pid)
            rounds += 1
        out, err = load.communicate(timeout=120)
        assert load.returncode == 0 and b"rror" not in out + err, (out, err)
        assert rounds > 0 and text(out).count('"') >= 8, out
        doc = watched(box, p.pid, lambda: box.run([*bench[:4], "5000", *bench[5:]]))
        assert calls(doc, "epoll_wait") > 100 and calls(doc, "write") >= 5000, doc["by_syscall"]


NGINX = """
worker_processes 2; daemon off; pid {dir}/nginx.pid; error_log {dir}/error.log;
events {{ worker_connections 200; }}
http {{ access_log off; client_body_temp_path {dir}; proxy_temp_path {dir}; fastcgi_temp_path {dir}; uwsgi_temp_path {dir};
        scgi_temp_path {dir}; server {{ listen 127.0.0.1:{port}; root {dir}; }} }}
"""


@test()
def nginx_under_load_loses_nothing(box):
    port = free_port()
    config = box.file("nginx.conf", NGINX.format(dir=box.dir, port=port))
    box.file("x.html", "x" * 4000)
    ab = [tool("ab"), "-q", "-n", "60000", "-c", "10", f"http://127.0.0.1:{port}/x.html"]
    with server(box, [tool("nginx"), "-e", os.path.join(box.dir, "error.log"), "-c", config], port) as p:
        def workers():
            with open(f"/proc/{p.pid}/task/{p.pid}/children") as f:
                return f.read().split()
        until(lambda: len(workers()) == 2)
        load = box.start(ab, stdin=-3, stdout=-1, stderr=-1)
        rounds = 0
        while load.poll() is None and rounds < 10:
            one, out = attach(box, p.pid, "--tree", "--for", "0.4s")
            assert one.wait(60) == 0, one.communicate()
            rounds += 1
            with open(out) as f:
                doc = json.load(f)
            assert len(doc["processes"]) == 3, (doc["processes"], doc["problems"])
        out, _ = load.communicate(timeout=120)
        assert load.returncode == 0 and "Failed requests:        0" in text(out) and "Complete requests:      60000" in text(out), text(out)


@test()
def top_shows_what_calls_cost_and_leaves_the_program(box):
    run = Running(box, "0")
    with contextlib.ExitStack() as ends:
        master, slave = (ends.enter_context(open(fd, "rb+", buffering=0)).fileno() for fd in pty.openpty())
        shown_at_a_terminal(box, run, master, slave)
    none = box.run([box.systoll, "top", str(run.pid)])
    assert none.returncode == 125 and b"--batch" in none.stderr, none
    texts = box.start([box.systoll, "top", "--batch", "2", "--every", "300ms", str(run.pid)], stdout=-1, stderr=-1)
    while texts.poll() is None:
        assert run.ask("ppid 50") == "done"
    out, err = texts.communicate()
    assert texts.returncode == 0 and out.count(b"] getppid < ") + out.count(b"  getppid < ") == 2 == out.count(b"%CPU") and b"\x1b" not in out, (out, err)
    is_as_it_was(run.pid)
    is_fine(run)


def shown_at_a_terminal(box, run, master, slave):
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    before = termios.tcgetattr(slave)
    for leave in ("q", signal.SIGTERM, signal.SIGINT):
        p = box.start([box.systoll, "top", str(run.pid)], stdin=slave, stdout=slave, stderr=-1)
        seen = b""

        def shows(what, p=p):
            nonlocal seen
            assert p.poll() is None and run.ask("ppid 200") == "done"
            while select.select([master], [], [], 0)[0]:
                seen += os.read(master, 65536)
            return what in seen

        until(lambda: shows(b"getppid"))
        assert termios.tcgetattr(slave) != before, "keys are read as they are pressed"
        assert is_hooked(run.pid)
        os.write(master, b"q") if leave == "q" else p.send_signal(leave)
        _, err = p.communicate(timeout=60)
        assert p.returncode == 0 and f"process {run.pid} runs on as before" in text(err), (leave, p.returncode, err)
        shows_end = os.read(master, 65536)
        assert b"\x1b[?1049l" in shows_end and termios.tcgetattr(slave) == before, (leave, shows_end)
        is_as_it_was(run.pid)


@test()
def processes_are_named_by_port_and_name(box):
    port = free_port()
    argv = [tool("redis-server"), "--port", str(port), "--save", "", "--bind", "127.0.0.1", "--dir", box.dir]
    with server(box, argv, port) as p:
        out = os.path.join(box.dir, "by-port.json")
        r = box.run([box.systoll, "attach", "-q", "--for", "0.3s", "--json", "-o", out, f":{port}"])
        assert r.returncode == 0, r.stderr
        with open(out) as f:
            assert [process["pid"] for process in json.load(f)["processes"]] == [p.pid]


@test(users=("root",))
def counts_are_the_kernels(box):
    """bpftrace counts the same calls at the same time; a call that is under way at either end may be in one of the two
    only."""
    bpftrace = tool("bpftrace")
    run = Running(box, "0")
    script = "tracepoint:raw_syscalls:sys_enter /pid == %d && args->id == 110/ { @[0] = count(); }" % run.pid
    with box.only_kernel_tracer():
        t = subprocess.Popen([bpftrace, "-e", script], stdout=-1, stderr=-1)
        time.sleep(4)
        if t.poll() is not None:
            raise Skip(f"bpftrace does not run here: {text(t.communicate()[1])[-200:]}")
        doc = watched(box, run.pid, lambda: run.ask("ppid 4321"))
        t.send_signal(signal.SIGINT)
        out, _ = t.communicate(timeout=30)
    kernel = int(text(out).split("@[0]:")[1].split()[0])
    assert calls(doc, "getppid") == 4321 == kernel, (calls(doc, "getppid"), kernel)
    run.end()
