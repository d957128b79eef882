#!/usr/bin/env python3
"""Enters and leaves programs under load again and again, and kills systoll and programs at random moments.

    tests/attached_often.py --systoll PATH [--times 100] [--kills 0] [--deaths 0] [--seed N] [WORD...]

Each program whose name contains a WORD (all without one) is attached to `--times` times for a few hundredths of a second while it
does what it is for. Then `--kills` times systoll is killed at a random moment, `attach --clean` takes out what was left; and `--deaths`
times the program itself is killed while systoll enters or leaves it. Each time the program's code must be its files' again, byte for
byte, with nothing of systoll's mapped; at the end its load must have lost nothing. A line for each program says how long all of it
took, how often the program could not be entered at that moment (systoll says why, nothing was touched), and the longest stop.
A round of a program takes about a quarter of a second: all of them a hundred times, ten minutes.
"""
import argparse
import collections
import contextlib
import glob
import json
import os
import random
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAMS = os.path.join(HERE, "programs")
sys.path.insert(0, HERE)
from harness import AS_NOBODY, NOBODY  # noqa: E402
from suites.attach import NGINX, changed_code, ours_in  # noqa: E402

NODE = """
const http = require('http'), fs = require('fs');
http.createServer((q, s) => fs.stat('/etc/hostname', () => s.end('x'.repeat(2000)))).listen(+process.argv[2], '127.0.0.1');
"""
GO = """package main
import ("net/http"; "os")
func main() {
	h := func(w http.ResponseWriter, r *http.Request) { os.Stat("/etc/hostname"); w.Write(make([]byte, 2000)) }
	panic(http.ListenAndServe("127.0.0.1:"+os.Args[1], http.HandlerFunc(h)))
}
"""
JAVA = """
import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.util.concurrent.Executors;
public class Server {
    public static void main(String[] args) throws Exception {
        HttpServer s = HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(args[0])), 100);
        s.setExecutor(Executors.newFixedThreadPool(16));
        s.createContext("/", x -> {
            java.nio.file.Files.exists(java.nio.file.Path.of("/etc/hostname"));
            x.sendResponseHeaders(200, 2000); x.getResponseBody().write(new byte[2000]); x.close();
        });
        s.start();
    }
}
"""
PYTHON = """
import os, select, sys, threading
stop, wrong = False, []
def work(n):
    r, w = os.pipe()
    while not stop:
        try:
            assert os.stat("/etc").st_ino and open("/proc/self/status").read()
            os.write(w, b"x"); assert os.read(r, 9) == b"x"
            assert select.select([r], [], [], 0.001) == ([], [], [])
        except Exception as e:
            wrong.append(e); return
threads = [threading.Thread(target=work, args=(n,)) for n in range(64)]
[t.start() for t in threads]
print("ready", flush=True); sys.stdin.readline(); stop = True
[t.join() for t in threads]
sys.exit(str(wrong) if wrong else 0)
"""


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def until(what, limit=60):
    end = time.monotonic() + limit
    while not what():
        if time.monotonic() > end:
            sys.exit("it did not come to that")
        time.sleep(0.005)


class Load:
    """A load that asks a server again and again, by a command that ends well if nothing was lost."""

    def __init__(self, argv, is_good):
        self.argv, self.is_good, self.rounds, self.wrong, self.process = argv, is_good, 0, None, None
        self.go_on()

    def go_on(self):
        if self.process is not None and self.process.poll() is None or self.wrong:
            return
        if self.process is not None:
            self.judge()
        self.process = subprocess.Popen(self.argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def judge(self):
        out = self.process.communicate(timeout=120)[0].decode(errors="replace")
        self.rounds += 1
        if self.process.returncode or not self.is_good(out):
            self.wrong = out[-2000:]

    def end(self):
        self.judge()
        return self.wrong


class Program:
    """A running program."""

    def __init__(self, argv, port=None, load=None, is_good=None, flags=(), stdin=None, env=None):
        self.flags = list(flags)
        pipe = subprocess.PIPE if port is None else subprocess.DEVNULL
        self.process = subprocess.Popen(argv, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL if port else None, env=env)
        self.pid, self.load = self.process.pid, None
        if port is None:
            assert self.process.stdout.readline() == b"ready\n"
        else:
            def answers():
                with socket.socket() as s:
                    return s.connect_ex(("127.0.0.1", port)) == 0
            until(answers)
            self.load = Load(load, is_good)
        self.port = port

    def pids(self):
        if "--tree" not in self.flags:
            return [self.pid]
        with open(f"/proc/{self.pid}/task/{self.pid}/children") as f:
            return [self.pid, *map(int, f.read().split())]

    def go_on(self):
        if self.process.poll() is not None:
            return f"ended by {self.process.returncode}"
        if self.load:
            self.load.go_on()
            return self.load.wrong
        return None

    def end(self):
        wrong = self.load.end() if self.load else None
        if self.port is not None:
            self.process.terminate()
            self.process.wait(30)
            return wrong
        if b"attached" in self.process.args[0].encode() and len(self.process.args) > 1:
            self.process.stdin.write(b"check\n")
            self.process.stdin.flush()
            said = self.process.stdout.readline()
            wrong = None if said == b"fine\n" else said
        self.process.stdin.close()
        code = self.process.wait(30)
        return wrong or (f"exit code {code}" if code else None)


def is_whole_redis(out):
    return "rror" not in out and out.count('"') >= 8


def is_whole_ab(out):
    return "Failed requests:        0" in out and "apr_" not in out


def is_whole_pgbench(out):
    return "number of failed transactions: 0 " in out and "aborted" not in out


def http(argv, port, n=20000):
    ab = ["ab", "-q", "-n", str(n), "-c", "10", f"http://127.0.0.1:{port}/"]
    return lambda flags=(): Program(argv, port, ab, is_whole_ab, flags)


def programs(folder):
    """Returns a function that makes each program, by its name."""
    def written(name, text):
        path = os.path.join(folder, name)
        with open(path, "w") as f:
            f.write(text)
        return path

    def built(name):
        path = os.path.join(folder, name)
        subprocess.run(["cc", "-O1", "-pthread", "-w", "-o", path, os.path.join(PROGRAMS, name + ".c"), "-ldl"], check=True)
        return path

    def redis():
        port = free_port()
        argv = ["redis-server", "--port", str(port), "--save", "", "--bind", "127.0.0.1", "--dir", folder]
        load = ["redis-benchmark", "-p", str(port), "-n", "100000", "-c", "20", "-t", "get,set", "--csv"]
        return Program(argv, port, load, is_whole_redis)

    def nginx():
        port = free_port()
        written("index.html", "x" * 4000)
        config = written("nginx.conf", NGINX.format(dir=folder, port=port))
        argv = ["nginx", "-e", os.path.join(folder, "error.log"), "-c", config]
        return http(argv, port)(["--tree"])

    def node():
        port = free_port()
        return http(["node", written("server.js", NODE), str(port)], port)()

    def go():
        port, path = free_port(), os.path.join(folder, "server-go")
        if not os.path.exists(path):
            env = {**os.environ, "GO111MODULE": "off", "GOCACHE": os.path.join(folder, "go-cache")}
            compiler = shutil.which("go") or "/usr/local/go/bin/go"
            subprocess.run([compiler, "build", "-o", path, written("server.go", GO)], check=True, env=env)
        return http([path, str(port)], port)()

    def java():
        port = free_port()
        return http(["java", "-Xmx200m", written("Server.java", JAVA), str(port)], port)()

    def postgres():
        port, data, binaries = free_port(), os.path.join(folder, "data"), sorted(glob.glob("/usr/lib/postgresql/*/bin"))[-1]

        def of(name, *words):
            return [*AS_NOBODY, os.path.join(binaries, name), *words]
        # The server does not run as root.
        argv = of("postgres", "-D", data, "-h", "127.0.0.1", "-p", str(port), "-k", data)
        to = ["-h", "127.0.0.1", "-p", str(port), "-U", "nobody", "postgres"]
        if not os.path.exists(data):
            os.mkdir(data, 0o700)
            os.chown(data, NOBODY, NOBODY)
            once = {"check": True, "stdout": subprocess.DEVNULL, "cwd": "/"}
            subprocess.run(of("initdb", "-A", "trust", "-U", "nobody", "-D", data), **once)
            subprocess.run(of("pg_ctl", "start", "-w", "-D", data, "-l", os.path.join(data, "log"), "-o", shlex.join(argv[-6:])), **once)
            subprocess.run(of("pgbench", "-q", "-i", "-s", "1", *to), stderr=subprocess.DEVNULL, **once)
            subprocess.run(of("pg_ctl", "stop", "-w", "-D", data), **once)
        ready, load = (shlex.join(of(*words)) for words in (["pg_isready", "-q", *to[:4]], ["pgbench", "-n", "-c", "8", "-j", "2", "-T", "2", *to]))
        return Program(argv, port, ["sh", "-c", f"until {ready}; do sleep 0.02; done; exec {load}"], is_whole_pgbench, ["--tree"])

    return {
        "redis": redis, "postgres": postgres, "nginx": nginx, "node": node, "go": go, "java": java,
        "python": lambda: Program(["/usr/bin/python3", "-c", PYTHON]),
        "forks": lambda: Program([built("attached_forks")]),
        "libraries": lambda: Program([built("attached_libraries")]),
        "timer": lambda: Program([built("attached"), "2", "timer", "5000", "sleepers"]),
        "killed": lambda: Program([built("attached"), "2", "timer", "500", "sleepers", "killed"]),
    }


class Round:
    """One attachment to a program."""

    def __init__(self, systoll, folder, chance):
        self.systoll, self.chance = systoll, chance
        self.out = os.path.join(folder, "attached.json")

    def begin(self, program, seconds):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.out)
        argv = [self.systoll, "attach", "-q", *program.flags, "--for", f"{seconds}s", "--json", "-o", self.out, str(program.pid)]
        return subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def traces(program):
    """Returns what systoll left in a program. A program that changes its mappings meanwhile is looked at again."""
    for _ in range(20):
        found = traces_now(program)
        if not found:
            break
    return found


def traces_now(program):
    for pid in program.pids():
        try:
            found = ours_in(pid) or changed_code(pid)
        except (FileNotFoundError, ProcessLookupError):
            continue
        except OSError as why:
            # The mapping has gone meanwhile.
            found = why
        if found:
            return f"process {pid}: {found}"
    return None


def attach_often(a, program, times):
    """Attaches `times` times. Returns what went wrong, how often the program was not entered, and the longest stop in
    ms."""
    refused, longest, inexact = collections.Counter(), 0, collections.Counter()
    for n in range(times):
        p = a.begin(program, 0.02 + 0.1 * a.chance.random())
        err = p.communicate(timeout=120)[1].decode(errors="replace")
        wrong = program.go_on() or traces(program)
        if p.returncode == 125 and "can't watch process" in err:
            refused[err.strip().split(": ", 2)[-1][:150]] += 1
        elif p.returncode or "panicked" in err:
            wrong = wrong or f"systoll: {p.returncode}: {err}"
        else:
            with open(a.out) as f:
                doc = json.load(f)
            longest = max(longest, doc["attached"]["longest_stop_ns"] / 1e6)
            if not doc["exact"]:
                inexact.update(problem["text"][:150] if isinstance(problem, dict) else str(problem)[:150] for problem in doc["problems"])
        if wrong:
            return f"time {n}: {wrong}", refused, longest, inexact
    return program.end(), refused, longest, inexact


def kill_systoll(a, program, times):
    """Kills systoll `times` times. Returns what went wrong, and how often something was left."""
    left = 0
    for n in range(times):
        p = a.begin(program, 0.05)
        # Entering begins once systoll has started, and the whole takes about as long as the longest of these sleeps.
        time.sleep(0.05 + 0.45 * a.chance.random())
        p.kill()
        p.wait()
        wrong = program.go_on()
        left += bool(traces(program))
        for pid in program.pids():
            r = subprocess.run([a.systoll, "attach", "--clean", str(pid)], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=60)
            if r.returncode and os.path.exists(f"/proc/{pid}/maps") and "ended" not in r.stderr.decode():
                wrong = wrong or r.stderr.decode(errors="replace")
        wrong = wrong or program.go_on() or traces(program)
        if wrong:
            return f"kill {n}: {wrong}", left
        time.sleep(0.02)
    return program.end(), left


def kill_programs(a, make, times):
    """Kills the program `times` times while it is entered or left. Returns what went wrong."""
    for n in range(times):
        program = make()
        p = a.begin(program, 0.05)
        time.sleep(0.05 + 0.45 * a.chance.random())
        for pid in program.pids():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        program.process.wait()
        if program.load:
            program.load.process.kill()
            program.load.process.communicate()
        err = p.communicate(timeout=30)[1].decode(errors="replace")
        if p.returncode not in (0, 125) or "panicked" in err:
            return f"death {n}: systoll: {p.returncode}: {err}"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--systoll", required=True)
    parser.add_argument("--times", type=int, default=100)
    parser.add_argument("--kills", type=int, default=0)
    parser.add_argument("--deaths", type=int, default=0)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("words", nargs="*")
    args = parser.parse_args()
    chance, failed = random.Random(args.seed), False
    print(f"seed {args.seed}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        a = Round(os.path.abspath(args.systoll), folder, chance)
        for name, make in programs(folder).items():
            if args.words and not any(word in name for word in args.words):
                continue
            since, wrong, said = time.monotonic(), None, ""
            if args.times and name != "killed":
                wrong, refused, longest, inexact = attach_often(a, make(), args.times)
                said = f"{args.times} times, longest stop {longest:.1f} ms, not entered {dict(refused) or 'never'}"
                said += f", not exact {dict(inexact)}" if inexact else ""
            # Killing systoll at that moment can end a wait early: Linux ends some waits when their thread is stopped.
            if args.kills and not wrong and name != "timer":
                wrong, left = kill_systoll(a, make(), args.kills)
                said += f"; {args.kills} kills of systoll, {left} left something"
            if args.deaths and not wrong and name not in ("killed", "nginx"):
                wrong = kill_programs(a, make, args.deaths)
                said += f"; {args.deaths} deaths"
            failed |= bool(wrong)
            print(f"{name:10} {'FAILED: ' + str(wrong) if wrong else 'ok'}: {said}, {time.monotonic() - since:.0f} s", flush=True)
    sys.exit(failed)


if __name__ == "__main__":
    main()
