#!/usr/bin/env python3
"""Measures builds of systoll side by side, for the table in bench/results/builds.md.

  python3 bench/builds.py --build NAME=PATH [--build NAME=PATH …] [--runs N] [WORD…]

Prints a row for each command and each way to watch it: the fastest wall time and, after the bar, the fastest processor time of
everything (systoll's own included), in ms, unwatched and by each build in turns, each with a cache of its own that earlier
runs have filled. The row of `getppid` is ns a call, the fastest of 3,000 batches within the program. With strace installed,
the rows of `-c` have `strace -c -f` too.

A change that makes a row a tenth worse says why in its commit.
"""
import argparse
import os
import shutil
import subprocess
import tempfile

from beside import spent
from people import commands, FIRST_RUNS

CALL = """
#include <stdio.h>
#include <time.h>
#include <unistd.h>
static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec * 1e9 + t.tv_nsec; }
int main(void) {
    double best = 1e18;
    for (int batch = 0; batch < 3000; batch++) {
        double began = now();
        for (int i = 0; i < 500; i++) getppid();
        double each = (now() - began) / 500;
        if (each < best) best = each;
    }
    printf("%.1f\\n", best);
    return 0;
}
"""
SHORT = "for i in $(seq 200); do x=$(echo a | tr a b); done"
REPORT, TABLE = ["run", "-q", "-o", "/dev/null", "--"], ["run", "-c", "-o", "/dev/null", "--"]
# Commands of people.py that the table has.
TITLES = ("/bin/true", "python3 -c 0", "gcc -c of a small file", "python3 -m pip list", "git log --stat -50", "make -j2 of 30 small files")


class Side:
    """One way to run the commands: unwatched, by a build, or by strace."""

    def __init__(self, folder, name, front):
        self.name, self.front = name, front
        self.cache = tempfile.mkdtemp(prefix="cache-", dir=folder)

    def run(self, argv):
        os.environ["XDG_CACHE_HOME"] = self.cache
        return spent([*self.front, *argv])

    def ns_a_call(self, program):
        os.environ["XDG_CACHE_HOME"] = self.cache
        return float(subprocess.run([*self.front, program], stdout=subprocess.PIPE, check=True).stdout)


def fastest(sides, runs, one):
    """Returns the fastest of each figure of each side, by turns."""
    kept = {side.name: [] for side in sides}
    for n in range(FIRST_RUNS + runs):
        for side in sides:
            figures = one(side)
            if n >= FIRST_RUNS:
                kept[side.name].append(figures)
    return [[min(column) for column in zip(*kept[side.name])] for side in sides]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", action="append", required=True, metavar="NAME=PATH")
    parser.add_argument("--runs", type=int, default=11)
    parser.add_argument("words", nargs="*", help="only rows that contain one of these")
    options = parser.parse_args()
    builds = [(name, os.path.abspath(path)) for name, path in (build.split("=", 1) for build in options.build)]
    folder = tempfile.mkdtemp(prefix="systoll-bench-")
    os.chdir(folder)
    plain = Side(folder, "unwatched", [])
    reports = [plain, *(Side(folder, name, [path, *REPORT]) for name, path in builds)]
    tables = [plain, *(Side(folder, name, [path, *TABLE]) for name, path in builds)]
    if shutil.which("strace"):
        tables.append(Side(folder, "strace -c -f", ["strace", "-c", "-f", "-o", "/dev/null"]))
    rows = [(title, reports, argv) for argv, title, _ in commands(folder) if title in TITLES and shutil.which(argv[0])]
    shell = ["bash", "-c", SHORT]
    rows += [("bash: 600 short processes", reports, shell), ("the same, -c", tables, shell), ("/bin/true, -c", tables, ["/bin/true"])]
    wanted = lambda title: not options.words or any(word in title for word in options.words)
    try:
        if wanted("getppid, ns"):
            with open("call.c", "w") as f:
                f.write(CALL)
            subprocess.run(["cc", "-O2", "-o", "call", "call.c"], check=True)
            call = os.path.join(folder, "call")
            for title, ways in (("getppid, ns", reports), ("getppid, ns, -c", tables)):
                ways = [side for side in ways if not side.name.startswith("strace")]
                figures = fastest(ways, options.runs, lambda side: [side.ns_a_call(call)])
                show(title, ways, [f"{ns:.1f}" for [ns] in figures])
        for title, ways, argv in rows:
            if wanted(title):
                figures = fastest(ways, options.runs, lambda side, argv=argv: side.run(argv))
                show(title, ways, [f"{wall:.2f} / {cpu:.2f}" for wall, cpu in figures])
    finally:
        os.chdir("/")
        shutil.rmtree(folder)


def show(title, sides, cells):
    named = (f"{side.name}: {cell}" for side, cell in zip(sides, cells))
    print(f"{title:<28} | " + " | ".join(named), flush=True)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        print("interrupted: the lines above are what is known so far", flush=True)
