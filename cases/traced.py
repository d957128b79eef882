#!/usr/bin/env python3
"""Shows what `systoll import` finds in strace's traces of the cases, beside what a live run finds.

  traced.py --systoll PATH [--set SET] [--flags '-ttt -T -v -s 256'] [--live] [--seconds N] [NAME...]

Each case has a line. Sick: whether its disease was found in the trace, and named; healthy: what was found in it. With
--live the same of a watched run, on the next line where it differs. A case whose trace takes longer than
--seconds (30 unless told) under strace is skipped, as is one whose tools are not installed. A report, not a test: exit status is 0.
"""
import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile

import score
import verify as v
from tally import Skip


def traced(opts, case, d, cured):
    """Imports strace's text of a case. Returns the parsed JSON or None, and why not, like score.run."""
    cmd = v.resolve(shlex.split(case["cured_run"] if cured else case["run"]), v.env_for(case, cured))
    v.tidy(case, d, "pre_run")
    try:
        with tempfile.TemporaryDirectory() as t:
            trace, out = os.path.join(t, "trace"), os.path.join(t, "report.json")
            strace = ["strace", "-f", "-o", trace, *shlex.split(opts.flags), "--", *cmd]
            null = subprocess.DEVNULL
            subprocess.run(strace, cwd=d, env=v.env_for(case, cured), stdin=null, stdout=null, stderr=null, timeout=opts.seconds)
            r = subprocess.run([opts.systoll, "import", "--json", "-o", out, trace], stderr=subprocess.PIPE)
            if not os.path.exists(out) or not os.path.getsize(out):
                return None, f"no report: {r.stderr.decode(errors='replace').strip()[-160:]}"
            with open(out) as f:
                return json.load(f), ""
    except subprocess.TimeoutExpired:
        return None, f"no end in {opts.seconds} s under strace"
    finally:
        v.tidy(case, d, "post_run")


def row(opts, case, d, run):
    """Returns (words, found, named) for one way to watch."""
    doc, why = run(opts, case, d, False)
    if doc is None:
        return why, None, None
    causes = [f.get("cause") or f.get("kind") for f in doc["findings"]]
    if case["kind"] != "disease":
        sure = score.false_of(case, doc)
        return f"{len(sure)} findings {causes}", not sure, None
    hits = [f for f in doc["findings"] + doc.get("also", []) if score.about(f, case)]
    named = case.get("generic", False) and bool(hits) or any(f.get("cause") == case.get("cause") for f in hits)
    listed = any(f in doc["findings"] for f in hits)
    also = [f.get("cause") or f.get("kind") for f in hits if f not in doc["findings"]]
    words = "NOT found" if not hits else ("found" if listed else "a remark") + (", named" if named else ", NOT named")
    return f"{words} {causes}{' also ' + str(also) if also else ''}", bool(hits), named


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--systoll", required=True)
    p.add_argument("--set", default="open", choices=[*v.SETS, "all"])
    p.add_argument("--flags", default="-ttt -T -v -s 256")
    p.add_argument("--live", action="store_true")
    p.add_argument("--seconds", type=float, default=30)
    p.add_argument("names", nargs="*")
    opts = p.parse_args()
    opts.systoll, opts.backend = os.path.abspath(opts.systoll), None
    ways = [("trace", traced)] + ([("live", score.run)] if opts.live else [])
    sick = {way: [] for way, _ in ways}
    well = {way: [] for way, _ in ways}
    for name in opts.names or sorted(os.listdir(v.CASES)):
        d = os.path.join(v.CASES, name)
        case = v.read(d)
        if opts.set not in ("all", case["set"]):
            continue
        try:
            failed = v.build(case, d)
        except Skip as e:
            print(f"{name:28} skipped: {e}", flush=True)
            continue
        if failed:
            print(f"{name:28} does not build: {failed[0]}", flush=True)
            continue
        for way, run in ways:
            words, found, named = row(opts, case, d, run)
            print(f"{name:28} {way:6} {words}", flush=True)
            if found is not None:
                (sick if case["kind"] == "disease" else well)[way].append((found, named))
    for way, _ in ways:
        found, named = sum(f for f, _ in sick[way]), sum(bool(n) for _, n in sick[way])
        clean = sum(f for f, _ in well[way])
        print(f"{way}: found {found}, named {named} of {len(sick[way])} sick; nothing found in {clean} of {len(well[way])} healthy")
    return 0


if __name__ == "__main__":
    sys.exit(main())
