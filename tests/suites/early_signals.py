"""No signal that comes while a program starts or ends is lost or delivered twice."""
import os
import random
import signal
import subprocess
import time

from harness import BOTH, test, text


def rounds(box):
    return 1000 if box.shared.long else 15


def ends_by(box, number, send, seed, command=("/bin/sleep", "30")):
    """Sends a signal at a random moment of a start; the program, which would run on, dies of it."""
    chance = random.Random(seed)
    program = box.watch(list(command), "-q")
    for n in range(rounds(box)):
        p = box.start(program, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True)
        # A start takes some 20 ms here; on a busy machine the later signals come at its beginning.
        delay = chance.uniform(0, 0.06)
        time.sleep(delay)
        send(p.pid, number)
        try:
            err = p.communicate(timeout=20)[1]
        except subprocess.TimeoutExpired:
            os.killpg(p.pid, signal.SIGKILL)
            p.communicate()
            raise AssertionError(f"round {n}: a signal after {delay * 1e3:.1f} ms was lost") from None
        assert p.returncode == -number, f"round {n}, after {delay * 1e3:.1f} ms: {p.returncode}: {text(err)[-300:]}"
    box.no_leftovers()


@test(backends=BOTH)
def sigterm_while_it_starts(box):
    ends_by(box, signal.SIGTERM, os.kill, 1)


@test(backends=BOTH)
def group_sigint_while_it_starts(box):
    ends_by(box, signal.SIGINT, os.killpg, 2)


@test(backends=BOTH)
def sighup_of_the_group_while_it_starts(box):
    ends_by(box, signal.SIGHUP, os.killpg, 3)


@test()
def any_signal_while_one_way_of_watching_gives_way_to_another(box):
    """A program that can't be watched from inside is killed before it begins and started anew; no signal that comes
    meanwhile is lost."""
    program = box.build("gs.c", "-DWRITES", "-mfsgsbase")
    for number, send in ((signal.SIGTERM, os.kill), (signal.SIGINT, os.killpg)):
        ends_by(box, number, send, 5, (program, "30"))


HANDLES = """
import os, signal, sys, time
got = []
signal.signal(signal.SIGTERM, lambda s, f: got.append(s))
signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])
end = time.monotonic() + 30
while not got and time.monotonic() < end:
    time.sleep(0.002)
time.sleep(0.05)
print(len(got))
"""


@test(backends=BOTH)
def a_program_that_starts_with_it_blocked_gets_it_later(box):
    """If systoll is started with the signal blocked, the signal waits for the program as without systoll."""
    chance = random.Random(4)
    for n in range(rounds(box) // 3):
        p = box.start(
            box.watch(["/usr/bin/python3", "-c", HANDLES], "-q"),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM]),
        )
        time.sleep(chance.uniform(0, 0.06))
        p.terminate()
        out, err = p.communicate(timeout=60)
        assert (p.returncode, out) == (0, b"1\n"), f"round {n}: {p.returncode} {out!r} {text(err)[-300:]}"


@test(backends=BOTH)
def signals_that_the_ending_command_handles_do_not_end_systoll(box):
    """If a command answers Ctrl-C by ending, the signal is the command's, however late systoll gets to handle it."""
    script = ["/bin/sh", "-c", "trap 'exit 5' INT; echo ready; while :; do :; done"]
    for n in range(rounds(box)):
        p = box.start(box.watch(script, "-q"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
        assert p.stdout.readline() == b"ready\n", text(p.stderr.read())
        os.killpg(p.pid, signal.SIGINT)
        err = p.communicate(timeout=60)[1]
        assert p.returncode == 5, f"round {n}: {p.returncode}: {text(err)[-300:]}"
    box.no_leftovers()
