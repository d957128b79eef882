#!/usr/bin/env python3
"""Tries the packages on bare machines: Debians in folders, and an Alpine if one is given.

  installed.py --packages DIR [--suite bullseye …] [--at FOLDER] [--alpine ROOT]

Makes each Debian by debootstrap (--variant=minbase; kept in FOLDER, if one is given), installs the .deb in it by dpkg, watches a program,
and in one with Python the wheel, as root and as an ordinary user. An Alpine gets the tar. Status 0: all work; 77: none could be tried.
"""
import argparse
import glob
import os
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import fresh  # noqa: E402

SUITES = ("bullseye", "bookworm", "trixie")
# Script that watches a program, finds what is needless in it, and reads the recording that it kept.
TRIED = """
set -e
systoll --version
systoll run --save /tmp/r.systoll -o /tmp/r.txt -- sh -c 'for i in 1 2 3; do /bin/ls / ; done >/dev/null'
grep -q 'system calls (exact)' /tmp/r.txt || { cat /tmp/r.txt; exit 1; }
systoll report -c /tmp/r.systoll | tail -1
systoll doctor | head -3
printf '%s\\n' '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}' | systoll mcp | grep -q serverInfo
rm -f /tmp/r.systoll /tmp/r.txt
"""


def inside(place, script, user=None):
    """Runs a script in the machine, in namespaces of its own."""
    mounted = f"mount -t proc proc {place}/proc && mount --rbind /dev {place}/dev && mount --rbind /sys {place}/sys"
    who = "" if user is None else f"--userspec={user}:{user} "
    r = subprocess.run(
        [*fresh.NAMESPACES, "sh", "-c", f'{mounted} && exec chroot {who}"$1" /bin/sh -c "$2"', "sh", place, script],
        env={"PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "HOME": "/tmp", "LANG": "C.UTF-8"},
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=600,
    )  # fmt: skip
    for line in r.stdout.splitlines():
        print("    " + line)
    return r.returncode == 0


def debian(place, packages):
    shutil.copy(glob.glob(f"{packages}/*.deb")[0], f"{place}/root/systoll.deb")
    good = inside(place, "dpkg -i /root/systoll.deb && dpkg -V systoll && ls /usr/share/man/man1/systoll* | wc -l")
    good = good and all(inside(place, TRIED, user) for user in (None, 65534))
    if os.path.exists(f"{place}/usr/bin/pip3"):
        wheel = glob.glob(f"{packages}/*.whl")[0]
        shutil.copy(wheel, f"{place}/root/")
        counted = "import systoll, os\nwith systoll.calls() as c: os.stat(chr(47))\nprint(c.skipped or c.by_name)"
        good = inside(place, f"python3 -m venv /opt/v 2>&1 | tail -1; /opt/v/bin/pip install -q --no-index --no-deps /root/{os.path.basename(wheel)} && /opt/v/bin/systoll --version && /opt/v/bin/python -c '{counted}'") and good
    return inside(place, "dpkg -P systoll && ! test -e /usr/bin/systoll") and good


def alpine(place, packages):
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["tar", "xzf", glob.glob(f"{packages}/*.tar.gz")[0], "-C", folder], check=True)
        shutil.copy(glob.glob(f"{folder}/*/bin/systoll")[0], f"{place}/usr/bin/systoll")
    return all([inside(place, TRIED, user) for user in (None, 65534)])


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--packages", required=True, metavar="DIR")
    p.add_argument("--suite", nargs="*", default=list(SUITES))
    p.add_argument("--at", metavar="FOLDER")
    p.add_argument("--alpine", metavar="ROOT")
    opts = p.parse_args()
    at = os.path.abspath(opts.at or tempfile.mkdtemp(prefix="systoll-installed-"))
    verdicts = {}
    try:
        fresh.PACKAGES = "python3-venv,python3-pip"
        for suite in opts.suite:
            place = os.path.join(at, suite)
            print(suite, flush=True)
            try:
                fresh.wanted()
                if not os.path.exists(f"{place}/usr/bin/dpkg"):
                    fresh.make(place, suite)
                verdicts[suite] = "works" if debian(place, opts.packages) else "FAILED"
            except fresh.Cannot as e:
                verdicts[suite] = f"not tried: {e}"
        if opts.alpine:
            print("alpine", flush=True)
            verdicts["alpine"] = "works" if alpine(os.path.abspath(opts.alpine), opts.packages) else "FAILED"
    finally:
        if not opts.at:
            shutil.rmtree(at, ignore_errors=True)
    for name, verdict in verdicts.items():
        print(f"{name}: {verdict}")
    if any(v == "FAILED" for v in verdicts.values()):
        return 1
    return 0 if "works" in verdicts.values() else fresh.CANNOT


if __name__ == "__main__":
    sys.exit(main())
