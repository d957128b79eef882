#!/usr/bin/env python3
"""Tries the README's two commands on a fresh machine: a new Debian in a folder, with gcc, git, python3 and cargo.

  fresh.py [--suite bookworm] [--slice] [--at DIR] [--ahead] [--systoll PATH] [ARGUMENT OF ./test ...]

Makes the machine by debootstrap, copies this checkout in, and runs `cargo run --release -- demo` and
`./test --no-install` there. The machine lives in namespaces of its own: its mounts and processes are
gone when this ends, however it ends; its folder is removed. --slice tests what continuous integration
has time for. --at DIR uses a machine that is already there, and keeps it or the new one; --ahead makes it and
builds systoll there, no more, while its caller does other things. --systoll PATH builds nothing there: this
systoll tells the stories and is tested.
Root and the network are needed. Status 0: both work; 77: it can't be tried here, the last line says why.
"""
import argparse
import glob
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

REPOSITORY = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PACKAGES = "gcc,libc6-dev,git,python3,ca-certificates"
MIRROR = "http://deb.debian.org/debian"
CANNOT = 77
# Limits in seconds for each of the two commands, and for everything.
LIMIT, WHOLE = 2400, 5400
# Tests of a slice: the suites that need nothing but what is there, and the cases. The rest is the same as outside.
SLICE = ["--only", "build,programs,sick,languages", "command_line.", "signals_to_systoll.", "namespaces_and_tracers.", "cures.", "diseases.", "findings.", "names.", "test_machinery."]
# Files by which this machine gets to the network; nothing of them is part of the repository.
CONFIGURATION = [
    "/etc/resolv.conf",
    "/etc/hosts",
    "/etc/apt/apt.conf",
    "/etc/apt/apt.conf.d/*",
    "/etc/ssl/certs",
    "/usr/local/share/ca-certificates",
    "~/.cargo/config.toml",
    "~/.cargo/config",
    "~/.gitconfig",
]
VARIABLES = re.compile(r"(https?|ftp|all|no)_proxy|CARGO_(HTTP|NET|PROFILE|REGISTRIES|REGISTRY|SOURCE)_\w+|SSL_CERT_\w+|\w+_CA_BUNDLE|GIT_SSL_CAINFO", re.IGNORECASE)
TOOLS = ("cargo", "rustc", "rustdoc", "rustfmt", "cargo-fmt", "cargo-clippy", "clippy-driver")
STORIES = ("localtime", "ucontext", "setjmp", "getpid", "membarrier")


class Cannot(Exception):
    """Says why the test can't be tried here."""


def said(command, **kwargs):
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, **kwargs).stdout


def log(words):
    print(f"fresh: {words}", flush=True)


def mirror():
    """Returns the source from which this machine gets its Debian packages."""
    for name in ["/etc/apt/sources.list", *sorted(glob.glob("/etc/apt/sources.list.d/*"))]:
        if os.path.exists(name):
            with open(name) as f:
                found = re.search(r"^(?:deb(?: \[[^\]]*\])?|URIs:) +(\S*/debian)/?(?: |$)", f.read(), re.M)
            if found:
                return found[1]
    return MIRROR


def wanted():
    """Raises Cannot if something that must be here is missing."""
    if os.getuid() != 0:
        raise Cannot("a fresh machine can be made by root only")
    for tool in ("debootstrap", "unshare", "mount", "chroot", "cargo", "rustc"):
        if not shutil.which(tool):
            raise Cannot(f"{tool} is not installed")
    if subprocess.run(NAMESPACES + ["true"], stderr=subprocess.DEVNULL).returncode:
        raise Cannot("namespaces can't be made here")


NAMESPACES = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--propagation", "private"]


def make(place, suite):
    """Makes a new machine in `place`."""
    start = time.monotonic()
    r = subprocess.run(
        ["debootstrap", "--variant=minbase", f"--include={PACKAGES}", suite, place, mirror()], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    if r.returncode:
        print(r.stdout[-2000:])
        raise Cannot(f"debootstrap could not make a {suite}: {r.stdout.strip().splitlines()[-1] if r.stdout else r.returncode}")
    log(f"{suite} was made in {time.monotonic() - start:.0f} s")


def configure(place):
    """Copies what the machine needs: this one's way to the network, the tool chain, the kernel's files."""
    for pattern in CONFIGURATION:
        for source in glob.glob(os.path.expanduser(pattern)):
            target = place + (source if not pattern.startswith("~") else "/root" + source[len(os.path.expanduser("~")) :])
            os.makedirs(os.path.dirname(target), exist_ok=True)
            if os.path.isdir(source):
                shutil.copytree(source, target, symlinks=True, dirs_exist_ok=True, ignore=lambda at, names: [n for n in names if os.path.lexists(os.path.join(place + at, n))])
            else:
                shutil.copy(source, target)
    mount = lambda *words: subprocess.run(["mount", *words], check=True)
    mount("-t", "proc", "proc", place + "/proc")
    mount("--rbind", "/dev", place + "/dev")
    mount("--rbind", "/sys", place + "/sys")
    chain = place + "/opt/rust"
    os.makedirs(chain, exist_ok=True)
    mount("--bind", said(["rustc", "--print", "sysroot"], cwd=REPOSITORY).strip(), chain)
    mount("-o", "remount,bind,ro", chain)
    for tool in TOOLS:
        link = f"{place}/usr/local/bin/{tool}"
        if os.path.exists(f"{chain}/bin/{tool}") and not os.path.lexists(link):
            os.symlink(f"/opt/rust/bin/{tool}", link)


def copy_checkout(place):
    """Copies what a clone of this checkout would have, with changes that are not committed yet."""
    target = place + "/root/systoll"
    for name in said(["git", "-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=REPOSITORY).split("\0"):
        source = os.path.join(REPOSITORY, name)
        if name and os.path.isfile(source):
            os.makedirs(os.path.dirname(os.path.join(target, name)), exist_ok=True)
            shutil.copy2(source, os.path.join(target, name))
    git = ["chroot", place, "git", "-C", "/root/systoll", "-c", "safe.directory=*", "-c", "init.defaultBranch=main"]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "add", "-A"], check=True)


def inside(place, command):
    """Runs a command of the README in the machine. Returns its status and all its output."""
    env = {k: v for k, v in os.environ.items() if VARIABLES.fullmatch(k)}
    env.update(HOME="/root", PATH="/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", LANG="C.UTF-8", TERM="dumb")
    log(f"$ {' '.join(command)}")
    start, lines = time.monotonic(), []
    with subprocess.Popen(
        ["timeout", "-k", "10", str(LIMIT), "chroot", place, "sh", "-c", 'cd /root/systoll && exec "$@"', "sh", *command],
        env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
    ) as p:  # fmt: skip
        for line in p.stdout:
            lines.append(line.rstrip())
            print(f"    {lines[-1]}", flush=True)
    log(f"status {p.returncode} after {time.monotonic() - start:.0f} s")
    return p.returncode, lines


def machine(opts):
    """Makes the machine and runs both commands, in namespaces of our own."""
    place = opts.inside
    if not os.path.exists(place + "/usr/bin/git"):
        make(place, opts.suite)
    configure(place)
    copy_checkout(place)
    if opts.ahead:
        return inside(place, ["cargo", "build", "--release", "--quiet", "-p", "systoll"])[0]
    wrong = []
    first = ["cargo", "run", "--release", "--", "demo"]
    if opts.systoll:
        os.makedirs(place + "/root/systoll/target/release", exist_ok=True)
        shutil.copy(opts.systoll, place + "/root/systoll/target/release/systoll")
        first = ["target/release/systoll", "demo"]
    status, lines = inside(place, first)
    untold = [s for s in STORIES if not any(re.search(rf"\b{s}\b", line) for line in lines)]
    if status or untold:
        wrong.append(f"`{' '.join(first)}`: status {status}" + f", not told: {' '.join(untold)}" * bool(untold))
    status, lines = inside(place, ["./test", "--no-install", *(SLICE if opts.slice else opts.arguments)])
    if status:
        wrong += [f"./test: {line}" for line in lines if line.startswith(("FAILED ", "failed: "))] or [f"./test: status {status}"]
    elif not opts.slice and any("skipped: " in line and not line.split("skipped: ")[1].strip() for line in lines):
        wrong.append("./test: something was skipped without a reason")
    for line in wrong or [f"both commands of the README work on a fresh {opts.suite}: {lines[-1]}"]:
        log(line)
    return 1 if wrong else 0


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--suite", default="bookworm", help="Debian 11, 12, 13: bullseye, bookworm, trixie")
    p.add_argument("--slice", action="store_true")
    p.add_argument("--at", metavar="DIR")
    p.add_argument("--ahead", action="store_true")
    p.add_argument("--systoll", metavar="PATH")
    p.add_argument("--inside", help=argparse.SUPPRESS)
    opts, opts.arguments = p.parse_known_args()
    try:
        if opts.inside:
            return machine(opts)
        wanted()
        place = os.path.abspath(opts.at) if opts.at else tempfile.mkdtemp(prefix="systoll-fresh-")
        os.makedirs(place, exist_ok=True)
        os.chmod(place, 0o755)
        try:
            # When told to end, end what was started: unshare itself leaves that to its program.
            signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
            command = [sys.executable, os.path.abspath(__file__), "--inside", place, *sys.argv[1:]]
            # Whatever ends the wait, the child is killed, and with it everything in its namespaces.
            return subprocess.run(NAMESPACES + command, timeout=WHOLE).returncode
        except subprocess.TimeoutExpired:
            log(f"no end in {WHOLE} s")
            return 1
        finally:
            # The machine's mounts are not visible from here.
            if not opts.at:
                shutil.rmtree(place, ignore_errors=True)
    except Cannot as e:
        print(e)
        return CANNOT


if __name__ == "__main__":
    sys.exit(main())
