#!/usr/bin/env python3
"""Measures what watching costs services under load: nine kinds of servers, beside the same server unwatched.

    bench/services.py [--systoll PATH] [--minutes N] [--servers N] [--turn SECONDS] [--busy] [go] [puma] [node] [gunicorn] [uvicorn]
                      [java] [redis] [nginx] [postgres]         about N minutes for each service; without names, for all

Three servers of a kind run on loopback: one that is unwatched, one that was started by `systoll run`, and one that is
entered and left by turns by `systoll attach`, `attach --by request`, and now and then by `strace -c -f -p` and
`perf trace -s -p`. The same load drives them in turns. Each watched turn has an unwatched one beside it, on the same
server where an observer is attached, and comes first every other time. A turn begins when systoll has entered the server,
so it has the first seconds, which cost most; `later` is a second turn under the same watching, after `--settle` seconds of
load. New servers take their place several times. It prints for each observer the geometric mean of
the pairs' ratios, watched to unwatched, of requests a second and of the latency that 99 % of the requests kept, the
longest request, the servers' processor time a request, and systoll's own processor time as a share of the servers'. With
`--busy`, one spinning process for each processor runs meanwhile, at the same priority. What is not installed is left out
with the reason: `ab` (apache2-utils) drives the HTTP servers. It needs the machine to itself, and root for the servers of
others. A goal on an idle machine: throughput 0.97 or more, p99 1.1 or less; with `--busy` 0.9 or more.
"""
import argparse
import contextlib
import glob
import math
import os
import re
import shlex
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCES = os.path.join(HERE, "services")
NOTHING = subprocess.DEVNULL
QUIET = {"stdin": NOTHING, "stdout": NOTHING, "stderr": NOTHING}
# An observer other than systoll has a turn after so many of systoll's.
SELDOM = 4
# Connections of a load.
CONNECTIONS = 8


class Missing(Exception):
    """Raised if a service can't run here; the text is the reason."""


def tool(*names):
    """Returns the path of the first of these programs that is installed."""
    found = next((path for name in names if (path := shutil.which(name))), None)
    if not found:
        raise Missing(f"{names[0]} is not installed")
    return found


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
        with contextlib.suppress(OSError):
            for task in os.listdir(f"/proc/{pid}/task"):
                with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{task}/schedstat") as f:
                    total += int(f.read().split()[0])
    return total


def number(pattern, text):
    found = re.search(pattern, text)
    return float(found[1]) if found else float("nan")


class Load:
    """Results of a turn: requests a second, latencies in ms (`p50`, `p99`, `longest`), and the number of requests."""

    def __init__(self, rate, p50, p99, longest, requests):
        self.rate, self.p50, self.p99, self.longest, self.requests = rate, p50, p99, longest, requests


def ab(port, seconds):
    """Drives an HTTP server."""
    with tempfile.TemporaryDirectory() as folder:
        # ab's text has whole milliseconds, this file has all digits.
        percents = os.path.join(folder, "percents")
        words = ["-q", "-k", "-r", "-c", str(CONNECTIONS), "-t", str(seconds), "-n", "1000000", "-e", percents]
        words = [tool("ab"), *words, f"http://127.0.0.1:{port}/"]
        out = subprocess.run(words, check=True, stdin=NOTHING, stderr=NOTHING, stdout=subprocess.PIPE, text=True).stdout
        with open(percents) as f:
            at = dict(line.strip().split(",") for line in f)
    if number(r"Failed requests:\s+(\d+)", out) or number(r"Non-2xx responses:\s+(\d+)", out) > 0:
        raise SystemExit(f"requests failed:\n{out}")
    rate, asked = number(r"Requests per second:\s+([\d.]+)", out), number(r"Complete requests:\s+(\d+)", out)
    return Load(rate, float(at["50"]), float(at["99"]), number(r"\n\s+100%\s+(\d+)", out), asked)


def redis(port, seconds, per_second=50_000):
    """Drives Redis."""
    asked = int(seconds * per_second)
    words = [tool("redis-benchmark"), "-h", "127.0.0.1", "-p", str(port), "-t", "get", "-n", str(asked), "-c", str(CONNECTIONS), "--csv"]
    out = subprocess.run(words, check=True, stdin=NOTHING, stderr=NOTHING, stdout=subprocess.PIPE, text=True).stdout
    # Columns: test, requests a second, then the average, least, p50, p95, p99 and longest latency in ms.
    of = [float(word.strip('"')) for word in out.strip().splitlines()[-1].split(",")[1:]]
    return Load(of[0], of[3], of[5], of[6], asked)


def pgbench(port, seconds):
    """Drives PostgreSQL with selects."""
    with tempfile.TemporaryDirectory() as folder:
        words = postgres_of("pgbench", "-n", "-S", "-c", str(CONNECTIONS), "-T", str(math.ceil(seconds)), "-l", "--log-prefix=log", *postgres_to(port))
        os.chmod(folder, 0o777)
        out = subprocess.run(words, check=True, stdin=NOTHING, stderr=NOTHING, stdout=subprocess.PIPE, text=True, cwd=folder).stdout
        took = sorted(int(line.split()[2]) / 1000 for log in glob.glob(f"{folder}/log*") for line in open(log))
    at = lambda share: took[min(len(took) - 1, int(share * len(took)))]  # noqa: E731
    return Load(number(r"tps = ([\d.]+)", out), at(0.5), at(0.99), took[-1], len(took))


def postgres_of(name, *words):
    binaries = (sorted(glob.glob("/usr/lib/postgresql/*/bin")) or [""])[-1]
    path = os.path.join(binaries, name)
    if not os.path.exists(path):
        raise Missing(f"{name} is not installed")
    # PostgreSQL does not run as root.
    user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] if os.geteuid() == 0 else []
    return [*user, path, *words]


def postgres_to(port):
    return ["-h", "127.0.0.1", "-p", str(port), "-U", "bench", "postgres"]


def go(port, folder, file):
    out = os.path.join(os.path.dirname(folder), "files-go")
    if not os.path.exists(out):
        subprocess.run([tool("go"), "build", "-o", out, os.path.join(SOURCES, "files.go")], check=True, cwd=folder)
    return [out, str(port), file]


def node(port, _, file):
    return [tool("node", "nodejs"), os.path.join(SOURCES, "files.js"), str(port), file]


def java(port, folder, file):
    classes = os.path.join(os.path.dirname(folder), "classes")
    if not os.path.exists(classes):
        subprocess.run([tool("javac"), "-d", classes, os.path.join(SOURCES, "Files.java")], check=True)
    # Without this, Java's server waits 40 ms for an acknowledgement in each response.
    return [tool("java"), "-Dsun.net.httpserver.nodelay=true", "-cp", classes, "Files", str(port), file]


def puma(port, _, __):
    return [tool("puma"), "-q", "-e", "production", "-t", "4:4", "-b", f"tcp://127.0.0.1:{port}", os.path.join(SOURCES, "config.ru")]


def gunicorn(port, _, __):
    return [tool("gunicorn"), "-w", "1", "-k", "gthread", "--threads", "4", "-b", f"127.0.0.1:{port}", "--chdir", SOURCES, "wsgi:wsgi"]


def uvicorn(port, _, __):
    words = ["--host", "127.0.0.1", "--port", str(port), "--no-access-log", "--log-level", "warning", "--app-dir", SOURCES]
    return [tool("uvicorn"), *words, "wsgi:asgi"]


def redis_server(port, folder, _):
    return [tool("redis-server"), "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", folder]


def nginx(port, folder, _):
    with open(os.path.join(folder, "index.html"), "w") as f:
        f.write("<p>hello</p>\n" * 40)
    with open(os.path.join(folder, "nginx.conf"), "w") as f:
        f.write(
            f"daemon off; worker_processes 1; pid {folder}/pid; error_log {folder}/error.log;\n"
            f"{'user root;' if os.geteuid() == 0 else ''} events {{ worker_connections 256; }}\n"
            f"http {{ access_log {folder}/access.log; keepalive_requests 1000000000;\n"
            f"  server {{ listen 127.0.0.1:{port}; root {folder}; }} }}\n"
        )
    return [tool("nginx"), "-p", folder, "-c", os.path.join(folder, "nginx.conf")]


def postgres(port, folder, _):
    data = os.path.join(folder, "data")
    os.chmod(os.path.dirname(folder), 0o755)
    os.mkdir(data, 0o700)
    if os.geteuid() == 0:
        os.chown(data, 65534, 65534)
    options = ["-h", "127.0.0.1", "-p", str(port), "-k", data]
    quiet = {"check": True, "cwd": "/", **QUIET}
    subprocess.run(postgres_of("initdb", "-A", "trust", "-U", "bench", "-D", data), **quiet)
    subprocess.run(postgres_of("pg_ctl", "start", "-w", "-D", data, "-l", os.path.join(data, "log"), "-o", shlex.join(options)), **quiet)
    subprocess.run(postgres_of("pgbench", "-q", "-i", "-s", "5", *postgres_to(port)), **quiet)
    subprocess.run(postgres_of("pg_ctl", "stop", "-w", "-D", data), **quiet)
    return postgres_of("postgres", "-D", data, *options)


# How each service is started, and how it is driven.
SERVICES = {
    "go": (go, ab),
    "puma": (puma, ab),
    "node": (node, ab),
    "gunicorn": (gunicorn, ab),
    "uvicorn": (uvicorn, ab),
    "java": (java, ab),
    "redis": (redis_server, redis),
    "nginx": (nginx, ab),
    "postgres": (postgres, pgbench),
}


class Server:
    """A service on loopback, started by `watch` if that is not empty."""

    def __init__(self, name, folder, watch=()):
        os.mkdir(folder)
        self.serve, self.ask = SERVICES[name]
        self.port = free_port()
        file = os.path.join(folder, "file")
        with open(file, "w") as f:
            f.write("a line of text\n" * 200)
        argv = self.serve(self.port, folder, file)
        env = {**os.environ, "FILE": file}
        with open(os.path.join(folder, "log"), "wb") as log:
            self.process = subprocess.Popen([*watch, *argv], cwd="/", env=env, stdin=NOTHING, stdout=log, stderr=log)
        self.launcher = [self.process.pid] if watch else []
        end = time.monotonic() + 60
        while not self.answers():
            if time.monotonic() > end or self.process.poll() is not None:
                self.process.terminate()
                raise SystemExit(f"{shlex.join(argv)} does not answer: {folder}/log")
            time.sleep(0.05)

    def answers(self):
        with socket.socket() as s:
            if s.connect_ex(("127.0.0.1", self.port)) != 0:
                return False
        return self.serve is not postgres or subprocess.run(postgres_of("pg_isready", "-q", *postgres_to(self.port)[:4]), check=False).returncode == 0

    def pids(self):
        return [pid for pid in family(self.process.pid) if pid not in self.launcher]

    def turn(self, seconds, observers=()):
        """Drives the server once. Returns the load's results, and the processor time of the server and of its observers
        in that time, ns."""
        pids, observers = self.pids(), [*self.launcher, *observers]
        before = processor_ns(pids), processor_ns(observers)
        load = self.ask(self.port, seconds)
        return load, processor_ns(pids) - before[0], processor_ns(observers) - before[1]

    def end(self):
        # A shell starts what runs in the background with SIGINT ignored.
        for pid in self.pids()[:1]:
            os.kill(pid, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(20)
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


def observers(systoll, folder):
    """Returns the function that makes each observer's command, by its name, for the observers that are installed."""
    out = os.path.join(folder, "out")
    of_each = lambda pids: [word for pid in pids for word in ("-p", str(pid))]  # noqa: E731
    every = {
        "systoll attach": (systoll, lambda pids: [systoll, "attach", "-q", "-o", out, "--tree", str(pids[0])]),
        "… --by request": (systoll, lambda pids: [systoll, "attach", "-q", "-o", out, "--by", "request", "--tree", str(pids[0])]),
        "strace -c -f -p": ("strace", lambda pids: ["strace", "-c", "-f", "-o", out, *of_each(pids)]),
        "perf trace -s -p": ("perf", lambda pids: ["perf", "trace", "-s", "-o", out, "-p", ",".join(map(str, pids))]),
    }
    return {name: make for name, (program, make) in every.items() if shutil.which(program)}


@contextlib.contextmanager
def watched(argv, pids):
    """Runs an observer beside what is within, once it has entered the server's first process. Yields its process id."""
    p = subprocess.Popen(argv, **QUIET)
    end, seen = time.monotonic() + 20, False
    while not seen and time.monotonic() < end and p.poll() is None:
        time.sleep(0.05)
        with open(f"/proc/{pids[0]}/maps") as maps, open(f"/proc/{pids[0]}/status") as status:
            # perf leaves no trace in its target.
            seen = "memfd:systoll" in maps.read() or "TracerPid:\t0" not in status.read() or argv[0] == "perf"
    time.sleep(0.5 if argv[0] == "perf" else 0.1)
    entered = p.poll() is None
    try:
        yield p.pid
    finally:
        with contextlib.suppress(ProcessLookupError):
            # A shell starts what runs in the background with SIGINT ignored.
            p.send_signal(signal.SIGINT if argv[0] in ("strace", "perf") else signal.SIGTERM)
        p.wait(60)
    if not entered:
        raise SystemExit(f"{shlex.join(argv)} ended by {p.returncode}")


@contextlib.contextmanager
def spinners(wanted):
    """Keeps every processor busy meanwhile, if `wanted`. They end by themselves with this process."""
    loop = "import os\nparent = os.getppid()\nwhile os.getppid() == parent:\n    sum(range(100000))"
    all_ = [subprocess.Popen([sys.executable, "-c", loop], **QUIET) for _ in range(os.cpu_count() if wanted else 0)]
    try:
        yield
    finally:
        for p in all_:
            p.kill()
            p.wait()


def mean(ratios):
    """Returns a text with the geometric mean of the ratios, and the lowest and highest of them."""
    of = [r for r in ratios if math.isfinite(r) and r > 0]
    if not of:
        return "?"
    middle = math.exp(statistics.mean(math.log(r) for r in of))
    return f"{middle:.3f} ({min(of):.2f} to {max(of):.2f})"


def take_turns(name, opts, minutes, pairs):
    """Adds turns to the pairs of each observer, on new servers: of two that are alike, one is a tenth faster."""
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as begun:
        os.chmod(folder, 0o755)
        plain = Server(name, os.path.join(folder, "plain"))
        begun.callback(plain.end)
        report = os.path.join(folder, "report")
        started = Server(name, os.path.join(folder, "started"), [opts.systoll, "run", "-q", "-o", report, "--"])
        begun.callback(started.end)
        every = observers(opts.systoll, folder)
        ours = [n for n in every if n.startswith(("systoll", "…"))]
        others = [n for n in every if n not in ours]
        for observer in ["systoll run", *every]:
            pairs.setdefault(observer, [])
            pairs.setdefault(f"{observer}, later", [])
        with spinners(opts.busy):
            for server in (plain, started):
                server.turn(opts.turn)
            until, turns = time.monotonic() + minutes * 60, 0
            while time.monotonic() < until or turns < 3:
                round_of = ["systoll run", *ours, *(others if turns % SELDOM == 0 else [])]
                for observer in round_of:
                    of, later = {}, None
                    for is_watched in (turns % 2 == 0, turns % 2 == 1):
                        if is_watched and observer == "systoll run":
                            of[True] = started.turn(opts.turn)
                        elif is_watched:
                            pids = plain.pids()
                            with watched(every[observer](pids), pids) as pid:
                                of[True] = plain.turn(opts.turn, [pid])
                                if observer in ours and opts.settle > 0:
                                    plain.turn(opts.settle)
                                    later = plain.turn(opts.turn, [pid])
                        else:
                            of[False] = plain.turn(opts.turn)
                    pairs[observer].append((of[True], of[False]))
                    if later:
                        pairs[f"{observer}, later"].append((later, of[False]))
                turns += 1


def measure(name, opts):
    pairs = {}
    for _ in range(opts.servers):
        take_turns(name, opts, opts.minutes / opts.servers, pairs)
    unwatched = [p[1][0] for all_ in pairs.values() for p in all_]
    median = lambda of: statistics.median(of)  # noqa: E731
    print(f"{name}: unwatched {median([o.rate for o in unwatched]):,.0f} requests a second, p50 {median([o.p50 for o in unwatched]):.3g} ms, "
          f"p99 {median([o.p99 for o in unwatched]):.3g} ms, longest {max(o.longest for o in unwatched):.3g} ms")
    for observer, of in pairs.items():
        if not of:
            continue
        used = sum(w[2] for w, _ in of) / max(1, sum(w[1] for w, _ in of))
        each = [(w[1] / w[0].requests) / (p[1] / p[0].requests) for w, p in of]
        print(f"  {observer:22} {len(of):3} pairs   requests a second {mean([w[0].rate / p[0].rate for w, p in of])}   "
              f"p50 {mean([w[0].p50 / p[0].p50 if p[0].p50 else 1.0 for w, p in of])}   p99 {mean([w[0].p99 / p[0].p99 if p[0].p99 else 1.0 for w, p in of])}")
        print(f"  {'':22}             processor time a request {mean(each)}   longest {max(w[0].longest for w, _ in of):.3g} ms   "
              f"the observer's own {100 * used:.2f} % of the server's", flush=True)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--systoll", default=os.path.join(HERE, "..", "target", "release", "systoll"))
    p.add_argument("--minutes", type=float, default=2.0)
    p.add_argument("--servers", type=int, default=4, help="new servers so often, within these minutes")
    p.add_argument("--turn", type=float, default=3.0, help="length of a turn's load, s")
    p.add_argument("--settle", type=float, default=8.0, help="load before a second turn under the same attaching, s; 0: no second turn")
    p.add_argument("--busy", action="store_true", help="with all processors taken by spinning processes")
    p.add_argument("which", nargs="*", choices=[*SERVICES, []], default=[])
    opts = p.parse_args()
    opts.systoll = os.path.abspath(opts.systoll)
    for name in opts.which or SERVICES:
        try:
            measure(name, opts)
        except Missing as why:
            print(f"{name}: left out, {why}", flush=True)


if __name__ == "__main__":
    main()
