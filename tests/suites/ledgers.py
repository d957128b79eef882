"""Ledgers agree with strace's trace of the same program over the whole run.

systoll looks at each of a row's first calls and at some later ones: a short row's figures are exact in both backends, and
a long row's lie within their interval.
"""
import os
import re

from harness import BOTH, Skip, test, tool

NAMED = re.compile(r"^\d+\s+(\w+)\((?:AT_FDCWD, )?\"([^\"]+)\"")
CALLS = {"stat", "lstat", "newfstatat", "statx", "access", "faccessat", "faccessat2", "readlink", "readlinkat"}


def traced(box, argv, **kwargs):
    """Returns {syscall: {path: calls}} by strace."""
    out = os.path.join(box.dir, "trace")
    box.run([tool("strace"), "-f", "-e", "trace=%file", "-o", out, "--", *argv], **kwargs)
    calls = {}
    with open(out, errors="replace") as f:
        for m in filter(None, map(NAMED.match, f)):
            of = calls.setdefault(m[1], {})
            of[m[2]] = of.get(m[2], 0) + 1
    return calls


def largest(doc, syscall):
    """Returns the row of a system call with the most calls."""
    return max((r for r in doc["rows"] if r["syscall"] == syscall), key=lambda r: r["calls"])


def listed(box, *args):
    """Returns the report on far.c, and the ledger of its questions."""
    doc, r = box.report([box.build("far.c"), *args])
    assert r.returncode == 0, r
    return doc, largest(doc, status_call(doc))["ledger"]


def status_call(doc):
    return "newfstatat" if any(r["syscall"] == "newfstatat" and r["calls"] > 50 for r in doc["rows"]) else "stat"


@test(backends=BOTH)
def a_short_row_is_known_whole(box):
    program = box.build("far.c")
    argv = [program, "300", "3", "0"]
    doc, r = box.report(argv)
    assert r.returncode == 0, r
    name = status_call(doc)
    theirs = {p: n for p, n in traced(box, argv)[name].items() if p.startswith("/nowhere/")}
    row = largest(doc, name)
    ledger = row["ledger"]
    assert row["calls"] == sum(theirs.values()) == 900, row["calls"]
    # On a busy machine the launcher may come too late for some samples.
    if not ledger["whole"]:
        raise Skip(f"no buffer was free: {ledger['looks']} of 900 calls were looked at")
    assert ledger["objects"]["estimate"] == len(theirs) == 300, ledger
    assert ledger["known_share"]["low"] == ledger["known_share"]["high"] == 600 / 900, ledger
    assert ledger["top"] and all(theirs.get(o["name"]) == o["stands_for"] for o in ledger["top"]), ledger["top"]
    assert all(o["same"] == 2 for o in ledger["top"]), ledger["top"]


@test(backends=BOTH)
def repeats_thousands_of_calls_apart(box):
    doc, ledger = listed(box, "7000", "4", "0")
    share, objects = ledger["known_share"], ledger["objects"]
    # The share is not above the true one, and shows most of it.
    assert 0.4 < share["estimate"] <= 0.76 and share["low"] <= 0.75, ledger
    assert objects["low"] <= 7000 <= objects["high"] * 1.01, ledger
    said = [f for f in doc["findings"] + doc["also"] if f["cause"] == "stat-per-op"]
    assert said and said[0]["needless_calls"]["low"] <= 21_000, said


@test(backends=BOTH)
def threads_share_their_questions(box):
    _, ledger = listed(box, "400", "5", "4")
    # 400 of 8,000 calls are the first ones of a row.
    assert ledger["known_share"]["high"] >= 0.93 and ledger["known_share"]["estimate"] <= 0.951, ledger
    assert ledger["objects"]["low"] <= 400, ledger


@test(backends=BOTH)
def each_file_once_is_no_waste(box):
    doc, ledger = listed(box, "20000", "1", "0")
    assert ledger["known_share"]["estimate"] == 0, ledger
    assert 0.9 * 20_000 <= ledger["objects"]["high"] and ledger["objects"]["low"] <= 20_000, ledger
    assert not doc["findings"], [f["cause"] for f in doc["findings"]]


@test(backends=BOTH)
def processes_do_not_share_their_questions(box):
    # There are more processes than are told one by one.
    starts = "i=0; while [ $i -lt 130 ]; do \"$0\" 60 1 0; i=$((i+1)); done"
    doc, r = box.report(["sh", "-c", starts, box.build("far.c")])
    assert r.returncode == 0, r
    row = largest(doc, status_call(doc))
    assert row["calls"] % 60 == 0 and 60 < row["calls"] < 130 * 60, row["calls"]
    assert row["ledger"]["looks"] > 100 and row["ledger"]["known_share"]["estimate"] == 0, row["ledger"]
    again = [f for f in doc["findings"] + doc["also"] if f["kind"] == "repeat" and set(f["syscalls"]) & CALLS]
    assert not again, again


@test(backends=BOTH)
def questions_that_see_changes_are_not_needless(box):
    folder = os.path.join(box.dir, "watched")
    os.mkdir(folder)
    os.chmod(folder, 0o777)
    doc, ledger = listed(box, "100", "30", "0", folder)
    assert ledger["changed_share"] > 0.9 and ledger["known_share"]["estimate"] < 0.05, ledger
    stats = [f for f in doc["findings"] if f["cause"] == "stat-per-op"]
    assert not stats, stats


@test(backends=BOTH)
def calls_after_loops_are_looked_at(box):
    doc, r = box.report([box.build("loops.c", "-fno-ipa-icf")])
    assert r.returncode == 0, r
    loops = [row for row in doc["rows"] if row["calls"] == 2000]
    assert len(loops) == 16, [(row["syscall"], row["calls"]) for row in doc["rows"]]
    unseen = [row["stack"] for row in loops if not row["ledger"] or not row["ledger"]["looks"]]
    assert not unseen, unseen
    assert [(f["cause"], f["calls"]) for f in doc["findings"]] == [("missing-asked-again", 32000)], doc["findings"]
