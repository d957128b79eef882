#!/usr/bin/env python3
"""Measures whether a gain lies within what `systoll run` told of it beforehand (`expected_gain`).

  gains.py --systoll PATH [--json FILE] [--save DIR] [--pairs N] [NAME...]
  gains.py --systoll PATH --real --keep DIR [--json FILE] [--pairs N] [NAME...]

Each disease's sick run is watched three times, of which the one that took the least processor time counts, and proved
beside its cured twin: four times as long where its last word is a count. One line a case: the price of the needless
calls, what was expected to be won by the findings and remarks about the focus calls, and what was measured, in percent
of the program's own processor time (told.py says why not in ms). Where the measure's own interval is wide beside what was
expected, it is measured once more with three times the pairs. fitted.txt names the cases that the bounds were fitted to;
of these and of the others, each apart, the last lines tell in how many the measured gain lies within, and how wide what
is told is. Calls that wait are left out: their gain is waiting. `--save` keeps recordings.

`--real` takes programs as their registries ship them in place of the cases: each command of census/ that has a cure or a twin, and
each fix of upstream/ (`--keep` as census.py and upstream.py take it). What is not installed is skipped with the reason.
"""
import argparse
import json
import os
import sys

import priced
import real
import told
import verify as v
from same import longer
from score import about
from tally import Skip, until_interrupted

with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "fitted.txt"), encoding="utf-8") as names:
    FITTED = set(names.read().split())


def long_case(case):
    """Returns the case with four times its count for the long runs: those of [long] take minutes to prove."""
    cured = longer({"run": case["cured_run"]})["run"]
    return case | {"run_long": longer(case)["run"], "cured_run_long": cured}


def measured(prove, found, pairs):
    """Compares what the findings tell with what `prove(pairs)` measures; measures again if a busy machine left it
    unsure."""
    row = None
    for n in (pairs, 3 * pairs):
        proof, why = prove(n)
        if proof is None or proof.get("change") is None:
            return row, why or f"{proof.get('problem')}: {proof.get('difference')}"
        row = told.row_of(found, proof)
        if row["expected"] is None or not told.unsure(row):
            break
    return row, ""


def look(opts, name, case, d):
    case = long_case(case)
    words = priced.long_words(case, False)
    save = ["--save", os.path.join(opts.save, f"{name}.systoll")] if opts.save else []
    reports = []
    for _ in range(told.WATCHED):
        v.tidy(case, d, "pre_run")
        report, why = priced.systoll(opts, case, d, ["run", *save], words)
        v.tidy(case, d, "post_run")
        if report is None:
            return None, why
        reports.append(report)
    report = told.least_disturbed(reports)
    aside = [c for c in case.get("beside", []) if c != case.get("cause")]
    found = [f for f in report["findings"] + report["also"] if about(f, case) and f["cause"] not in aside]
    prove = lambda n: priced.systoll(opts, case, d, ["prove", "--pairs", str(n), "--watched", "0", *priced.hooks(case), *priced.change(case)], words)
    return measured(prove, found, opts.pairs)


def cases(opts):
    """Yields each disease's name, and a function that looks at it: it returns the row, or why there is none."""

    def one(name, case, d):
        failed = v.build(case, d)
        return (None, failed[0]) if failed else look(opts, name, case, d)

    for name in opts.names or sorted(os.listdir(v.CASES)):
        d = os.path.join(v.CASES, name)
        case = v.read(d)
        if case["kind"] == "disease":
            yield name, lambda name=name, case=case, d=d: one(name, case, d)


def programs(opts):
    """Yields the same for each real program."""
    for name, watch in real.programs(opts):

        def one(watch=watch):
            found, prove = watch()
            return measured(prove, found, opts.pairs)

        yield name, one


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--systoll", required=True)
    p.add_argument("--pairs", type=int, default=8)
    p.add_argument("--json")
    p.add_argument("--save", metavar="DIR")
    p.add_argument("--real", action="store_true", help="programs of census/ and upstream/ in place of the cases")
    p.add_argument("--keep", metavar="DIR", help="where programs of the registries are put, and left")
    p.add_argument("names", nargs="*")
    opts = p.parse_args()
    if opts.real and not opts.keep:
        p.error("--real needs --keep DIR")
    opts.systoll = os.path.abspath(opts.systoll)
    opts.save = opts.save and os.path.abspath(opts.save)
    opts.keep = opts.keep and os.path.abspath(opts.keep)
    rows = {}
    for name, one in (programs if opts.real else cases)(opts):
        try:
            row, why = one()
        except Skip as e:
            row, why = None, f"skipped: {e}"
        if row is None:
            print(f"{name:26} {why}", flush=True)
            continue
        rows[name] = row
        print(f"{name:26} {told.shown(row)}", flush=True)
        if opts.json:
            with open(opts.json, "w", encoding="utf-8") as f:
                json.dump(rows, f, indent=1)
    groups = [("real", None)] if opts.real else [("fitted to", True), ("others", False)]
    for label, fitted in groups:
        line = told.tally(label, [r for name, r in rows.items() if fitted is None or (name in FITTED) == fitted])
        if line:
            print(line)
    return 0


if __name__ == "__main__":
    sys.exit(until_interrupted(main))
