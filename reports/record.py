#!/usr/bin/env python3
"""Makes recordings for `cargo xtask reports` anew, into FOLDER/recordings.

  record.py --systoll PATH --into FOLDER [--only KIND,…] [--new] [NAME…]

KINDs: cases (each sick program, its cured twin, each healthy program), ptrace and import (some cases again, by ptrace and
from strace's text), servers (requests, attach), one-liners (tests/one_liners.toml) and traces
(tests/public_traces.py). NAMEs are parts of recordings' names; --new leaves out what FOLDER has.

Programs run in /tmp/cases; if root runs this, without the box's own Python packages and configuration of git: a recording
has parts of what a program reads, and goes to other people. It needs what the cases need, and takes some fifteen minutes.
"""
import argparse
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
sys.path += [os.path.join(ROOT, "cases"), os.path.join(ROOT, "tests")]
import verify as v  # noqa: E402
from tally import Skip  # noqa: E402

# Folders that are the same on every box: they stand in the recordings.
AT, HOME = "/tmp/cases", "/tmp/cases-home"
KINDS = ("cases", "ptrace", "import", "servers", "one-liners", "traces")
# Of the cases, those that ptrace and strace's text are tried with: the first of each language, if it is quick.
MAX_CALLS = 30_000
# Folders and files that differ between boxes, and may name their owners.
OWN = ("/usr/lib/python3/dist-packages", "/usr/local/lib/python3.11/dist-packages", "/etc/gitconfig")
# Script that hides them, and runs a command.
HIDE = """
for it in $OWN; do
    if [ -d "$it" ]; then mount -t tmpfs none "$it"; elif [ -e "$it" ]; then mount --bind /dev/null "$it"; fi || exit 1
done
exec "$@"
"""


class Recorder:
    """Makes recordings in a folder."""

    def __init__(self, opts):
        self.opts, self.failed = opts, 0
        self.folder = os.path.join(os.path.abspath(opts.into), "recordings")
        os.makedirs(self.folder, exist_ok=True)
        for folder in (AT, HOME):
            os.makedirs(folder, exist_ok=True)

    def wanted(self, name):
        """Returns the path of a recording; nothing if it is not wanted."""
        path = os.path.join(self.folder, name + ".systoll")
        chosen = not self.opts.names or any(word in name for word in self.opts.names)
        return path if chosen and not (self.opts.new and os.path.exists(path)) else None

    def say(self, name, path, why=""):
        made = os.path.exists(path)
        self.failed += not made
        print(f"{name:48} {os.path.getsize(path) if made else 'FAILED: ' + why}", flush=True)

    def run(self, name, argv, cwd, env, flags=()):
        """Records one run of a command."""
        path = self.wanted(name)
        if not path:
            return
        command = [self.opts.systoll, "run", "-q", *flags, "--force", "--save", path, "-o", "/dev/null", "--", *argv]
        null = subprocess.DEVNULL
        try:
            r = subprocess.run(command, cwd=cwd, env=env, stdin=null, stdout=null, stderr=subprocess.PIPE, timeout=v.LIMIT)
            self.say(name, path, r.stderr.decode(errors="replace").strip()[-200:])
        except subprocess.TimeoutExpired:
            self.say(name, path, f"no end in {v.LIMIT} s")

    def read(self, name, trace):
        """Records what a trace says."""
        path = self.wanted(name)
        if path:
            r = subprocess.run([self.opts.systoll, "import", "--force", "--save", path, "-o", "/dev/null", trace], stderr=subprocess.PIPE)
            self.say(name, path, r.stderr.decode(errors="replace").strip()[-200:])


def cases():
    """Yields each case's name and table."""
    for name in sorted(os.listdir(v.CASES)):
        yield name, v.read(os.path.join(v.CASES, name))


def place(case, name):
    """Builds a case in its folder below AT, and returns that; nothing if it can't be built here."""
    folder = os.path.join(AT, name)
    if not os.path.exists(folder):
        shutil.copytree(os.path.join(v.CASES, name), folder)
    try:
        wrong = v.build(case, folder)
    except Skip as e:
        wrong = [str(e)]
    if wrong:
        print(f"{name:48} left out: {wrong[0]}", flush=True)
    return None if wrong else folder


def plain_environment():
    """Returns an environment without folders of the user's own."""
    env = v.base_env()
    path = [folder for folder in env["PATH"].split(":") if not folder.startswith(env["HOME"])]
    return {**env, "HOME": HOME, "PATH": ":".join(path)}


def environment(case, folder, cured):
    env = v.env_for(case, cured)
    plain = {key: value for key, value in plain_environment().items() if env.get(key) == v.base_env()[key]}
    return {**env, **plain, "PWD": folder}


def sides(case):
    return (("sick", False), ("cured", True)) if case["kind"] == "disease" else (("healthy", False),)


def record_cases(recorder):
    for name, case in cases():
        folder = any(recorder.wanted(f"{case['set']}.{name}.{side}") for side, _ in sides(case)) and place(case, name)
        for side, cured in sides(case) if folder else ():
            env = environment(case, folder, cured)
            argv = v.resolve(shlex.split(case["cured_run"] if cured else case["run"]), env)
            v.tidy(case, folder, "pre_run")
            recorder.run(f"{case['set']}.{name}.{side}", argv, folder, env)
            v.tidy(case, folder, "post_run")


def small(every):
    """Yields some cases that make few calls: one of every cause and language, sick side."""
    seen = set()
    for name, case in cases():
        of = case["lang"] if every == "language" else (case.get("cause"), case["lang"])
        quick = case.get("measured", {}).get("sick_total", MAX_CALLS) < MAX_CALLS
        if quick and case["kind"] == "disease" and of not in seen:
            seen.add(of)
            yield name, case


def record_ptrace(recorder):
    for name, case in small("language"):
        folder = recorder.wanted(f"ptrace.{name}.sick") and place(case, name)
        if folder:
            env = environment(case, folder, False)
            v.tidy(case, folder, "pre_run")
            recorder.run(f"ptrace.{name}.sick", v.resolve(shlex.split(case["run"]), env), folder, env, ("--backend", "ptrace"))
            v.tidy(case, folder, "post_run")


def record_import(recorder):
    for name, case in small("cause"):
        folder = recorder.wanted(f"import.{name}.sick") and place(case, name)
        if folder:
            env = environment(case, folder, False)
            trace = os.path.join(AT, name + ".trace")
            command = ["strace", "-f", "-o", trace, "-ttt", "-T", "-v", "-s", "256", "--", *v.resolve(shlex.split(case["run"]), env)]
            v.tidy(case, folder, "pre_run")
            subprocess.run(command, cwd=folder, env=env, stdin=subprocess.DEVNULL, capture_output=True, timeout=v.LIMIT)
            v.tidy(case, folder, "post_run")
            recorder.read(f"import.{name}.sick", trace)


def record_traces(recorder):
    from public_traces import TRACES

    for issue, (_cause, _sure, _others, lines) in TRACES.items():
        name = issue.replace("/", "-").replace("#", "-")
        trace = os.path.join(AT, name + ".trace")
        with open(trace, "w", encoding="utf-8") as f:
            f.write("\n".join(lines()) + "\n")
        recorder.read(f"trace.{name}", trace)


def servers():
    """Yields servers: name, files, command, the load on a port, and True if the server is entered while it runs."""
    from suites import requests as r

    web = lambda port: r.http(port, r.PATHS, keep=True)
    closing = lambda port: r.http(port, r.PATHS[:120], keep=False)
    messages = list(r.MESSAGES) * 30
    get = b"*2\r\n$3\r\nGET\r\n$3\r\nkey\r\n"
    for backend in ("inproc", "ptrace"):
        for kind, load in (("HTTPServer", web), ("ThreadingHTTPServer", closing)):
            yield f"python-{kind}", {"server.py": r.PYTHON}, ["/usr/bin/python3", "server.py", "PORT", "own", kind], load, backend
        yield "node", {"server.js": r.NODE}, ["node", "server.js", "PORT"], web, backend
        yield "go", {"server.go": r.GO}, ["./server", "PORT"], web, backend
        for how in ("recv", "readv"):
            yield f"any-{how}", {"any.py": r.ANY}, ["/usr/bin/python3", "any.py", "PORT", how], lambda port: r.raw(port, messages), backend
        redis = ["redis-server", "--port", "PORT", "--save", ""]
        yield "redis", {}, redis, lambda port: r.raw(port, [get] * 700 + [get * 3] * 300), backend
    yield "python", {"server.py": r.PYTHON}, ["/usr/bin/python3", "server.py", "PORT", "own", "HTTPServer"], web, "attach"
    yield "node", {"server.js": r.NODE}, ["node", "server.js", "PORT"], web, "attach"


def record_servers(recorder):
    from suites.requests import connect, free_port

    for name, files, argv, load, how in servers():
        name = f"server.{name}.{how}"
        path = recorder.wanted(name)
        if not path or not shutil.which(argv[0], path=v.base_env()["PATH"]) and argv[0] != "./server":
            continue
        folder, port = os.path.join(AT, name), free_port()
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        for file, text in files.items():
            with open(os.path.join(folder, file), "w", encoding="utf-8") as f:
                f.write(text)
        env = {**plain_environment(), "GOCACHE": os.path.join(AT, "go-cache"), "GO111MODULE": "off"}
        if argv[0] == "./server":
            subprocess.run(["go", "build", "-o", "server", "server.go"], cwd=folder, env=env, check=True, timeout=300)
        argv = v.resolve([str(port) if word == "PORT" else word for word in argv], env)
        by = ["-q", "--by", "request", "--force", "--save", path, "-o", "/dev/null"]
        quiet = {"cwd": folder, "env": env, "stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        if how == "attach":
            server = subprocess.Popen(argv, **quiet)
            connect(port).close()
            watch = subprocess.Popen([recorder.opts.systoll, "attach", *by, str(server.pid)], **quiet)
            # Watching begins before the load.
            time.sleep(3)
        else:
            watch = server = subprocess.Popen([recorder.opts.systoll, "run", "--backend", how, *by, "--", *argv], **quiet)
        try:
            load(port)
        finally:
            watch.send_signal(signal.SIGTERM)
            watch.wait(60)
            if server is not watch:
                server.terminate()
                server.wait(60)
        recorder.say(name, path)


def record_one_liners(recorder):
    from suites import one_liners as o

    for language, all_of in o.data().items():
        for number, one in enumerate(all_of):
            name = f"one-liner.{language}-{number + 1}"
            if not recorder.wanted(name):
                continue
            folder = os.path.join(AT, name)
            shutil.rmtree(folder, ignore_errors=True)
            os.makedirs(folder)
            place = o.Place.__new__(o.Place)
            place.dir = folder
            argv = place.command(language, one["sick"])
            env = plain_environment()
            if argv[0].startswith(".") or shutil.which(argv[0], path=env["PATH"]):
                recorder.run(name, v.resolve(argv, env), folder, env)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--systoll", required=True)
    p.add_argument("--into", required=True)
    p.add_argument("--only", default=",".join(KINDS))
    p.add_argument("--new", action="store_true", help="leave out what FOLDER has")
    p.add_argument("names", nargs="*", metavar="NAME")
    opts = p.parse_args()
    opts.systoll = os.path.abspath(opts.systoll)
    if os.getuid() == 0 and "OWN" not in os.environ:
        os.environ["OWN"] = " ".join(OWN)
        os.execvp("unshare", ["unshare", "--mount", "sh", "-c", HIDE, "sh", sys.executable, *sys.argv])
    recorder = Recorder(opts)
    work = dict(zip(KINDS, (record_cases, record_ptrace, record_import, record_servers, record_one_liners, record_traces)))
    for kind in opts.only.split(","):
        work[kind](recorder)
    return 1 if recorder.failed else 0


if __name__ == "__main__":
    sys.exit(main())
