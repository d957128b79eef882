"""With `--time sampled` counts stay exact, few of the calls that can't wait are timed, and waiting is reported whole."""
from harness import test

ASKED, READY = 20_000, 10_000


def rows(box, argv, *options):
    """Returns, for each call's name, the row with most calls in the program's first process."""
    doc, r = box.report(argv, options)
    assert r.returncode == 0 and doc["exact"], (r, doc["problems"])
    most = {}
    for row in doc["rows"]:
        if row["calls"] > most.get(row["syscall"], {"calls": 0})["calls"]:
            most[row["syscall"]] = row
    counts = {row["syscall"]: row["calls"] for row in doc["by_syscall"]}
    return most, counts


@test(backends=("inproc",))
def counts_are_exact_and_waits_are_reported(box):
    argv = [box.build("sampled.c", "-O0")]
    (every, exact), (some, counts) = rows(box, argv), rows(box, argv, "--time", "sampled")
    assert exact == counts, (exact, counts)
    for name, calls in (("getppid", ASKED), ("read", READY + 1)):
        assert every[name]["calls"] == some[name]["calls"] == calls, (every[name], some[name])
        assert every[name]["timed"] == calls and every[name]["elapsed_low_ns"] == every[name]["elapsed_high_ns"], every[name]
        # After the first calls one of 16 is timed, and those that waited.
        assert calls / 32 < some[name]["timed"] < calls / 4, some[name]
        low, high = some[name]["elapsed_low_ns"], some[name]["elapsed_high_ns"]
        assert 0 < low <= some[name]["elapsed_ns"] <= high, some[name]
        assert sum(some[name]["histogram_log2_ns"]) == calls, some[name]
    for row in (every["read"], some["read"]):
        assert 280e6 < row["waited_ns"] <= row["elapsed_ns"], row


@test(backends=("inproc",))
def single_calls_asked_for_are_all_timed(box):
    """If long calls are to be told one by one, the clock is read around each."""
    some, _ = rows(box, [box.build("sampled.c", "-O0")], "--time", "sampled", "--longer", "100ms")
    assert some["getppid"]["timed"] == ASKED, some["getppid"]
