#!/usr/bin/env python3
"""The same findings by every backend, on the cases whose counts do not depend on time.

  same.py --systoll PATH [--long] [NAME...]

Each case's (of a few; with --long, of every one's) sick run is watched in-process and by ptrace. A
finding of one must be one of the other, as sure, with the same cause (else kind), APIs, calls, and
needless calls whose intervals meet; healthy ones have none by either. What the two backends can't
but tell otherwise of a case stands in its [differs], with the reason: `apis`, `calls`, `sure`, `found`.
Ends with one line; status 0 only where all agree. Which calls are looked at is drawn by lot, and a
price near a threshold falls on either side of it: so a case that differs is named, and tried once
more with four times the count, where its command ends with one.
Needs Python 3.11+.
"""
import argparse
import os
import shlex
import sys
import tomllib

import score
import verify as v

BACKENDS = ("inproc", "ptrace")
LONGER = 4
FEW = ("c-localtime-log", "c-fcntl-toggle", "c-byte-reader", "c-realpath-lookup", "c-malloc-trim", "c-swapcontext", "py-getcwd-abspath")


def findings(opts, case, d, backend):
    """-> ({cause or kind: finding}, {the same below the threshold}), why not"""
    doc, why = score.run(argparse.Namespace(systoll=opts.systoll, backend=backend), case, d, False)
    if doc is None:
        return None, f"{backend}: {why}"
    by_id = lambda all: {f["cause"] or f["kind"]: f for f in all}
    return (by_id(doc["findings"]), by_id(doc["also"])), ""


def apart(name, a, b):
    """What the same finding says otherwise: [(the sort of difference, in words)]"""
    wrong = []
    if set(a["apis"]) != set(b["apis"]):
        wrong.append(("apis", f"{name}: APIs {a['apis']} and {b['apis']}"))
    # The calls before the first that can be seen, and those of a loader, may differ by a few.
    if abs(a["calls"] - b["calls"]) > max(10, 0.02 * a["calls"]):
        wrong.append(("calls", f"{name}: {a['calls']} and {b['calls']} calls"))
    m, n = a["needless_calls"], b["needless_calls"]
    if m["low"] > n["high"] * 1.02 + 10 or n["low"] > m["high"] * 1.02 + 10:
        wrong.append(("calls", f"{name}: needless {m} and {n}"))
    return wrong


def longer(case):
    """The case with a greater count."""
    words = shlex.split(case["run"])
    if words[-1].isdigit() and int(words[-1]) >= 100:
        words[-1] = str(LONGER * int(words[-1]))
    return case | {"run": shlex.join(words)}


def differences(opts, case, d):
    """-> what differs, as words; what may, by the case's own word, apart"""
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
    p.add_argument("names", nargs="*")
    opts = p.parse_args()
    opts.systoll = os.path.abspath(opts.systoll)
    same = different = timed = 0
    for name in opts.names or (sorted(os.listdir(v.CASES)) if opts.long else FEW):
        d = os.path.join(v.CASES, name)
        with open(os.path.join(d, "case.toml"), "rb") as f:
            case = tomllib.load(f)
        if case.get("basis", "count") != "count":
            timed += 1
            continue
        built = v.sh(case["build"], d)
        failed = ["build failed: " + built.stderr.strip()[-200:]]
        wrong, known = (failed, []) if built.returncode else differences(opts, case, d)
        if wrong and not built.returncode:
            print(f"FLAKY? {name}: {'; '.join(wrong)}", flush=True)
            wrong, known = differences(opts, longer(case), d)
        same, different = same + (not wrong), different + bool(wrong)
        but = f"the same but for {'; '.join(known)}" if known else "the same"
        print(f"{name:28} {'; '.join(wrong) or but}", flush=True)
    print(f"{same} the same by both backends, {different} not, {timed} left out that depend on time")
    return 1 if different or not same else 0


if __name__ == "__main__":
    sys.exit(main())
