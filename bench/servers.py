#!/usr/bin/env python3
"""Measures what watching costs a server under load: one that is watched and one that isn't run side by side.

  python3 bench/servers.py --systoll PATH [--attach] [--minutes N] [--batch SECONDS] [redis] [nginx]

Both servers run all the time, each on a port of its own on loopback. A pair is a batch of requests to the one and the
same batch to the other; which comes first changes from pair to pair, so that the machine's good and bad minutes reach both
alike. A batch is as many requests as take the given time. It prints the geometric mean of the pairs' ratios,
watched to unwatched, of the batch's wall time and of the server's own processor time (the kernel's account of its
threads, in ns), each with the interval that holds the mean at 99 % (Student's t of the logarithms), and what the launcher
itself used of a processor meanwhile. With `--attach`, both are started unwatched, and systoll attaches to one of them for
the whole time. Needs redis-server and redis-benchmark, nginx and ab.
"""
import argparse
import contextlib
import math
import os
import shutil
import signal
import socket
import statistics
import subprocess
import tempfile
import time

NOTHING = subprocess.DEVNULL
# Student's t for 99 %; beyond 30 pairs it is within a twentieth of this.
T_99 = 2.7
LEAST_PAIRS = 30


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as f:
        return [int(child) for child in f.read().split()]


def family(pid):
    """Returns a process and all its descendants."""
    return [pid] + [p for child in children(pid) for p in family(child)]


def processor_ns(pids):
    total = 0
    for pid in pids:
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/schedstat") as f:
                total += int(f.read().split()[0])
    return total


class Server:
    """A server on loopback, watched from its start or attached to by `systoll`, or unwatched where that is None."""

    def __init__(self, kind, systoll, folder, attach=False):
        os.mkdir(folder)
        self.port = free_port()
        argv = kind.serve(self.port, folder)
        report = os.path.join(folder, "report")
        watch = [systoll, "run", "-q", "-o", report, "--"] if systoll and not attach else []
        with open(os.path.join(folder, "log"), "wb") as log:
            self.process = subprocess.Popen(watch + argv, cwd=folder, stdin=NOTHING, stdout=log, stderr=log)
        self.launcher = [self.process.pid] if watch else []
        self.watcher = None
        until = time.monotonic() + 20
        while not self.answers():
            if time.monotonic() > until or self.process.poll() is not None:
                self.process.terminate()
                raise SystemExit(f"{argv[0]} does not answer: {folder}/log")
            time.sleep(0.05)
        self.served = [p for p in family(self.process.pid) if p not in self.launcher]
        if attach:
            attached = [systoll, "attach", "-q", "-o", report, "--for", "24h", *map(str, self.served)]
            self.watcher = subprocess.Popen(attached, cwd=folder, stdin=NOTHING, stdout=NOTHING)
            self.launcher = [self.watcher.pid]
            time.sleep(2)
            if self.watcher.poll() is not None:
                raise SystemExit(f"attaching failed with {self.watcher.returncode}")

    def answers(self):
        with socket.socket() as s:
            return s.connect_ex(("127.0.0.1", self.port)) == 0

    def asked(self, ask):
        """Returns the wall time, the server's and the launcher's processor time of a batch, in ns."""
        before = processor_ns(self.served), processor_ns(self.launcher)
        begun = time.perf_counter_ns()
        subprocess.run(ask, check=True, stdin=NOTHING, stdout=NOTHING, stderr=NOTHING)
        wall = time.perf_counter_ns() - begun
        after = processor_ns(self.served), processor_ns(self.launcher)
        return wall, after[0] - before[0], after[1] - before[1]

    def end(self):
        if self.watcher:
            # SIGTERM, because a shell starts what runs in the background with SIGINT ignored.
            self.watcher.terminate()
            self.watcher.wait(30)
        os.kill(self.served[0], signal.SIGTERM)
        self.process.wait(30)


class Redis:
    needs = ("redis-server", "redis-benchmark")

    @staticmethod
    def serve(port, folder):
        return ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", folder]

    @staticmethod
    def ask(port, questions):
        return ["redis-benchmark", "-h", "127.0.0.1", "-p", str(port), "-t", "set,get", "-n", str(questions), "-c", "20", "-q"]


class Nginx:
    needs = ("nginx", "ab")

    @staticmethod
    def serve(port, folder):
        with open(os.path.join(folder, "index.html"), "w") as f:
            f.write("<p>hello</p>\n" * 40)
        with open(os.path.join(folder, "nginx.conf"), "w") as f:
            f.write(
                f"daemon off; worker_processes 1; pid {folder}/pid; error_log {folder}/error.log;\n"
                f"{'user root;' if os.geteuid() == 0 else ''} events {{ worker_connections 256; }}\n"
                f"http {{ access_log {folder}/access.log; keepalive_requests 1000000;\n"
                f"  server {{ listen 127.0.0.1:{port}; root {folder}; }} }}\n"
            )
        return ["nginx", "-p", folder, "-c", os.path.join(folder, "nginx.conf")]

    @staticmethod
    def ask(port, questions):
        return ["ab", "-q", "-k", "-n", str(questions), "-c", "20", f"http://127.0.0.1:{port}/index.html"]


def interval(ratios, t=T_99, digits=4):
    """Returns a text with the geometric mean and its interval at 99 %; `t` is Student's t for so many ratios."""
    logs = [math.log(r) for r in ratios]
    mean, half = statistics.mean(logs), t * statistics.stdev(logs) / math.sqrt(len(logs))
    low, middle, high = (math.exp(x) for x in (mean - half, mean, mean + half))
    return f"{middle:.{digits}f} ({low:.{digits}f} to {high:.{digits}f})"


def measure_each(kinds, opts, measure):
    """Measures the servers that `opts.which` names, or all of `kinds`, as far as they are installed."""
    opts.systoll = os.path.abspath(opts.systoll)
    for name in opts.which or kinds:
        missing = [tool for tool in kinds[name].needs if not shutil.which(tool)]
        if missing:
            print(f"{name}: left out, {missing[0]} is not installed")
        else:
            measure(name, kinds[name], opts)


def measure(name, kind, opts):
    folder = tempfile.mkdtemp(prefix="servers-")
    with contextlib.ExitStack() as begun:
        plain = Server(kind, None, os.path.join(folder, "plain"))
        begun.callback(plain.end)
        watched = Server(kind, opts.systoll, os.path.join(folder, "watched"), opts.attach)
        begun.callback(watched.end)
        questions = 2000
        while (wall := plain.asked(kind.ask(plain.port, questions))[0]) < opts.batch * 0.5e9:
            questions *= 2
        questions = max(1000, int(questions * opts.batch * 1e9 / wall))
        watched.asked(kind.ask(watched.port, questions))
        walls, cpus, launcher, used = [], [], 0, 0
        until = time.monotonic() + opts.minutes * 60
        while time.monotonic() < until or len(walls) < LEAST_PAIRS:
            order = (plain, watched) if len(walls) % 2 else (watched, plain)
            of = {server: server.asked(kind.ask(server.port, questions)) for server in order}
            walls.append(of[watched][0] / of[plain][0])
            cpus.append(of[watched][1] / of[plain][1])
            used += of[watched][1]
            launcher += of[watched][2]
        print(f"{name}: {len(walls)} pairs of {questions} questions")
        print(f"  wall             {interval(walls)}")
        print(f"  processor time   {interval(cpus)}")
        print(f"  the launcher     {launcher / used:.4f} of what the server used", flush=True)
    shutil.rmtree(folder)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--systoll", required=True)
    p.add_argument("--attach", action="store_true", help="attach to a running server instead of starting it")
    p.add_argument("--minutes", type=float, default=30)
    p.add_argument("--batch", type=float, default=2.0)
    p.add_argument("which", nargs="*", choices=["redis", "nginx", []], default=[])
    opts = p.parse_args()
    measure_each({"redis": Redis, "nginx": Nginx}, opts, measure)


if __name__ == "__main__":
    main()
