#!/usr/bin/env python3
"""The same cases in disguise: no rule may match a path or a name.

  vary.py --systoll PATH [--long] [NAME...]

Each C case of the five causes (with --long, of every one) is copied under another folder's name and built with its source,
binary and functions renamed, at another optimisation, stripped, and run with another count;
the same cause must be found, the same API named, the focus calls counted, and the cured twin
left in peace. Ends with one line; status 0 only where all hold. Needs Python 3.11+ and gcc.
"""
import argparse
import os
import re
import shlex
import shutil
import sys
import tempfile
import tomllib

import score
import verify as v

CAUSES = {"tz-unset", "sigmask-context", "sigmask-setjmp", "membarrier-global", "clock-in-kernel"}
COUNT_FACTOR = 1.5
# name -> (what is put before the sources' own compiler flags, strip the binary)
DISGUISES = {
    "renamed": ("-O2", False),
    "O0": ("-O0", False),
    "O3-no-frame": ("-O3 -fomit-frame-pointer", False),
    "Os-no-pie": ("-Os -no-pie", False),
    "stripped": ("-O2", True),
    "O1-no-lines": ("-O1 -g0", True),
}
ALWAYS = ("renamed", "O0", "stripped")


def disguise(case, d, into, flags, strip):
    """A copy of the case in `into`, and its case.toml's contents changed accordingly."""
    shutil.copytree(d, into, ignore=shutil.ignore_patterns("bin"))
    os.rename(os.path.join(into, "main.c"), os.path.join(into, "zebra.c"))
    with open(os.path.join(into, "zebra.c")) as f:
        source = f.read()
    # Functions of the program's own: names that a rule might lean on must not matter.
    for i, name in enumerate(sorted(set(re.findall(r"^static [\w *]*?\b(\w+)\(", source, re.M)) - {"main"})):
        source = re.sub(rf"\b{name}\b", f"fn{i}_q", source)
    with open(os.path.join(into, "zebra.c"), "w") as f:
        f.write(source)
    changed = dict(case)
    build = case["build"].replace("main.c", "zebra.c").replace("-O2", flags)
    build = build.replace("bin/sick", "bin/quagga").replace("bin/cured", "bin/okapi")
    changed["build"] = build + (" && strip bin/*" if strip else "")
    factor = 1
    for key in ("run", "cured_run"):
        argv = shlex.split(case[key].replace("bin/sick", "bin/quagga").replace("bin/cured", "bin/okapi"))
        if argv[-1].isdigit() and int(argv[-1]) >= 100:
            factor = COUNT_FACTOR
            argv[-1] = str(int(int(argv[-1]) * factor))
        changed[key] = shlex.join(argv)
    measured = dict(case.get("measured", {}))
    # Calls of start-up do not grow with the count: the few there are fall under the slack below.
    measured["sick_focus"] = round(measured["sick_focus"] * factor)
    changed["measured"] = measured
    return changed


def check(opts, case, into):
    """-> what does not hold, as words"""
    built = v.sh(case["build"], into)
    if built.returncode:
        return ["build failed: " + built.stderr.strip()[-200:]]
    r = score.score_disease(opts, case, into)
    if "error" in r:
        return [r["error"]]
    wrong = ["not " + k for k in ("found", "named", "api") if not r[k]]
    # With another count a twin that still asks now and then may earn a remark, but no finding.
    cured, why = score.run(opts, case, into, True)
    if cured is None or any(score.about(f, case) for f in cured["findings"]):
        wrong.append("not clean " + why)
    got, want = r["calls"]
    if abs(got - want) > max(10, 0.01 * want):
        wrong.append(f"counted {got} not {want}")
    if r["extra"]:
        wrong.append(f"{r['extra']} other findings: {r['causes']}")
    return wrong


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--systoll", required=True)
    p.add_argument("--backend")
    p.add_argument("--long", action="store_true", help="every cause and disguise, not only the strongest")
    p.add_argument("names", nargs="*")
    opts = p.parse_args()
    opts.systoll = os.path.abspath(opts.systoll)
    good = bad = 0
    for name in opts.names or sorted(os.listdir(v.CASES)):
        d = os.path.join(v.CASES, name)
        with open(os.path.join(d, "case.toml"), "rb") as f:
            case = tomllib.load(f)
        known = case.get("cause") in CAUSES or ((opts.long or opts.names) and case.get("basis", "count") == "count")
        if case["kind"] != "disease" or not known or not os.path.exists(os.path.join(d, "main.c")):
            continue
        for label, (flags, strip) in DISGUISES.items():
            if not opts.long and label not in ALWAYS:
                continue
            with tempfile.TemporaryDirectory(prefix="moved-") as t:
                into = os.path.join(t, "elsewhere")
                wrong = check(opts, disguise(case, d, into, flags, strip), into)
            good, bad = good + (not wrong), bad + bool(wrong)
            print(f"{name:28} {label:14} {'; '.join(wrong) or 'ok'}", flush=True)
    print(f"{good} in disguise recognised, {bad} not")
    return 1 if bad or not good else 0


if __name__ == "__main__":
    sys.exit(main())
