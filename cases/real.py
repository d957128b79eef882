"""Real programs whose gain can be measured: commands of census/ with a cure or a twin, and fixes of upstream/."""
import argparse
import os
import shutil
import subprocess

import census
import told
import upstream
from casefile import load
from tally import Skip


def programs(opts):
    """Yields each program's name, and a function that watches it. It returns the findings that the change is about, and
    prove(pairs), which returns a proof or why there is none."""
    for name, c in census.commands().items():
        for number, entries in enumerate(changes(c)):
            label = f"{name}/{number + 1}" if number else name
            if not opts.names or name in opts.names:
                yield label, lambda name=name, c=c, entries=entries: command(opts, name, c, entries)
    for name in sorted(n[:-5] for n in os.listdir(upstream.FIXES) if n.endswith(".toml")):
        if not opts.names or name in opts.names:
            yield name, lambda name=name: fix(opts, name)


def changes(c):
    """Returns a command's changes, each with all the verdicts that it is the change for: dd's one twin ends two
    wastes."""
    by_change = {}
    for entry in c.get("found", []):
        if entry["verdict"] == "true" and ("cure" in entry or "twin" in entry):
            by_change.setdefault(entry.get("cure") or entry["twin"], []).append(entry)
    return by_change.values()


def command(opts, name, c, entries):
    env = census.environment(opts.keep)
    census.version(c, opts.keep, env)
    try:
        reports = []
        for _ in range(told.WATCHED):
            report, argv, cwd = census.watched(opts, c, name, env)
            reports.append(report)
    except subprocess.TimeoutExpired:
        raise Skip(f"longer than {census.RUN_S} s") from None
    report = told.least_disturbed(reports)
    causes = {entry["cause"] for entry in entries}
    found = [f for f in report["findings"] + report["also"] if census.called(f) in causes]
    if not found:
        shutil.rmtree(cwd, ignore_errors=True)
        raise Skip(f"{' and '.join(sorted(causes))} not found")
    # If not all output must be the same, one of the entries says what must.
    entry = next((e for e in entries if "same" in e), entries[0])
    return found, lambda pairs: census.proved(opts, c, entry, argv, cwd, env, ["--pairs", str(pairs)])


def fix(opts, name):
    with open(os.path.join(upstream.FIXES, name + ".toml"), encoding="utf-8") as f:
        table = load(f.read())
    if "later" in table or "new" not in table:
        raise Skip("not found yet" if "later" in table else "not mended yet")
    into = os.path.join(opts.keep, "upstream", name)
    mine = argparse.Namespace(systoll=opts.systoll, backend=None, argv={})
    reports = [upstream.version_of(mine, table, False, os.path.join(into, "old"))]
    reports += [upstream.watched(mine, table, mine.argv["old"], os.path.join(into, "old")) for _ in range(1, told.WATCHED)]
    old = told.least_disturbed(reports)
    upstream.version_of(mine, table, True, os.path.join(into, "new"))
    found = upstream.about(old, table) + upstream.beside(old, table)
    if not found:
        raise Skip(f"{table['cause']} not found")
    return found, lambda pairs: upstream.proved(mine, table, into, ["--pairs", str(pairs)])
