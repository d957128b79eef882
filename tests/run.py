#!/usr/bin/env python3
"""Runs the suites that need real programs.

  run.py --systoll PATH [--user root|nobody|both] [--long] [--strict] [--jobs N] [--list | --left-out] [WORD...]

WORDs select tests whose name contains one of them. Without WORDs and --long, a test runs as root or as an ordinary user where it
does not matter which, as the other one after the next commit, and so do the two backends of one user; one of 5 s or more runs
after two commits of four; --left-out lists what is left out. Tests begin while processors are idle, by up to --jobs
workers. Ends with 'N passed, N failed, N skipped' and status 0 only where nothing failed.
"""
import argparse
import importlib
import json
import os
import signal
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import harness  # noqa: E402


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--systoll", required=True)
    p.add_argument("--user", default="both", choices=["root", "nobody", "both"])
    p.add_argument("--long", action="store_true", help="also the long tests, and all of root's")
    p.add_argument("--strict", action="store_true", help="a test that is skipped, or fails in two of six attempts, fails")
    cpus = os.cpu_count() or 1
    p.add_argument("--jobs", type=int, default=3 * cpus, help="tests run at the same time, at most, because most of them wait")
    p.add_argument("--seconds", help="write how long each test took into this file, which is tests/seconds.json in the repository")
    p.add_argument("--list", action="store_true")
    p.add_argument("--turn", type=int, help="number that decides what is left out, instead of the number of commits")
    p.add_argument("--left-out", action="store_true")
    # Set in workers that take tests only while processors are idle.
    p.add_argument("--extra", action="store_true", help=argparse.SUPPRESS)
    # Set in one worker of several, which shares this folder with the others.
    p.add_argument("--shared", help=argparse.SUPPRESS)
    p.add_argument("words", nargs="*")
    opts = p.parse_args()
    # A shell that starts us in the background leaves these signals ignored, and every program that we start would
    # inherit that: Ctrl-C could not be tested.
    for s in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGTERM):
        if signal.getsignal(s) == signal.SIG_IGN:
            signal.signal(s, signal.SIG_DFL)
    # When told to end (by a time limit), leave nothing behind either.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    suites = sorted(f[:-3] for f in os.listdir(os.path.join(harness.HERE, "suites")) if f.endswith(".py"))
    # A word with a dot selects tests of suites whose names end with what precedes it. An emulated machine reads no others.
    ends = [word.split(".")[0] if "." in word else "" for word in opts.words] or [""]
    for suite in suites:
        if any(suite.endswith(end) for end in ends):
            importlib.import_module(f"suites.{suite}")
    if opts.list:
        print("\n".join(f"{s}.{n}" for s, n, *_ in harness.TESTS))
        return 0
    users = ("root", "nobody") if opts.user == "both" else (opts.user,)
    if os.getuid() != 0:
        # Run an ordinary user's tests without changing the user, whoever we are.
        users = ("root",)
    opts.turn = harness.commits() if opts.turn is None else opts.turn
    chosen, left_out = harness.chosen(users, opts.words, opts.long, opts.turn)
    if opts.left_out:
        print("\n".join(name for name, *_ in left_out))
        return 0
    shared = harness.Shared(opts.systoll, opts.long, opts.shared)
    try:
        if not opts.shared and not opts.words and opts.jobs > 1:
            status = side_by_side(opts, shared.root)
            if left_out:
                print(f"left out at turn {opts.turn}: {len(left_out)} of {len(chosen) + len(left_out)} (run.py --turn {opts.turn} --left-out lists them)")
            return status
        queue = harness.by_length(chosen) if opts.shared else chosen
        passed, failed, skipped = harness.run_tests(shared, queue, opts.strict, opts.extra)
    finally:
        shared.close()
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed or not passed and not opts.shared else 0


def side_by_side(opts, root):
    """Runs workers that take tests from one queue, longest first. Each worker has a summary."""
    workers = []
    try:
        for number in range(opts.jobs):
            # So many tests run at the same time in any case.
            extra = ["--extra"] if number > (os.cpu_count() or 1) else []
            command = [sys.executable, *sys.argv, "--shared", root, "--turn", str(opts.turn), *extra]
            workers.append(subprocess.Popen(command, stdin=subprocess.DEVNULL))
        status = max(worker.wait() for worker in workers)
        # A worker has passed where others took all tests; a run without tests has not.
        if not harness.took(root, 0):
            return 1
        if opts.seconds:
            with open(opts.seconds, "w") as f:
                json.dump(harness.took(root, harness.SHORTEST), f, indent=0, sort_keys=True)
                f.write("\n")
        return status
    finally:
        for worker in workers:
            worker.terminate()
            worker.wait()


if __name__ == "__main__":
    sys.exit(main())
