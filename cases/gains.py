#!/usr/bin/env python3
"""Whether what is won lies within what `systoll run` told of it beforehand (`expected_gain`).

  gains.py --systoll PATH [--json FILE] [--save DIR] [--pairs N] [NAME...]

Each disease's sick run is watched, and proved beside its cured twin: four times as long where its last word is a count. One line a case: the price of the needless calls,
what was expected to be won by the findings and remarks about the focus calls, and what was measured, all in ms of
processor time. fitted.txt names the cases that the bounds were fitted to; of these and of the others, each apart, the last
lines tell in how many the measured gain lies within. Calls that wait are left out: their gain is waiting. `--save` keeps recordings.
"""
import argparse
import json
import os
import sys

import priced
import verify as v
from same import longer
from score import about
from tally import Skip, until_interrupted

MS = 1e6
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "fitted.txt"), encoding="utf-8") as names:
    FITTED = set(names.read().split())


def long_case(case):
    """The case with four times its count as its long runs: those of [long] take minutes to prove."""
    cured = longer({"run": case["cured_run"]})["run"]
    return case | {"run_long": longer(case)["run"], "cured_run_long": cured}


def expected(found):
    """The sum of what findings tell to be won, ns: (least, most); None where one of them tells nothing."""
    told = [f.get("expected_gain") for f in found]
    if not told or None in told:
        return None
    return sum(t["low_ns"] for t in told), sum(t["high_ns"] for t in told)


def measured(proof):
    """What the second side won, ns of processor time: (least, median, most)"""
    a, cpu = proof["a"]["cpu_ns"]["median"], proof["change"]["cpu"]
    return tuple(-a * cpu[k] / 100 for k in ("high", "percent", "low"))


def look(opts, name, case, d):
    case = long_case(case)
    words = priced.long_words(case, False)
    proof, why = priced.systoll(opts, case, d, ["prove", "--pairs", str(opts.pairs), "--watched", "0", *priced.hooks(case), *priced.change(case)], words)
    if proof is None or proof.get("change") is None:
        return None, why or f"{proof.get('problem')}: {proof.get('difference')}"
    v.tidy(case, d, "pre_run")
    save = ["--save", os.path.join(opts.save, f"{name}.systoll")] if opts.save else []
    report, why = priced.systoll(opts, case, d, ["run", *save], words)
    v.tidy(case, d, "post_run")
    if report is None:
        return None, why
    aside = [c for c in case.get("beside", []) if c != case.get("cause")]
    found = [f for f in report["findings"] + report["also"] if about(f, case) and f["cause"] not in aside]
    return {
        "cpu_ns": proof["a"]["cpu_ns"]["median"],
        "price_ns": sum(f["needless_toll_ns"] for f in found),
        "waits": any(f["share_of_wall"] is not None for f in found),
        "expected": expected(found),
        "measured": measured(proof),
        "found": found,
    }, ""


def holds(row):
    """Whether what was measured, with its own interval, meets what was expected."""
    (low, high), (least, _, most) = row["expected"], row["measured"]
    return least <= high and most >= low


def within(row):
    low, high = row["expected"]
    return low <= row["measured"][1] <= high


def shown(row):
    least, median, most = (x / MS for x in row["measured"])
    told = "not told" if row["expected"] is None else f"{row['expected'][0] / MS:.1f} to {row['expected'][1] / MS:.1f}"
    verdict = "" if row["expected"] is None else "within" if within(row) else "meets" if holds(row) else "OUTSIDE"
    return f"price {row['price_ns'] / MS:8.1f}  expected {told:20} won {median:8.1f} ({least:.1f} to {most:.1f}) of {row['cpu_ns'] / MS:.1f}  {verdict}"


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--systoll", required=True)
    p.add_argument("--pairs", type=int, default=8)
    p.add_argument("--json")
    p.add_argument("--save", metavar="DIR")
    p.add_argument("names", nargs="*")
    opts = p.parse_args()
    opts.systoll = os.path.abspath(opts.systoll)
    opts.save = opts.save and os.path.abspath(opts.save)
    rows = {}
    for name in opts.names or sorted(os.listdir(v.CASES)):
        d = os.path.join(v.CASES, name)
        case = v.read(d)
        if case["kind"] != "disease":
            continue
        try:
            failed = v.build(case, d)
            row, why = (None, failed[0]) if failed else look(opts, name, case, d)
        except Skip as e:
            row, why = None, f"skipped: {e}"
        if row is None:
            print(f"{name:26} {why}", flush=True)
            continue
        rows[name] = row
        print(f"{name:26} {shown(row)}", flush=True)
        if opts.json:
            with open(opts.json, "w", encoding="utf-8") as f:
                json.dump(rows, f, indent=1)
    for label, fitted in (("fitted to", True), ("others", False)):
        told = [r for name, r in rows.items() if (name in FITTED) == fitted and r["expected"] is not None and not r["waits"]]
        if told:
            print(f"{label}: {sum(map(within, told))} of {len(told)} within, {sum(map(holds, told))} by the measure's own interval")
    return 0


if __name__ == "__main__":
    sys.exit(until_interrupted(main))
