"""What threads do again and again: rounds as strace's own sequence of the same program has them."""
import json
import os
import re

from harness import BOTH, Skip, test, text, tool

# A call in strace's output of one thread.
CALL = re.compile(r"^(?:\d+ +)?(\w+)\(")


def judged(box, argv, *flags):
    """Records argv. Returns the recording and its report as JSON."""
    rec = os.path.join(box.dir, "rec")
    r = box.run(box.watch(argv, "-q", "--save", rec, "--force", *flags))
    assert r.returncode == 0, text(r.stderr)[-400:]
    r = box.run([box.systoll, "report", "--json", rec])
    assert r.returncode == 0, text(r.stderr)[-400:]
    return rec, json.loads(r.stdout)


def sequences(box, argv):
    """Returns the names of the calls of each thread, in order, by strace."""
    out = os.path.join(box.dir, "strace")
    r = box.run([tool("strace"), "-ff", "-o", out, "--", *argv])
    assert r.returncode == 0, text(r.stderr)[-400:]
    threads = []
    for name in os.listdir(box.dir):
        if name.startswith("strace."):
            with open(os.path.join(box.dir, name), errors="replace") as f:
                calls = [m[1] for m in map(CALL.match, f) if m]
            threads.append([c for c in calls if c not in ("restart_syscall", "exit", "exit_group")])
            os.unlink(os.path.join(box.dir, name))
    return threads


def names(round):
    """Returns the round's calls as a regular expression over names, each followed by a space."""
    def call(c):
        once = f"(?:{c['syscall']} )"
        times = f"{{{c['times']['least']},{c['times']['most']}}}" if c["times"]["most"] > 1 else ""
        return f"(?:{once}{times})?" if c["share"] < 0.99 else once + times

    def step(s):
        calls = "".join(map(call, s["calls"]))
        return f"(?:{calls}){{{s['times']['least']},{s['times']['most']}}}" if s["times"]["most"] > 1 else calls

    return "".join(map(step, round["steps"]))


def dearest(report, *calls):
    """Returns the dearest round that has all of these calls."""
    has = lambda r: set(calls) <= {c["syscall"] for s in r["steps"] for c in s["calls"]}
    found = [r for r in report["rounds"] if has(r)]
    assert found, [r["told"]["motif"] for r in report["rounds"]]
    return found[0]


def as_strace_has_it(box, argv, round, about=0):
    """Asserts that strace's sequence of another run contains the round as often as it was counted."""
    pattern = re.compile(names(round))
    seen = sum(len(pattern.findall("".join(c + " " for c in calls))) for calls in sequences(box, argv))
    count = round["count"]
    assert count["low"] - about <= seen <= count["high"] + about, (count, seen, names(round))


def calls(round):
    return [c["syscall"] for s in round["steps"] for c in s["calls"]]


@test(backends=BOTH)
def what_grows_is_a_round_with_its_step(box):
    argv = [box.build("round_habits.c", "-g"), "grow", box.dir, "6000"]
    rec, report = judged(box, argv)
    round = dearest(report, "ftruncate")
    assert calls(round) == ["ftruncate", "pwrite64"] and round["count"] == {"estimate": 6000, "low": 6000, "high": 6000}, round
    grow, write = [c for s in round["steps"] for c in s["calls"]]
    assert grow["size"]["step"] == 4096 and write["size"]["low"] == write["size"]["high"] == 4096, round
    assert write["offset"]["step"] == 4096 and grow["object"].endswith("/blob.dat"), round
    assert round["user"]["function"] == "grow" and round["user"]["file"].endswith("round_habits.c"), round
    as_strace_has_it(box, argv, round)
    own = report["own_cpu_ns"]
    assert own is None or abs(round["share_of_cpu"] - round["toll_ns"] / own) < 1e-6, round
    # Page and screen tell the same as the JSON.
    screen = text(box.run([box.systoll, "report", "--rounds", rec]).stdout)
    assert round["told"]["motif"] in " ".join(screen.split()), (round["told"], screen)


@test(backends=BOTH)
def nobody_is_left_with_nothing_needless_alone(box):
    argv = [box.build("round_habits.c", "-g"), "rotate", box.dir, "4000"]
    rec, report = judged(box, argv)
    round = dearest(report, "mmap", "munmap")
    assert calls(round) == ["openat", "fstat", "mmap", "munmap", "close"] or calls(round) == ["openat", "newfstatat", "mmap", "munmap", "close"], round
    assert round["count"]["low"] == round["count"]["high"] == 4000, round
    opened = round["steps"][0]["calls"][0]
    assert opened["object"].endswith("/segment?") and opened["objects"]["different"] == 4, opened
    assert round["user"]["function"] == "rotate", round
    as_strace_has_it(box, argv, round)
    toll = sum(r["toll_ns"] or 0 for r in report["rows"])
    claimed = sum(f["needless_toll_ns"] for f in report["findings"])
    much = report["own_cpu_ns"] and toll > 0.1 * report["own_cpu_ns"] and claimed < 0.45 * toll
    screen = text(box.run([box.systoll, "report", rec]).stdout)
    if much:
        assert round["of_the_rest"] and "most of " in screen and "segment?" in screen, screen
    if not any(r["of_the_rest"] for r in report["rounds"]):
        assert "most of the rest" not in screen and "most of it" not in screen, screen


@test(backends=BOTH)
def a_loop_within_is_told_within(box):
    argv = [box.build("round_habits.c"), "nested", box.dir, "2000"]
    _, report = judged(box, argv)
    round = dearest(report, "read", "openat")
    assert calls(round) == ["openat", "read", "close"] and round["count"]["estimate"] == 2000, round
    assert round["steps"][1]["calls"][0]["times"] == {"least": 4, "most": 4, "mean": 4.0}, round
    assert round["calls"] == 12000
    as_strace_has_it(box, argv, round)


@test(backends=BOTH)
def a_server_s_round_has_what_some_requests_need(box):
    argv = [box.build("round_habits.c", "-pthread"), "serve", box.dir, "3000"]
    _, report = judged(box, argv)
    round = dearest(report, "epoll_wait")
    # The rounds are 3,000 × (epoll_wait, recvfrom, write in 20 %, sendto), or 600 × (write, 5 × (…)): the samples
    # decide which.
    made = {c["syscall"]: c["calls"] for s in round["steps"] for c in s["calls"]}
    assert {"epoll_wait", "recvfrom", "sendto"} <= set(made), round
    assert all(abs(made[call] - 3000) <= 30 for call in ("epoll_wait", "recvfrom", "sendto")), made
    # The samples decide how many of the 600 writes belong to these rounds.
    assert 400 <= made.get("write", 600) <= 700, made
    # A round has no beginning; the client's is told from its receiving call on.
    asks = [r for r in report["rounds"] if sorted(calls(r)) == ["recvfrom", "sendto"]]
    assert asks and asks[0]["count"]["estimate"] == 3000, [r["told"]["motif"] for r in report["rounds"]]


@test(backends=BOTH)
def threads_share_a_round(box):
    argv = [box.build("round_habits.c", "-pthread"), "threads", box.dir, "1500"]
    _, report = judged(box, argv)
    round = dearest(report, "pread64")
    assert calls(round) == ["openat", "pread64", "close"] and round["count"]["low"] == round["count"]["high"] == 6000, round
    as_strace_has_it(box, argv, round)


@test(backends=BOTH)
def what_works_gets_no_word_of_its_rounds(box):
    argv = [box.build("round_habits.c"), "work", box.dir, "128"]
    rec, report = judged(box, argv)
    assert not any(r["of_the_rest"] for r in report["rounds"]), report["rounds"]
    screen = text(box.run([box.systoll, "report", rec]).stdout)
    assert "most of" not in screen, screen


PYTHON = """
import os, sys
folder = sys.argv[1]
for name in ("a.txt", "b.txt"):
    with open(f"{folder}/{name}", "w") as f:
        f.write("x" * 3000)

def load(i):
    with open(f"{folder}/{'ab'[i % 2]}.txt") as f:
        return len(f.read())

assert sum(load(i) for i in range(2000)) == 6000000
"""


@test()
def a_script_s_round_has_its_calls_and_its_function(box):
    argv = [tool("python3"), box.file("load.py", PYTHON), box.dir]
    _, report = judged(box, argv)
    round = dearest(report, "openat", "read", "close")
    # An interpreter's start-up reads from the same places.
    assert 2000 <= round["count"]["estimate"] < 2200, round["count"]
    assert "openat" == calls(round)[0] and calls(round)[-1] == "close", round
    opened = round["steps"][0]["calls"][0]
    assert opened["object"].endswith("/?.txt") or "?" in opened["object"], opened
    if round["user"] and (round["user"]["file"] or "").endswith("load.py"):
        assert round["user"]["function"] == "load", round["user"]


GO = """package main

import "os"

func main() {
    for i := 0; i < 3000; i++ {
        f, err := os.Open("/etc/hostname")
        if err != nil { panic(err) }
        var buffer [64]byte
        f.Read(buffer[:])
        f.Close()
    }
}
"""


@test(long=True)
def a_go_program_s_round_is_its_loop(box):
    go = tool("go")
    source, out = box.file("opens.go", GO), os.path.join(box.dir, "opens")
    if box.run([go, "build", "-o", out, source], env={**box.env, "GOCACHE": os.path.join(box.dir, "cache")}, limit=300).returncode:
        raise Skip("go can't build here")
    _, report = judged(box, [out])
    round = dearest(report, "openat", "read", "close")
    assert round["count"]["estimate"] in range(3000, 3010), round["count"]


@test()
def a_round_that_got_longer_is_told_by_diff(box):
    program = box.build("round_habits.c", "-g")
    old, _ = judged(box, [program, "nested", box.dir, "2000"])
    os.rename(old, old := os.path.join(box.dir, "old.systoll"))
    new, _ = judged(box, [program, "nested", box.dir, "3000"])
    doc = json.loads(box.run([box.systoll, "diff", "--json", old, new]).stdout)
    more = [r for r in doc["rounds"] if any(c["syscall"] == "read" for c in r["new"]["calls"])]
    assert more and (more[0]["old"]["count"]["median"], more[0]["new"]["count"]["median"]) == (2000, 3000), doc["rounds"]
    screen = text(box.run([box.systoll, "diff", old, new]).stdout)
    assert "more often" in screen and "2,000 → 3,000 × (openat, read ×4, close)" in screen, screen
    same = json.loads(box.run([box.systoll, "diff", "--json", old, old]).stdout)
    assert same["rounds"] == [], same["rounds"]
