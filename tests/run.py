#!/usr/bin/env python3
"""Runs the suites that need real programs.

  run.py --systoll PATH [--user root|nobody|both] [--long] [--strict] [--list] [WORD...]

WORDs select tests whose name contains one of them. Ends with 'N passed, N failed, N skipped'
and status 0 only where nothing failed.
"""
import argparse
import importlib
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
    p.add_argument("--long", action="store_true", help="also the long tests")
    p.add_argument("--strict", action="store_true", help="a test that is skipped, or fails in two of six attempts, fails")
    p.add_argument("--list", action="store_true")
    # Set in one user's half of a run, which shares this folder with the other's.
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
        if len(users) > 1 and not opts.words:
            return side_by_side(users, shared.root)
        passed, failed, skipped = harness.run_tests(shared, users, opts.words, opts.strict)
    finally:
        shared.close()
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed or not passed else 0


def side_by_side(users, root):
    """Runs both users' tests at the same time, because they wait more than they compute. Each half has a summary."""
    halves = []
    try:
        for user in users:
            halves.append(subprocess.Popen([sys.executable, *sys.argv, "--user", user, "--shared", root], stdin=subprocess.DEVNULL))
        return max([half.wait() for half in halves], default=1)
    finally:
        for half in halves:
            half.terminate()
            half.wait()


if __name__ == "__main__":
    sys.exit(main())
