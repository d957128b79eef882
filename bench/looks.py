#!/usr/bin/env python3
"""Measures what reading the lines of scripts costs: a loop of a cheap call in each language, unwatched and watched by turns.

  python3 bench/looks.py --systoll PATH [--rounds N] [WORD…]

Each round runs four commands: the script without its loop and with it, each unwatched and watched. A line of the table has the loop's
calls, the median wall times of the run with the loop, the ratio of watched to unwatched (median of the rounds, with the lowest and
the highest), the same ratio of the processor time of everything, the looks at lines that the loop's calls got, systoll's own
processor time without the loop and with it (the fastest of the rounds, ms), and what a look takes at most, in µs: the difference of
these two, which has windows and the report of the loop's calls as well, by the number of looks. What is not installed is left out. With 7 rounds it takes two to four minutes.
"""
import argparse
import json
import os
import shutil
import statistics
import subprocess
import tempfile
import time

from beside import spent

# Each language's command, the script's name, the script with N for its number of turns, and that number.
LOOPS = {
    "Node": (["node"], "loop.js", "function ask(n) { for (let i = 0; i < n; i++) process.ppid; }\nask(N);\n", 400_000),
    "Java": (
        ["java", "-cp", "."],
        "Loop.java",
        "class Loop {\n  static long ask(int n) {\n    long sum = 0;\n    for (int i = 0; i < n; i++)\n"
        '      sum += new java.io.File("/etc/hostname").length();\n    return sum;\n  }\n'
        "  public static void main(String[] a) { ask(N); }\n}\n",
        200_000,
    ),
    "PHP": (["php"], "loop.php", "<?php\nfunction ask($n) {\n  for ($i = 0; $i < $n; $i++)\n    is_writable('/nowhere/x');\n}\nask(N);\n", 200_000),
    "Python": (["/usr/bin/python3"], "loop.py", "import os\ndef ask(n):\n    for _ in range(n):\n        os.getppid()\nask(N)\n", 400_000),
    "Ruby": (["ruby"], "loop.rb", "def ask(n)\n  i = 0\n  while (i += 1) <= n\n    Process.ppid\n  end\nend\nask(N)\n", 400_000),
    "Perl": (["perl"], "loop.pl", "sub ask {\n  my $n = shift;\n  for my $i (1 .. $n) {\n    -e '/nowhere/x';\n  }\n}\nask(N);\n", 400_000),
    "Lua": (["lua5.4"], "loop.lua", "local function ask(n)\n  for i = 1, n do\n    os.remove('/nowhere/x')\n  end\nend\nask(N)\n", 200_000),
    "LuaJIT": (["luajit"], "loop.luajit", "local function ask(n)\n  for i = 1, n do\n    os.remove('/nowhere/x')\n  end\nend\nask(N)\n", 200_000),
    "bash": (["bash"], "loop.sh", "ask() {\n  for ((i = 0; i < $1; i++)); do\n    [ -e /nowhere/x ]\n  done\n}\nask N\n", 60_000),
}


def command(folder, language, turns):
    """Writes a language's script with so many turns, and returns the command that runs it; None where it can't be run."""
    argv, name, body, _ = LOOPS[language]
    if not shutil.which(argv[0]):
        return None
    into = os.path.join(folder, str(turns))
    os.makedirs(into, exist_ok=True)
    path = os.path.join(into, name)
    with open(path, "w") as f:
        f.write(body.replace("N)", f"{turns})").replace("ask N", f"ask {turns}"))
    if language != "Java":
        return [*argv, path]
    if not shutil.which("javac"):
        return None
    subprocess.run(["javac", "-d", into, path], check=True, timeout=120)
    return ["java", "-cp", into, "Loop"]


def looks(systoll, argv):
    """Returns the looks at lines of one watched run."""
    with tempfile.TemporaryDirectory() as folder:
        report = os.path.join(folder, "looks.json")
        watched = [systoll, "run", "-q", "--json", "-o", report, "--", *argv]
        subprocess.run(watched, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=120)
        with open(report) as f:
            doc = json.load(f)
    return sum(line["looks"] for row in doc["rows"] for line in row["lines"])


def own_time(argv):
    """Returns the processor time of a command's first process, ms: that of its threads, as last read before its end."""
    process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    most = 0
    while process.poll() is None:
        try:
            threads = os.listdir(f"/proc/{process.pid}/task")
            most = max(most, sum(int(text(f"/proc/{process.pid}/task/{tid}/schedstat").split()[0]) for tid in threads))
        except (OSError, IndexError):
            pass
        time.sleep(0.002)
    return most / 1e6


def text(path):
    with open(path) as f:
        return f.read()


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("--systoll", required=True)
    args.add_argument("--rounds", type=int, default=7)
    args.add_argument("words", nargs="*")
    args = args.parse_args()
    systoll = os.path.abspath(args.systoll)
    print(f"load {os.getloadavg()[0]:.1f} before, {os.cpu_count()} processors, {args.rounds} rounds; ms of wall time", flush=True)
    print(f"{'':8}{'calls':>9}{'alone':>9}{'watched':>9}{'ratio':>8}{'lowest':>8}{'highest':>9}{'processor':>11}{'looks':>7}{'own':>8}{'own':>8}{'µs a look':>11}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_CACHE_HOME"] = os.path.join(folder, "cache")
        os.makedirs(os.environ["XDG_CACHE_HOME"], mode=0o700)
        for language in [known for known in LOOPS if not args.words or known in args.words]:
            row(systoll, folder, language, args.rounds)
    print(f"load {os.getloadavg()[0]:.1f} after")


def row(systoll, folder, language, rounds):
    turns = LOOPS[language][3]
    empty, loop = command(folder, language, 0), command(folder, language, turns)
    if not loop:
        print(f"{language:8} not installed", flush=True)
        return
    watched = [systoll, "run", "-q", "--"]
    # A run keeps what it has learnt for the next one.
    for argv in (empty, loop) * 3:
        spent([*watched, *argv])
    kept = {name: [] for name in ("empty", "empty watched", "loop", "loop watched")}
    for _ in range(rounds):
        for name, argv in (("empty", empty), ("loop", loop)):
            kept[name].append(spent(argv))
            kept[f"{name} watched"].append(spent([*watched, *argv]))
    wall, cpu = ({name: [times[n] for times in all] for name, all in kept.items()} for n in (0, 1))
    ratios, of_cpu = (sorted(b / a for a, b in zip(times["loop"], times["loop watched"])) for times in (wall, cpu))
    own = [min(own_time([*watched, *argv]) for _ in range(rounds)) for argv in (empty, loop)]
    seen = looks(systoll, loop) - looks(systoll, empty)
    each = (own[1] - own[0]) * 1e3 / max(1, seen)
    print(
        f"{language:8}{turns:9,}{statistics.median(wall['loop']):9.0f}{statistics.median(wall['loop watched']):9.0f}"
        f"{statistics.median(ratios):8.2f}{ratios[0]:8.2f}{ratios[-1]:9.2f}{statistics.median(of_cpu):11.2f}{seen:7}{own[0]:8.1f}{own[1]:8.1f}{each:11.0f}",
        flush=True,
    )


if __name__ == "__main__":
    main()
