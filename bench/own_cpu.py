#!/usr/bin/env python3
"""Measures how well a recording's own processor time equals that of the same command unwatched.

Each command runs in turns: twice unwatched (by the kernel's own account of it and all its
descendants, rusage), once watched. It prints the told time over the twins' median, and how often
nothing was told. With --busy a loop of our own takes one processor meanwhile.
"""
import argparse
import contextlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import textwrap

# A figure counts as right within a tenth, or within this much for programs that end at once.
SMALL_MS = 0.3


def commands(folder):
    """Returns ordinary commands that are installed here; most take 1 to 100 ms."""
    write = lambda name, text: open(os.path.join(folder, name), "w").write(textwrap.dedent(text))
    write("lines.txt", "".join(f"{i * 7919 % 10007} the quick brown fox {i}\n" for i in range(20000)))
    write("page.1", ".TH X 1\n" + ".SH NAME\nx \\- y\n.PP\nSome words, and more of them, and so on.\n" * 300)
    write("hello.c", "#include <stdio.h>\nint main(void) { puts(\"hello\"); return 0; }\n")
    write("threads.c", """\
        #include <pthread.h>
        #include <stdio.h>
        #include <unistd.h>
        static void *work(void *p) {
            volatile long sum = 0;
            for (int i = 0; i < 300; i++) { for (int j = 0; j < 10000; j++) sum += j; getppid(); }
            return p;
        }
        int main(void) {
            pthread_t all[8];
            for (int i = 0; i < 8; i++) pthread_create(&all[i], 0, work, 0);
            for (int i = 0; i < 8; i++) pthread_join(all[i], 0);
            return 0;
        }
        """)
    write("storm.c", """\
        #include <sys/wait.h>
        #include <unistd.h>
        int main(void) {
            for (int i = 0; i < 200; i++) {
                if (!fork()) { volatile long sum = 0; for (int j = 0; j < 50000; j++) sum += j; _exit(0); }
                wait(0);
            }
            return 0;
        }
        """)
    write("spin.c", "int main(void) { volatile long i; for (i = 0; i < 20000000; i++); return 0; }\n")
    write("Makefile", "all: a b c d e\na b c d e:\n\t@echo $@ > /dev/null\n\t@wc -l lines.txt > /dev/null\n")
    write("words.py", "import json, re\nd = {}\nfor l in open('lines.txt'):\n    d[l[:3]] = d.get(l[:3], 0) + 1\n")
    write("words.pl", "my %d; open(F, 'lines.txt'); while (<F>) { $d{substr($_, 0, 3)}++ } print scalar(keys %d), \"\\n\";\n")
    write("p.gp", "")
    for name in ("threads", "storm", "spin", "hello"):
        subprocess.run(["gcc", "-O1", "-pthread", "-o", name, f"{name}.c"], cwd=folder, check=True)
    sh = lambda text: ["sh", "-c", text]
    bash = lambda text: ["bash", "-c", text]
    py = lambda text: [sys.executable, "-c", text]
    perl = lambda text: ["perl", "-e", text]
    awk = lambda text: ["awk", text, "lines.txt"]
    return [
        ["/bin/true"], ["./hello"], ["./spin"], ["./threads"], ["./storm"], ["ls", "-l", "/usr/bin"], ["ls", "/"],
        ["cat", "lines.txt"], ["wc", "lines.txt"], ["sort", "lines.txt"], ["sort", "-n", "lines.txt"], ["sort", "-k3", "-u", "lines.txt"],
        ["uniq", "-c", "lines.txt"], ["cut", "-d ", "-f2", "lines.txt"], ["tr", "a-z", "A-Z"], ["head", "-5", "lines.txt"],
        ["tail", "-5", "lines.txt"], ["grep", "-c", "fox", "lines.txt"], ["grep", "-E", "([0-9]+).*\\1$", "lines.txt"],
        ["grep", "-r", "include", "/usr/include/linux"], ["grep", "-rl", "zzzz", "/etc"], ["sed", "s/fox/dog/g", "lines.txt"],
        ["sed", "-n", "1~7p", "lines.txt"], awk("{ n += $1 } END { print n }"), awk("{ c[$1 % 97]++ } END { for (k in c) print k, c[k] }"),
        ["find", "/usr/include", "-name", "*.h"], ["find", "/usr/share", "-type", "f", "-size", "+100k"], ["find", "/etc"],
        ["du", "-s", "/usr/include"], ["stat", "/etc/passwd"], ["md5sum", "lines.txt"], ["sha256sum", "lines.txt"],
        ["gzip", "-c", "lines.txt"], ["bzip2", "-c", "lines.txt"], ["xz", "-1", "-c", "lines.txt"], ["tar", "cf", "-", "/usr/include/linux"],
        ["od", "lines.txt"], ["xxd", "lines.txt"], ["base64", "lines.txt"], ["diff", "lines.txt", "page.1"], ["cmp", "lines.txt", "lines.txt"],
        ["expr", "1", "+", "1"], ["date"], ["id"], ["env"], ["uname", "-a"], ["ps", "aux"], ["df"], ["seq", "100000"], ["factor", "1234567890123456789"],
        ["dd", "if=/dev/zero", "of=/dev/null", "bs=512", "count=20000"], ["dd", "if=/dev/zero", "of=/dev/null", "bs=1M", "count=200"],
        sh("for i in 1 2 3 4 5 6 7 8 9 10; do /bin/true; done"), sh("i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done"),
        sh("for i in 1 2 3 4 5; do cat lines.txt | wc -l; done"), sh("cat lines.txt | sort | uniq | wc -l"),
        bash("for i in {1..20000}; do :; done"), bash("for i in {1..30}; do x=$(echo $i); done"), bash("for i in {1..30}; do (exit 0); done"),
        bash("sort lines.txt > /dev/null & sort lines.txt > /dev/null & wait"), bash("for i in {1..20}; do read x < lines.txt; done"),
        ["xargs", "-n", "500", "-a", "lines.txt", "true"], ["timeout", "5", "sort", "lines.txt"], ["nice", "sort", "lines.txt"],
        py("pass"), py("sum(range(1000000))"), py("import json, re, subprocess"), py("import threading\nfor i in range(50): t = threading.Thread(target=sum, args=(range(10000),)); t.start(); t.join()"),
        py("import os\nfor i in range(20000): os.stat('/')"), py("import os\nfor i in range(50):\n p = os.fork()\n if not p: os._exit(0)\n os.wait()"),
        py("import subprocess\nfor i in range(10): subprocess.run(['true'])"), [sys.executable, "words.py"], py("import time; time.sleep(0.1)"),
        perl("my $s = 0; $s += $_ for 1..300000"), ["perl", "words.pl"], perl("for (1..20) { system('true') }"), perl("use POSIX; use Data::Dumper"),
        ["gcc", "-c", "hello.c", "-o", "hello.o"], ["gcc", "-O2", "hello.c", "-o", "hello2"], ["gcc", "-E", "threads.c"], ["cc1", "--version"],
        ["make", "-s"], ["make", "-s", "-j4"], ["make", "-n"], ["groff", "-man", "-Tascii", "page.1"], ["groff", "-t", "-e", "-man", "-Tutf8", "page.1"],
        ["nroff", "-man", "page.1"], ["troff", "-man", "page.1"], ["man", "--version"], ["git", "--version"], ["git", "init", "-q", "g"], ["git", "-C", "/", "status"],
        ["go", "version"], ["node", "-e", "0"], ["ruby", "-e", "100000.times { }"], ["php", "-r", "echo 1;"], ["sqlite3", ":memory:", "select 1"],
        ["openssl", "version"], ["openssl", "dgst", "-sha256", "lines.txt"], ["curl", "--version"], ["gpg", "--version"], ["ssh", "-V"],
        ["readelf", "-a", "/bin/ls"], ["objdump", "-d", "/bin/ls"], ["nm", "-D", "/bin/ls"], ["strings", "/bin/ls"], ["ldd", "/bin/ls"], ["file", "/bin/ls"],
        ["m4", "lines.txt"], ["bc", "--version"], ["dpkg", "-l"], ["dpkg-query", "-S", "/bin/ls"], ["apt-cache", "policy", "gcc"], ["locale", "-a"],
        ["nginx", "-t"], ["getent", "passwd"], ["dash", "-c", "echo hello"], ["tclsh", "/dev/null"], ["lua", "-e", "for i=1,100000 do end"],
    ]


@contextlib.contextmanager
def bench(words, busy):
    """Yields the commands asked for, to be run in a folder of their own; with `busy`, one processor is taken
    meanwhile."""
    folder, before = tempfile.mkdtemp(prefix="systoll-bench-"), os.getcwd()
    ready = commands(folder)
    os.chdir(folder)
    loop = subprocess.Popen([sys.executable, "-c", "while True: pass"]) if busy else None
    try:
        named = [(argv, " ".join(argv).replace("\n", ";")) for argv in ready if shutil.which(argv[0])]
        yield [(argv, name) for argv, name in named if not words or any(w in name for w in words)]
    finally:
        if loop:
            loop.kill()
            loop.wait()
        os.chdir(before)
        shutil.rmtree(folder)


def spent_ms(pid):
    _, status, usage = os.wait4(pid, 0)
    return (usage.ru_utime + usage.ru_stime) * 1e3


def spawned(argv, nothing):
    """Returns the processor time of a command and its descendants, in ms."""
    actions = [(os.POSIX_SPAWN_DUP2, nothing, 0), (os.POSIX_SPAWN_DUP2, nothing, 1), (os.POSIX_SPAWN_DUP2, nothing, 2)]
    return spent_ms(os.posix_spawnp(argv[0], argv, os.environ, file_actions=actions))


def told(systoll, argv, backend, report):
    """Returns what a recording says of the program's own processor time and of its toll, in ms."""
    command = [systoll, "run", "-q", "--json", "-o", report, *backend, "--", *argv]
    subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=120)
    with open(report) as f:
        run = json.load(f)
    os.unlink(report)
    own, toll = run["own_cpu_ns"], run["toll_ns"]
    return own / 1e6 if own else None, toll and toll / 1e6


def wrong(own, twin, factor):
    return abs(own - twin) > max(SMALL_MS, (factor - 1) * twin)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--systoll", required=True)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--busy", action="store_true", help="with one processor taken by a loop")
    parser.add_argument("--backend", choices=("inproc", "ptrace"))
    parser.add_argument("words", nargs="*", help="only commands that contain one of these")
    options = parser.parse_args()
    options.systoll = os.path.abspath(options.systoll)
    nothing = os.open("/dev/null", os.O_RDWR)
    backend = ["--backend", options.backend] if options.backend else []
    tried, within, unknown, worst = 0, 0, 0, 0.0
    with bench(options.words, options.busy) as ready:
        for argv, name in ready:
            twins, own = [], []
            for _ in range(options.runs):
                twins.append(spawned(argv, nothing))
                own.append(told(options.systoll, argv, backend, "report"))
                twins.append(spawned(argv, nothing))
            twin = statistics.median(twins)
            known = [o for o, _ in own if o]
            good = sum(not wrong(o, twin, 1.1) for o in known)
            tried, within, unknown = tried + len(own), within + good, unknown + len(own) - len(known)
            far = max((max(o, 0.01) / twin for o in known), key=lambda r: max(r, 1 / r), default=1.0)
            spread = f"{min(twins):.1f}..{max(twins):.1f}"
            said = " ".join("?" if o is None else f"{o:.2f}" for o, _ in own)
            toll = statistics.median([t for _, t in own if t is not None] or [0])
            print(f"{twin:8.2f} ms ({spread:>12})  told {said:<32} worst {far:5.2f}  toll {toll:7.2f}  {name[:60]}", flush=True)
    print(f"{tried} runs: {within} within a tenth or {SMALL_MS} ms of the twins' median, {unknown} unknown, {tried - within - unknown} further off")


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        print("interrupted: the lines above are what is known so far", flush=True)
        sys.exit(130)
