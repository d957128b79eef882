#!/usr/bin/env python3
"""Measures what watching costs where people feel it: commands as they are typed, unwatched and watched by turns.

  python3 bench/people.py --systoll PATH [--beside PATH] [--runs N] [--cold N] [--busy] [--one] [WORD…]

Each command has a line with the fastest and the median wall and processor time of everything (systoll's own included), in ms:
unwatched; watched where earlier runs have met the program (warm); watched with an empty cache, as a box's first run has it
(cold, N times; 0 leaves it out). --beside: another build's warm runs too. --busy: a loop takes one processor. --one:
everything on one processor. What is not installed is left out.
"""
import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

from beside import spent

# Number of runs before the first that counts: a run keeps what it has learnt for the next one.
FIRST_RUNS = 4
FILES = 30
IMPORTS = "import asyncio, json, logging, re, subprocess, urllib.request"


def commands(folder):
    """Returns commands with their titles, and how many times as often as others each runs: short ones vary most."""
    for n in range(FILES):
        with open(os.path.join(folder, f"f{n}.c"), "w") as f:
            f.write("#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n")
            f.write(f"int f{n}(const char *s) {{ char *t = strdup(s); int n = printf(\"%s {n}\\n\", t); free(t); return n; }}\n")
    with open(os.path.join(folder, "Makefile"), "w") as f:
        objects = " ".join(f"f{n}.o" for n in range(FILES))
        f.write(f"all: {objects}\n%.o: %.c\n\tgcc -c $< -o $@\n")
    here = os.path.dirname(os.path.abspath(__file__))
    make = lambda jobs: ["make", "-s", "-B", *jobs]
    python = "/usr/bin/python3"
    return [
        (["/bin/true"], "/bin/true", 5),
        (["git", "--version"], "git --version", 3),
        (["gcc", "-c", "f0.c", "-o", "f.o"], "gcc -c of a small file", 2),
        (["go", "version"], "go version", 2),
        (["node", "-e", "0"], "node -e 0", 1),
        (["java", "-version"], "java -version", 1),
        ([python, "-c", "0"], "python3 -c 0", 1),
        ([python, "-c", IMPORTS], "python3, imports", 1),
        ([python, "-m", "pip", "list"], "python3 -m pip list", 0.5),
        (["perl", "-e", "0"], "perl -e 0", 2),
        (["ruby", "-e", "0"], "ruby -e 0", 1),
        (["php", "-r", "0;"], "php -r 0", 1),
        (["gdb", "--version"], "gdb --version", 1),
        (["ffmpeg", "-version"], "ffmpeg -version", 1),
        (["pandoc", "--version"], "pandoc --version", 1),
        (["shellcheck", "--version"], "shellcheck --version", 1),
        (["grep", "-r", "include", "/usr/include/linux"], "grep -r include /usr/include/linux", 2),
        (["find", "/usr/share", "-name", "*.h"], "find /usr/share -name '*.h'", 0.7),
        (["git", "-C", here, "log", "--stat", "-50"], "git log --stat -50", 1),
        (make(["-j2"]), "make -j2 of 30 small files", 0.7),
        (make([]), "make of the same", 0.5),
        (["sh", "-c", "i=0; while [ $i -lt 200 ]; do /bin/true; i=$((i+1)); done"], "200 starts below a shell", 0.7),
    ]


class Turns:
    """Runs of one command by turns: the words in front of it for each way to run it, and the times that each took."""

    def __init__(self, folder, argv, fronts):
        self.folder, self.argv = folder, argv
        self.fronts = fronts
        self.kept = {name: [] for name in fronts}

    def run(self, name, cache):
        os.environ["XDG_CACHE_HOME"] = os.path.join(self.folder, "caches", cache)
        os.makedirs(os.environ["XDG_CACHE_HOME"], mode=0o700, exist_ok=True)
        return spent([*self.fronts[name], *self.argv])

    def take(self, name, cache):
        self.kept[name].append(self.run(name, cache))


def measured(folder, argv, fronts, runs, cold):
    """Returns wall and processor time of each run of each front, in ms."""
    turns = Turns(folder, argv, fronts)
    warm = [name for name in fronts if name != "cold"]
    for _ in range(FIRST_RUNS):
        for name in warm:
            turns.run(name, name)
    for n in range(max(runs, cold)):
        if n < runs:
            for name in warm:
                turns.take(name, name)
        if n < cold:
            # Each cold run has a folder of its own: a file system is slower where something was just removed.
            turns.take("cold", f"cold{n}")
    shutil.rmtree(os.path.join(folder, "caches"))
    return turns.kept


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--systoll", required=True)
    parser.add_argument("--beside", help="another build, whose warm runs are told too")
    parser.add_argument("--runs", type=int, default=11, help="of most commands; of shorter ones more, of longer ones fewer")
    parser.add_argument("--cold", type=int, default=5)
    parser.add_argument("--busy", action="store_true", help="with one processor taken by a loop")
    parser.add_argument("--one", action="store_true", help="everything on one processor")
    parser.add_argument("words", nargs="*", help="only commands that contain one of these")
    options = parser.parse_args()
    if options.one:
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    front = lambda systoll: [os.path.abspath(systoll), "run", "-q", "-o", "/dev/null", "--"]
    fronts = {"unwatched": []}
    if options.beside:
        fronts["beside"] = front(options.beside)
    fronts["warm"] = front(options.systoll)
    if options.cold:
        fronts["cold"] = front(options.systoll)
    folder = tempfile.mkdtemp(prefix="systoll-bench-")
    os.chdir(folder)
    loop = subprocess.Popen([sys.executable, "-c", "while True: pass"]) if options.busy else None
    print(f"{'ms, fastest/median':<36}" + "".join(f"{name:>18}" for name in fronts) + "   processor:" + "".join(f"{name:>18}" for name in fronts))
    try:
        for argv, name, often in commands(folder):
            if not shutil.which(argv[0]) or options.words and not any(word in name for word in options.words):
                continue
            kept = measured(folder, argv, fronts, max(3, round(options.runs * often)), options.cold)
            show = lambda n: "".join(f"{min(k[n] for k in side):9.2f}/{statistics.median(k[n] for k in side):8.2f}" for side in kept.values())
            print(f"{name:<36}{show(0)}             {show(1)}", flush=True)
    finally:
        if loop:
            loop.kill()
            loop.wait()
        os.chdir("/")
        shutil.rmtree(folder)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        print("interrupted: the lines above are what is known so far", flush=True)
        sys.exit(130)
