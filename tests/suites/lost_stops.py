"""No stop is lost and nothing hangs while many threads and processes start, end and are killed. If systoll is killed at
any moment, all of them run on as if unwatched."""
import os
import random
import signal
import subprocess
import time

from harness import BOTH, test, wait_for


def same(box, argv, times):
    plain = box.run(argv)
    for _ in range(times):
        r = box.run(box.watch(argv, "-q"), limit=60)
        assert (r.returncode, r.stdout, r.stderr) == (plain.returncode, plain.stdout, plain.stderr), (plain, r)
    box.no_leftovers()


@test(backends=BOTH)
def exec_among_threads_that_never_rest(box):
    same(box, [box.build("thread_churn.c"), "4"], 2)


@test(backends=BOTH)
def killed_in_mid_call(box):
    same(box, [box.build("killed.c")], 3)


@test(backends=BOTH)
def told_to_end_while_a_child_sleeps_on(box):
    """The report comes although nothing stops any more after the command's own end."""
    script = "trap '' TERM; (exec sleep 25) >/dev/null 2>&1 & trap - TERM; echo ready; exec sleep 60"
    p = box.start(box.watch(["/bin/sh", "-c", script]), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert p.stdout.readline() == b"ready\n"
    wait_for(lambda: {"sleep 25", "sleep 60"} <= {line.partition(" ")[2].strip() for line in box.leftovers()}, "the programs did not start")
    start = time.monotonic()
    p.terminate()
    err = p.communicate(timeout=30)[1]
    took = time.monotonic() - start
    assert b"system calls" in err and took < 20, f"{took:.2f} s: {err[-300:]}"


@test(backends=BOTH)
def killed_at_any_moment(box):
    """After kill -9 of systoll, everything under way goes on to its end, and nothing stays stopped or held."""
    churn, killed, forks = box.build("thread_churn.c"), box.build("killed.c"), box.build("forks.c")
    programs = {f"{churn} 3": "done\ncode 7\n", killed: "60\ncode 0\n", f"{forks} 300 10": "code 0\n"}
    chance = random.Random(7)
    for program, expected in programs.items():
        script = f"({program}) > out; echo code $? >> out; : > fin"
        for _ in range(30 if box.shared.long else 5):
            for name in ("out", "fin"):
                box.file(name)
                os.unlink(os.path.join(box.dir, name))
            p = box.start(box.watch(["/bin/sh", "-c", script], "-q"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(chance.uniform(0.02, 0.6))
            p.send_signal(signal.SIGKILL)
            p.wait()
            out, fin = os.path.join(box.dir, "out"), os.path.join(box.dir, "fin")
            end = time.monotonic() + 20
            # If systoll was killed before it started the program, there is nothing to outlive it.
            while box.leftovers() and not os.path.exists(fin) and time.monotonic() < end:
                time.sleep(0.02)
            box.no_leftovers(3)
            if os.path.exists(out):
                with open(out) as f:
                    assert f.read() == expected, program
