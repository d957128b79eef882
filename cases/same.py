#!/usr/bin/env python3
"""Tests that every backend has the same findings, on the cases whose counts do not depend on time.

  same.py --systoll PATH [--long] [--strict] [NAME...]

Each case's (of a few; with --long, of every one's) sick run is watched in-process and by ptrace. A
finding of one must be one of the other, as sure, with the same cause (else kind), APIs, calls, and
needless calls whose intervals meet; healthy ones have none by either. What the two backends can't
but tell otherwise of a case stands in its [differs], with the reason: `apis`, `calls`, `sure`, `found`.
Which calls are looked at is drawn by lot, and a price near a threshold falls on either side of it: so
a case that differs is tried once more with four times the count, where its command ends with one, and
told as FAILED where it differs again, else as FLAKY. Ends with which and why, and 'N passed, N failed,
N skipped'; status 0 only where nothing failed.
"""
import argparse
import os
import shlex
import sys

import score
import verify as v
from tally import Tally

BACKENDS = ("inproc", "ptrace")
LONGER = 4
FEW = ("c-localtime-log", "c-fcntl-toggle", "c-byte-reader", "c-realpath-lookup", "c-malloc-trim", "c-swapcontext", "py-getcwd-abspath")


def findings(opts, case, d, backend):
    """Returns ({cause or kind: finding}, {the same for remarks}) and, if there is no report, the reason."""
    doc, why = score.run(argparse.Namespace(systoll=opts.systoll, backend=backend), case, d, False)
    if doc is None:
        return None, f"{backend}: {why}"
    by_id = lambda all: {f["cause"] or f["kind"]: f for f in all}
    return (by_id(doc["findings"]), by_id(doc["also"])), ""


def apart(name, a, b):
    """Returns what two backends say differently of one finding: [(the sort of difference, in words)]."""
    wrong = []
    if set(a["apis"]) != set(b["apis"]):
        wrong.append(("apis", f"{name}: APIs {a['apis']} and {b['apis']}"))
    # The backends may differ by the few calls before the first that can be seen, and by those of a loader.
    if abs(a["calls"] - b["calls"]) > max(10, 0.02 * a["calls"]):
        wrong.append(("calls", f"{name}: {a['calls']} and {b['calls']} calls"))
    m, n = a["needless_calls"], b["needless_calls"]
    if m["low"] > n["high"] * 1.02 + 10 or n["low"] > m["high"] * 1.02 + 10:
        wrong.append(("calls", f"{name}: needless {m} and {n}"))
    return wrong


def longer(case):
    """Returns the case with a greater count."""
    words = shlex.split(case["run"])
    if words[-1].isdigit() and int(words[-1]) >= 100:
        words[-1] = str(LONGER * int(words[-1]))
    return case | {"run": shlex.join(words)}


def differences(opts, case, d):
    """Returns the differences in words; those that the case allows come apart."""
    got = []
    for backend in BACKENDS:
        both, why = findings(opts, case, d, backend)
        if both is None:
            return [why], []
        got.append(both)
    (a, low_a), (b, low_b) = got
    wrong = []
    for name in sorted(set(a) ^ set(b)):
        other, low = (b, low_b) if name in a else (a, low_a)
        by = BACKENDS[0] if name in a else BACKENDS[1]
        sort = "sure" if name in low else "found"
        wrong.append((sort, f"{name}: by {by} only" + (", a remark by the other" if name in low else "")))
    for name in sorted(set(a) & set(b)):
        wrong += apart(name, a[name], b[name])
    may = case.get("differs", {})
    return [text for sort, text in wrong if sort not in may], [text for sort, text in wrong if sort in may]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--systoll", required=True)
    p.add_argument("--long", action="store_true", help="every case, not a few")
    p.add_argument("--strict", action="store_true", help="a case that is skipped, or fails in two of six attempts, fails")
    p.add_argument("names", nargs="*")
    opts = p.parse_args()
    opts.systoll = os.path.abspath(opts.systoll)
    timed, tally = 0, Tally(opts.strict)
    for name in opts.names or (sorted(os.listdir(v.CASES)) if opts.long else FEW):
        d = os.path.join(v.CASES, name)
        case = v.read(d)
        if case.get("basis", "count") != "count":
            timed += 1
            continue

        def once(again, case=case, d=d):
            failed = [] if again else v.build(case, d)
            if failed:
                return "", failed
            wrong, known = differences(opts, longer(case) if again else case, d)
            return f"the same but for {'; '.join(known)}" if known else "the same" * (not wrong), wrong

        tally.attempt(name, once)
    if timed:
        print(f"{timed} left out that depend on time")
    return tally.end()


if __name__ == "__main__":
    sys.exit(main())
