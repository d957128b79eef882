#!/usr/bin/env python3
"""Measures what a start of a program costs, what watching it in-process takes at least, and what it really takes.

  python3 bench/floor.py --systoll PATH [--runs N] [--count N] [--pages N] [PROGRAM]

`programs/floor.c` starts PROGRAM (/bin/true) COUNT times and does to each what any observer inside it must: stop it at its exec; map
memory that both share; write the pages that hold system calls. It counts nothing, keeps nothing and asks nothing. Each
step has a line with the fastest and the median run: wall and processor time of one start, in ms, and what the step adds to an
unwatched start. The last line is systoll's: the difference of two runs, of COUNT starts and three times as many, so that its own start and end
are left out. `--pages` are those of the C library and its loader that systoll writes (`perf trace -F all` shows them; 76 of
Debian 12's).
"""
import argparse
import os
import statistics
import subprocess
import tempfile

from beside import spent

STEPS = ["unwatched", "stopped at its exec", "and memory shared with it", "and its pages written"]


def start(floor, step, opts):
    """Returns wall and processor time of one start, in ms."""
    argv = [floor, str(step), str(opts.count), str(opts.pages), opts.program]
    wall, cpu = subprocess.run(argv, check=True, capture_output=True, text=True).stdout.split()
    return float(wall), float(cpu)


def watched(floor, opts):
    """Returns wall and processor time of one start that systoll watches, in ms."""
    def run(count):
        return spent([opts.systoll, "run", "-q", "-o", os.devnull, "--", floor, "0", str(count), str(opts.pages), opts.program])

    few, many = run(opts.count), run(3 * opts.count)
    return tuple((b - a) / (2 * opts.count) for a, b in zip(few, many))


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--systoll", required=True)
    p.add_argument("--runs", type=int, default=9)
    p.add_argument("--count", type=int, default=100)
    p.add_argument("--pages", type=int, default=76)
    p.add_argument("program", nargs="?", default="/bin/true")
    opts = p.parse_args()
    opts.systoll = os.path.abspath(opts.systoll)
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "programs", "floor.c")
    with tempfile.TemporaryDirectory() as folder:
        floor = os.path.join(folder, "floor")
        subprocess.run(["cc", "-O2", "-Wall", "-o", floor, source], check=True)
        lines = {name: [] for name in [*STEPS, "watched by systoll"]}
        for _ in range(opts.runs):
            for step, name in enumerate(STEPS):
                lines[name].append(start(floor, step, opts))
            lines["watched by systoll"].append(watched(floor, opts))
    print(f"a start of {opts.program}, ms: fastest and median of {opts.runs}; what is added to the median")
    print(f"{'':28}{'wall':>16}{'added':>8}{'processor':>18}{'added':>8}")
    base = [statistics.median(column) for column in zip(*lines["unwatched"])]
    for name, runs in lines.items():
        told = [(min(column), statistics.median(column)) for column in zip(*runs)]
        cells = [f"{low:9.3f}{middle:8.3f}{middle - unwatched:+8.3f}" for (low, middle), unwatched in zip(told, base)]
        print(f"{name:28}{cells[0]} {cells[1]}")


if __name__ == "__main__":
    main()
