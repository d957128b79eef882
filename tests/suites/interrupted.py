"""An interrupted comparison reports what is known and claims nothing about the pair that was cut off.

The programs count their own runs and then wait: the test knows where they are interrupted.
"""
import os
import re
import signal
import time

from harness import test, text

# Runs before the first pair: two unchanged and one changed, to see whether they do the same.
FIRST = 3


def waits_at(box, run):
    """Makes a program whose run of this number (counted from 1) waits. Returns it and the file of its runs so far."""
    runs = box.file("runs")
    program = box.file("program", f'#!/bin/sh\necho x >> "{runs}"\n[ "$(wc -l < "{runs}")" -lt {run} ] || exec sleep 1000\n', 0o755)
    return program, runs


def until(what, limit=100):
    end = time.monotonic() + limit
    while not what():
        assert time.monotonic() < end, "it did not come to that"
        time.sleep(0.01)


def interrupts(box, argv, ready, number=signal.SIGINT, group=True, **kwargs):
    """Starts systoll ARGV in a session of its own and sends it the signal once it is `ready`. Returns exit code, output
    and errors."""
    p = box.start([box.systoll, *argv], stdin=-3, stdout=-1, stderr=-1, start_new_session=True, **kwargs)
    try:
        until(lambda: ready() or p.poll() is not None)
        assert p.poll() is None, f"it ended before: {p.communicate()}"
        began = time.monotonic()
        os.killpg(p.pid, number) if group else os.kill(p.pid, number)
        out, err = p.communicate(timeout=60)
        assert time.monotonic() - began < 20, "it took its time"
    finally:
        if p.poll() is None:
            p.kill()
    box.no_leftovers(within=5)
    assert "do not do the same" not in text(out) + text(err) and "does not do the same" not in text(out), text(out)
    assert "panicked" not in text(err), text(err)
    return p.returncode, text(out), text(err)


def lines(path):
    with open(path) as f:
        return f.read().count("\n")


@test()
def an_interrupted_comparison_reports_its_pairs(box):
    for group, number in ((True, signal.SIGINT), (False, signal.SIGTERM)):
        run = FIRST + 2 * 10 + 1
        program, runs = waits_at(box, run)
        code, out, err = interrupts(box, ["prove", "--pairs", "30", "-E", "A=1", "--", program], lambda: lines(runs) >= run, number, group)
        assert code == 128 + number, (code, out, err)
        assert "interrupted after 10 interleaved pairs" in out and "wall" in out and "CPU" in out, out
        assert "system calls" not in out and "gone cost" not in out, out
        assert err == "systoll: interrupted: this is what is known so far\n", err


@test()
def an_interruption_before_the_first_pair_claims_nothing(box):
    for run in (1, 2, FIRST, FIRST + 3):
        program, runs = waits_at(box, run)
        code, out, err = interrupts(box, ["prove", "--pairs", "30", "-E", "A=1", "--", program], lambda: lines(runs) >= run)
        assert (code, out) == (130, ""), (run, code, out, err)
        assert err == "systoll: interrupted before there was anything to report\n", err


@test()
def times_stand_without_counts(box):
    """The interruption comes after the last pair, while calls are counted."""
    for later in (1, 2, 4):
        run = FIRST + 2 * 8 + later
        program, runs = waits_at(box, run)
        code, out, err = interrupts(box, ["prove", "--pairs", "8", "-E", "A=1", "--", program], lambda: lines(runs) >= run)
        assert code == 130 and "8 interleaved pairs" in out and "system calls" not in out, (code, out, err)


@test(backends=("inproc",))
def calls_answered_in_place(box):
    """Both sides run watched here, and watching handles signals in its own way."""
    run = FIRST
    program, runs = waits_at(box, run)
    code, out, err = interrupts(box, ["prove", "--pairs", "8", "--elide", "getpid", "--", program], lambda: lines(runs) >= run)
    assert code == 130 and out == "", (code, out, err)


@test()
def the_cleanup_runs_to_its_end(box):
    done = os.path.join(box.dir, "done")
    program, runs = waits_at(box, FIRST + 1)
    argv = ["prove", "--pairs", "8", "-E", "A=1", "--cleanup", f"sleep 0.3; echo x > {done}", "--", program]
    code, out, err = interrupts(box, argv, lambda: lines(runs) >= FIRST + 1)
    assert code == 130 and os.path.exists(done), (code, out, err)


@test()
def a_demo_ends_where_it_is(box):
    """The interruption comes while the demo's compiler runs, and while a program that it has built is watched."""
    began = os.path.join(box.dir, "began")
    for script in (
        f"touch {began}; exec sleep 1000",
        # The compiler that the demo runs waits.
        f'while [ "$1" != -o ]; do shift; done; printf "#!/bin/sh\\ntouch {began}; exec sleep 1000\\n" > "$2"; chmod 755 "$2"',
    ):
        compiler = box.file("cc", f"#!/bin/sh\n{script}\n", 0o755)
        for number, group in ((signal.SIGINT, True), (signal.SIGTERM, False)):
            code, out, err = interrupts(box, ["demo"], lambda: os.path.exists(began), number, group, env={**box.env, "CC": compiler})
            # The demo first says what it is about to do; it tells no story.
            assert code == 128 + number and re.fullmatch(r"5 true stories, [^\n]*\n\n", out), (code, out, err)
            assert err == "systoll: interrupted; 0 of 5 stories shown\n", err
            os.unlink(began)


@test()
def a_cure_without_a_disease(box):
    """A program that makes none of a cause's calls has nothing to be cured of, and nothing is claimed of it."""
    source = box.file("idle.c", "int main(void) { return 0; }\n")
    program = box.build(source, "-static", name="idle-static")
    r = box.run([box.systoll, "prove", "--pairs", "8", "--cure", "tz-unset", "--", program])
    out = text(r.stdout)
    assert r.returncode == 0 and "gone cost" not in out and "not proved" not in out, out
    # By chance two runs of one program differ once in a hundred times.
    assert "proved   " in out or "shown" in out or out == f"  nothing to prove   {program} makes none of the calls of tz-unset\n", out
