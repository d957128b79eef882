#!/usr/bin/env python3
"""Measures what watching costs on commands that people type, by systoll, strace, perf trace and bpftrace in turns.

  python3 bench/tracers.py --systoll PATH [--runs N] [--busy] [--one] [WORD…]

Each command has a line with wall and processor time of everything (the tracer's own included), fastest and median, in ms,
unwatched and by each tracer, each of which counts system calls (`strace -f -c`, `perf trace -s`, a bpftrace map by process
and call; systoll also has callers, windows and findings). A tracer that is not installed, or may not be used here, has a dash.
--busy: a loop takes one processor. --one: everything on one processor.
"""
import argparse
import os
import shutil
import statistics
import subprocess
import sys

import own_cpu
from beside import spent

COUNT = "tracepoint:raw_syscalls:sys_enter /@watched[pid]/ { @[comm, args->id] = count(); } " \
    "tracepoint:sched:sched_process_fork /@watched[args->parent_pid]/ { @watched[args->child_pid] = 1; } " \
    "BEGIN { @watched[cpid] = 1; } END { clear(@watched); }"
DEFAULT = ["/bin/true", "grep -r include", "find /usr/include", "gcc -c", "make -s -j4", "python3 -c pass", "perl -e for (1..20)",
           "bash -c for i in {1..30}; do x", "go version", "node -e 0", "git --version", "sort lines.txt", "./storm", "tar cf"]


def tracers(systoll):
    """Returns the words that each tracer puts in front of a command, by its name."""
    return {
        "unwatched": [],
        "systoll": [systoll, "run", "-q", "-o", "/dev/null", "--"],
        "strace -f -c": ["strace", "-f", "-c", "-o", "/dev/null"],
        "perf trace -s": ["perf", "trace", "-s", "-o", "/dev/null"],
        "bpftrace": ["bpftrace", "-q", "-o", "/dev/null", "-e", COUNT, "-c"],
    }


def command(front, argv):
    if front[:1] != ["bpftrace"]:
        return [*front, *argv]
    # bpftrace takes the command as one word, which begins with a path.
    return [*front, " ".join([shutil.which(argv[0]) or argv[0], *argv[1:]])]


def works(front):
    """Returns True if a tracer may be used here."""
    if not front:
        return True
    nothing = subprocess.DEVNULL
    found = shutil.which(front[0]) is not None
    return found and subprocess.run(command(front, ["/bin/true"]), stdin=nothing, stdout=nothing, stderr=nothing).returncode == 0



def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--systoll", required=True)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--busy", action="store_true", help="with one processor taken by a loop")
    parser.add_argument("--one", action="store_true", help="everything on one processor")
    parser.add_argument("words", nargs="*", help="only commands that contain one of these, of all of own_cpu.py")
    options = parser.parse_args()
    if options.one:
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    fronts = tracers(os.path.abspath(options.systoll))
    usable = {name: works(front) for name, front in fronts.items()}
    print("ms, fastest/median:  " + "  ".join(f"{name:>17}" for name in fronts))
    ratios = {name: [] for name in fronts}
    with own_cpu.bench(options.words or DEFAULT, options.busy) as ready:
        for argv, name in ready:
            kept = {tracer: [] for tracer in fronts}
            for _ in range(options.runs):
                for tracer, front in fronts.items():
                    # bpftrace splits the command as a shell would, so not every command can be passed to it.
                    if usable[tracer] and not (tracer == "bpftrace" and any(set(a) & set(" '\"$(;") for a in argv)):
                        kept[tracer].append(spent(command(front, argv)))
            print(name.replace(sys.executable, "python3")[:70])
            for n, what in enumerate(("wall", "processor")):
                show = lambda kept: f"{min(k[n] for k in kept):8.1f}/{statistics.median(k[n] for k in kept):8.1f}" if kept else f"{'-':>17}"
                print(f"  {what:<18} " + "  ".join(show(kept[tracer]) for tracer in fronts), flush=True)
            for tracer, figures in kept.items():
                if figures:
                    of = lambda n, least: [least(k[n] for k in side) for side in (figures, kept["unwatched"])]
                    (wall, wall0), (cpu, cpu0) = of(0, min), of(1, statistics.median)
                    ratios[tracer].append((wall / wall0, cpu / cpu0))
    for tracer, all_of in ratios.items():
        if all_of:
            wall, cpu = (statistics.geometric_mean(r[n] for r in all_of) for n in (0, 1))
            print(f"{tracer:<14} {len(all_of):3} commands, geometric mean: wall (fastest) {wall:.2f} x, processor time (median) {cpu:.2f} x")


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        print("interrupted: the lines above are what is known so far", flush=True)
        sys.exit(130)
