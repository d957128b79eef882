"""What a run has learnt of a program's callers is kept, and the next run of the same files tells the same by it."""
import os
import subprocess

from harness import Skip, test, tool

COMMANDS = [["/bin/ls", "-l", "/usr/include"], ["sh", "-c", "for i in 1 2 3; do wc -l /etc/passwd; done"], ["sort", "/etc/passwd"]]


def kept(place):
    """What is kept of contexts and of functions' names: name -> when it was written."""
    folder = os.path.join(place, "systoll")
    of_runs = [n for n in os.listdir(folder) if n.startswith(("contexts-", "names-"))]
    return {n: os.stat(os.path.join(folder, n)).st_mtime_ns for n in of_runs}


def told(doc):
    """Each row's call, names and count."""
    rows = []
    for r in doc["rows"]:
        user = r["user"] or {}
        rows.append((r["syscall"], r["api"], user.get("function"), user.get("module"), user.get("line"), r["calls"]))
    return sorted(rows, key=repr)


def fresh(box, name):
    place = os.path.join(box.dir, name)
    os.mkdir(place, 0o700)
    if box.user == "nobody":
        os.chown(place, 65534, 65534)
    return place, {**box.env, "XDG_CACHE_HOME": place}


@test(backends=("inproc",))
def the_next_run_tells_the_same(box):
    for number, argv in enumerate(COMMANDS):
        place, env = fresh(box, f"cache{number}")
        (first, _), before = box.report(argv, env=env), kept(place)
        if not before:
            raise Skip("the file system of the box's files does not note every change: nothing is kept of them")
        assert {n.split("-")[0] for n in before} == {"contexts", "names"}, (argv, sorted(before))
        second, _ = box.report(argv, env=env)
        assert first["exact"] and second["exact"], (argv, first["problems"], second["problems"])
        assert told(first) == told(second), (argv, set(told(first)) ^ set(told(second)))
        # It had nothing new to keep, as it has asked about nothing new.
        assert kept(place) == before, (argv, before, kept(place))


@test(backends=("inproc",))
def a_changed_program_is_not_taken_for_what_it_was(box):
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
def callers_are_told_behind_frames_of_any_size(box):
    """In a library, whose frames are none of the user's; what comes in more sizes than are told apart is counted without."""
    _, env = fresh(box, "cache")
    # Called as a part of the C library is.
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
def names_of_compiled_functions_come_from_this_runs_map(box):
    script = box.file("ask.js", "function leaf() {\n  for (let i = 0; i < 300; i++) process.ppid;\n}\nleaf();\n")
    os.chmod(script, 0o644)
    _, env = fresh(box, "cache")
    maps = ["--perf-basic-prof-only-functions", "--interpreted-frames-native-stack"]
    for options, function in (([], "node::GetParentProcessId"), (maps, "leaf"), (maps, "leaf")):
        doc, _ = box.report([tool("node"), *options, script], env=env, private_tmp=True)
        row = max((r for r in doc["rows"] if r["syscall"] == "getppid"), key=lambda r: r["calls"])
        assert row["calls"] == 300 and row["user"]["function"] == function, (options, row["calls"], row["user"])
