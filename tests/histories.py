#!/usr/bin/env python3
"""Makes git histories of a small program with one planted change, and has systoll find it.

  histories.py --systoll PATH [--commits N] [--keep DIR] [WORD...]    all of them, or those whose name contains a word

Each history has a commit from which on the program makes more system calls (a stat in a loop, a cache that is
lost, a flag), among commits that change other things: words, functions, lines above, builds that fail.
"""
import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time

# Each language's source file and text, build and run. The plant fills in {plant}, each commit {noise}.
LANGUAGES = {}


def language(name, needs, build, run, source, noise, files):
    LANGUAGES[name] = dict(needs=needs, build=build, run=run, source=source, noise=noise, files=files)


language("c", ["gcc", "make"], "make -s", "./app", "app.c", "static int noise_{n}(int x) {{ return x * {n} + 1; }}\n", {
    "Makefile": "app: app.c\n\t@gcc -g -O1 -w -o app app.c\n",
    "app.c": """#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
{noise}
static int cached = -1;

__attribute__((noinline)) static int read_config(int step)
{{
    struct stat st;
    {cache}
    int fd = open("/etc/passwd", O_RDONLY{flag});
    if (fd < 0)
        return 0;
    fstat(fd, &st);
    close(fd);
    return cached = st.st_size;
}}

__attribute__((noinline)) static long work(int step)
{{
    struct stat st;
    long sum = step;
    {loop}
    return sum + read_config(step);
}}

int main(void)
{{
    long sum = 0;
    for (int i = 0; i < 40; i++)
        sum += work(i);
    printf("%d\\n", sum > 0);
    return 0;
}}
"""})
language("python", ["python3"], "true", "python3 app.py", "app.py", "def noise_{n}(x):\n    return x * {n} + 1\n\n\n", {
    "app.py": """import os

{noise}
cached = {{}}


def read_config(step):
    {cache}
    fd = os.open("/etc/passwd", os.O_RDONLY{flag})
    size = os.fstat(fd).st_size
    os.close(fd)
    cached["size"] = size
    return size


def work(step):
    total = step
    {loop}
    return total + read_config(step)


print(sum(work(i) for i in range(40)) > 0)
"""})
language("go", ["go"], "go build -o app .", "./app", "main.go", "func noise{n}(x int) int {{ return x*{n} + 1 }}\n", {
    "go.mod": "module app\n\ngo 1.18\n",
    "main.go": """package main

import (
	"fmt"
	"os"
	"syscall"
)

{noise}
var cached int64 = -1

//go:noinline
func readConfig(step int) int64 {{
	var st syscall.Stat_t
	{cache}
	fd, err := syscall.Open("/etc/passwd", syscall.O_RDONLY{flag}, 0)
	if err != nil {{
		os.Exit(1)
	}}
	syscall.Fstat(fd, &st)
	syscall.Close(fd)
	cached = st.Size
	return cached
}}

//go:noinline
func work(step int) int64 {{
	var st syscall.Stat_t
	total := int64(step) + st.Size
	{loop}
	return total + readConfig(step)
}}

func main() {{
	var sum int64
	for i := 0; i < 40; i++ {{
		sum += work(i)
	}}
	fmt.Println(sum > 0)
}}
"""})
language("rust", ["rustc"], "rustc -g -O -A warnings -o app app.rs", "./app", "app.rs",
         "fn noise_{n}(x: i64) -> i64 {{ x.wrapping_mul({n}) + 1 }}\n", {
             "app.rs": """use std::fs::{{metadata, File, OpenOptions}};

{noise}
static mut CACHED: i64 = -1;

#[inline(never)]
fn read_config(step: i64) -> i64 {{
    {cache}
    let file: File = OpenOptions::new().read(true){flag}.open("/etc/passwd").unwrap();
    let size = file.metadata().unwrap().len() as i64;
    unsafe {{ CACHED = size }};
    size
}}

#[inline(never)]
fn work(step: i64) -> i64 {{
    let mut total = step;
    {loop}
    total + read_config(step)
}}

fn main() {{
    let sum: i64 = (0..40).map(work).sum();
    println!("{{}}", sum > 0);
}}
"""})

# Texts that stand for {loop}, {cache} and {flag} before the plant, and from it on.
BEFORE = {
    "c": dict(loop='if (step == 0) sum += stat("/etc/hosts", &st);', cache="if (cached >= 0) return cached;", flag=""),
    "python": dict(loop='if step == 0: os.stat("/etc/hosts")', cache='if "size" in cached: return cached["size"]', flag=""),
    "go": dict(loop='if step == 0 {{ syscall.Stat("/etc/hosts", &st) }}', cache="if cached >= 0 {{ return cached }}", flag=""),
    "rust": dict(loop='if step == 0 {{ metadata("/etc/hosts").unwrap(); }}', cache="unsafe {{ if CACHED >= 0 {{ return CACHED }} }};", flag=""),
}
PLANTS = {
    "stat": {
        "c": dict(loop='for (int k = 0; k < 50; k++) sum += stat("/etc/hosts", &st);'),
        "python": dict(loop='for _ in range(50): os.stat("/etc/hosts")'),
        "go": dict(loop='for k := 0; k < 50; k++ {{ syscall.Stat("/etc/hosts", &st) }}'),
        "rust": dict(loop='for _ in 0..50 {{ total += metadata("/etc/hosts").unwrap().len() as i64; }}'),
    },
    "cache": {lang: dict(cache=text) for lang, text in dict(
        c="if (cached >= 0 && step < 0) return cached;", python='if step < 0: return cached["size"]',
        go="if step < 0 {{ return cached }}", rust="if step < 0 {{ return 0 }};").items()},
    # The flag decides whether the cache is read, so its calls come or go with it.
    "flag": {lang: dict(cache=text) for lang, text in dict(
        c='static const int reload = 1;\n    if (cached >= 0 && !reload) return cached;',
        python='reload = True\n    if "size" in cached and not reload: return cached["size"]',
        go='const reload = true\n\tif cached >= 0 && !reload {{ return cached }}',
        rust='const RELOAD: bool = true;\n    unsafe {{ if CACHED >= 0 && !RELOAD {{ return CACHED }} }};').items()},
}
PLANTS["fewer"] = PLANTS["stat"]
PLANTS["twice"] = {lang: dict(loop=PLANTS["stat"][lang]["loop"].replace("50", "2")) for lang in BEFORE}
NAMES = [f"{lang}-{plant}" for lang in LANGUAGES for plant in PLANTS]


def git(at, *args):
    env = dict(os.environ, GIT_AUTHOR_NAME="A", GIT_AUTHOR_EMAIL="a@example.org", GIT_COMMITTER_NAME="A", GIT_CONFIG_GLOBAL="/dev/null",
               GIT_COMMITTER_EMAIL="a@example.org", GIT_AUTHOR_DATE="2026-01-01T00:00:00", GIT_COMMITTER_DATE="2026-01-01T00:00:00")
    return subprocess.run(["git", "-C", at, *args], check=True, capture_output=True, text=True, env=env).stdout.strip()


def make(name, at, commits, seed=1):
    """Makes the history NAME in the folder AT and returns the planted commit."""
    lang, plant = name.split("-")
    chance = random.Random(f"{name} {seed}")
    spec = LANGUAGES[lang]
    # The planted commit lies on either side of the middle, not at the ends.
    where = chance.randrange(2, commits - 1)
    broken = [n for n in (chance.randrange(1, commits - 1) for _ in range(2)) if abs(n - where) > 1]
    git(".", "init", "-q", "-b", "main", at)
    noise, planted = "", None
    for n in range(commits):
        noise = noise + spec["noise"].format(n=n) if chance.random() < 0.7 else spec["noise"].format(n=n) + noise
        parts = dict(BEFORE[lang])
        if (n >= where) != (plant == "fewer"):
            parts.update(PLANTS[plant][lang])
        for path, text in spec["files"].items():
            with open(os.path.join(at, path), "w") as f:
                is_source = path == spec["source"]
                text = text.format(noise=noise, **{k: v.format() for k, v in parts.items()}) if is_source else text
                f.write(text + ("\n) this can't be built (\n" if n in broken and is_source else ""))
        with open(os.path.join(at, "NOTES"), "w") as f:
            f.write(f"{n}\n")
        git(at, "add", "-A")
        git(at, "commit", "-q", "-m", f"commit {n}" if n != where else f"commit {n}: the change")
        if n == where:
            planted = git(at, "rev-parse", "HEAD")
    return planted


def command(name):
    spec = LANGUAGES[name.split("-")[0]]
    return f"{spec['build']} && {spec['run']}" if spec["build"] != "true" else spec["run"]


def find(systoll, name, at, commits, env=None, extra=()):
    """Bisects the history in AT. Returns the finished process."""
    first = git(at, "rev-list", "--max-parents=0", "HEAD")
    return subprocess.run([systoll, "bisect", "-C", at, *extra, first, "HEAD", "--", command(name)], capture_output=True, text=True, env=env)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--systoll", required=True)
    p.add_argument("--commits", type=int, default=30)
    p.add_argument("--keep")
    p.add_argument("words", nargs="*")
    opts = p.parse_args()
    root = opts.keep or tempfile.mkdtemp(prefix="systoll-histories-")
    os.makedirs(root, exist_ok=True)
    right = wrong = 0
    for name in NAMES:
        if opts.words and not any(word in name for word in opts.words):
            continue
        missing = [tool for tool in LANGUAGES[name.split("-")[0]]["needs"] if not shutil.which(tool)]
        if missing:
            print(f"{name}: skipped, no {missing[0]}")
            continue
        at = os.path.join(root, name)
        shutil.rmtree(at, ignore_errors=True)
        planted = make(name, at, opts.commits)
        begun = time.monotonic()
        found = find(opts.systoll, name, at, opts.commits)
        good = found.returncode == 0 and planted[:10] in found.stdout
        right, wrong = right + good, wrong + (not good)
        print(f"{name}: {'found' if good else f'WRONG (planted {planted[:10]})'} in {time.monotonic() - begun:.1f} s")
        if not good:
            print(found.stdout + found.stderr)
        elif opts.words:
            print(found.stdout)
    if not opts.keep:
        shutil.rmtree(root, ignore_errors=True)
    print(f"{right} right, {wrong} wrong")
    return 1 if wrong or not right else 0


if __name__ == "__main__":
    sys.exit(main())
