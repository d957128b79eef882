"""Each example of `systoll explain` is true: both sides print the same, and the second makes fewer calls.

The examples of crates/judge/causes run unchanged; the body of `main` in a compiled language is wrapped in the few lines
below. systoll counts both sides in the same way.
"""
import glob
import json
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

from harness import HERE, Skip, test, text

ROOT = os.path.dirname(HERE)
sys.path.insert(0, os.path.join(ROOT, "cases"))

C_HEADERS = "".join(
    f"#include <{name}.h>\n"
    for name in ("errno", "fcntl", "limits", "stdio", "stdlib", "string", "time", "unistd", "sys/stat", "sys/types")
)
GO_PACKAGES = ("bufio", "errors", "fmt", "io/fs", "os", "path/filepath", "strings", "syscall")


def go_file(code):
    """Returns the code as a Go file: Go refuses packages that are not used, so only those are imported that the code
    names."""
    used = [name for name in GO_PACKAGES if f"{name.rsplit('/', 1)[-1]}." in code]
    return "package main\n\nimport (\n" + "".join(f'\t"{name}"\n' for name in used) + f")\n\nfunc main() {{\n{code}\n}}\n"


# Language: the file's name, the text around the code, how it is built, how it is run.
LANGUAGES = {
    "c": ("x.c", lambda c: f"#define _GNU_SOURCE\n{C_HEADERS}int main(void)\n{{\n{c}\nreturn 0;\n}}\n", ["gcc", "-w", "-O1", "-o", "x", "x.c"], ["./x"]),
    "c++": ("x.cc", lambda c: f"#include <fstream>\n#include <iostream>\nint main()\n{{\n{c}\n}}\n", ["g++", "-o", "x", "x.cc"], ["./x"]),
    "rust": ("x.rs", lambda c: f"#![allow(unused)]\nuse std::io::{{Read, Write}};\nfn main() {{\n{c}\n}}\n", ["rustc", "-o", "x", "x.rs"], ["./x"]),
    "go": ("x.go", go_file, ["go", "build", "-o", "x", "x.go"], ["./x"]),
    "python": ("x.py", str, None, ["/usr/bin/python3", "x.py"]),
    "ruby": ("x.rb", str, None, ["ruby", "x.rb"]),
    "perl": ("x.pl", str, None, ["perl", "x.pl"]),
    "php": ("x.php", lambda c: f"<?php\n{c}\n", None, ["php", "x.php"]),
    "javascript": ("x.js", str, None, ["node", "x.js"]),
    "shell": ("x.sh", str, None, ["sh", "x.sh"]),
    "bash": ("x.bash", str, None, ["bash", "x.bash"]),
    "awk": ("x.awk", str, None, ["awk", "-f", "x.awk"]),
    "tcl": ("x.tcl", str, None, ["tclsh", "x.tcl"]),
    "lua": ("x.lua", str, None, ["lua", "x.lua"]),
}
# Folders with compilers, which may be anywhere.
PLACES = os.environ.get("PATH", "") + ":/usr/local/go/bin"
# Least number of calls that the second side must save: a loop goes round 300 times, one that starts programs three
# times or more.
FEWER = 250
FEWER_STARTS = 3
# Calls that a runtime makes when it sees fit, on a busy machine more often.
RUNTIMES = {"futex", "nanosleep", "sched_yield", "epoll_pwait", "tgkill", "getpid", "rt_sigreturn", "madvise", "mmap", "munmap", "rt_sigprocmask"}


def examples(language):
    """Yields (cause, before, after) of every example in this language."""
    try:
        from tomllib import load
    except ImportError:
        raise Skip("reading the causes takes Python 3.11") from None
    found = []
    for path in sorted(glob.glob(os.path.join(ROOT, "crates", "judge", "causes", "*.toml"))):
        with open(path, "rb") as f:
            cause = load(f)
        found += [(cause["id"], s["before"], s["after"]) for s in cause["stop"] if "before" in s and s["languages"][0] == language]
    return found


def once(box, language, code, name):
    """Returns what the code prints, and how many calls it makes."""
    file, around, build, run = LANGUAGES[language]
    dir = os.path.join(box.dir, name)
    os.makedirs(dir)
    os.chmod(dir, 0o777)
    with open(os.path.join(dir, file), "w") as f:
        f.write(around(code.rstrip("\n")))
    env = {name: value for name, value in box.env.items() if name != "TZ"}
    if build:
        made = subprocess.run(build, cwd=dir, env=dict(os.environ, PATH=PLACES, GO111MODULE="off"), capture_output=True)
        assert made.returncode == 0, f"{name}: {text(made.stderr)[-600:]}"
        os.chmod(os.path.join(dir, "x"), 0o755)
    report = os.path.join(dir, "report.json")
    there = ["sh", "-c", 'cd "$1" && shift && exec "$@"', "sh", dir]
    r = box.run([*there, box.systoll, "run", "-q", "--json", "-o", report, "--", *run], env=env)
    assert r.returncode == 0, f"{name}: ends with {r.returncode}: {text(r.stderr)[-600:]}"
    with open(report) as f:
        found = json.load(f)
    return text(r.stdout).replace(dir, "THERE"), found


def calls(found, but=frozenset()):
    return sum(row["calls"] for row in found["by_syscall"] if row["syscall"] not in but)


def claimed(found, cause, by=None):
    """Returns the calls with this cause, of the system calls that `by` names: other calls of a runtime do not
    matter."""
    names = {name for f in (by or found)["findings"] + (by or found)["also"] if f["cause"] == cause for name in f["syscalls"]}
    return sum(row["calls"] for row in found["by_syscall"] if row["syscall"] in names)


def fewer_of_one(sick, cured):
    """Returns by how much the number of one call fell, of those that a runtime does not make hundreds of when it sees fit: on
    a busy machine a report may not name the cause's calls."""
    of_each = lambda found: {row["syscall"]: row["calls"] for row in found["by_syscall"]}  # noqa: E731
    before, after = of_each(sick), of_each(cured)
    return max((before[name] - after.get(name, 0) for name in before if name == "getpid" or name not in RUNTIMES), default=0)


def hold(box, language):
    *_, build, run = LANGUAGES[language]
    program = build[0] if build else run[0]
    if not shutil.which(program, path=PLACES):
        raise Skip(f"{program} is not installed")
    of_language = examples(language)
    assert of_language, f"no example in {language}"
    wrong = []
    for n, (cause, before, after) in enumerate(of_language):
        with ThreadPoolExecutor(2) as both:
            (said, sick), (says, cured) = both.map(lambda side: once(box, language, *side), ((before, f"{n}-before"), (after, f"{n}-after")))
        if said != says or not said:
            wrong.append((cause, "prints something else", said[-200:], says[-200:]))
        starts = cause == "process-per-item"
        fewer = FEWER_STARTS if starts else FEWER
        of_all = max(calls(sick) - calls(cured), calls(sick, RUNTIMES) - calls(cured, RUNTIMES))
        if max(of_all, claimed(sick, cause) - claimed(cured, cause, sick), fewer_of_one(sick, cured)) < fewer:
            wrong.append((cause, "makes no fewer calls", sick["by_syscall"], cured["by_syscall"]))
    assert not wrong, wrong


def register(language):
    def of_language(box):
        hold(box, language)

    of_language.__name__ = "in_" + language.replace("+", "p")
    of_language.__doc__ = f"Examples in {language}: the same is printed, fewer calls are made."
    test(users=("nobody",))(of_language)


for language in LANGUAGES:
    register(language)
