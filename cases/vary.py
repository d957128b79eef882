#!/usr/bin/env python3
"""Tries the cases in disguise: no rule may match a path or a name.

  vary.py --systoll PATH [--long] [--strict] [NAME...]

Each C case of the five causes (with --long, of every one) is copied under another folder's name and built with its source,
binary and functions renamed, at another optimisation, stripped, and run with another count.
Scripts and Go programs of a few cases (with --long, of every one) are renamed and come to in another
way: from another file's method, by eval, `-m` or `-c`, from a shell; stripped, not optimised; with another count.
Then diseases by another language's way to the same call: ctypes, Fiddle, `syscall`.
The same cause must be found, the same API named, the focus calls counted as strace counts them here
and now, and the cured twin left in peace. What needs a tool that is not installed is skipped. What
fails is tried once more and told as FAILED where it fails again, else as FLAKY. Ends with which and
why, and 'N passed, N failed, N skipped'; status 0 only where nothing failed.
"""
import argparse
import os
import re
import shlex
import shutil
import sys
import tempfile

import disguise
import score
import verify as v
from tally import Tally

CAUSES = {"tz-unset", "sigmask-context", "sigmask-setjmp", "membarrier-global", "clock-in-kernel"}
# Cases in other languages that a short run tries.
FEW = {"py-getcwd-abspath", "rb-pid-per-line", "pl-times", "node-append-sync", "sh-append-per-line", "go-hostname"}
COUNT_FACTOR = 1.5
# name -> (words put before the sources' own compiler flags, whether the binary is stripped)
DISGUISES = {
    "renamed": ("-O2", False),
    "O0": ("-O0", False),
    "O3-no-frame": ("-O3 -fomit-frame-pointer", False),
    "Os-no-pie": ("-Os -no-pie", False),
    "stripped": ("-O2", True),
    "O1-no-lines": ("-O1 -g0", True),
}
ALWAYS = ("renamed", "O0", "stripped")


def another_count(case, key):
    """Returns a command's words, with a greater count if the last word is one."""
    argv = shlex.split(case[key])
    if argv[-1].isdigit() and int(argv[-1]) >= 100:
        argv[-1] = str(int(int(argv[-1]) * COUNT_FACTOR))
    return argv


def disguise_c(case, d, into, flags, strip):
    """Copies the case into `into`. Returns its case.toml's contents, changed accordingly."""
    shutil.copytree(d, into, ignore=shutil.ignore_patterns("bin"))
    os.rename(os.path.join(into, "main.c"), os.path.join(into, "zebra.c"))
    with open(os.path.join(into, "zebra.c")) as f:
        source = f.read()
    # Rename the program's own functions: names that a rule might rely on must not matter.
    for i, name in enumerate(sorted(set(re.findall(r"^static [\w *]*?\b(\w+)\(", source, re.M)) - {"main"})):
        source = re.sub(rf"\b{name}\b", f"fn{i}_q", source)
    with open(os.path.join(into, "zebra.c"), "w") as f:
        f.write(source)
    changed = dict(case)
    build = case["build"].replace("main.c", "zebra.c").replace("-O2", flags)
    build = build.replace("bin/sick", "bin/quagga").replace("bin/cured", "bin/okapi")
    changed["build"] = build + (" && strip bin/*" if strip else "")
    for key in ("run", "cured_run"):
        argv = another_count(case, key)
        changed[key] = shlex.join(argv).replace("bin/sick", "bin/quagga").replace("bin/cured", "bin/okapi")
    return changed


RENAMED = {"sick": "quagga", "cured": "okapi", "main": "zebra"}


def renamed(word, d):
    """Returns a file's new name; a file that a source opens by its name keeps it."""
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
    """Copies a script's case into `into`, run as `how` says: (file beside it, its text, words)."""
    shutil.copytree(d, into, ignore=shutil.ignore_patterns("__pycache__"))
    for name in os.listdir(into):
        os.rename(os.path.join(into, name), os.path.join(into, renamed(name, d)))
    beside, text, words = how
    if beside:
        with open(os.path.join(into, beside), "w") as f:
            f.write(text)
    changed = dict(case)
    for key in ("run", "cured_run"):
        argv = another_count(case, key)
        at = next(i for i, word in enumerate(argv) if os.path.splitext(word)[1] in disguise.SCRIPTS)
        script = renamed(argv[at], d)
        named = [w.replace("{script}", script).replace("{stem}", os.path.splitext(script)[0]) for w in words]
        changed[key] = shlex.join(argv[:at] + named + argv[at + 1 :])
    return changed


def disguise_go(case, d, into, build):
    shutil.copytree(d, into, ignore=shutil.ignore_patterns("bin"))
    for name in [n for n in os.listdir(into) if n.endswith(".go")]:
        os.rename(os.path.join(into, name), os.path.join(into, renamed(name, d)))
    # An argument, not the program's name, says which of the two it does.
    sources = lambda text: re.sub(r"\b\w+\.go\b", lambda m: renamed(m[0], d), text)
    change = lambda text: re.sub(r"(?<=bin/)(sick|cured|main)\b", lambda m: RENAMED[m[0]], sources(text))
    changed = dict(case, build=change(case["build"]).replace("go build", build))
    for key in ("run", "cured_run"):
        argv = another_count(case, key)
        changed[key] = change(shlex.join(argv))
    return changed


def check(opts, case, into):
    """Returns what to print and what does not hold."""
    failed = v.build(case, into)
    if failed:
        return "", failed
    r = score.score_disease(opts, case, into)
    # With another count, a twin that still asks now and then may earn a remark, but no finding.
    if r.get("remains") == 0:
        r["clean"] = True
    return "", score.wrong(r)


def check_abroad(opts, name, into):
    """Tries a disease told in another language. Returns what to print and what does not hold."""
    cause, apis, syscalls, count, file, text, command = disguise.ABROAD[name]
    os.makedirs(into)
    with open(os.path.join(into, file), "w") as f:
        f.write(text)
    needs, build = disguise.BUILDS.get(os.path.splitext(file)[1], ([command[0]], "true"))
    run = shlex.join(command)
    case = {"build": build, "run": run, "needs": needs, "cause": cause, "api": apis, "syscalls": syscalls, "env_unset": ["TZ"]}
    # Go's scheduler calls getpid for each signal it sends itself, whenever enough time has passed.
    case["env"] = {"GODEBUG": "asyncpreemptoff=1"}
    failed = v.build(case, into)
    if failed:
        return "", failed
    doc, why = score.run(opts, case, into, False)
    if doc is None:
        return "", [why]
    found = [f for f in doc["findings"] if f["cause"] == cause]
    wrong = [] if found else [f"not found: {[f['cause'] or f['kind'] for f in doc['findings']]}"]
    if found and apis and not any(set(f["apis"]) & set(apis) for f in found):
        wrong.append(f"APIs {[f['apis'] for f in found]}")
    others = [f["cause"] or f["kind"] for f in doc["findings"] if f["cause"] != cause]
    wrong += [f"other findings: {others}"] if others else []
    got, want = score.calls(doc, syscalls), v.focus_calls(case, into)
    if got < count or not score.counted(got, want, "count"):
        wrong.append(f"counted {got}, of {count} and those of the start, where strace counts {want}")
    return "", wrong


def disguises(name, case, d, opts):
    """Returns [(label, how to disguise the case)]."""
    asked = opts.long or opts.names
    counts = case.get("basis", "count") == "count"
    if os.path.exists(os.path.join(d, "main.c")):
        chosen = DISGUISES if opts.long else ALWAYS
        all = [(label, lambda into, how=DISGUISES[label]: disguise_c(case, d, into, *how)) for label in chosen]
        return all if case.get("cause") in CAUSES or asked and counts else []
    if not counts or not (asked or name in FEW):
        return []
    if any(n.endswith(".go") for n in os.listdir(d)):
        return [(label, lambda into, how=how: disguise_go(case, d, into, how)) for label, how in disguise.GO.items()]
    words = [os.path.splitext(w)[1] for w in shlex.split(case["run"])]
    ways = next((disguise.SCRIPTS[ext] for ext in words if ext in disguise.SCRIPTS), {})
    return [(label, lambda into, how=how: disguise_script(case, d, into, how)) for label, how in ways.items()]


def elsewhere(check_in):
    """Runs a check in a folder of its own."""
    with tempfile.TemporaryDirectory(prefix="moved-") as t:
        return check_in(os.path.join(t, "elsewhere"))


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--systoll", required=True)
    p.add_argument("--backend")
    p.add_argument("--long", action="store_true", help="every cause and disguise, not only the strongest")
    p.add_argument("--strict", action="store_true", help="what is skipped, or fails in two of six attempts, fails")
    p.add_argument("names", nargs="*", help="cases, or diseases told in another language")
    opts = p.parse_args()
    opts.systoll = os.path.abspath(opts.systoll)
    tally = Tally(opts.strict)
    for name in opts.names or sorted(os.listdir(v.CASES)):
        d = os.path.join(v.CASES, name)
        if not os.path.exists(d):
            continue
        case = v.read(d)
        if case["kind"] != "disease":
            continue
        for label, how in disguises(name, case, d, opts):
            tally.attempt(f"{name} {label}", lambda _, how=how: elsewhere(lambda into: check(opts, how(into), into)), 42)
    for name in disguise.ABROAD:
        if not opts.names or name in opts.names:
            tally.attempt(f"{name} abroad", lambda _, name=name: elsewhere(lambda into: check_abroad(opts, name, into)), 42)
    return tally.end()


if __name__ == "__main__":
    sys.exit(main())
