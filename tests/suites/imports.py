"""Traces of other tools are read with their true counts: strace's text under every set of flags against strace's own
table of the same run (strace -C writes both), traces of perf and ltrace, and excerpts that people paste."""
import gzip
import json
import os
import re

import readers
from harness import Skip, test, tool
from public_traces import TRACES
from suites.counts import RESULTLESS

LEAN = ["-ttt", "-T"]
# Sets of strace's flags. Programs and sets are paired so that each of both occurs at least once.
FLAGS = [
    [], ["-t"], ["-tt"], LEAN, ["-r"], ["-T", "-y"], ["-yy", "-v"], ["-s", "0"], ["-s", "4096", "-xx"], ["-x"],
    ["-X", "raw"], ["-X", "verbose"], ["-e", "abbrev=none"], ["-Y"], ["-n"], ["-i"], ["-e", "raw=all"],
    ["-ttt", "-r", "-T", "-y", "-v"], ["-e", "signal=none"], ["-k"],
]


def text(raw):
    return raw.decode(errors="replace")


def table(lines):
    """Returns {syscall: (calls, errors)} from strace's table among other lines."""
    counts = {}
    for line in lines.splitlines():
        w = line.split()
        if len(w) in (5, 6) and re.fullmatch(r"[\d.]+ [\d.]+ \d+ \d+( \d+)?", " ".join(w[:-1])) and w[-1] != "total":
            counts[w[-1]] = (int(w[3]), int(w[4]) if len(w) == 6 else 0)
    return counts


def imported(box, *files, flags=()):
    r = box.run([box.systoll, "import", "--json", *flags, *files])
    assert r.returncode == 0, text(r.stderr)
    return json.loads(r.stdout)


def counted(doc):
    return {r["syscall"]: (r["calls"], sum(r["errors"].values())) for r in doc["by_syscall"] if r["calls"]}


def compare(doc, theirs):
    ours = counted(doc)
    different = [f"{k}: {ours.get(k)} not {theirs.get(k)}" for k in sorted(set(ours) | set(theirs)) if k not in RESULTLESS and ours.get(k) != theirs.get(k)]
    assert theirs and not different, different
    wrong = [p for p in doc["problems"] if "none of a trace" in p or "own table counts" in p or "begins in the middle" in p]
    assert not wrong, wrong


PROGRAMS = {
    "ls": ["ls", "-l", "/etc"],
    "shell": ["sh", "-c", "ls | cat | wc -l; (sleep 0.01 & wait); kill -9 $$"],
    "bash": ["bash", "-c", "for i in 1 2 3; do echo $i | cat; done; trap 'echo hi' USR1; kill -USR1 $$; echo done"],
    "python": ["/usr/bin/python3", "-E", "-s", "-c", "import threading, subprocess\nts = [threading.Thread(target=lambda: open('/etc/passwd').read()) for _ in range(5)]\n[t.start() for t in ts]; [t.join() for t in ts]\nsubprocess.run(['true'])"],
    "perl": ["perl", "-e", "for (1..50) { my @s = stat('/etc/passwd'); localtime }"],
    "git": ["git", "--version"],
    "find": ["find", "/etc/default", "-name", "x*"],
    "grep": ["grep", "-r", "root", "/etc/default"],
    "gcc": ["gcc", "-v"],
    "tar": ["tar", "-cf", "/dev/null", "/etc/default"],
    "sort": ["sort", "/etc/passwd"],
    "sed": ["sed", "s/a/b/", "/etc/passwd"],
    "dd": ["dd", "if=/dev/zero", "of=/dev/null", "bs=1", "count=300"],
    "timeout": ["timeout", "0.05", "sleep", "1"],
    "env": ["env"],
    "id": ["id"],
    "date": ["date"],
    "du": ["du", "/etc/default"],
    "xargs": ["xargs", "-a", "/etc/hostname", "echo"],
    "head": ["head", "-c", "100", "/dev/urandom"],
    "gzip": ["gzip", "-c", "/etc/passwd"],
    "wc": ["wc", "/etc/passwd"],
}


def program(at, name):
    @test(f"strace_{name}", users=("root",))
    def run(box):
        argv = [tool(PROGRAMS[name][0]), *PROGRAMS[name][1:]]
        for flags in (FLAGS[at % len(FLAGS)], FLAGS[(at + 7) % len(FLAGS)], LEAN):
            trace = box.file("trace")
            box.run([tool("strace"), "-f", "-C", *flags, "-o", trace, "--", *argv])
            with open(trace, errors="replace") as f:
                compare(imported(box, trace), table(f.read()))
        # The program's own output stands between the lines, as on a terminal.
        r = box.run([tool("strace"), "-f", "-C", "--", *argv], stdout=-1)
        compare(imported(box, box.file("terminal", r.stderr)), table(text(r.stderr)))


for at, name in enumerate(PROGRAMS):
    program(at, name)


def strace(box, name, argv, *flags):
    trace = os.path.join(box.dir, name)
    box.run([tool("strace"), "-f", *flags, "-o", trace, "--", *argv])
    return trace


@test()
def a_file_a_thread(box):
    """strace -ff writes a file for each thread: processes, programs and descriptors are those of the same calls in one
    file."""
    shell = ["/bin/sh", "-c", "ls /etc | cat > /dev/null; true"]
    strace(box, "own", shell, "-ff", *LEAN)
    files = sorted(os.path.join(box.dir, f) for f in os.listdir(box.dir) if f.startswith("own."))
    assert len(files) == 3, files
    doc = imported(box, *files)
    lines = "".join(open(f, errors="replace").read() for f in files)
    assert sum(c for c, _ in counted(doc).values()) == len(re.findall(r"^\d+\.\d+ \w+\(.* = (?!\?$)", lines, re.M)), doc["by_syscall"]
    exes = [p["exe"].rsplit("/", 1)[-1] for p in doc["processes"]]
    assert sorted(exes) == ["cat", "ls", "sh", "sh", "sh"], exes


def disease(box):
    """Traces a disease: localtime without TZ, 10,000 times."""
    source = box.file("tz.c", "#include <time.h>\nint main(void) { for (time_t t = 0; t < 10000; t++) localtime(&t); }\n")
    out = os.path.join(box.dir, "tz")
    assert box.run([tool("gcc"), "-g", "-o", out, source]).returncode == 0
    return out


@test()
def a_trace_gets_its_cause(box):
    # The price of its calls decides whether a cause is told.
    with box.only_kernel_tracer():
        env = {k: v for k, v in box.env.items() if k != "TZ"}
        trace = os.path.join(box.dir, "trace")
        box.run([tool("strace"), *LEAN, "-v", "-o", trace, disease(box)], env=env)
        doc = imported(box, trace)
        [found] = [f for f in doc["findings"] if f["cause"] == "tz-unset"]
        # On a busy machine times tell less.
        sure = "medium" if any("kept the processors busy" in p for p in doc["problems"]) else "high"
        assert found["calls"] >= 9999 and found["confidence"] == sure and found["what"] == "/etc/localtime", found
        assert doc["backend"] == "import" and doc["toll_estimated"] and found["toll_ns"] > 0, doc["prices"]
        # A trace with less in it gets the same findings, told as less sure.
        bare = os.path.join(box.dir, "bare")
        box.run([tool("strace"), "-o", bare, disease(box)], env=env)
        doc = imported(box, bare)
        [found] = [f for f in doc["findings"] if f["cause"] == "tz-unset"]
        assert found["confidence"] == "medium" and any("no times" in p for p in doc["problems"]), doc["problems"]
        # No command is offered from words that a trace has cut short, and a time that it does not tell is not printed.
        box.run([tool("strace"), "-s", "8", "-o", bare, disease(box)], env=env)
        said = text(box.run([box.systoll, "import", bare]).stdout)
        assert "--cure tz-unset -- CMD " in said and " 0 ns" not in said, said
        # The trace comes live, on one pipe with the traced program's output.
        r = box.run(["/bin/sh", "-c", f"{tool('strace')} {disease(box)} 2>&1 | {box.systoll} import -"], env=env)
        assert r.returncode == 0 and b"tz-unset" in r.stdout, text(r.stdout + r.stderr)
        # As a recording, it says the same.
        kept = os.path.join(box.dir, "kept.systoll")
        told = box.run([box.systoll, "import", "--save", kept, trace]).stdout
        again = box.run([box.systoll, "report", kept]).stdout
        assert told == again, text(told + again)


@test()
def of_two_files_each_has_its_own_cause(box):
    """Without stacks a trace has one row for each system call: TZ stops the calls about the zone's file, and no
    others."""
    env = {k: v for k, v in box.env.items() if k != "TZ"}
    trace = os.path.join(box.dir, "trace")
    box.run([tool("strace"), "-f", "-ttt", "-T", "-o", trace, box.build("two_files.c"), "5000"], env=env)
    doc = imported(box, trace)
    causes = {f["cause"]: f for f in doc["findings"]}
    zone, other = causes["tz-unset"], causes["stat-per-op"]
    assert (zone["what"], other["what"]) == ("/etc/localtime", "/etc/passwd"), causes
    for finding in (zone, other):
        assert 4990 <= finding["needless_calls"]["estimate"] <= 5010, finding["needless_calls"]
        assert finding["needless_calls"]["high"] < 5200, finding["needless_calls"]
        assert 4990 <= finding["calls_about"]["estimate"] <= 5010 and finding["calls"] > 9990, finding


@test()
def a_trace_that_is_cut_is_said_to_be(box):
    trace = strace(box, "trace", [tool("ls"), "-l", "/etc"], *LEAN)
    with open(trace, "rb") as f:
        whole = f.read()
    half = imported(box, box.file("half", whole[: len(whole) // 2 + 20].rsplit(b"\n", 1)[0] + b"\n1234 read(3, \"ab"))
    assert any("in the middle" in p for p in half["problems"]) and not half["exact"], half["problems"]
    lines = whole.splitlines(keepends=True)
    noise = imported(box, box.file("noise", b"".join(lines[:20]) + b"segmentation fault\nwhat \x1b[31mever\n" + b"".join(lines[20:])))
    [said] = [p for p in noise["problems"] if "none of a trace" in p]
    assert said.startswith("2 lines") and "segmentation fault" in said, said
    assert counted(noise) == counted(imported(box, trace))


@test()
def what_is_no_trace_is_refused(box):
    cases = {"empty": b"", "blank": b"\n\n", "text": b"hello\nworld\n", "binary": os.urandom(4096), "elf": open("/bin/true", "rb").read()}
    for name, content in cases.items():
        r = box.run([box.systoll, "import", box.file(name, content)])
        said = text(r.stderr)
        assert r.returncode == 125 and "is no trace" in said and "strace -f" in said, (name, said)
    r = box.run([box.systoll, "import", box.dir])
    assert r.returncode == 125 and "directory" in text(r.stderr), text(r.stderr)
    r = box.run([box.systoll, "import", os.path.join(box.dir, "gone")])
    assert r.returncode == 125 and "No such file" in text(r.stderr), text(r.stderr)


@test()
def a_table_is_counts_alone(box):
    r = box.run([tool("strace"), "-c", "-f", tool("ls"), "-l", "/etc"], stdout=-1)
    doc = imported(box, box.file("table", r.stderr))
    compare(doc, table(text(r.stderr)))
    assert not doc["findings"] and any("table of counts" in p for p in doc["problems"]), doc["problems"]


@test(users=("root",))
def perfs_traces(box):
    """perf script and perf trace of one run each: the counts are those of the recorded events."""
    perf, argv = tool("perf"), [tool("ls"), "-l", "/etc"]
    data = os.path.join(box.dir, "perf.data")
    box.may("recording system calls with perf", "perf", "stat", "-e", "raw_syscalls:sys_enter", "/bin/true")
    with box.only_kernel_tracer():
        r = box.run([perf, "record", "-q", "-e", "raw_syscalls:*", "-o", data, "--", *argv])
    if r.returncode:
        raise Skip("perf can't record: " + text(r.stderr).strip()[-100:])
    script = box.run([perf, "script", "-i", data]).stdout
    doc = imported(box, box.file("script", script))
    exits = len(re.findall(r"sys_exit: NR", text(script)))
    assert sum(c for c, _ in counted(doc).values()) == exits, (exits, doc["problems"])
    out = os.path.join(box.dir, "trace")
    box.run([perf, "trace", "-o", out, "--", *argv])
    with open(out, errors="replace") as f:
        lines = [line for line in f.read().splitlines() if re.search(r"\): .*\) += (?!\?)", line)]
    if not lines:
        raise Skip("perf trace wrote nothing")
    doc = imported(box, out)
    assert sum(c for c, _ in counted(doc).values()) == len(lines), (len(lines), doc["problems"])
    box.run([perf, "trace", "-s", "-o", out, "--", *argv])
    with open(out, errors="replace") as f:
        told = re.findall(r"^ +(\w+) +(\d+) +(\d+) +[\d.]+ +[\d.]+", f.read(), re.M)
    doc = imported(box, out)
    assert counted(doc) == {name: (int(calls), int(errors)) for name, calls, errors in told} and len(told) > 5, (told, doc["by_syscall"])


def by_perfettos_messages(box, kind, source):
    """Makes a Perfetto trace from another trace. Returns its path, and how many calls returned in it."""
    python, out = readers.formats(), os.path.join(box.dir, kind + ".pb")
    if not python:
        raise Skip("Perfetto's messages are not installed: tests/readers.py")
    r = box.run([python, os.path.join(readers.HERE, "perfetto_traces.py"), kind, source, out])
    assert r.returncode == 0, text(r.stderr)
    return out, int(r.stdout)


@test()
def systings_slices(box):
    """Names and times as systing exports them, in Perfetto's own messages: all are counted, and nothing is claimed of
    what they do not tell."""
    source = os.path.join(box.dir, "trace")
    box.run([tool("strace"), "-f", "-ttt", "-T", "-o", source, *PROGRAMS["python"]])
    with open(source, errors="replace") as f:
        names = re.findall(r"^\d+ +[\d.]+ (\w+)\(.*\) += .*<[\d.]+>$", f.read(), re.M)
    out, count = by_perfettos_messages(box, "slices", source)
    doc = imported(box, out)
    assert counted(doc) == {name: (names.count(name), 0) for name in names} and sum(c for c, _ in counted(doc).values()) == count > 300, doc["by_syscall"]
    assert doc["command"] == ["program", "argument"] and not doc["findings"] and doc["wall_ns"] > 10**6, doc["command"]
    assert any("names and times only" in p for p in doc["problems"]), doc["problems"]
    with open(out, "rb") as f:
        whole = f.read()
    # The file is cut at two neighbouring bytes: one of them is not the last of a packet.
    cuts = [imported(box, box.file("cut.pb", whole[: len(whole) * 2 // 3 - less])) for less in (0, 1)]
    assert any("ends in the middle" in p for cut in cuts for p in cut["problems"]), [cut["problems"] for cut in cuts]
    assert all(0 < sum(c for c, _ in counted(cut).values()) < count for cut in cuts), [counted(cut) for cut in cuts]
    for name, start, words in [("a.duckdb", b"12345678DUCK", "systing-util convert"), ("a.pb.gz", b"\x1f\x8b\x07", "unpacked")]:
        r = box.run([box.systoll, "import", box.file(name, start + whole)])
        assert r.returncode == 125 and words in text(r.stderr), text(r.stderr)
    packed = imported(box, box.file("b.pb.gz", gzip.compress(whole)))
    assert counted(packed) == counted(doc), (counted(packed), counted(doc))


@test(users=("root",))
def perfettos_kernel_events(box):
    """The same run's events, once as perf script's text and once as Perfetto's recorder writes them, are the same
    calls."""
    perf, data = tool("perf"), os.path.join(box.dir, "perf.data")
    box.may("recording system calls with perf", "perf", "stat", "-e", "raw_syscalls:sys_enter", "/bin/true")
    with box.only_kernel_tracer():
        r = box.run([perf, "record", "-q", "-e", "raw_syscalls:*", "-o", data, "--", *PROGRAMS["shell"]])
    script = box.file("script", box.run([perf, "script", "-i", data]).stdout)
    out, count = by_perfettos_messages(box, "events", script)
    by_text, by_packets = imported(box, script), imported(box, out)
    assert counted(by_packets) == counted(by_text) and sum(c for c, _ in counted(by_packets).values()) == count > 100, (counted(by_packets), counted(by_text))


@test()
def ltraces_system_calls(box):
    trace = os.path.join(box.dir, "trace")
    r = box.run([tool("ltrace"), "-S", "-f", "-o", trace, tool("ls"), "/etc"])
    if r.returncode or not os.path.exists(trace):
        raise Skip("ltrace can't trace here: " + text(r.stderr).strip()[-100:])
    with open(trace, errors="replace") as f:
        calls = re.findall(r"SYS_(?!exit)\w+(?:\(.*\)| resumed>.*\)) += ", f.read())
    doc = imported(box, trace)
    assert sum(c for c, _ in counted(doc).values()) == len(calls) > 20, (len(calls), doc["by_syscall"], doc["problems"])
    box.run([tool("ltrace"), "-S", "-i", "-o", trace, tool("true")])
    with open(trace, errors="replace") as f:
        calls = re.findall(r"^\[0x[0-9a-f]+\] SYS_(?!exit)\w+\(.*\) += ", f.read(), re.M)
    assert sum(c for c, _ in counted(imported(box, trace)).values()) == len(calls) > 5, calls
    box.run([tool("ltrace"), "-S", "-c", "-o", trace, tool("true")])
    with open(trace, errors="replace") as f:
        theirs = [int(calls) for calls, name in re.findall(r"(\d+) SYS_(\w+)$", f.read(), re.M)]
    # ltrace has names of its own for some calls, and none for new ones.
    ours = sorted(calls for calls, _ in counted(imported(box, trace)).values())
    assert ours == sorted(theirs) and len(ours) > 5, (ours, theirs)


# Excerpts as people paste them: what was on the terminal, cut and quoted by nobody's rules.
PASTED = {
    "unprefixed, output in between": (
        'write(1, "hello\\n", 6hello\n)                  = 6\nwrite(1, "a", 1a)                        = 1\nexit_group(0)                           = ?\n+++ exited with 0 +++\n',
        {"write": (2, 0)},
    ),
    "a thread's wait, resumed elsewhere": (
        '[pid  101] futex(0x7f10, FUTEX_WAIT_PRIVATE, 2, NULL <unfinished ...>\n[pid  102] futex(0x7f10, FUTEX_WAKE_PRIVATE, 1) = 1\n[pid  101] <... futex resumed>)          = 0\n',
        {"futex": (2, 0)},
    ),
    "restarted, interrupted": (
        "nanosleep({tv_sec=1, tv_nsec=0}, {tv_sec=0, tv_nsec=5}) = ? ERESTART_RESTARTBLOCK (Interrupted by signal)\n--- SIGCONT {si_signo=SIGCONT, si_code=SI_USER, si_pid=1, si_uid=0} ---\nrestart_syscall(<... resuming interrupted nanosleep ...>) = 0\n",
        {"nanosleep": (1, 1), "restart_syscall": (1, 0)},
    ),
    "an old strace, 32 bits": (
        'open("/etc/ld.so.cache", O_RDONLY)      = 3\nfstat64(3, {st_mode=S_IFREG|0644, st_size=12, ...}) = 0\nold_mmap(NULL, 12, PROT_READ, MAP_PRIVATE, 3, 0) = 0xb7f\n_llseek(3, 0, [0], SEEK_CUR)            = 0\n',
        {"open": (1, 0), "fstat": (1, 0), "mmap": (1, 0), "lseek": (1, 0)},
    ),
    "attached in the middle": (
        "strace: Process 55 attached with 2 threads\n[pid 56] <... poll resumed>)            = 0 (Timeout)\n[pid 55] read(4, 0x7ffe, 8)             = -1 EAGAIN (Resource temporarily unavailable)\n",
        {"poll": (1, 0), "read": (1, 1)},
    ),
    "a table of its own": ("% time     seconds  usecs/call     calls    errors syscall\n------ ----------- ----------- --------- --------- ----------------\n 99.00    0.100000          10     10000      9000 stat\n  1.00    0.001000           1      1000           read\n------ ----------- ----------- --------- --------- ----------------\n100.00    0.101000                 11000      9000 total\n", {"stat": (10000, 9000), "read": (1000, 0)}),
}


@test(users=("nobody",))
def what_people_paste(box):
    for name, (content, want) in PASTED.items():
        doc = imported(box, box.file("pasted", content))
        assert counted(doc) == want, (name, counted(doc), doc["problems"])


@test(users=("nobody",))
def what_people_found_by_reading(box):
    # The price of its calls decides whether a cause is told.
    with box.only_kernel_tracer():
        for issue, (cause, sure, others, lines) in TRACES.items():
            doc = imported(box, box.file("pasted", "\n".join(lines()) + "\n"))
            told = doc["findings"] if sure else doc["also"]
            causes = {f["cause"]: f["confidence"] for f in told}
            # Nobody knows whose trace it is: a finding is never as sure as a run's own.
            assert causes.get(cause) == ("medium" if sure else "low"), (issue, causes, doc["findings"], doc["also"])
            assert not [f for f in doc["findings"] if f["cause"] not in (cause, *others)], (issue, causes, {k: v["ns"] for k, v in doc["prices"].items()})
