"""A hostile program can't write systoll's code or reach another program, and systoll ends, whole, soon after it.

A hostile program can write its own counters: its figures may be wrong, and the report says so if that is visible. Its
neighbours of the same run are counted exactly."""
import json
import os
import re
import shutil
import signal
import subprocess
import time

from harness import NOBODY, test, text

# Seconds after which a hostile program is killed, and seconds that systoll has from then on.
LIFE, AFTER = 5, 10
# Limit of systoll's resident memory, whatever programs do, in kB.
MOST_MEMORY = 600_000
WAYS = ["parents", "queue", "handshake", "trees", "header", "counts", "random"]
MAPPINGS = ["unmapped", "moved", "twice", "private", "anonymous", "readonly", "punched", "sealed", "closed", "truncated", "held", "filled"]
CALLS = 2000
# Seconds for which systoll is stopped.
STOPPED = 1.5

# Script that seals each image of systoll PID's against writing by others than those who have it mapped; it prints how
# many.
SEALS = """
import fcntl, os, sys
folder = f"/proc/{sys.argv[1]}/fd"
sealed = 0
for name in os.listdir(folder):
    if "memfd:systoll" in os.readlink(f"{folder}/{name}") and os.stat(f"{folder}/{name}").st_size > 1 << 33:
        with open(f"{folder}/{name}", "r+b", buffering=0) as file:
            fcntl.fcntl(file, 1033, 0x10)
            sealed += 1
print(sealed)
"""


def processes(mark):
    """Returns the box's processes as {pid: name}."""
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as f:
                if f"SYSTOLL_TEST_BOX={mark}".encode() not in f.read():
                    continue
            with open(f"/proc/{pid}/comm") as f:
                found[int(pid)] = f.read().strip()
        except OSError:
            pass
    return found


def status(pid, key):
    try:
        with open(f"/proc/{pid}/status") as f:
            return int(re.search(rf"^{key}:\s+(\d+)", f.read(), re.M)[1])
    except (OSError, TypeError):
        return 0


def is_stopped(pid):
    try:
        with open(f"/proc/{pid}/status") as f:
            return "\nState:\tT (stopped)" in f.read()
    except OSError:
        return False


class Outcome:
    """Results of a hostile run."""

    def __init__(self, code, out, err, doc, memory, after):
        self.code, self.out, self.err, self.doc, self.memory, self.after = code, out, err, doc, memory, after


def hostile_run(box, script, env=None, life=LIFE):
    """Runs systoll on a script in which programs called hostile have `life` seconds."""
    report = os.path.join(box.dir, "report.json")
    if os.path.exists(report):
        os.unlink(report)
    out, err = (os.path.join(box.dir, name) for name in ("stdout", "stderr"))
    with open(out, "wb") as o, open(err, "wb") as e:
        p = box.start(box.watch(["/bin/sh", "-c", script], "-q", "--json", "-o", report), stdout=o, stderr=e, env=env or box.env)
        began, ended, memory, stopped, is_seen = time.monotonic(), None, 0, None, False
        while p.poll() is None:
            memory = max(memory, status(p.pid, "VmHWM"))
            now = time.monotonic()
            if not is_stopped(p.pid):
                stopped = None
            elif now - (stopped := stopped or now) > STOPPED:
                p.send_signal(signal.SIGCONT)
            left = [pid for pid, name in processes(box.mark).items() if name.startswith("hostile")]
            # Before the shell has started it there is none either.
            is_seen = is_seen or bool(left)
            if is_seen and not left:
                ended = ended or now
            elif now - began > life:
                for pid in left:
                    try:
                        os.kill(pid, signal.SIGKILL)
                    except OSError:
                        pass
                ended = ended or now
            if ended and now - ended > AFTER:
                p.kill()
                p.wait()
                raise AssertionError(f"systoll did not end within {AFTER} s of its target")
            time.sleep(0.03)
        after = time.monotonic() - (ended or time.monotonic())
    with open(out, errors="replace") as o, open(err, errors="replace") as e:
        stdout, stderr = o.read(), e.read()
    assert "panicked" not in stderr and p.returncode >= 0, (p.returncode, stderr[-600:])
    assert memory < MOST_MEMORY, f"systoll took {memory} kB"
    assert os.path.exists(report), (p.returncode, stdout, stderr[-600:])
    with open(report) as f:
        doc = json.load(f)
    return Outcome(p.returncode, stdout, stderr, doc, memory, after)


def calls_of(doc, exe, syscall):
    own = {p["process"] for p in doc["processes"] if p["exe"].endswith(exe)}
    return sum(row["calls"] for row in doc["rows"] if row["process"] in own and row["syscall"] == syscall)


def possible(doc):
    """Asserts that no figure is larger than a run of that length allows."""
    most = doc["wall_ns"] * 64
    for row in doc["rows"]:
        assert row["calls"] < most and (row.get("toll_ns") or 0) < most and row.get("bytes", 0) < most << 31, row


def beside_an_innocent(box, command, env=None, life=LIFE):
    """Runs an attack in the background of a healthy program, whose calls must be counted exactly."""
    innocent = box.build("innocent.c", name="innocent")
    script = f"{command} & {innocent} {CALLS} 300; code=$?; wait; exit $code"
    seen = hostile_run(box, script, env, life)
    assert seen.code == 0 and seen.out.endswith(f"{CALLS - CALLS // 100} right, {CALLS // 100} came back\n"), (seen.code, seen.out, seen.err[-300:])
    counted = calls_of(seen.doc, "/innocent", "getppid")
    assert counted == CALLS + CALLS // 100 + 1, f"{counted} calls of the innocent; {seen.doc['problems']}"
    possible(seen.doc)
    return seen


class Canary:
    """A file and a process of root's, which must stay untouched."""

    def __init__(self):
        self.path = None

    def __enter__(self):
        self.sleeper = subprocess.Popen(["sleep", "600"])
        self.path = f"/tmp/systoll-canary-{os.getpid()}"
        with open(self.path, "w") as f:
            f.write("untouched")
        os.chmod(self.path, 0o600)
        self.before = os.stat(self.path)
        return self

    def __exit__(self, *why):
        now, alive = os.stat(self.path), self.sleeper.poll() is None
        with open(self.path) as f:
            same = f.read() == "untouched"
        self.sleeper.kill()
        self.sleeper.wait()
        os.unlink(self.path)
        if not any(why):
            assert same and alive and now.st_mtime_ns == self.before.st_mtime_ns, "the canary was touched"


def way(name):
    @test(f"writes_over_{name}", backends=("inproc",))
    def check(box):
        hostile = box.build("hostile.c", name="hostile")
        with Canary():
            for seed in range(2 if not box.shared.long else 10):
                beside_an_innocent(box, f"{hostile} {name} {seed} 1")


def mapping(name):
    @test(f"image_{name}", backends=("inproc",))
    def check(box):
        beside_an_innocent(box, f"{box.build('hostile.c', name='hostile')} {name} 1 1")


for name in WAYS:
    way(name)
for name in MAPPINGS:
    mapping(name)


TRICKS = ["escapes", "perf_sparse", "perf_fifo", "nowhere", "replaced", "deleted", "garbled"]


def tricks(box):
    """Returns a copy, which it may replace, of the program that plays tricks."""
    program = os.path.join(box.dir, "hostile_tricks")
    shutil.copy(box.build("hostile_tricks.c", "-Wl,-z,now", name="hostile_tricks"), program)
    if box.user == "nobody":
        for path in (program, box.dir):
            shutil.chown(path, NOBODY, NOBODY)
    return program


def trick(name):
    @test(f"trick_{name}", backends=("inproc",))
    def check(box):
        """Attempts to mislead systoll from outside change no counts."""
        seen = beside_an_innocent(box, f"{tricks(box)} {name} {CALLS}", life=20)
        assert "through" in seen.err, (seen.out, seen.err[-300:])
        counted = sum(calls_of(seen.doc, exe, "getppid") for exe in ("/hostile_tricks", "bad\r\n"))
        made = CALLS * (2 if name == "escapes" else 1)
        assert counted == made, (counted, made, seen.doc["problems"])


for name in TRICKS:
    trick(name)


@test(backends=("inproc",))
def orders_to_the_terminal_are_shown_not_given(box):
    """Names, arguments and paths that a program chose are shown in the report with their control characters escaped."""
    for flags in ((), ("--by", "fd"), ("--by", "process"), ("-c",)):
        shown = box.run(box.watch([tricks(box), "escapes", "200"], *flags))
        odd = [byte for byte in set(shown.stderr) if byte < 32 and byte != 10 or byte == 127]
        assert shown.returncode == 0 and not odd and "\u202e" not in shown.stderr.decode(), (odd, shown.stderr)


@test(backends=("inproc",))
def stopped_by_its_target(box):
    """Programs run on while systoll is stopped, and systoll says what it could not count meanwhile."""
    innocent = box.build("innocent.c", name="innocent")
    seen = hostile_run(box, f"{tricks(box)} stops {CALLS} & {innocent} {CALLS} 300; code=$?; wait; exit $code", life=60)
    assert seen.code == 0 and "through" in seen.err and f"{CALLS // 100} came back" in seen.out, (seen.code, seen.out, seen.err[-300:])
    for exe, made in (("/innocent", CALLS + CALLS // 100 + 1), ("/hostile_tricks", CALLS)):
        counted = calls_of(seen.doc, exe, "getppid")
        # A program that asks for its parent to find systoll makes one call more.
        assert made <= counted <= made + 1 or counted < made and not seen.doc["exact"], f"{exe}: {counted} of {made}; {seen.doc['problems']}"
    possible(seen.doc)


def roads(box, how):
    program = box.build("hostile_roads.c", name="hostile_roads")
    seen = hostile_run(box, f"{program} {how} {CALLS}", life=60)
    said = seen.out.splitlines()
    assert "code is as it was" in said and said[-1] == "5 forks came back" and seen.code == 0, (seen.code, seen.out, seen.err[-300:])
    first = next(p["process"] for p in seen.doc["processes"] if p["exe"].endswith("/hostile_roads"))
    own = sum(row["calls"] for row in seen.doc["rows"] if row["process"] == first and row["syscall"] == "getppid")
    assert own == CALLS, f"{own}: {seen.doc['problems']}"
    return said


@test(users=("root",), backends=("inproc",))
def a_program_that_gave_root_up_reaches_nothing_of_roots(box):
    said = roads(box, "dropped")
    assert "child 0 won" not in said and "child 1 won" not in said, said


@test(users=("root",), backends=("inproc",))
def a_maker_that_gave_root_up_reaches_nothing_of_its_child(box):
    """The child has not run yet when its maker changes: only the maker has said who the child is."""
    program = box.build("hostile_roads.c", name="hostile_roads")
    for _ in range(5):
        seen = hostile_run(box, f"{program} maker {CALLS}", life=60)
        assert "1 of root's children came back" in seen.out, (seen.code, seen.out, seen.err[-300:])


def identity(how, is_exact=False):
    @test(f"identity_{how}", backends=("inproc",))
    def check(box):
        """Credentials change at the worst moments: nothing hangs, and no call is counted twice."""
        program = box.build("hostile_identity.c", name="hostile_identity")
        with Canary():
            for seed in range(3):
                seen = hostile_run(box, f"{program} {how} {seed}", life=60)
                said = re.search(r"(\d+) of (\d+) came back, (\d+) calls", seen.out)
                assert seen.code == 0 and said and said[1] == said[2], (seen.code, seen.out, seen.err[-300:])
                counted, made = calls_of(seen.doc, "/hostile_identity", "getppid"), int(said[3])
                if how != "killed":
                    assert counted <= made and (counted == made or not seen.doc["exact"]), f"{counted} of {made} calls; {seen.doc['problems']}"
                if is_exact:
                    assert counted == made, f"{counted} of {made} calls; {seen.doc['problems']}"


for how in ("threads", "vfork"):
    identity(how, True)
for how in ("burst", "nofile", "killed", "swapped", "undumpable"):
    identity(how)


@test(backends=("inproc",))
def no_road_leads_to_the_code(box):
    roads(box, "same")


@test(backends=("inproc",))
def memory_sealed_by_somebody_else(box):
    """Another process of the user seals what systoll shares with the program, which then loads a library: the program
    runs on, and systoll says what is not counted."""
    ready, go, out = (os.path.join(box.dir, name) for name in ("ready", "go", "report.json"))
    program = box.build("late_library.c", "-ldl")
    library = box.build("late_calls.c", "-shared", "-fPIC")
    p = box.start(box.watch([program, ready, go, library], "-q", "--json", "-o", out), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    end = time.monotonic() + 60
    while not os.path.exists(ready):
        assert p.poll() is None and time.monotonic() < end, p.communicate()
        time.sleep(0.01)
    r = box.run(["/usr/bin/python3", "-c", SEALS, str(p.pid)])
    assert r.returncode == 0 and int(text(r.stdout)) > 0, (text(r.stdout), text(r.stderr))
    box.file("go")
    said, err = p.communicate(timeout=60)
    assert (p.returncode, text(said), text(err)) == (0, "1000 calls\n", ""), (p.returncode, said, err)
    with open(out) as f:
        doc = json.load(f)
    assert not doc["exact"] and any("sealed the memory" in problem for problem in doc["problems"]), doc["problems"]


@test(backends=("inproc",))
def overwritten_counts_are_not_reported(box):
    """2^64-1 calls are no figure, and such a run is not exact."""
    seen = beside_an_innocent(box, f"{box.build('hostile.c', name='hostile')} counts 1 1")
    assert seen.doc["exact"] is False and any("make no sense" in p for p in seen.doc["problems"]), seen.doc["problems"]


@test(backends=("inproc",))
def trees_written_over_change_no_name(box):
    """systoll remembers what a counter counts from when it was made, and does not read it where the program may
    write."""
    doc, r = box.report([box.build("misnamed.c", "-O1")])
    assert r.returncode == 0 and int(r.stdout) > 3, (r.stdout, text(r.stderr)[-300:])
    counted = {row["user"]["function"]: row["calls"] for row in doc["rows"] if row["syscall"] == "getppid"}
    assert counted == {"often": 1000, "seldom": 10}, counted


@test(backends=("inproc",), long=True)
def thousand_hostile_runs(box):
    """A thousand random runs; the figures are printed."""
    hostile = box.build("hostile.c", name="hostile")
    most, slowest, failed = 0, 0.0, []
    runs = int(os.environ.get("SYSTOLL_HOSTILE_RUNS", "500"))
    with Canary():
        for seed in range(runs):
            name = WAYS[seed % len(WAYS)] if seed % 2 else "random"
            try:
                seen = beside_an_innocent(box, f"{hostile} {name} {1000 + seed} 0.3")
                most, slowest = max(most, seen.memory), max(slowest, seen.after)
            except AssertionError as e:
                failed.append(f"{name} {1000 + seed}: {e}")
                print(failed[-1], flush=True)
            if seed % 50 == 49:
                print(f"{seed + 1} runs: {len(failed)} failed; most memory {most} kB; slowest end {slowest:.2f} s", flush=True)
    print(f"{runs} runs: {len(failed)} failed; most memory {most} kB; slowest end {slowest:.2f} s", flush=True)
    assert not failed, failed[:5]
