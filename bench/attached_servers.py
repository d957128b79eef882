#!/usr/bin/env python3
"""Measures what watching a running server costs those who ask it: `systoll attach`, beside `strace -p` and `perf trace -p`.

    bench/attached_servers.py [--systoll PATH] [--minutes 1.8] [redis] [nginx] [postgres]      two minutes each, six in all

One server runs all the time, on loopback, and the same load drives it in turns: watched by no one, by systoll, and now and
then by the others that are installed. Each turn of an observer has an unwatched one beside it, which comes first every other
time. It prints for each observer the geometric mean of the pairs' ratios, watched to unwatched: requests a second, and the
servers' own processor time a request (not for PostgreSQL, whose processes end with the load), each with the interval that
holds the mean at 99 % (Student's t of the logarithms). It needs the machine to itself, and root for the servers of others.
"""
import argparse
import contextlib
import glob
import os
import re
import shlex
import shutil
import signal
import socket
import statistics
import subprocess
import tempfile
import time

from servers import NOTHING, Nginx, Redis, family, free_port, interval, measure_each, processor_ns

HERE = os.path.dirname(os.path.abspath(__file__))
# Length of a turn's load, s.
TURN = 2.0
# Student's t for 99 %, by degrees of freedom; of the next lower number where one is missing.
T_99 = {1: 63.66, 2: 9.92, 3: 5.84, 4: 4.60, 5: 4.03, 6: 3.71, 7: 3.50, 8: 3.36, 9: 3.25, 10: 3.17, 12: 3.05, 15: 2.95, 20: 2.85, 30: 2.75}
# An observer other than systoll has a turn after so many of systoll's.
SELDOM = 4


class Postgres:
    """PostgreSQL under pgbench. It does not run as root, then as the user `nobody`."""

    binaries = (sorted(glob.glob("/usr/lib/postgresql/*/bin")) or [""])[-1]
    needs = (os.path.join(binaries, "postgres"), os.path.join(binaries, "pgbench"))
    user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] if os.geteuid() == 0 else []

    @classmethod
    def of(cls, name, *words):
        return [*cls.user, os.path.join(cls.binaries, name), *words]

    @classmethod
    def serve(cls, port, folder):
        data = os.path.join(folder, "data")
        os.chmod(os.path.dirname(folder), 0o755)
        os.mkdir(data, 0o700)
        if cls.user:
            os.chown(data, 65534, 65534)
        options = ["-h", "127.0.0.1", "-p", str(port), "-k", data]
        quiet = {"check": True, "stdout": NOTHING, "stderr": NOTHING, "cwd": "/"}
        subprocess.run(cls.of("initdb", "-A", "trust", "-U", "bench", "-D", data), **quiet)
        subprocess.run(cls.of("pg_ctl", "start", "-w", "-D", data, "-l", os.path.join(data, "log"), "-o", shlex.join(options)), **quiet)
        subprocess.run(cls.of("pgbench", "-q", "-i", "-s", "5", *cls.to(port)), **quiet)
        subprocess.run(cls.of("pg_ctl", "stop", "-w", "-D", data), **quiet)
        return cls.of("postgres", "-D", data, *options)

    @staticmethod
    def to(port):
        return ["-h", "127.0.0.1", "-p", str(port), "-U", "bench", "postgres"]

    @classmethod
    def ask(cls, port, _):
        return cls.of("pgbench", "-n", "-c", "8", "-j", "2", "-T", str(round(TURN)), *cls.to(port))

    @classmethod
    def is_ready(cls, port):
        return subprocess.run(cls.of("pg_isready", "-q", *cls.to(port)[:4]), check=False).returncode == 0


class Load:
    """A server, and the load that drives it."""

    def __init__(self, kind, folder):
        self.kind, self.port = kind, free_port()
        os.mkdir(folder)
        argv = kind.serve(self.port, folder)
        self.server = subprocess.Popen(argv, cwd="/", stdin=NOTHING, stdout=NOTHING, stderr=NOTHING)
        end = time.monotonic() + 30
        while not self.is_ready():
            if time.monotonic() > end or self.server.poll() is not None:
                raise SystemExit(f"{argv} does not answer")
            time.sleep(0.05)
        self.questions = 2000
        if kind is not Postgres:
            while (asked := self.turn())[1] < TURN / 2:
                self.questions *= 2
            self.questions = max(1000, int(self.questions * TURN / asked[1]))

    def is_ready(self):
        with socket.socket() as s:
            there = s.connect_ex(("127.0.0.1", self.port)) == 0
        return there and (self.kind is not Postgres or self.kind.is_ready(self.port))

    def pids(self):
        return family(self.server.pid)

    def turn(self):
        """Drives the server once. Returns the requests a second, the time it took in s, and the servers' processor time a
        request in ns, or None."""
        pids = self.pids()
        before, begun = processor_ns(pids), time.perf_counter()
        out = subprocess.run(self.kind.ask(self.port, self.questions), check=True, stdin=NOTHING, capture_output=True, text=True).stdout
        took = time.perf_counter() - begun
        if self.kind is Postgres:
            return float(re.search(r"tps = ([\d.]+)", out)[1]), took, None
        # redis-benchmark asks so many times for each of its two tests.
        asked = self.questions * (2 if self.kind is Redis else 1)
        return asked / took, took, (processor_ns(pids) - before) / asked

    def end(self):
        self.server.send_signal(signal.SIGINT)
        self.server.wait(30)


def commands(opts, folder):
    """Returns the function that makes each observer's command, by its name, for the observers that are installed."""
    out = os.path.join(folder, "out")
    of_each = lambda pids: [word for pid in pids for word in ("-p", str(pid))]  # noqa: E731
    every = {
        "systoll attach": (opts.systoll, lambda pids: [opts.systoll, "attach", "-q", "-o", out, "--tree", str(pids[0])]),
        "strace -c -f -p": ("strace", lambda pids: ["strace", "-c", "-f", "-o", out, *of_each(pids)]),
        "perf trace -s -p": ("perf", lambda pids: ["perf", "trace", "-s", "-o", out, "-p", ",".join(map(str, pids))]),
    }
    return {name: make for name, (tool, make) in every.items() if shutil.which(tool)}


@contextlib.contextmanager
def watched(argv, pids):
    """Runs an observer beside what is within, once it has entered the server's first process."""
    p = subprocess.Popen(argv, stdin=NOTHING, stdout=NOTHING, stderr=NOTHING)
    end, seen = time.monotonic() + 10, False
    while not seen and time.monotonic() < end and p.poll() is None:
        time.sleep(0.05)
        with open(f"/proc/{pids[0]}/maps") as maps, open(f"/proc/{pids[0]}/status") as status:
            # perf leaves no trace in its target.
            seen = "memfd:systoll" in maps.read() or "TracerPid:\t0" not in status.read() or argv[0] == "perf"
    time.sleep(0.5 if argv[0] == "perf" else 0.1)
    entered = p.poll() is None
    yield
    with contextlib.suppress(ProcessLookupError):
        p.send_signal(signal.SIGINT)
    p.wait(60)
    if not entered:
        raise SystemExit(f"{shlex.join(argv)} ended by {p.returncode}")


def of_pairs(ratios):
    """Returns a text with the geometric mean of few pairs, and its interval at 99 % if there are two or more."""
    if len(ratios) < 2:
        return f"{ratios[0]:.3f} (one pair)"
    return interval(ratios, T_99[max(n for n in T_99 if n < len(ratios))], 3)


def measure(name, kind, opts):
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as begun:
        load = Load(kind, os.path.join(folder, "server"))
        begun.callback(load.end)
        observers = commands(opts, folder)
        rates, cpus = {o: [] for o in observers}, {o: [] for o in observers}
        plain_rates, pairs = [], 0
        others = [o for o in observers if o != "systoll attach"]
        until = time.monotonic() + opts.minutes * 60
        while time.monotonic() < until or pairs < 2:
            pairs += 1
            observer = others[pairs // SELDOM % len(others)] if others and pairs % SELDOM == 0 else "systoll attach"
            of = {}
            for is_watched in (pairs % 2 == 0, pairs % 2 == 1):
                pids = load.pids()
                with watched(observers[observer](pids), pids) if is_watched else contextlib.nullcontext():
                    of[is_watched] = load.turn()
            rates[observer].append(of[True][0] / of[False][0])
            plain_rates.append(of[False][0])
            if of[True][2]:
                cpus[observer].append(of[True][2] / of[False][2])
        print(f"{name}: {statistics.median(plain_rates):,.0f} requests a second unwatched")
        for observer in (o for o in observers if rates[o]):
            cpu = f"   processor time a request {of_pairs(cpus[observer])}" if cpus[observer] else ""
            print(f"  {observer:17} {len(rates[observer]):3} pairs   requests a second {of_pairs(rates[observer])}{cpu}", flush=True)


def main():
    kinds = {"redis": Redis, "nginx": Nginx, "postgres": Postgres}
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--systoll", default=os.path.join(HERE, "..", "target", "release", "systoll"))
    p.add_argument("--minutes", type=float, default=1.8)
    p.add_argument("which", nargs="*", choices=[*kinds, []], default=[])
    opts = p.parse_args()
    measure_each(kinds, opts, measure)


if __name__ == "__main__":
    main()
