#!/usr/bin/env python3
"""Tests whether every run tells the same: 40 cases of cases/ and 20 everyday commands, each run again and again.

  stable.py --systoll PATH [--runs N] [--keep DIR | --again DIR] [--backend NAME] [--verbose] [NAME...]

A run's findings are a set of (cause, else kind and first call; the function it is told of; finding or remark).
Two runs tell the same where these sets are equal: one finding more or fewer, another function, or a remark where
there was a finding makes them differ. Told for each program: how many runs gave the most frequent set, that set,
how many runs agree where only findings are asked for (remarks left out), and of each thing that comes and goes
in how many runs it was a finding, a remark, or not there.

How many calls are needless is an estimate with an interval, so equal figures are not asked for. Counted are the runs
whose interval of a finding does not reach the median of all runs' estimates of it, for programs that make equally
many calls in each run. A cause's cures and words do not change between runs where these sets are equal.

Every run looks at other calls (a fresh seed), and all programs take turns, so that a program's runs are spread over
the whole time and whatever else the box does. `--keep` keeps the recordings; `--again` judges kept ones once more,
by the same command line but another build, and runs nothing. A program whose tools are not installed is skipped.
Interrupted, it tells what it has. Status 0 where each program's most frequent set came in 49 of 50 of its runs.
"""
import argparse
import collections
import contextlib
import http.server
import json
import os
import re
import shlex
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading

import verify as v
from census_inputs import put
from priced import told as told_of
from tally import Skip, Tally

# The cases: some of each language and cause, five healthy ones, and some whose calls depend on time.
CASES = (
    "bash-printf-date", "c-access-open", "c-byte-reader", "c-config-reread", "c-drain-eagain", "c-epoll-ctl-churn",
    "c-exists-thrice", "c-fcntl-toggle", "c-iconv-open", "c-localtime-log", "c-malloc-trim", "c-mprotect-toggle",
    "c-peek-then-recv", "c-timerfd-rearm", "cpp-endl", "cpp-filesystem-questions", "gcc-many-include-dirs",
    "git-config-each", "go-file-readbyte", "go-hostname", "go-lookpath", "java-raf-readint", "mawk-fflush",
    "node-exists-then-read", "node-writesync", "pl-flock-per-line", "pl-localtime", "py-epoll-per-wait",
    "py-getcwd-abspath", "py-rusage-per-item", "py-which-per-item", "rb-etc-getpwuid", "rb-secure-random",
    "rs-file-bytes", "rs-rendezvous-channel", "sh-path-search", "ok-git-status", "ok-nginx", "ok-py-imports", "ok-redis",
)
# The everyday commands; `sh -c` runs each in the folder that `inputs` fills.
COMMANDS = {
    "git-log": "git -C tree log --stat",
    "git-status": "git -C tree status",
    "grep-r": "grep -rn 'line 1[0-9]*7 ' tree --include=*.txt",
    "find": "find / -xdev -maxdepth 5 -name '*.conf' -size +1k",
    "apt-cache": "apt-cache search compiler",
    "python3": "python3 -c 'import asyncio, http.client, sqlite3, unittest, xml.dom.minidom'",
    "node": "node -e 'for (const f of fs.readdirSync(`tree`)) if (fs.statSync(`tree/` + f).isFile()) fs.readFileSync(`tree/` + f)'",
    "gcc": "gcc -O2 -c -o one.o one.c",
    "make": "make -s -B -C parts",
    "tar": "tar -cf out.tar tree",
    "file": "file /usr/bin/a*",
    "ls": "ls -lR /etc /usr/lib/python3",
    "perl": "perl -ne 'print if /7/; END { print scalar localtime }' tree/d1/*.txt",
    "ruby": "ruby -e 'require %(json); require %(set); puts Dir[%(tree/**/*)].sum { |f| File.file?(f) ? File.read(f).size : 0 }'",
    "php": "php -r 'foreach (glob(\"tree/*/*.txt\") as $f) echo md5_file($f), \"\\n\";'",
    "sqlite3": "sqlite3 data.db 'select count(*), avg(n) from t group by n % 10'",
    "curl": "curl -s http://127.0.0.1:{port}/one.c http://127.0.0.1:{port}/data.db -o got.1 -o got.2",
    "go": "go list -f '{{.ImportPath}} {{len .GoFiles}}' net/http encoding/json",
    "bash": "bash -c 'for f in tree/*/*; do [ -f \"$f\" ] && while read -r a b; do :; done <\"$f\"; done'",
    "readelf": "readelf -a --wide /bin/bash",
}
NEEDS = {"apt-cache": "apt-cache"}
ENOUGH = 0.98
LIMIT = 120


def inputs(d):
    """Fills a folder with what the commands read: a tree of 500 files under git, sources, a database."""
    for folder in range(20):
        for n in range(25):
            lines = "".join(f"line {k} of file {n} in {folder}\n" for k in range(10 + 7 * n))
            put(f"{d}/tree/d{folder}/f{n}.txt", lines)
    put(f"{d}/tree/README", "a tree\n")
    git = "git -c user.name=a -c user.email=a@example.org"
    commits = " ".join(f"&& echo {k} >>d{k % 20}/f3.txt && {git} commit -qam 'change {k}'" for k in range(60))
    prepare = [f"cd tree && git init -q . && git add . && {git} commit -qm first {commits}"]
    put(f"{d}/one.c", "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n#include <unistd.h>\nint main(void) { return puts(\"one\") < 0; }\n")
    parts = [f"p{k}" for k in range(8)]
    for part in parts:
        put(f"{d}/parts/{part}.c", f"#include <stdio.h>\nint {part}(void) {{ return puts(\"{part}\"); }}\n")
    objects = " ".join(f"{part}.o" for part in parts)
    put(f"{d}/parts/Makefile", f"all: all.a\nall.a: {objects}\n\tar rcs $@ $^\n")
    rows = "with recursive c(n) as (select 1 union all select n + 1 from c where n < 50000) insert into t select n, hex(n) from c"
    prepare.append(f"sqlite3 data.db 'create table t (n integer, s text); {rows}'")
    for line in prepare:
        subprocess.run(line, shell=True, cwd=d, env=v.base_env(), check=False, capture_output=True)


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves a folder and logs nothing."""

    def log_message(self, *_):
        pass


def served(d):
    """Serves the folder on loopback. Returns the port."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), lambda *a: Quiet(*a, directory=d))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_address[1]


class Program:
    """A program, the folder that it runs in, and what its runs told."""

    def __init__(self, name, cmd, cwd, env, case=None):
        self.name, self.cmd, self.cwd, self.env, self.case = name, cmd, cwd, env, case
        self.runs, self.errors = [], []

    def run(self, opts, number):
        keep = os.path.join(opts.keep, f"{self.name}.{number}.systoll") if opts.keep else None
        args = ["run", *(["--save", keep] if keep else []), *(["--backend", opts.backend] if opts.backend else [])]
        if self.case:
            v.tidy(self.case, self.cwd, "pre_run")
        doc, why = told_of(opts, args, self.cmd, self.cwd, self.env, LIMIT)
        if self.case:
            v.tidy(self.case, self.cwd, "post_run")
        if doc is None:
            self.errors.append(why)
        else:
            self.runs.append(doc)

    def judge(self, opts, path):
        r = subprocess.run([opts.systoll, "report", "--json", path], capture_output=True, text=True, errors="replace")
        try:
            self.runs.append(json.loads(r.stdout))
        except ValueError:
            self.errors.append(f"{path}: {r.stderr.strip()[-160:]}")


def called(finding):
    """Returns the words that identify a finding."""
    cause = finding["cause"] or f"{finding['kind']} {finding['syscalls'][0]}"
    return f"{cause} < {(finding['user'] or {}).get('function') or '?'}"


def told(doc):
    """Returns "finding" or "remark" for each thing that a report tells, by its words; of two with the same words the
    surer one."""
    return {**{called(f): "remark" for f in doc["also"]}, **{called(f): "finding" for f in doc["findings"]}}


def outside(runs):
    """Returns for each finding in how many runs its interval does not reach the median of the estimates."""
    if len({doc["calls"] for doc in runs}) > 1:
        return {}
    of = collections.defaultdict(list)
    for doc in runs:
        for f in doc["findings"]:
            of[called(f)].append(f["needless_calls"])
    median = {name: statistics.median(n["estimate"] for n in all) for name, all in of.items()}
    away = {name: sum(not n["low"] <= median[name] <= n["high"] for n in all) for name, all in of.items()}
    return {name: n for name, n in away.items() if n}


def summed_up(program):
    """Returns how many runs agree, a line about the program, and a list of what comes and goes."""
    sets = [told(doc) for doc in program.runs]
    count = collections.Counter(frozenset(s.items()) for s in sets)
    most, n = count.most_common(1)[0]
    sure = collections.Counter(frozenset(k for k, how in s.items() if how == "finding") for s in sets)
    line = f"{n}/{len(sets)} the same; findings alone {sure.most_common(1)[0][1]}/{len(sets)}: "
    line += "; ".join(f"{name}{' (remark)' * (how == 'remark')}" for name, how in sorted(most)) or "nothing"
    moves = []
    for name in sorted({name for s in sets for name in s}):
        how = collections.Counter(s.get(name, "not there") for s in sets)
        if len(how) > 1:
            moves.append(f"{name}: " + ", ".join(f"{where} {how[where]}" for where in ("finding", "remark", "not there") if how[where]))
    moves += [f"{name}: in {far} runs the interval does not reach the median" for name, far in outside(program.runs).items()]
    return n, line, moves


def programs(opts, work):
    """Returns the programs that can be run here, and why others can't."""
    found, skipped = [], []
    names = opts.names or [*CASES, *COMMANDS]
    if not opts.again and any(name in COMMANDS for name in names):
        inputs(work)
        port = served(work)
    for name in names:
        if opts.again:
            found.append(Program(name, None, None, None))
            continue
        if name in COMMANDS:
            needs = NEEDS.get(name, shlex.split(COMMANDS[name])[0])
            if not shutil.which(needs, path=v.base_env()["PATH"]):
                skipped.append((name, f"{needs}: not installed"))
                continue
            env = {**v.base_env(), "GIT_PAGER": "cat", "GIT_CONFIG_NOSYSTEM": "1"}
            found.append(Program(name, ["sh", "-c", "exec " + COMMANDS[name].replace("{port}", str(port))], work, env))
            continue
        d = os.path.join(v.CASES, name)
        case = v.read(d)
        try:
            failed = v.build(case, d)
        except Skip as e:
            failed = [str(e)]
        if failed:
            skipped.append((name, failed[0]))
            continue
        env = v.env_for(case, False)
        found.append(Program(name, v.resolve(shlex.split(case["run"]), env), d, env, case))
    return found, skipped


def kept(folder, name):
    """Returns the kept recordings of a program, in order."""
    number = re.compile(re.escape(name) + r"\.(\d+)\.systoll")
    of = [(int(m[1]), f) for f in os.listdir(folder) if (m := number.fullmatch(f))]
    return [os.path.join(folder, f) for _, f in sorted(of)]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--systoll", required=True)
    p.add_argument("--runs", type=int, default=50)
    p.add_argument("--backend")
    where = p.add_mutually_exclusive_group()
    where.add_argument("--keep", metavar="DIR", help="keep the recordings in DIR")
    where.add_argument("--again", metavar="DIR", help="judge the recordings in DIR again")
    p.add_argument("--strict", action="store_true", help="a program that is skipped fails")
    p.add_argument("names", nargs="*", metavar="NAME")
    opts = p.parse_args()
    opts.systoll = os.path.abspath(opts.systoll)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if opts.keep:
        opts.keep = os.path.abspath(opts.keep)
        os.makedirs(opts.keep, exist_ok=True)
    before = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as work:
        with contextlib.suppress(KeyboardInterrupt):
            found, skipped = programs(opts, work)
            for program in found if opts.again else []:
                for path in kept(opts.again, program.name):
                    program.judge(opts, path)
            for number in range(0 if opts.again else opts.runs):
                for program in found:
                    program.run(opts, number)
    return tell(opts, found, skipped, before)


def tell(opts, found, skipped, before):
    """Says of each program what its runs told. Returns the exit status."""
    tally = Tally(opts.strict)
    agree = runs = 0
    for name, why in skipped:
        def no(_again, why=why):
            raise Skip(why)

        tally.attempt(name, no)
    for program in found:
        if not program.runs and not program.errors:
            continue
        n, line, moves = summed_up(program) if program.runs else (0, "", [])
        enough = n >= ENOUGH * (len(program.runs) + len(program.errors))
        agree, runs = agree + enough, runs + 1
        wrong = [] if enough else [*moves, *sorted(set(program.errors))]
        tally.attempt(program.name, lambda _again, line=line, wrong=wrong: (line, wrong))
        if enough and moves:
            print("      " + "; ".join(moves))
    print(f"{agree} of {runs} programs tell the same in 49 of 50 runs; load {before:.1f} before, {os.getloadavg()[0]:.1f} after")
    return tally.end()


if __name__ == "__main__":
    sys.exit(main())
