"""Every command of the README, of docs/ and of --help works as printed, in a folder with the files that it names: ./app,
recordings, traces, a repository. Commands that can't run here are listed with the reason.
"""
import glob
import os
import re
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor

import readers
from harness import HERE, PATH, Skip, test, text

ROOT = os.path.dirname(HERE)
# Documents of results: their commands were typed elsewhere, on other programs.
RESULTS = ("evidence/", "reference/prices.md", "reference/how-prove-decides.md", "develop/decisions.md")
# Words that stand for something of the reader's, and what the test puts in their place.
MEANS = {
    "CMD [ARGS]...": "./app", "CMD": "./app", "YOUR PROGRAM": "./app", "CAUSE": "tz-unset", "REC": "a.systoll", "FORMAT": "csv", "LANGUAGE": "perl",
    "FILE…": "app.trace", "FILE": "f.out", "[STORY]": "getpid", "GOOD": "HEAD~1", "BAD": "HEAD", "OLD": "old.systoll", "NEW": "new.systoll",
    "CALLS": "getpid", "CALL": "getpid", "PORT": "8080", "VAR=VALUE": "TZ=:/etc/localtime", "SHELL": "bash", "DIR": "mine", "ID": "tz-unset", "F": "f.out",
    "FOLDER…": "runs", "FOLDER": "runs", "QUESTION": "dearest",
}
# Beginnings of commands that are not typed, with the reason.
NOT_TYPED = {
    "cargo ": "builds; the test of a fresh machine types them (tests/fresh.py)",
    "target/release/": "the same",
    "systoll demo": "tells its stories for half a minute; the suite of demos types it",
    "systoll run --open": "opens a browser; the page's suite types it with one of its own",
    "systoll run --every 10m": "a service, for ten minutes; the suite of controls types --every",
    "systoll top": "takes a terminal and a process that runs; the suite of attaching has both",
    "systoll prove --live": "takes a process that runs; the suite prove_live has one",
    "systoll prove --serve": "takes a server and a load; the suite of proofs has both",
    "systoll prove --shorten": "takes a program that sleeps; the suite prove_waiting has some",
    "systoll run --until": "takes a server that gets ready; the suite until has one",
    "systoll run --prove": "takes up to a minute; the suite of proofs types it",
    "systoll agent": "watches the box, as root; the suite box_agent types it", "systoll fleet /var/lib/systoll": "takes the folder of an agent; the same suite has one",
    "systoll attach": "watches what runs already; the suite of attaching types it", "kill -CONT": "the same", "nsenter ": "takes a namespace",
    "kill -USR1": "to a systoll that runs; the suite of controls sends it",
    "systoll bisect --build 'cargo": "builds with cargo",
    "systoll explain getpid": "a call is no cause: it names those that it can have, and ends with 125; the suite of first things types it",
    "systoll explain --why-not": "takes a recording of that script; the suite why_not types it",
    "sudo ": "asks for a password",
    "ssh ": "takes another machine",
    "go tool pprof -http": "opens a browser",
    "go ": "takes Go's tools; the exports' suite types pprof",
    "perf ": "takes perf and its rights", "ltrace ": "takes ltrace",
    "strace ": "takes strace; the imports' suite types it",
    "duckdb": "takes duckdb",
    "systoll fleet --engine spark": "takes Spark; the fleets' suite asks it",
    "systoll run -- node": "takes node; the names' suite types it",
    "systoll run -c -- git": "about the repository it is typed in", "systoll run -o report.txt -- make": "about a makefile of the reader's",
    "systoll cure --export /usr/local/lib": "writes to /usr/local/lib",
}
# Limit of a command's time, in seconds.
LIMIT = 40
# Words between backquotes that name the command, but are not a whole one.
NAMES = re.compile(r"systoll [a-z]+( --?[a-z-]+)?")
APP = """
#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>
int main(void) {
  char text[64];
  for (time_t t = 0; t < 3000; t++) {
    strftime(text, sizeof text, "%H:%M", localtime(&t));
    getpid();
    sigprocmask(SIG_BLOCK, 0, 0);
  }
  return puts("400 requests") < 0;
}
"""


def pages():
    inside = sorted(glob.glob(os.path.join(ROOT, "docs", "**", "*.md"), recursive=True))
    assert len(inside) > 30, inside
    for path in [os.path.join(ROOT, "README.md"), *inside]:
        if not os.path.relpath(path, os.path.join(ROOT, "docs")).startswith(RESULTS):
            with open(path, encoding="utf-8") as f:
                yield os.path.relpath(path, ROOT), f.read()


def helps(systoll):
    """Returns the examples of every command's --help."""
    told = subprocess.run([systoll, "--help"], capture_output=True, text=True).stdout
    commands = re.findall(r"^  ([a-z]+)  ", told.split("Commands:", 1)[1].split("\n\n")[0], re.M)
    assert len(commands) > 10, told
    for command in [c for c in commands if c != "help"]:
        shown = subprocess.run([systoll, command, "--help"], capture_output=True, text=True).stdout
        examples = shown.split("Examples:\n", 1)[1].split("\n\n")[0]
        yield f"systoll {command} --help", "\n".join("  " + line for line in examples.splitlines())


def commands_of(page):
    """Returns the commands that a page shows: indented lines, lines of shell in fences, and words between
    backquotes."""
    fenced = re.findall(r"```(?:sh|bash|console)\n(.*?)```", page, re.S)
    rest = re.sub(r"```.*?```", "", page, flags=re.S)
    # A command that continues in the next line is one command.
    joined = [re.sub(r"(\||\\\\)\n\s*", lambda end: "| " if end[1] == "|" else "", text) for text in [*fenced, rest]]
    lines = [line for block in joined[:-1] for line in block.splitlines()] + re.findall(r"^    (\S.*)$", joined[-1], re.M)
    for line in lines:
        # Text behind a wide gap says what the command does.
        command = re.split(r"\s{2,}(?=[#a-zA-Z(])|\s+# ", line.removeprefix("$ "))[0].strip()
        if re.match(r"(systoll|jq|kill|sudo|ssh|cargo|target/release/systoll|strace|perf|ltrace|go) ", command):
            yield command
    inline = re.sub(r"^    .*$", "", rest, flags=re.M)
    for words in re.findall(r"`(systoll [^`]+)`", re.sub(r"\s*\n\s*", " ", inline)):
        yield words.replace("\\|", "|")


def meant(command):
    for word in sorted(MEANS, key=len, reverse=True):
        command = re.sub(rf"(?<![\w./=-]){re.escape(word)}(?![\w])", MEANS[word], command)
    return command


def begins(command):
    """Returns True if a command, or one that follows another on the line, begins so."""
    parts = re.split(r" && | \| ", meant(command))
    return lambda begin: any(part.startswith(begin) for part in parts)


def sandbox(box):
    """Returns a folder with the files that the commands name."""
    there = os.path.join(box.dir, "there")
    app = box.build(box.file("app.c", APP))
    box.file("app.py", "import time\nfor i in range(300): time.localtime(i)\n")
    box.file("app.trace", "".join(f"1 17000000{n:02}.000001 getpid() = 1 <0.000001>\n" for n in range(50)))
    cause = box.file("tz-unset.toml", open(os.path.join(ROOT, "crates", "judge", "causes", "tz-unset.toml")).read())
    env = {name: value for name, value in box.env.items() if name != "TZ"}
    python = readers.python()
    if not python:
        raise Skip("duckdb is not installed: tests/readers.py")
    env.update(PATH=f"{there}/bin:{PATH}", HOME=there, BROWSER="true", SYSTOLL_PYTHON=python)
    made = """
set -e
mkdir -p "$1/bin" "$1/mine"
cd "$1"
ln -s "$2" bin/systoll && cp "$3" app && cp app app.before && cp "$4" mine/ && cp ../app.py ../app.trace . && cp app.trace app.trace.1 && cp app.trace before.txt && cp app.trace after.txt
git init -q . && git config user.email a@b && git config user.name a && printf 'app:\\n\\ttrue\\n' > Makefile
git add -f Makefile app && git commit -qm one && git tag v1.2
cp app app.copy && printf '#!/bin/sh\\n/bin/true\\nexec ./app.copy\\n' > app.new && chmod 755 app.new app.copy
git add -f app.copy && git mv app old-app && cp app.new app && git add -f app && git commit -qm two
cp app.before app && cp app old && cp app new && mkdir -p before after .local/share/bash-completion/completions .zfunc .config/fish/completions
for name in a old new; do systoll run -q --save $name.systoll -- ./app > /dev/null; done
cp old.systoll before/ && cp new.systoll after/ && cp old.systoll old-1.systoll && cp new.systoll new-1.systoll
systoll run --by line --json -o report.json -- ./app > /dev/null
systoll check --update -- ./app > /dev/null && cp systoll.toml ci.toml
systoll run -q --save-to runs --service shop --release 2.4.0 -- ./app > /dev/null
"""
    r = box.run(["/bin/sh", "-c", made, "sh", there, box.systoll, app, cause], env=env)
    assert r.returncode == 0, text(r.stderr)[-800:]
    return there, env


def typed(box, there, env, command):
    """Returns what went wrong with a command, if anything."""
    wanted = meant(command)
    if "prove" in wanted and not re.search("--(limit|pairs|serve)", wanted):
        wanted = wanted.replace("systoll prove", "systoll prove --pairs 8 --watched 1", 1)
    # Each command has a copy of the folder, because some write what others read.
    script = f'cp -a "$1" "$2" && cd "$2" && {wanted}'
    own = f"{there}-{abs(hash(command)):x}"
    try:
        r = box.run(["/bin/sh", "-c", script, "sh", there, own], env=env, limit=LIMIT)
    except subprocess.TimeoutExpired:
        return f"{command!r} as {wanted!r} takes more than {LIMIT} s"
    shutil.rmtree(own, ignore_errors=True)
    # Code 1 is fine for these: something was found to differ, or a filter let nothing through.
    fine = (0, 1) if re.search(r"\b(jq|check|diff|bisect|prove)\b", wanted) else (0,)
    if r.returncode not in fine:
        return f"{command!r} as {wanted!r} ends with {r.returncode}: {text(r.stderr)[-300:]}"
    return None


@test(users=("nobody",))
def every_command_is_typed(box):
    for needed in ("git", "jq"):
        if not shutil.which(needed, path=PATH):
            raise Skip(f"{needed} is not installed")
    there, env = sandbox(box)
    found = {}
    for where, page in [*pages(), *helps(box.systoll)]:
        for command in commands_of(page):
            found.setdefault(command, where)
    assert len(found) > 60, found
    left = {command for command in found if any(map(begins(command), NOT_TYPED))}
    unused = [begin for begin in NOT_TYPED if not any(begins(command)(begin) for command in found)]
    names = {command for command in found if NAMES.fullmatch(command)}
    to_type = [command for command in found if command not in left | names]
    with ThreadPoolExecutor(2) as both:
        wrong = list(filter(None, both.map(lambda command: typed(box, there, env, command), to_type)))
    assert not wrong, "\n".join(f"{found[line.split(chr(39))[1]] if line.split(chr(39))[1] in found else ''}: {line}" for line in wrong)
    for command in sorted(names):
        words = command.split()[1:]
        shown = box.run([box.systoll, words[0], "--help"])
        assert shown.returncode == 0 and all(word in text(shown.stdout) for word in words[1:]), f"{found[command]}: {command}"
    print(f"      {len(to_type)} commands typed, {len(names)} named, {len(left)} left out; reasons without a command: {unused}")
