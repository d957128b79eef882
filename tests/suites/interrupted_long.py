"""Every long command besides comparisons of times (interrupted.py) reports an interruption and what is known by then, ends
with 130 or 143, gives no verdict, and leaves nothing running.
"""
import os
import signal
import subprocess
import time

from harness import Skip, test, text, tool
from suites.interrupted import interrupts, lines, until, waits_at

# The signal of a terminal goes to all processes, that of `kill` to systoll alone.
BOTH = ((signal.SIGINT, True), (signal.SIGTERM, False))
VERDICTS = ("holds", "first commit", "nothing changed", "proved", "needless", "finding")


def says(box, argv, ready, known, out=None, again=None, **kwargs):
    """Asserts that systoll, interrupted once it is ready, says `known` on standard error and nothing but `out` on
    standard output."""
    for number, group in BOTH:
        if again:
            again()
        code, told, err = interrupts(box, argv, ready, number, group, **kwargs)
        assert code == 128 + number, (code, told, err)
        assert known(err) if callable(known) else err == f"systoll: interrupted{known}\n", err
        assert out(told) if out else told == "", told
        assert out or not any(verdict in told + err for verdict in VERDICTS), told + err


def afresh(path):
    def empty():
        if os.path.exists(path):
            os.unlink(path)

    return empty


@test()
def differences_of_finished_runs(box):
    """Two runs of each side are complete: systoll tells what differs between them, and no more."""
    program, runs = waits_at(box, 5)
    argv = ["diff", "--runs", "4", "-E", "A=1", "--", program]
    told = " after 2 of 4 runs: this is what is known so far"
    says(box, argv, lambda: lines_or_none(runs) >= 5, told, out=lambda text: text != "", again=afresh(runs))


@test()
def no_difference_of_one_side(box):
    program, runs = waits_at(box, 2)
    argv = ["diff", "--runs", "4", "-E", "A=1", "--", program]
    says(box, argv, lambda: lines_or_none(runs) >= 2, " before there was anything to report", again=afresh(runs))


def lines_or_none(path):
    return lines(path) if os.path.exists(path) else 0


@test()
def nothing_is_held_or_learnt(box):
    program, runs = waits_at(box, 3)
    budget = os.path.join(box.dir, "systoll.toml")
    argv = ["check", "-q", "--runs", "5", "--budget", budget, "--", program]
    says(box, [*argv[:1], "--update", *argv[1:]], lambda: lines_or_none(runs) >= 3, " after 2 of 5 runs: nothing was learnt", again=afresh(runs))
    assert not os.path.exists(budget), "half a budget was written"
    box.file("systoll.toml", "exit = 0\n")
    says(box, argv, lambda: lines_or_none(runs) >= 3, " after 2 of 5 runs: nothing was held", again=afresh(runs))


@test(users=("nobody",))
def a_bisection_tells_which_are_left(box):
    """The bisection also removes its worktree."""
    repository, runs = os.path.join(box.dir, "repository"), os.path.join(box.dir, "runs")
    git = [tool("git"), "-C", repository, "-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
    box.run([tool("git"), "init", "-q", repository])
    for n in range(9):
        # The middle commit, which is tried first, waits.
        wait = "exec sleep 1000" if n == 4 else ":"
        with open(os.path.join(box.dir, "commit"), "w") as f:
            f.write(f'#!/bin/sh\necho x >> "{runs}"\n{wait}\n' + "/bin/true\n" * (1 + 20 * (n > 5)))
        script = f'cp commit {repository}/app && chmod 755 {repository}/app'
        assert box.run(["/bin/sh", "-c", script]).returncode == 0
        for words in (["add", "app"], ["commit", "--allow-empty", "-qm", f"number {n}"]):
            r = box.run([*git, *words])
            assert r.returncode == 0, text(r.stderr)
    argv = ["bisect", "-q", "--repository", repository, "HEAD~8", "HEAD", "--", "./app"]

    def known(err):
        return err.startswith("systoll: interrupted after 0 steps: the commit is one of 8, ") and err.endswith(" the newest of them\n")

    says(box, argv, lambda: lines_or_none(runs) >= 3, known, again=afresh(runs))
    trees = text(box.run([*git, "worktree", "list"]).stdout).splitlines()
    assert len(trees) == 1, trees


@test()
def half_a_trace_is_none(box):
    """systoll says in bytes how much it has read, whatever comes."""
    fifo = os.path.join(box.dir, "trace")
    os.mkfifo(fifo)
    os.chmod(fifo, 0o666)
    line = b"1 1700000000.000001 getpid() = 1 <0.000001>\n"

    def feed():
        feed.to = os.open(fifo, os.O_RDWR | os.O_NONBLOCK)
        os.write(feed.to, line * 1000)

    def taken():
        # The pipe is empty once systoll has read it.
        import fcntl
        import struct
        import termios

        return struct.unpack("i", fcntl.ioctl(feed.to, termios.FIONREAD, b"\0\0\0\0"))[0] == 0

    says(box, ["import", fifo], taken, ": 0 MiB read, and half a trace is not reported", again=feed)


@test()
def commands_that_watch_nothing_end_at_once(box):
    """The commands wait for a recording that does not come, or measure the machine."""
    fifo = os.path.join(box.dir, "recording")
    os.mkfifo(fifo)
    os.chmod(fifo, 0o666)

    for argv in (["report", fifo], ["export", "--format", "flamegraph", fifo]):
        code, out, err = blocked(box, argv, fifo)
        assert (code, out) == (130, "") and err == "systoll: interrupted before there was anything to report\n", (argv, code, out, err)


def blocked(box, argv, fifo):
    """The interruption comes while systoll waits for what a pipe's writer has not written yet."""
    writer = os.open(fifo, os.O_RDWR)
    p = box.start([box.systoll, *argv], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
    try:
        until(lambda: p.poll() is not None or reads_a_pipe(p.pid, fifo))
        assert p.poll() is None, p.communicate()
        began = time.monotonic()
        os.killpg(p.pid, signal.SIGINT)
        out, err = p.communicate(timeout=60)
        assert time.monotonic() - began < 3, "it took its time"
    finally:
        os.close(writer)
        if p.poll() is None:
            p.kill()
    return p.returncode, text(out), text(err)


def reads_a_pipe(pid, fifo):
    with open(f"/proc/{pid}/syscall") as f:
        call = f.read().split()
    # The call is a read; root may look which file it reads.
    return call[0] == "0" and os.path.realpath(f"/proc/{pid}/fd/{int(call[1], 16)}") == os.path.realpath(fifo)


@test()
def a_server_under_load(box):
    """No round is over, so nothing is told."""
    server = box.file("server", "#!/bin/sh\necho ready; exec sleep 1000\n", 0o755)
    began = os.path.join(box.dir, "began")
    load = box.file("load", f"#!/bin/sh\n: > {began}; exec sleep 1000\n", 0o755)
    argv = ["prove", "-q", "--serve", server, "--ready", "ready", "--load", load, "-E", "A=1"]
    says(box, argv, lambda: os.path.exists(began), " before the first turn was over", again=afresh(began))


@test(users=("nobody",))
def a_program_that_is_cured_gets_the_signal_itself(box):
    """systoll has become the program, which gets the signal itself."""
    began = os.path.join(box.dir, "began")
    program = box.file("program", f"#!/bin/sh\ntrap 'echo mine; exit 7' INT\n: > {began}\nwhile :; do sleep 0.02; done\n", 0o755)
    code, out, err = interrupts(box, ["cure", "tz-unset", "--", program], lambda: os.path.exists(began))
    assert (code, out, err) == (7, "mine\n", ""), (code, out, err)


@test(users=("nobody",))
def scores_so_far(box):
    """The scripts that try cases tell the scores so far."""
    score = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "cases", "score.py")
    if not os.access(score, os.R_OK):
        raise Skip("the cases can't be read by others here")
    waits = box.file("waits", "#!/bin/sh\nexec sleep 1000\n", 0o755)
    code = f"import sys; sys.path.insert(0, {os.path.dirname(score)!r})\nimport subprocess, tally\nsys.exit(tally.until_interrupted(lambda: subprocess.run([{waits!r}]).returncode))"
    p = box.start(["/usr/bin/python3", "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
    until(lambda: any("sleep 1000" in line for line in box.leftovers()))
    os.killpg(p.pid, signal.SIGINT)
    out, err = p.communicate(timeout=30)
    assert (p.returncode, text(out), text(err)) == (130, "interrupted: the lines above are what is known so far\n", ""), (p.returncode, out, err)
