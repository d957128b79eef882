"""prove --shorten: the sleeps of one place take a part of their time, and of no other place."""
import json
import os

from harness import test

ONE_LINE = """import time
for i in range(20):
    time.sleep(0.004)
print("done")
"""

TWO_LINES = """import time
for i in range(20):
    time.sleep(0.004)
    time.sleep(0.002)
print("done")
"""

# A poll that runs out, one whose descriptor becomes ready, and a wait that is no sleep.
POLLS = """import os, select, threading, time
r, w = os.pipe()
lock = threading.Lock()
lock.acquire()
def out():
    select.poll().poll(4)
def ready():
    threading.Timer(0.002, lambda: os.write(w, b"x")).start()
    p = select.poll(); p.register(r, select.POLLIN)
    p.poll(1000)
    os.read(r, 1)
def locked():
    lock.acquire(timeout=0.003)
for i in range(10):
    CALL
print("done")
"""


def prove(box, what, command, *options, code=0):
    """Returns the proof of shortened sleeps, or what systoll says where there is none."""
    argv = [box.systoll, "prove", "--shorten", what, "--json", "-o", "proof.json", "--watched", "0", *options, "--", *command]
    r = box.run(argv)
    assert r.returncode == code, (r.returncode, r.stderr)
    if code:
        return r.stderr.decode()
    with open(os.path.join(box.dir, "proof.json")) as f:
        return json.load(f)


@test()
def the_sleeps_of_one_function_are_shortened_and_of_no_other(box):
    program = box.build("two_sleeps.c")
    times = os.path.join(box.dir, "times")
    for part, options in ((0.5, ()), (0.25, ("--to", "0.25"))):
        proof = prove(box, "often", [program, "times"], "--pairs", "8", *options)
        with open(times) as f:
            runs = [tuple(map(float, line.split())) for line in f]
        os.unlink(times)
        # The watched run, the runs that are compared, and eight pairs.
        whole = [run for run in runs if run[0] >= 80]
        shorter = [run for run in runs if run[0] < 80]
        assert len(shorter) >= 8 and min(run[0] for run in shorter) >= 80 * part, runs
        assert all(run[1] >= 40 for run in runs), runs
        # Busy boxes wake threads late: the shortest runs tell.
        assert min(run[0] for run in shorter) < min(run[0] for run in whole) * (part + 0.35), runs
        assert proof["b"]["env"]["SYSTOLL_SHORTEN"].startswith("%d " % (1000 * part)), proof["b"]


@test()
def the_wall_that_is_won_is_compared(box):
    proof = prove(box, "often", [box.build("two_sleeps.c"), "times"], "--pairs", "10")
    # 80 of 120 ms and more are halved.
    wall = proof["change"]["wall"]
    assert -60 < wall["percent"] < -5, wall


@test()
def a_line_of_a_script_is_shortened_where_no_other_shares_its_call(box):
    box.file("one.py", ONE_LINE)
    proof = prove(box, "one.py:3", ["/usr/bin/python3", "one.py"], "--pairs", "8")
    assert "python" in proof["b"]["env"]["SYSTOLL_SHORTEN"], proof["b"]
    box.file("two.py", TWO_LINES)
    said = prove(box, "two.py:3", ["/usr/bin/python3", "two.py"], code=125)
    assert "two.py:4 sleeps by the same call" in " ".join(said.split()), said
    # The call itself means both.
    prove(box, "clock_nanosleep", ["/usr/bin/python3", "two.py"], "--pairs", "8")


@test()
def waits_that_are_no_sleeps_are_declined(box):
    for call, reason in (("out()", None), ("ready()", "something becomes ready"), ("locked()", "no call that only lets time pass")):
        box.file("polls.py", POLLS.replace("CALL", call))
        name = call[:-2]
        command = ["/usr/bin/python3", "polls.py"]
        if reason is None:
            prove(box, name, command, "--pairs", "8")
        else:
            said = prove(box, name, command, code=125)
            assert reason in " ".join(said.split()), said
    said = prove(box, "nobody", ["/bin/echo"], code=125)
    assert "made no calls there" in " ".join(said.split()), said


@test()
def a_program_without_a_loader_is_declined(box):
    program = box.build("two_sleeps.c", "-static")
    said = prove(box, "often", [program, "times"], code=125)
    assert "loads no library" in " ".join(said.split()), said
    for wrong in (("--to", "1"), ("--to", "0"), ("--vs", "true")):
        r = box.run([box.systoll, "prove", "--shorten", "often", *wrong, "--", program, "times"])
        assert r.returncode == 125, r.stderr
