#!/usr/bin/env python3
"""Runs the suites that need real programs.

  run.py --systoll PATH [--user root|nobody|both] [--long] [--strict] [--jobs N] [--list] [WORD...]

WORDs select tests whose name contains one of them. Without WORDs and --long, root's are a fifth of those where it does not
matter who runs them, another fifth each day; an ordinary user's are all. Ends with 'N passed, N failed, N skipped'
and status 0 only where nothing failed.
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
    p.add_argument("--jobs", type=int, default=(os.cpu_count() or 1) + 1, help="tests run at the same time, because most of them wait")
    p.add_argument("--seconds", help="write how long each test took into this file, which is tests/seconds.json in the repository")
    p.add_argument("--list", action="store_true")
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
    for suite in suites:
        importlib.import_module(f"suites.{suite}")
    if opts.list:
        print("\n".join(f"{s}.{n}" for s, n, *_ in harness.TESTS))
        return 0
    users = ("root", "nobody") if opts.user == "both" else (opts.user,)
    if os.getuid() != 0:
        # Run an ordinary user's tests without changing the user, whoever we are.
        users = ("root",)
    shared = harness.Shared(opts.systoll, opts.long, opts.shared)
    try:
        chosen = harness.chosen(users, opts.words, opts.long)
        if not opts.shared and not opts.words and opts.jobs > 1:
            return side_by_side(opts, shared.root)
        queue = harness.by_length(chosen) if opts.shared else chosen
        passed, failed, skipped = harness.run_tests(shared, queue, opts.strict)
    finally:
        shared.close()
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed or not passed and not opts.shared else 0


def side_by_side(opts, root):
    """Runs workers that take tests from one queue, longest first. Each worker has a summary."""
    workers = []
    try:
        for _ in range(opts.jobs):
            workers.append(subprocess.Popen([sys.executable, *sys.argv, "--shared", root], stdin=subprocess.DEVNULL))
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
