#!/usr/bin/env python3
"""Compares what `systoll run` prices with what `systoll prove` measures, on the long runs of the cases.

  priced.py --systoll PATH [--pairs N] [--markdown FILE] [--verdicts] [NAME...]

Each case has a line: the calls' price in percent of processor time, by the findings about the focus
calls; what goes when elisions answer them (where they can); what the cured twin is measured to
win; and the verdict beside the `gain` of the case's [long] block. --verdicts leaves prices and
elisions out. Exit status 0 only where all verdicts agree with `gain`.
"""
import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile

import verify as v
from score import about
from tally import Skip

# Calls that `--elide` can answer in place.
ELIDABLE = {"getpid", "gettid", "getuid", "geteuid", "rt_sigprocmask"}
LIMIT = 600


def long_words(case, cured):
    return v.resolve(shlex.split(case["cured_run_long"] if cured else case["run_long"]), None)


def systoll(opts, case, d, args, words):
    """Returns systoll's JSON about the sick long run, or why there is none."""
    return told(opts, args, words, d, v.env_for(case, False), LIMIT)


def told(opts, args, words, cwd, env, limit):
    """Returns systoll's JSON about a command, or why there is none."""
    with tempfile.TemporaryDirectory() as t:
        out = os.path.join(t, "out.json")
        argv = [opts.systoll, args[0], "--json", "-o", out, *args[1:], "--", *words]
        try:
            r = subprocess.run(argv, cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=limit)
        except subprocess.TimeoutExpired:
            return None, f"no end in {limit} s"
        try:
            with open(out) as f:
                return json.load(f), ""
        except (OSError, ValueError):
            return None, f"exit {r.returncode}: {r.stderr.decode(errors='replace').strip()[-200:]}"


def hooks(case):
    """Returns the options that run the case's own tidying around each run."""
    parts = [case[k] for k in ("post_run", "pre_run") if case.get(k)]
    return ["--prepare", "; ".join(parts)] if parts else []


def change(case):
    """Returns the options that make the second side the cured one."""
    sick, cured = v.env_for(case, False), v.env_for(case, True)
    flags = [f for k, x in cured.items() if sick.get(k) != x for f in ("-E", f"{k}={x}")]
    flags += [f for k in sick if k not in cured for f in ("-E", k)]
    if case["run_long"] != case["cured_run_long"]:
        flags += ["--vs", shlex.join(long_words(case, True))]
    return flags


def percent(proof, measure="cpu"):
    return proof["change"][measure]["percent"] if proof and proof.get("change") else None


def agrees(case, proof):
    """Returns True if what was claimed fits what the long runs are known to win."""
    gain, wall, cpu = case["long"]["gain"], proof["verdict"]["wall"], proof["verdict"]["cpu"]
    won = percent(proof, "wall")
    if gain == "none":
        # A gain of less than a tenth either way is nothing worth having.
        return all(abs(percent(proof, m)) < 10 for m in ("wall", "cpu"))
    if gain == "cpu":
        return cpu == "faster" and wall != "slower" and won > -10
    if gain == "small":
        return wall == "faster" and 1 / (1 + won / 100) < 1.6
    return wall == "faster" and 1 / (1 + won / 100) > 1.25


def look(opts, case, d):
    words, row = long_words(case, False), {}
    # If other work on the machine drowned the difference, measure more pairs.
    for pairs in (opts.pairs, 3 * opts.pairs):
        flags = ["--pairs", str(pairs), "--watched", "0" if opts.verdicts else "1"]
        proof, why = systoll(opts, case, d, ["prove", *flags, *hooks(case), *change(case)], words)
        if proof is None or proof.get("change") is None:
            return {"error": why or f"{proof.get('problem')}: {proof.get('difference')}"}
        row |= {"proof": proof, "agrees": agrees(case, proof)}
        if row["agrees"]:
            break
    if opts.verdicts:
        return row
    v.tidy(case, d, "pre_run")
    report, why = systoll(opts, case, d, ["run"], words)
    v.tidy(case, d, "post_run")
    if report is None:
        return {"error": why}
    found = [f for f in report["findings"] + report.get("also", []) if about(f, case)]
    # Of a finding's calls, count the needless ones only.
    row["toll_ns"] = sum(f["toll_ns"] * f["needless_calls"]["estimate"] / max(f["calls"], 1) for f in found)
    focus = [s for s in case["syscalls"] if s in ELIDABLE]
    if focus and len(focus) == len(case["syscalls"]):
        row["elide"], row["why_not"] = systoll(opts, case, d, ["prove", "--pairs", str(opts.pairs), "--watched", "0", *hooks(case), "--elide", ",".join(focus)], words)
    return row


def shown(x):
    return "" if x is None else f"{x:.1f} %"


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--systoll", required=True)
    p.add_argument("--pairs", type=int, default=8)
    p.add_argument("--markdown")
    p.add_argument("--verdicts", action="store_true")
    p.add_argument("names", nargs="*")
    opts = p.parse_args()
    opts.systoll = os.path.abspath(opts.systoll)
    table, bad = [], []
    for name in opts.names or sorted(os.listdir(v.CASES)):
        d = os.path.join(v.CASES, name)
        case = v.read(d)
        if "long" not in case:
            continue
        try:
            failed = v.build(case, d)
        except Skip as e:
            print(f"{name:24} skipped: {e}", flush=True)
            continue
        row = {"error": failed[0]} if failed else look(opts, case, d)
        if "error" in row:
            bad.append(name)
            print(f"{name:24} ERROR {row['error']}", flush=True)
            continue
        proof = row["proof"]
        wall, cpu = percent(proof, "wall"), percent(proof)
        line = f"{name:24} gain {case['long']['gain']:6} wall {wall:+7.1f} {proof['verdict']['wall']:13} CPU {cpu:+7.1f} {proof['verdict']['cpu']:13}"
        if not row["agrees"]:
            bad.append(name)
            line = line + "  DISAGREES"
        if not opts.verdicts:
            used = proof["a"]["cpu_ns"]["median"]
            priced = -100 * row["toll_ns"] / used
            elided = percent(row.get("elide"))
            line += f"  priced {priced:+7.1f}  elided {shown(elided)} {row.get('why_not', '')}"
            table.append((name, priced, elided, cpu, wall, proof))
        print(line, flush=True)
        if opts.markdown:
            with open(opts.markdown, "w") as f:
                f.write(markdown(table))
    print(f"{len(bad)} of the cases disagree with what their long runs are known to win: {', '.join(bad)}" if bad else "all agree")
    return 1 if bad else 0


BEYOND = {"page-faults": "page faults", "work-around": "the work around them", "kernel-elsewhere": "the kernel's work outside them", "replaced": "less: what is done in their place", "waiting": "waiting"}


def markdown(table):
    lines = ["| case | priced | answered in place | CPU won | wall won | beyond the calls |", "|---|---:|---:|---:|---:|---|"]
    for name, priced, elided, cpu, wall, proof in table:
        beyond = proof.get("beyond")
        lines.append(f"| {name} | {shown(priced)} | {shown(elided)} | {shown(cpu)} | {shown(wall)} | {BEYOND[beyond['why']] if beyond else ''} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
