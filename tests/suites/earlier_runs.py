"""Later runs use what earlier ones stored: they get cheaper, and report the same as the first.

Reports, JSON and recordings of later runs are compared with those of several first runs, each with an empty cache: what
varies between those may vary. So may what is drawn by chance: how many samples there are, and which line of a script made a
handful of calls.
"""
import functools
import os
import re
import shutil
import subprocess

from harness import PROGRAMS, Skip, test, text, tool

# Number of first runs, and how many more first runs and later ones follow if something is told differently.
COLD, AGAIN = 4, 4
# Numbers of the runs with one cache whose reports are compared.
RUNS = (1, 2, 3, 10)
# Rows of a script with fewer calls than this: chance decides which line is told of them.
OF_SCRIPT = 100
# Share of the processor time below which chance decides what is reported: 1 % is the least that is.
AT_THE_LIMIT = 0.02
OTHERS = [["/bin/ls", "-l", "/usr/include"], ["sort", "/etc/passwd"]]


def c(box):
    return [box.build("callers.c", "-fno-optimize-sibling-calls")]


def cpp(box):
    return [box.build("callers.cpp", "-O1", "-fno-optimize-sibling-calls", compiler="g++")]


def rust(box):
    # rustc lies where rustup has put it, or comes from a package.
    rustc = shutil.which("rustc") or tool("rustc")
    command = lambda out: [rustc, "-g", "-O", "-o", out, os.path.join(PROGRAMS, "callers.rs")]
    return [box.shared.built("callers-rs", command, dict(os.environ))]


def go(box):
    return [box.build("callers.go")]


def python(box):
    source = "import os\ndef ask(path):\n    return os.stat(path)\ndef outer(n):\n    for _ in range(n): ask('/etc')\nouter(400)\n"
    return ["/usr/bin/python3", box.file("ask.py", source)]


def ruby(box):
    return [tool("ruby"), box.file("ask.rb", "def ask(path) File.stat(path); Time.at(0).localtime end\ndef outer(n) n.times { ask('/etc') } end\nouter(400)\n")]


def script(box):
    line = "for i in 1 2 3 4 5 6 7 8 9 10 11 12; do wc -l /etc/passwd; ls / >/dev/null; cat /etc/hostname; done"
    return ["sh", box.file("many.sh", line)]


def build(box):
    for n in range(3):
        box.file(f"f{n}.c", f"#include <stdio.h>\nint f{n}(void) {{ return puts(\"{n}\"); }}\n")
    box.file("Makefile", "all: f0.o f1.o f2.o\n%.o: %.c\n\tgcc -c $< -o $@\n")
    return [tool("make"), "-s", "-B"]


def kept(place):
    """Returns what is kept of contexts and of functions' names: name -> time at which it was written."""
    folder = os.path.join(place, "systoll")
    of_runs = [n for n in os.listdir(folder) if n.startswith("notes-")]
    return {n: os.stat(os.path.join(folder, n)).st_mtime_ns for n in of_runs}


def fresh(box, name):
    place = os.path.join(box.dir, name)
    os.mkdir(place, 0o700)
    if box.user == "nobody":
        os.chown(place, 65534, 65534)
    return place, {**box.env, "XDG_CACHE_HOME": place}


def told(box, argv, env):
    """Returns all that a report, its JSON and the recording tell of a run, except times and ids: what is told ->
    how."""
    rec = os.path.join(box.dir, "rec")
    doc, _ = box.report(argv, flags=["--save", rec], env=env)
    # A busy machine may keep the processor time from being known to a tenth.
    problems = [re.sub(r"[0-9.,]+", "N", p) for p in doc["problems"] if "processor time" not in p]
    says = {("exact",): doc["exact"], ("problems",): sorted(problems)}
    program = lambda r: os.path.basename(doc["processes"][r["process"] - 1]["exe"])
    in_script = {r["process"] for r in doc["rows"] if r["lines"]}
    for r in doc["rows"]:
        user = r["user"] or {}
        place = (user.get("function"), user.get("module"), user.get("line"))
        if r["process"] in in_script and r["calls"] < OF_SCRIPT:
            place, r["stack"] = "some line", ["some line"]
        api = r["api"]
        if r["syscall"] == "brk":
            # Where the heap begins is random (ASLR), and so is which allocation finds it full.
            place, api, r["stack"] = "some allocation", None, ["some allocation"]
        row = (program(r), r["syscall"], api, place)
        says["row", *row] = says.get(("row", *row), 0) + r["calls"]
        says["failed", *row] = says.get(("failed", *row), 0) + sum(r["errors"].values())
        says["stack", *row, tuple(r["stack"])] = True
    for kind in ("findings", "also"):
        for f in (f for f in doc[kind] if f["share_of_cpu"] is None or f["share_of_cpu"] >= AT_THE_LIMIT):
            user = f["user"] or {}
            what = (kind, f["cause"], f["kind"], tuple(f["syscalls"]), user.get("function"), f["phase"])
            objects = sorted(o["name"] for o in f["objects"] if (o["share"] or 0) > 0.25)
            says[what] = (f["calls"], f["stop"], f["language"], objects, re.sub(r"[0-9]+", "N", f["why"]))
    for (prog, syscall), stacks in whole_stacks(box, rec, len(in_script) > 0).items():
        if syscall != "brk":
            says["recording", prog, syscall] = stacks
    return says


def whole_stacks(box, rec, is_script):
    """Returns the whole stacks by which many calls of a recording's rows came, as flame graphs and pprof have them."""
    r = box.run([box.systoll, "export", "--format", "collapsed", "--value", "calls", rec])
    assert r.returncode == 0, text(r.stderr)
    rows = {}
    for line in text(r.stdout).splitlines():
        stack, calls = line.rsplit(" ", 1)
        frames = stack.split(";")
        # Up to the user's frame rows are exact: a row's stacks differ above it only.
        of_row = rows.setdefault((frames[0], frames[-1]), {}).setdefault(tuple(frames[-3:]), {})
        of_row[stack] = int(calls)
    least = OF_SCRIPT if is_script else 1
    told = {}
    for call, of_call in rows.items():
        for stacks in of_call.values():
            # A stack whose upper frames were not seen is told as far as all stacks share them, beside those that were.
            further = lambda stack: any(other.endswith(stack.split(";", 1)[1]) for other in stacks if other != stack)
            whole = {stack: calls for stack, calls in stacks.items() if not further(stack)}
            large = [stack for stack, calls in whole.items() if calls >= max(least, sum(whole.values()) / 5)]
            told.setdefault(call, set()).update(large)
    return told


def scope(key):
    """Returns what a thing that is told is about: the calls of a program, or a finding."""
    return key[1:3] if key[0] in ("row", "failed", "stack", "recording") else key


def differences(one, cold):
    """Returns what a run tells differently from the first runs, of all that those tell alike."""
    keys = set(one).union(*cold)
    varying = {scope(k) for k in keys if any(other.get(k) != cold[0].get(k) for other in cold)}
    return {k: (one.get(k), cold[0].get(k)) for k in keys if one.get(k) != cold[0].get(k) and scope(k) not in varying}


class Law:
    """First runs of a command, to which later runs are held."""

    def __init__(self, box, argv):
        self.box, self.argv, self.cold = box, argv, []
        for _ in range(COLD):
            self.again()

    def again(self):
        place, env = fresh(self.box, f"cold{len(self.cold)}")
        self.cold.append(told(self.box, self.argv, env))
        shutil.rmtree(place)

    def hold(self, when, env):
        """Fails if several runs in succession tell something differently from the first ones: once is chance."""
        found = differences(told(self.box, self.argv, env), self.cold)
        for _ in range(AGAIN):
            if not found:
                return
            self.again()
            again = differences(told(self.box, self.argv, env), self.cold)
            found = {k: told for k, told in again.items() if k in found}
        assert not found, (when, len(found), [f"{k}: {a} and not {b}" for k, (a, b) in sorted(found.items(), key=repr)[:3]])


def law(make, user):
    @test(name=f"every_run_tells_what_the_first_does.{make.__name__}", users=(user,), backends=("inproc",))
    @functools.wraps(make)
    def held(box):
        argv = make(box)
        of_cold = Law(box, argv)
        place, env = fresh(box, "warm")
        for run in range(1, RUNS[-1] + 1):
            if run in RUNS:
                of_cold.hold(f"run {run}", env)
            else:
                box.run(box.watch(argv, "-q"), env=env)
        if not kept(place):
            raise Skip("the file system of the box's files does not note every change: nothing is kept of them")
        for other in OTHERS:
            box.run(box.watch(other, "-q"), env=env)
        of_cold.hold("after other programs", env)
        shutil.rmtree(os.path.join(place, "systoll"))
        of_cold.hold("with the cache deleted", env)
        of_cold.hold("and again", env)


# A cache belongs to one user, whoever that is: half of the programs are tried as root, half as nobody.
for at, made in enumerate((c, cpp, rust, go, python, ruby, script, build)):
    law(made, ("root", "nobody")[at % 2])


@test(backends=("inproc",))
def a_run_with_nothing_new_to_keep_writes_nothing(box):
    place, env = fresh(box, "cache")
    box.report(OTHERS[0], env=env)
    if not (before := kept(place)):
        raise Skip("the file system of the box's files does not note every change: nothing is kept of them")
    box.report(OTHERS[0], env=env)
    written = dict(kept(place).items() - before.items())
    assert not written and len(kept(place)) == len(before), written


@test(backends=("inproc",))
def the_whole_stack_of_another_run_is_not_taken_for_this_ones(box):
    """In each run others call the same function, on stacks that end where another run's went on."""
    program = box.build("callers.c", "-fno-optimize-sibling-calls")
    _, env = fresh(box, "cache")
    rec = os.path.join(box.dir, "rec")
    # Callers by which each argument comes, innermost first, and number of calls.
    main = ["main", "__libc_start_call_main", "__libc_start_main", "_start"]
    of = {
        "m": (["middle", *["deep"] * 7, *main], 8000),
        "o": (["other", *["deep"] * 7, *main], 8000),
        "t": (["middle", *["deep"] * 3, "on_thread", "start_thread", "clone3"], 8000),
        "c": (["middle", *["deep"] * 2, "on_small_stack", "__start_context"], 8000),
    }
    for arguments in ("m", "o", "c", "t", "m", "mo", "mc", "c", "o"):
        r = box.run(box.watch([program, arguments], "-q", "--save", rec), env=env)
        assert r.returncode == 0 and b"done" in r.stdout, (arguments, r.returncode, text(r.stderr))
        r = box.run([box.systoll, "export", "--format", "collapsed", "--value", "calls", rec])
        stacks = {}
        for line in text(r.stdout).splitlines():
            stack, calls = line.rsplit(" ", 1)
            frames = stack.split(";")[:0:-1]
            if frames[:3] == ["getppid", "syscall", "inner"]:
                stacks[tuple(frames[3:])] = int(calls)
        assert sum(stacks.values()) == sum(of[a][1] for a in arguments), (arguments, stacks)
        for stack, calls in stacks.items():
            # A stack that was not seen further is told as far as all share it, and no further.
            fits = [a for a in arguments if list(stack) == of[a][0][: len(stack)]]
            assert fits, (arguments, stack, calls)
        for a in arguments:
            # An octave's figure may be off by half of it.
            whole = sum(calls for stack, calls in stacks.items() if list(stack)[: len(of[a][0])] == of[a][0])
            assert whole >= of[a][1] / (2 if arguments == a else 8), (arguments, a, stacks)


@test(backends=("inproc",))
def a_changed_program_is_recognised_as_changed(box):
    place, env = fresh(box, "cache")
    path = os.path.join(box.dir, "calls")
    for function, call in (("one", "getsid(0)"), ("another", "getpgid(0)")):
        source = box.file("calls.c", f"""
#include <unistd.h>
__attribute__((noinline)) int {function}(void) {{ return {call} + 1; }}
int main(void) {{ int sum = 0; for (int i = 0; i < 10; i++) sum += {function}(); return sum == 1; }}
""")
        done = subprocess.run(["gcc", "-g", "-O1", "-o", path, source], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        for _ in range(2):
            doc, _ = box.report([path], env=env)
            names = [(r["user"]["function"], r["calls"]) for r in doc["rows"] if r["syscall"] in ("getsid", "getpgid")]
            assert names == [(function, 10)], names


VARYING = """
#include <alloca.h>
#include <string.h>
#include <unistd.h>
__attribute__((noinline)) static int inner(char *room, int n) { memset(room, 0, n); return getppid() + room[0]; }
int varying(int n) { char *room = alloca(n); return inner(room, n) + room[n - 1]; }
"""
CALLS_VARYING = """
int varying(int n);
static int sum;
__attribute__((noinline)) void one(void) { for (int i = 0; i < 300; i++) sum += varying(16 + 64 * (i % 3)); }
__attribute__((noinline)) void another(void) { for (int i = 0; i < 200; i++) sum += varying(80 + 64 * (i % 5)); }
__attribute__((noinline)) void of_all_sizes(void) { for (int i = 0; i < 300; i++) sum += varying(16 + 16 * i); }
int main(void) { one(); another(); of_all_sizes(); another(); return sum == 1; }
"""


@test(backends=("inproc",))
def callers_are_named_behind_frames_of_any_size(box):
    """The function lies in a library, whose frames are not the user's. Callers whose frames have more sizes than are
    told apart are counted without a name."""
    _, env = fresh(box, "cache")
    # The library's functions are called like a part of the C library.
    library, path = (os.path.join(box.dir, name) for name in ("libnss_varying.so.2", "calls"))
    links = ["-shared", "-fPIC", "-o", library, box.file("varying.c", VARYING)]
    calls = ["-o", path, box.file("calls.c", CALLS_VARYING), library, "-Wl,-rpath," + box.dir]
    for flags in (links, calls):
        done = subprocess.run(["gcc", "-g", "-O1", *flags], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
    for _ in range(3):
        doc, _ = box.report([path], env=env)
        of_caller = {}
        for row in doc["rows"]:
            if row["syscall"] == "getppid":
                caller = (row["user"] or {}).get("function")
                of_caller[caller] = of_caller.get(caller, 0) + row["calls"]
        assert doc["exact"] and sum(of_caller.values()) == 1000, (of_caller, doc["problems"])
        assert (of_caller["one"], of_caller["another"]) == (300, 400) and of_caller["of_all_sizes"] > 0, of_caller


@test(backends=("inproc",))
def lines_of_compiled_functions_come_from_this_run(box):
    script = box.file("ask.js", "function leaf() {\n  for (let i = 0; i < 300; i++) process.ppid;\n}\nleaf();\n")
    os.chmod(script, 0o644)
    _, env = fresh(box, "cache")
    for options in [], ["--interpreted-frames-native-stack"], []:
        doc, _ = box.report([tool("node"), *options, script], env=env)
        row = max((r for r in doc["rows"] if r["syscall"] == "getppid"), key=lambda r: r["calls"])
        told = row["calls"], row["user"]["function"], row["user"]["line"]
        assert told == (300, "leaf", 2), (options, told)
