#!/usr/bin/env python3
"""Compares two builds of systoll: the same commands, watched by one and the other in turns.

Prints two columns, wall time and processor time of everything (systoll's own included), fastest and median, with
the unwatched command beside them. Then compares what was recorded: rows by program, system call, API and caller,
their calls and errors, and the findings. A command whose recordings differ between two runs of one
build varies by itself, which is said.

  python3 bench/beside.py --old OLD/systoll --new NEW/systoll [--runs N] [--busy] [--rows-only] [WORD…]
"""
import argparse
import collections
import json
import os
import statistics
import subprocess
import sys
import time

import own_cpu


def spent(argv):
    """Returns wall and processor time of a command and all that it waited for, in ms."""
    nothing = subprocess.DEVNULL
    begun = time.perf_counter()
    process = subprocess.Popen(argv, stdin=nothing, stdout=nothing, stderr=nothing)
    _, _, usage = os.wait4(process.pid, 0)
    process.returncode = 0
    return (time.perf_counter() - begun) * 1e3, (usage.ru_utime + usage.ru_stime) * 1e3


def recorded(systoll, argv):
    """Returns what both builds must record alike: rows with calls and errors, the findings' causes, and whether the run
    is exact."""
    report = "beside.json"
    command = [systoll, "run", "-q", "--json", "-o", report, "--", *argv]
    nothing = subprocess.DEVNULL
    subprocess.run(command, stdin=nothing, stdout=nothing, stderr=nothing, timeout=300)
    with open(report) as f:
        run = json.load(f)
    os.unlink(report)
    exes = {p["process"]: p["exe"] for p in run["processes"]}
    rows = collections.Counter()
    for row in run["rows"]:
        user = json.dumps(frame_name(row["user"]) if row["user"] else None)
        key = exes.get(row["process"]), row["syscall"], row["api"], user
        rows[key + ("calls",)] += row["calls"]
        for errno, count in row["errors"].items():
            rows[key + (errno,)] += count
    findings = sorted(str(f.get("cause")) for f in run["findings"])
    return {"rows": rows, "findings": findings, "exact": run["exact"]}


def frame_name(frame):
    """Returns the parts of a frame that are the same in every run."""
    if not isinstance(frame, dict):
        return frame
    return {k: v for k, v in frame.items() if k in ("function", "module", "file", "line", "class", "name")}


def differences(a, b):
    """Returns the differences of two recordings in words, with at most three rows."""
    found = [f"{what} {a[what]} and {b[what]}" for what in ("exact", "findings") if a[what] != b[what]]
    keys = [k for k in set(a["rows"]) | set(b["rows"]) if a["rows"][k] != b["rows"][k]]
    keys.sort(key=lambda k: -abs(a["rows"][k] - b["rows"][k]))
    found += [f"{k[1]} < {k[2]} < {k[3]} {k[4]}: {a['rows'][k]} and {b['rows'][k]}" for k in keys[:3]]
    return found + ([f"{len(keys) - 3} more"] if len(keys) > 3 else [])


def compare(old, new, argv):
    """Says whether the builds record the same: returns a word and details."""
    told = recorded(old, argv), recorded(new, argv)
    if not (diff := differences(*told)):
        return "same", []
    again = recorded(old, argv), recorded(new, argv)
    if any(not differences(a, b) for a, b in (told, again, (told[0], again[1]), (again[0], told[1]))):
        return "same at a second look", []
    return ("varies by itself" if differences(told[0], again[0]) else "DIFFERS"), diff


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--old", required=True)
    parser.add_argument("--new", required=True)
    parser.add_argument("--runs", type=int, default=9)
    parser.add_argument("--busy", action="store_true", help="with one processor taken by a loop")
    parser.add_argument("--rows-only", action="store_true", help="compare recordings, time nothing")
    parser.add_argument("words", nargs="*", help="only commands that contain one of these")
    options = parser.parse_args()
    old, new = os.path.abspath(options.old), os.path.abspath(options.new)
    verdicts, ratios = collections.Counter(), []
    with own_cpu.bench(options.words, options.busy) as ready:
        for argv, name in ready:
            verdict, details = compare(old, new, argv)
            verdicts[verdict] += 1
            columns = ""
            if not options.rows_only:
                sides = argv, [old, "run", "-q", "-o", "/dev/null", "--", *argv], [new, "run", "-q", "-o", "/dev/null", "--", *argv]
                figures = [[], [], []]
                for _ in range(options.runs):
                    for side, kept in zip(sides, figures):
                        kept.append(spent(side))
                wall, cpu = ([[f[n] for f in kept] for kept in figures] for n in (0, 1))
                show = lambda kept: f"{min(kept):7.1f}/{statistics.median(kept):7.1f}"
                columns = f"wall {' '.join(map(show, wall))}  cpu {' '.join(map(show, cpu))}  "
                ratios.append((min(wall[2]) / min(wall[1]), statistics.median(cpu[2]) / statistics.median(cpu[1])))
            print(f"{columns}{verdict:<22} {name[:60]}", flush=True)
            for line in details:
                print(f"      {line}", flush=True)
    print(", ".join(f"{count} {verdict}" for verdict, count in verdicts.most_common()))
    if ratios:
        wall, cpu = (statistics.geometric_mean(r[n] for r in ratios) for n in (0, 1))
        print(f"new over old, geometric mean: wall (fastest) {wall:.3f}, processor time (median) {cpu:.3f}")
    sys.exit(verdicts["DIFFERS"] > 0)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        print("interrupted: the lines above are what is known so far", flush=True)
        sys.exit(130)
