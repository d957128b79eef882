"""If systoll is killed or stopped at any moment, the watched programs run on to the same end."""
import os
import random
import signal
import subprocess
import time

from harness import test

EXPECTED = "0 wrong, 1 on, 1 jumps\n1 0, 0 then 1\n30\ncode 0\n"


def script(box, goes_on="[ $i -lt 30 ]"):
    """Returns a script with first sights, libraries, signals, threads, children and execs, which runs for half a second
    or as long as it `goes_on`."""
    handlers, masked = box.build("handlers.c"), box.build("masked.c")
    return f"({handlers} 30; {masked}; i=0; while {goes_on}; do /bin/true; i=$((i+1)); done; [ $i -ge 30 ] && echo 30) > out; echo code $? >> out; : > fin"


def away(box, *names):
    for name in names:
        if os.path.exists(os.path.join(box.dir, name)):
            os.unlink(os.path.join(box.dir, name))


def started(box):
    away(box, "out", "fin")
    return box.start(box.watch(["/bin/sh", "-c", script(box)], "-q"), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def ended(box, limit=60):
    """Waits until nothing of the box runs except the test's own child. Returns what was written."""
    end = time.monotonic() + limit
    while box.leftovers() and not os.path.exists(os.path.join(box.dir, "fin")):
        assert time.monotonic() < end, f"still running: {box.leftovers()}"
        time.sleep(0.01)
    if not os.path.exists(os.path.join(box.dir, "out")):
        return None
    with open(os.path.join(box.dir, "out")) as f:
        return f.read()


def duration(box):
    start = time.monotonic()
    p = started(box)
    err = p.communicate(timeout=120)[1]
    assert (p.returncode, ended(box)) == (0, EXPECTED), (p.returncode, ended(box), err[-300:])
    return time.monotonic() - start


@test(backends=("inproc",))
def killed(box):
    chance, took = random.Random(11), duration(box)
    for n in range(500 if box.shared.long else 15):
        p = started(box)
        time.sleep(chance.uniform(0, took))
        p.kill()
        p.communicate(timeout=60)
        out = ended(box)
        # If systoll was killed before it started the program, there is nothing to outlive it.
        assert out in (EXPECTED, None), f"killed, round {n}: {out!r}"
        box.no_leftovers(20)


def is_held(line):
    """Returns True if a process is in a tracing stop at its exec, which lasts as long as its tracer does."""
    try:
        with open(f"/proc/{line.split()[0]}/stat") as f:
            return f.read().rpartition(") ")[2].startswith("t")
    except OSError:
        return False


def goes_on_alone(box, limit=60):
    """Waits until all has ended, or until a process has been held at its exec for two seconds."""
    end, since = time.monotonic() + limit, None
    while box.leftovers() and not os.path.exists(os.path.join(box.dir, "fin")):
        held = any(map(is_held, box.leftovers()))
        since = (since or time.monotonic()) if held else None
        if since and time.monotonic() - since > 2:
            return False
        assert time.monotonic() < end, f"still running: {box.leftovers()}"
        time.sleep(0.01)
    return True


@test(backends=("inproc",))
def stopped(box):
    """A stopped systoll is waited for once and no more, except by a program that it has just met at its exec. Told to
    go on, it ends as its command has."""
    chance, took = random.Random(12), duration(box)
    for n in range(60 if box.shared.long else 3):
        p = started(box)
        time.sleep(chance.uniform(0.02, took))
        p.send_signal(signal.SIGSTOP)
        alone = [line for line in box.leftovers() if int(line.split()[0]) != p.pid]
        out = ended(box) if alone and goes_on_alone(box) else None
        p.send_signal(signal.SIGCONT)
        err = p.communicate(timeout=60)[1]
        assert out in (EXPECTED, None) and ended(box) == EXPECTED, f"stopped, round {n}: {out!r}"
        assert p.returncode == 0, f"stopped, round {n}: {p.returncode} {err[-300:]}"
        box.no_leftovers(20)


@test(backends=("inproc",))
def told_to_end(box):
    """A program that ignores the signal that systoll passes on is let go after two seconds, and runs on with systoll's
    code in it."""
    chance = random.Random(13)
    for n in range(20 if box.shared.long else 2):
        away(box, "out", "fin", "free")
        # The command outlasts systoll however fast the machine is.
        command = "trap '' TERM; : > ready; " + script(box, "[ $i -lt 30 ] || [ ! -e free ]")
        p = box.start(box.watch(["/bin/sh", "-c", command], "-q"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while not os.path.exists(os.path.join(box.dir, "ready")):
            time.sleep(0.01)
        os.unlink(os.path.join(box.dir, "ready"))
        time.sleep(chance.uniform(0, 0.5))
        p.terminate()
        p.wait(timeout=60)
        early = not os.path.exists(os.path.join(box.dir, "fin"))
        assert (p.returncode, early) == (143, True), f"round {n}: {p.returncode}, still running: {early}"
        open(os.path.join(box.dir, "free"), "w").close()
        assert ended(box) == EXPECTED, f"round {n}: {ended(box)!r}"
        box.no_leftovers(20)
