#!/usr/bin/env python3
"""Measures how long `systoll attach` stops a program, by its number of threads.

    bench/attach.py [--systoll PATH] [--rounds 5] [THREADS...]      about ten seconds for each number

Prints for each number of threads the longest stop of a thread on entering or leaving, in milliseconds: the lowest and the
median of the rounds. It needs the machine to itself.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
THREADS = [1, 10, 64, 1000]


def stops(systoll, program, threads, rounds):
    """Returns the longest stop of each round, in ms."""
    p = subprocess.Popen([program, str(threads), "20"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert p.stdout.readline() == b"ready\n"
    found = []
    for _ in range(rounds):
        out = program + ".json"
        argv = [systoll, "attach", "-q", "--for", "0.3s", "--json", "-o", out, str(p.pid)]
        r = subprocess.run(argv, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
        if r.returncode:
            sys.exit(f"systoll: {r.returncode}: {r.stderr.decode(errors='replace')}")
        with open(out) as f:
            found.append(json.load(f)["attached"]["longest_stop_ns"] / 1e6)
    p.stdin.close()
    p.wait(20)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--systoll", default=os.path.join(HERE, "..", "target", "release", "systoll"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("threads", type=int, nargs="*", default=THREADS)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        program = os.path.join(folder, "standing")
        source = os.path.join(HERE, "programs", "standing.c")
        subprocess.run(["cc", "-O2", "-pthread", "-o", program, source], check=True)
        print("threads  lowest ms  median ms")
        for threads in args.threads:
            found = stops(args.systoll, program, threads, args.rounds)
            print(f"{threads:7}  {min(found):9.2f}  {statistics.median(found):9.2f}", flush=True)


if __name__ == "__main__":
    main()
