#!/usr/bin/env python3
"""The same cases in disguise: no rule may match a path or a name.

  vary.py --systoll PATH [--long] [NAME...]

Each C case of the five causes (with --long, of every one) is copied under another folder's name and built with its source,
binary and functions renamed, at another optimisation, stripped, and run with another count.
Scripts and Go programs of a few cases (with --long, of every one) are renamed and come to in another
way: from another file's method, by eval, `-m` or `-c`, from a shell; stripped, not optimised; with another count.
Then diseases by another language's way to the same call: ctypes, Fiddle, `syscall`.
The same cause must be found, the same API named, the focus calls counted, and the cured twin
left in peace. Ends with one line; status 0 only where all hold. Which calls are looked at is drawn
by lot, so what does not hold is tried once more, and named. Needs Python 3.11+ and the cases' tool chains.
"""
import argparse
import os
import re
import shlex
import shutil
import sys
import tempfile
import tomllib

import disguise
import score
import verify as v

CAUSES = {"tz-unset", "sigmask-context", "sigmask-setjmp", "membarrier-global", "clock-in-kernel"}
# Cases in other languages that are tried in a short run.
FEW = {"py-getcwd-abspath", "rb-pid-per-line", "pl-times", "node-append-sync", "sh-append-per-line", "go-hostname"}
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
# What starting in another way may add to the focus calls: modules that are looked for and read.
START_UP = 250


def another_count(case, key):
    """The words of a command, and by what factor its count grew."""
    argv = shlex.split(case[key])
    if argv[-1].isdigit() and int(argv[-1]) >= 100:
        argv[-1] = str(int(int(argv[-1]) * COUNT_FACTOR))
        return argv, COUNT_FACTOR
    return argv, 1


def grown(case, factor):
    """The measured block with `factor` times the focus calls: those of start-up, which do not grow, fall under the slack."""
    measured = dict(case.get("measured", {}))
    measured["sick_focus"] = round(measured["sick_focus"] * factor)
    return measured


def disguise_c(case, d, into, flags, strip):
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
        argv, factor = another_count(case, key)
        changed[key] = shlex.join(argv).replace("bin/sick", "bin/quagga").replace("bin/cured", "bin/okapi")
    changed["measured"] = grown(case, factor)
    return changed


RENAMED = {"sick": "quagga", "cured": "okapi", "main": "zebra"}


def renamed(word, d):
    """A file's new name; what a source opens by its name keeps it."""
    stem, ext = os.path.splitext(word)
    new = RENAMED.get(stem, stem) + ext
    return word if new != word and is_read(word, d) else new


def is_read(name, d):
    for source in os.scandir(d):
        if source.is_file() and os.path.splitext(source.name)[0] in RENAMED:
            with open(source, encoding="utf-8", errors="replace") as f:
                if name in f.read():
                    return True
    return False


def disguise_script(case, d, into, how):
    """The same of a script, which is come to as `how` says: (file beside it, its text, words)."""
    shutil.copytree(d, into, ignore=shutil.ignore_patterns("__pycache__"))
    for name in os.listdir(into):
        os.rename(os.path.join(into, name), os.path.join(into, renamed(name, d)))
    beside, text, words = how
    if beside:
        with open(os.path.join(into, beside), "w") as f:
            f.write(text)
    changed, factor = dict(case), 1
    for key in ("run", "cured_run"):
        argv, factor = another_count(case, key)
        at = next(i for i, word in enumerate(argv) if os.path.splitext(word)[1] in disguise.SCRIPTS)
        script = renamed(argv[at], d)
        named = [w.replace("{script}", script).replace("{stem}", os.path.splitext(script)[0]) for w in words]
        changed[key] = shlex.join(argv[:at] + named + argv[at + 1 :])
    changed["measured"] = grown(case, factor)
    return changed


def disguise_go(case, d, into, build):
    shutil.copytree(d, into, ignore=shutil.ignore_patterns("bin"))
    for name in [n for n in os.listdir(into) if n.endswith(".go")]:
        os.rename(os.path.join(into, name), os.path.join(into, renamed(name, d)))
    # Which of the two it does is an argument, not a name.
    sources = lambda text: re.sub(r"\b\w+\.go\b", lambda m: renamed(m[0], d), text)
    change = lambda text: re.sub(r"(?<=bin/)(sick|cured|main)\b", lambda m: RENAMED[m[0]], sources(text))
    changed, factor = case | {"build": change(case["build"]).replace("go build", build)}, 1
    for key in ("run", "cured_run"):
        argv, factor = another_count(case, key)
        changed[key] = change(shlex.join(argv))
    changed["measured"] = grown(case, factor)
    return changed


def check(opts, case, into, slack):
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
    # Lines with greater numbers are longer: what goes by bytes grows by more than their count.
    if abs(got - want) > max(slack, (0.01 if slack < START_UP else 0.1) * want):
        wrong.append(f"counted {got} not {want}")
    if r["extra"]:
        wrong.append(f"{r['extra']} other findings: {r['causes']}")
    return wrong


def check_abroad(opts, name, into):
    """-> what does not hold of a disease told in another language"""
    cause, apis, syscalls, count, file, text, command = disguise.ABROAD[name]
    os.makedirs(into)
    with open(os.path.join(into, file), "w") as f:
        f.write(text)
    build = disguise.BUILDS.get(os.path.splitext(file)[1], "true")
    run = shlex.join(command)
    case = {"build": build, "run": run, "cause": cause, "api": apis, "syscalls": syscalls, "env_unset": ["TZ"]}
    built = v.sh(build, into)
    if built.returncode:
        return ["build failed: " + built.stderr.strip()[-200:]]
    doc, why = score.run(opts, case, into, False)
    if doc is None:
        return [why]
    found = [f for f in doc["findings"] if f["cause"] == cause]
    wrong = [] if found else [f"not found: {[f['cause'] or f['kind'] for f in doc['findings']]}"]
    if found and apis and not any(set(f["apis"]) & set(apis) for f in found):
        wrong.append(f"APIs {[f['apis'] for f in found]}")
    others = [f["cause"] or f["kind"] for f in doc["findings"] if f["cause"] != cause]
    wrong += [f"other findings: {others}"] if others else []
    got = score.calls(doc, syscalls)
    return wrong + ([f"counted {got} not {count}"] if abs(got - count) > START_UP else [])


def disguises(name, case, d, opts):
    """-> [(label, how to disguise it, slack of its count)]"""
    asked = opts.long or opts.names
    counts = case.get("basis", "count") == "count"
    if os.path.exists(os.path.join(d, "main.c")):
        chosen = DISGUISES if opts.long else ALWAYS
        all = [(label, lambda into, how=DISGUISES[label]: disguise_c(case, d, into, *how), 10) for label in chosen]
        return all if case.get("cause") in CAUSES or asked and counts else []
    if not counts or not (asked or name in FEW):
        return []
    if any(n.endswith(".go") for n in os.listdir(d)):
        return [(label, lambda into, how=how: disguise_go(case, d, into, how), 10) for label, how in disguise.GO.items()]
    words = [os.path.splitext(w)[1] for w in shlex.split(case["run"])]
    ways = next((disguise.SCRIPTS[ext] for ext in words if ext in disguise.SCRIPTS), {})
    return [(label, lambda into, how=how: disguise_script(case, d, into, how), START_UP) for label, how in ways.items()]


def tried(check_once, name, label):
    """Once more where it does not hold, in a folder of its own each time. -> whether it held"""
    for again in (False, True):
        with tempfile.TemporaryDirectory(prefix="moved-") as t:
            wrong = check_once(os.path.join(t, "elsewhere"))
        if not wrong:
            break
        if not again:
            print(f"FLAKY? {name} {label}: {'; '.join(wrong)}", flush=True)
    print(f"{name:28} {label:14} {'; '.join(wrong) or 'ok'}", flush=True)
    return not wrong


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--systoll", required=True)
    p.add_argument("--backend")
    p.add_argument("--long", action="store_true", help="every cause and disguise, not only the strongest")
    p.add_argument("names", nargs="*", help="cases, or diseases told in another language")
    opts = p.parse_args()
    opts.systoll = os.path.abspath(opts.systoll)
    held = []
    for name in opts.names or sorted(os.listdir(v.CASES)):
        d = os.path.join(v.CASES, name)
        if not os.path.exists(d):
            continue
        with open(os.path.join(d, "case.toml"), "rb") as f:
            case = tomllib.load(f)
        if case["kind"] != "disease":
            continue
        for label, how, slack in disguises(name, case, d, opts):
            held.append(tried(lambda into: check(opts, how(into), into, slack), name, label))
    for name in disguise.ABROAD:
        if not opts.names or name in opts.names:
            held.append(tried(lambda into: check_abroad(opts, name, into), name, "abroad"))
    print(f"{sum(held)} in disguise recognised, {len(held) - sum(held)} not")
    return 0 if held and all(held) else 1


if __name__ == "__main__":
    sys.exit(main())
