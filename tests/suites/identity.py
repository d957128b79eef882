"""A watched program has the same output, exit, signals and descriptors as unwatched."""
import os
import pty
import select
import signal
import subprocess
import time

from harness import BOTH, Skip, test, tool, wait_for


def ends(box, argv, watched, **kwargs):
    """Runs argv. Returns (exit code or -signal, stdout, stderr)."""
    if watched:
        argv = box.watch(argv, "-q", "-o", os.path.join(box.dir, "report"))
    r = box.run(argv, **kwargs)
    return r.returncode, r.stdout, r.stderr


def same(box, argv, before=None, **kwargs):
    """Asserts that watching changes nothing. Returns what both did."""
    seen = []
    for watched in (False, True):
        if before:
            before()
        seen.append(ends(box, argv, watched, **kwargs))
    plain, watched = seen
    assert plain == watched, f"unwatched {plain!r}, watched {watched!r}"
    assert os.path.getsize(os.path.join(box.dir, "report")) > 0, "no report"
    box.no_leftovers()
    return plain


def program(name, argv, expect=0, **options):
    @test(name, backends=BOTH)
    def check(box):
        got = same(box, argv(box), **options)
        assert expect is None or got[0] == expect, f"ends with {got[0]}: {got[2][-300:]}"


PYTHON = "/usr/bin/python3"

SIGNALS = """
import os, signal, subprocess, sys, threading, time
seen = []
signal.signal(signal.SIGUSR1, lambda s, f: seen.append('usr1'))
signal.signal(signal.SIGALRM, lambda s, f: seen.append('alrm'))
os.kill(os.getpid(), signal.SIGUSR1)
signal.setitimer(signal.ITIMER_REAL, 0.02)
time.sleep(0.1)
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
os.kill(os.getpid(), signal.SIGUSR1)
print(seen, signal.sigpending())
signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGUSR1])
print(seen, signal.pthread_sigmask(signal.SIG_BLOCK, []))
print(subprocess.run(['sh', '-c', 'kill -TERM $$']).returncode)
print(subprocess.run(['cat'], input=b'through a pipe', capture_output=True).stdout)
p = subprocess.Popen(['sleep', '10']); p.send_signal(signal.SIGSTOP)
print(os.waitpid(p.pid, os.WUNTRACED)[1] >> 8 == signal.SIGSTOP); p.kill(); print(p.wait())
t = threading.Thread(target=lambda: seen.append('thread')); t.start(); t.join()
print(seen, file=sys.stderr)
sys.exit(7)
"""

STARTS_WITH = """
import os, resource, signal
status = open('/proc/self/status').read().split('\\n')
# Of SigQ, how many are queued now is what all processes of this user do.
print([l.split('/')[-1] for l in status if l[:3] == 'Sig' or l[:10] in ('NoNewPrivs', 'Seccomp:\\t0')])
print(sorted(os.listdir('/proc/self/fd')))
print(sorted((k, v) for k, v in os.environ.items()))
print(os.getcwd(), oct(os.umask(0)), os.getpriority(os.PRIO_PROCESS, 0), os.getuid(), os.getgid(), os.getgroups())
print([(n, resource.getrlimit(getattr(resource, n))) for n in sorted(dir(resource)) if n.startswith('RLIMIT_')])
print(os.sched_getaffinity(0), os.sched_getscheduler(0))
print(open('/proc/self/oom_score_adj').read(), open('/proc/self/personality').read() if os.access('/proc/self/personality', os.R_OK) else '')
print(signal.getsignal(signal.SIGPIPE), signal.getsignal(signal.SIGINT), [s for s in signal.valid_signals() if signal.getsignal(s) == signal.SIG_IGN])
"""

program("python_signals", lambda b: [PYTHON, "-c", SIGNALS], expect=7)
program("starts_with", lambda b: [PYTHON, "-E", "-s", "-c", STARTS_WITH])
program("shell_fds", lambda b: ["/bin/sh", "-c", "ls /proc/self/fd; ls /proc/$$/fd"])
program("shell_pipeline", lambda b: ["/bin/sh", "-c", "seq 1000 | sort -rn | head -3; seq 100000 | head -1; exit 9"], expect=9)
program("bash_jobs", lambda b: [tool("bash"), "-c", "set -m; sleep 0.05 & fg %1; (exit 3) & wait $!; echo $?; trap 'echo bye' EXIT; echo done"])
program("stops_and_goes_on", lambda b: ["/bin/sh", "-c", "(sleep 0.2; kill -CONT $$) & kill -STOP $$; echo resumed; wait"])
program("perl_fork", lambda b: [tool("perl"), "-e", "$|=1; for (1..5) { my $p = fork; if (!$p) { exit $_ } waitpid $p, 0; print $? >> 8, qq{\\n} } die 'end'"], expect=None)
program("ruby_threads", lambda b: [tool("ruby"), "--disable-gems", "-e", "puts (1..8).map { |i| Thread.new { sleep 0.01; i * i } }.map(&:value).inspect; warn 'x'; exit 4"], expect=4)
program("sqlite", lambda b: [tool("sqlite3"), "-batch", ":memory:", "create table t(a); insert into t values(1),(2); select sum(a), sqlite_version() from t;"])
program("git", lambda b: [tool("git"), "--no-pager", "help", "-a"])
program("tar_gzip", lambda b: ["/bin/sh", "-c", "tar cf - -C /usr/include linux/if.h | gzip -n | gzip -d | tar tf -"])
program("node", lambda b: [tool("node"), "-e", "require('child_process').exec('echo hi', (e, o) => { process.stdout.write(o); process.exitCode = 6 })"], expect=6)
program("java", lambda b: [tool("java"), "-version"])
program("go", lambda b: [b.build("readers.go")])
program("stdin", lambda b: ["/bin/cat"], input=b"a\0b\n" * 5000)
program("dies_by_sigsegv", lambda b: [PYTHON, "-c", "import os; os.kill(os.getpid(), 11)"], expect=-signal.SIGSEGV)
program("dies_by_a_real_fault", lambda b: [PYTHON, "-c", "import ctypes, resource; resource.setrlimit(resource.RLIMIT_CORE, (0, 0)); ctypes.string_at(0)"], expect=-signal.SIGSEGV)
program("dies_by_sigkill", lambda b: ["/bin/sh", "-c", "kill -9 $$"], expect=-signal.SIGKILL)
program("dies_by_sigpipe", lambda b: [PYTHON, "-c", "import os, signal; signal.signal(signal.SIGPIPE, signal.SIG_DFL); r, w = os.pipe(); os.close(r); os.write(w, b'x')"], expect=-signal.SIGPIPE)
program("dies_by_real_time_signal", lambda b: ["/bin/sh", "-c", "kill -40 $$"], expect=-40)
program("exit_3", lambda b: ["/bin/sh", "-c", "exit 3"], expect=3)
program("exit_255", lambda b: ["/bin/sh", "-c", "exit 255"], expect=255)
program("many_short_children", lambda b: ["/bin/sh", "-c", "i=0; while [ $i -lt 100 ]; do /bin/true; i=$((i+1)); done; echo $i"])
program("signals_and_restarts", lambda b: [b.build("signals.c")])
program("exec_from_a_thread", lambda b: [b.build("execthread.c")])
program("musl_static", lambda b: [b.build("mix.c", "-static", compiler="musl-gcc")])
program("waits_for_a_traced_child", lambda b: [b.build("spawn.c")])


@test(backends=BOTH)
def streams_closed(box):
    """If a standard stream is closed at the start, the program finds it closed, and the rest works."""
    probe = [PYTHON, "-c", "import os, sys\nopen('seen', 'w').write(str([os.path.exists(f'/proc/self/fd/{n}') for n in (0, 1, 2)]))\nsys.exit(5)"]
    for closing in ("<&-", ">&-", "2>&-", "<&- >&- 2>&-"):
        seen = []
        for watched in (False, True):
            argv = box.watch(probe, "-q", "-o", "report") if watched else probe
            r = box.run(["/bin/sh", "-c", f'exec "$@" {closing}', "sh", *argv])
            with open(os.path.join(box.dir, "seen")) as f:
                seen.append((r.returncode, r.stdout, f.read()))
        assert seen[0] == seen[1], f"{closing}: unwatched {seen[0]}, watched {seen[1]}"


@test(backends=BOTH)
def few_descriptors(box):
    # Watching from inside takes some descriptors more.
    for n in ("12" if box.backend == "inproc" else "8", "16", "32"):
        same(box, ["/bin/sh", "-c", "ulimit -n; /bin/ls / | /bin/cat"], preexec_fn=limit_files(int(n)))


def limit_files(n):
    import resource

    return lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (n, n))


@test(backends=BOTH)
def ignored_signals_stay_ignored(box):
    script = ["/bin/sh", "-c", "grep -E 'Sig(Ign|Blk|Cgt)' /proc/self/status"]
    for ignored in ([signal.SIGHUP], [signal.SIGINT, signal.SIGQUIT], [signal.SIGPIPE, signal.SIGTERM]):
        same(box, script, preexec_fn=lambda: [signal.signal(s, signal.SIG_IGN) for s in ignored])
    same(box, script, preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1, signal.SIGTERM]))


@test(backends=BOTH)
def set_uid_helper_keeps_its_privilege(box):
    """A script calls a set-uid program, which prints what it prints unwatched."""
    if os.getuid() != 0:
        raise Skip("only root can make a set-uid program")
    helper = os.path.join(box.dir, "helper")
    with open(box.build("setid.c"), "rb") as f:
        data = f.read()
    with open(helper, "wb") as f:
        f.write(data)
    for owner, mode in ((0, 0o4755), (0, 0o2755), (12345, 0o4755), (12345, 0o4711)):
        os.chown(helper, owner, owner)
        os.chmod(helper, mode)
        script = ["/bin/sh", "-c", f"{helper}; {helper} | cat; exec {helper}"]
        code, out, _ = same(box, script)
        asked = b"euid %d" % owner if mode & 0o4000 else b"egid %d" % owner
        if asked not in out:
            raise Skip("set-uid has no effect here (nosuid)")
        assert code == 0 and out.count(b"euid") == 3, out
        if owner != 0:
            os.chown(helper, 0, 0)


@test(backends=BOTH)
def unreadable_program_runs(box):
    """The program has mode 711: it may be run, but not read."""
    if os.getuid() != 0:
        raise Skip("needs root to own the program")
    path = os.path.join(box.dir, "secret")
    with open(box.build("mix.c"), "rb") as source, open(path, "wb") as f:
        f.write(source.read())
    os.chmod(path, 0o711)
    same(box, ["/bin/sh", "-c", path + "; echo after"])


def at_terminal(box, argv, keys, ready=b"ready"):
    """Runs argv with a terminal of its own, and types keys once it is ready. Returns the status and the output."""
    pid, fd = pty.fork()
    if pid == 0:
        os.chdir(box.dir)
        cmd = box.command(argv)
        os.execvpe(cmd[0], cmd, dict(box.env, TERM="dumb"))
    out, typed, end = b"", False, time.monotonic() + 20
    while time.monotonic() < end:
        if fd in select.select([fd], [], [], 0.1)[0]:
            try:
                data = os.read(fd, 65536)
            except OSError:
                break
            if not data:
                break
            out += data
        if not typed and ready in out:
            time.sleep(0.1)
            os.write(fd, keys)
            typed = True
    else:
        os.kill(pid, signal.SIGKILL)
    os.close(fd)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), out


@test(backends=BOTH)
def terminal_and_ctrl_c(box):
    scripts = {
        "handled": "trap 'echo got it; exit 5' INT; echo ready; while :; do sleep 0.05; done",
        "deadly": "echo ready; exec sleep 20",
        "foreground": f"{PYTHON} -c 'import os; print(os.tcgetpgrp(0) == os.getpgrp(), os.isatty(1))'; echo ready; read x; exit 8",
    }
    for name, script in scripts.items():
        keys = b"\n" if name == "foreground" else b"\x03"
        plain = at_terminal(box, ["/bin/sh", "-c", script], keys)
        watched = at_terminal(box, box.watch(["/bin/sh", "-c", script], "-q", "-o", "report"), keys)
        assert plain == watched, f"{name}: unwatched {plain}, watched {watched}"
        assert os.path.getsize(os.path.join(box.dir, "report")) > 0
        os.unlink(os.path.join(box.dir, "report"))


@test(backends=BOTH)
def outlives_us(box):
    """After kill -9 of systoll the program goes on as without it."""
    script = "i=0; while [ $i -lt 40 ]; do /bin/echo $i; sleep 0.02; i=$((i+1)); done; echo end"
    path = os.path.join(box.dir, "out")
    for lines in (0, 1, 5, 20):
        with open(path, "wb") as out:
            p = box.start(box.watch(["/bin/sh", "-c", script], "-q"), stdout=out, stderr=subprocess.DEVNULL)
            wait_for(lambda: written(path) >= lines)
            p.kill()
            p.wait()
        wait_for(lambda: not box.leftovers())
        with open(path) as f:
            got = f.read().split()
        # If systoll was killed before it started the program, there is nothing to outlive it.
        assert got == [*map(str, range(40)), "end"] or got == [] and lines == 0, f"killed after {lines} lines: {got[-3:]}"


def written(path):
    with open(path, "rb") as f:
        return f.read().count(b"\n")
