"""Every call is counted: counts equal strace's table, or a number that is known beforehand.

The tables here are ptrace's, which sees just what strace sees; backends_agree holds inproc's to both.
strace -c never shows exit and exit_group, does show the launcher's own execve, and counts a
restarted call again; systoll counts calls when they return, so both show the same calls.
"""
import os
import re

from harness import BOTH, PREVIEW, Skip, test, tool

TRIES = 3
# Calls without a result of their own: strace takes what the handler interrupted for it.
RESULTLESS = {"rt_sigreturn"}


def strace_table(box, argv, **kwargs):
    """Returns {syscall: (calls, errors)} of `strace -f -c`."""
    out = os.path.join(box.dir, "strace")
    box.run([tool("strace"), "-f", "-c", "-o", out, "--", *argv], **kwargs)
    table = {}
    with open(out) as f:
        for line in f:
            w = line.split()
            if len(w) >= 5 and re.fullmatch(r"[0-9.]+", w[0]) and w[-1] != "total":
                calls, errors = table.get(w[-1], (0, 0))
                failed = int(w[4]) if len(w) == 6 and w[-1] not in RESULTLESS else 0
                table[w[-1]] = calls + int(w[3]), errors + failed
    assert table, "strace wrote no table"
    return table


RESULT = re.compile(r"^\d+\s+(?:<\.\.\. (\w+) resumed>.*|(\w+)\(.*)\)\s+= (-?\d+|0x[0-9a-f]+|\?)(?: (E[A-Z0-9_]+))?")


def strace_errors(box, argv, **kwargs):
    """Returns {syscall: {errno: calls}} from a whole trace."""
    out = os.path.join(box.dir, "trace")
    box.run([tool("strace"), "-f", "-s0", "-o", out, "--", *argv], **kwargs)
    table = {}
    with open(out, errors="replace") as f:
        for m in filter(None, map(RESULT.match, f)):
            if m[4] and (m[1] or m[2]) not in RESULTLESS:
                errors = table.setdefault(m[1] or m[2], {})
                errors[m[4]] = errors.get(m[4], 0) + 1
    return table


def counted(doc):
    return {r["syscall"]: (r["calls"], sum(r["errors"].values())) for r in doc["by_syscall"] if r["calls"]}


def differences(ours, theirs):
    return [f"{k}: {ours.get(k)} not {theirs.get(k)}" for k in sorted(set(ours) | set(theirs)) if ours.get(k) != theirs.get(k)]


def ended(table, restarted):
    """Returns the table with those calls only that were not restarted. The kernel drops signals that are ignored, even
    SIGCHLD, unless a tracer may want to see them: then one may interrupt a wait for a child, which begins anew."""
    return {k: (v[0] - v[1], 0) if k in restarted else v for k, v in table.items()}


def agree(box, argv, errors=True, chance=(), restarted=(), **kwargs):
    """Asserts that the table and the errnos are strace's. Programs vary a little by themselves (a hash seed, an address
    that fits or not), so any of a few runs of either may be the one that agrees. `restarted`: calls whose only errors
    are that they begin anew."""
    ours, theirs, best = [], [], None
    for _ in range(TRIES):
        doc, r = box.report(argv, **kwargs)
        assert doc["lost"] == 0, doc["problems"]
        for tables, table in ((ours, counted(doc)), (theirs, strace_table(box, argv, **kwargs))):
            tables.append(ended({k: v for k, v in table.items() if k not in chance}, restarted))
        for a in ours:
            for b in theirs:
                d = differences(a, b)
                best = d if best is None or len(d) < len(best) else best
        if not best:
            break
    assert not best, "; ".join(best)
    if not errors:
        return
    ours, theirs, best = [], [], None
    for _ in range(2 * TRIES):
        mine = {r["syscall"]: {k: v for k, v in r["errors"].items() if v} for r in doc["by_syscall"]}
        for tables, table in ((ours, mine), (theirs, strace_errors(box, argv, **kwargs))):
            tables.append({k: v for k, v in table.items() if v and k not in {*chance, *restarted}})
        best = min((differences(a, b) for a in ours for b in theirs), key=len)
        if not best:
            return
        doc, _ = box.report(argv, **kwargs)
    assert not best, "errno: " + "; ".join(best)


def program(name, argv, backends=("ptrace", PREVIEW), **options):
    @test(name, backends=backends)
    def check(box):
        agree(box, argv(box), **options)


program("mix", lambda b: [b.build("mix.c")])
program("mix_static_glibc", lambda b: [b.build("mix.c", "-static")])
program("mix_musl", lambda b: [b.build("mix.c", compiler="musl-gcc")])
program("mix_musl_static", lambda b: [b.build("mix.c", "-static", compiler="musl-gcc")])
program("spawn", lambda b: [b.build("spawn.c")])
program("signals", lambda b: [b.build("signals.c")], restarted={"wait4"})
program("execthread", lambda b: [b.build("execthread.c")])
program("forks_100", lambda b: [b.build("forks.c"), "100"])
program("perl", lambda b: [tool("perl"), "-e", "my %h; $h{$_ % 7}++ for 1..1000; open F, '<', '/etc/passwd'; my @l = <F>; print scalar(@l) > 0, \"\\n\"; -e '/nonexistent' for 1..50"])
program("python", lambda b: ["/usr/bin/python3", "-E", "-s", "-c", "import json, os; print(json.dumps({'n': 1})); [os.path.exists('/nonexistent') for _ in range(50)]"])
# The heap's random address decides whether a page of it is aligned by chance or by one or two munmaps. It reads its maps,
# which are longer from inside.
program("ruby", lambda b: [tool("setarch"), "-R", tool("ruby"), "--disable-gems", "-e", "puts (1..100).sum; 20.times { File.exist?('/nonexistent') }"], backends=("ptrace",))
program("sqlite", lambda b: [tool("sqlite3"), "-batch", ":memory:", "create table t(a); insert into t values(1),(2); select sum(a) from t;"])
program("git_version", lambda b: [tool("git"), "--version"])
program("shell_pipeline", lambda b: ["/bin/sh", "-c", "for i in 1 2 3; do echo $i | /bin/cat; done; /bin/true; exit 3"])
program("tar", lambda b: [tool("tar"), "cf", "/dev/null", "--", "/usr/include/linux/netfilter"] if os.path.isdir("/usr/include/linux/netfilter") else skip("no kernel headers"))


def skip(why):
    raise Skip(why)


@test(backends=("ptrace",))
def git_log(box):
    repo = os.path.join(box.dir, "repo")
    git = tool("git")
    script = f"""{git} init -q {repo} && cd {repo} && {git} config user.email a@example.org && {git} config user.name A
        for i in 1 2 3; do echo $i > f && {git} add f && {git} commit -qm $i || exit 1; done"""
    assert box.run(["/bin/sh", "-c", script]).returncode == 0
    agree(box, [git, "-C", repo, "--no-pager", "log", "--oneline"])


@test(backends=("ptrace",))
def gcc_compile(box):
    box.file("a.c", "#include <stdio.h>\nint main(void) { return puts(\"x\") < 0; }\n")
    gcc = tool("gcc")
    # A child that ends may or may not interrupt the wait for the other one.
    agree(box, [gcc, "-c", "-pipe", "-o", os.path.join(box.dir, "a.o"), os.path.join(box.dir, "a.c")], chance={"wait4"})


def printed(box, argv):
    """Returns {syscall: (calls, errors)} of the table that `systoll run -c` prints."""
    out = os.path.join(box.dir, "table")
    r = box.run(box.watch(argv, "-q", "-c", "-o", out))
    assert os.path.exists(out), (r.returncode, r.stderr[-300:])
    with open(out) as f:
        lines = f.read().splitlines()
    head = next((n for n, line in enumerate(lines) if line.startswith("------")), None)
    assert head is not None and not any("not exact" in line for line in lines), (r.returncode, lines)
    rows = [line.split() for line in lines[head + 1:] if line and not line.startswith("------")]
    return {w[-1]: (int(w[3]), int(w[4]) if len(w) == 6 else 0) for w in rows if w[-1] != "total"}


@test(backends=("inproc",))
def a_printed_table_counts_what_a_whole_report_counts(box):
    """A table that is only printed is counted without contexts and windows, by other code."""
    shell = ["/bin/sh", "-c", "for i in 1 2 3 4 5 6 7 8; do x=$(echo a | cat); done; /bin/true"]
    for argv in ([box.build("mix.c")], [box.build("spawn.c")], [box.build("execthread.c")], [box.build("forks.c"), "100"], shell):
        best = None
        for _ in range(TRIES):
            doc, _ = box.report(argv)
            d = differences(printed(box, argv), counted(doc))
            best = d if best is None or len(d) < len(best) else best
        assert not best, (argv, best)


def threads(box, each):
    doc, r = box.report([box.build("threads.c"), "4", str(each)], limit=300)
    assert r.returncode == 0 and doc["lost"] == 0 and doc["exact"], doc["problems"]
    assert counted(doc)["getppid"] == (4 * each, 0), counted(doc)["getppid"]


@test(backends=("inproc",))
def a_million_calls_of_four_threads(box):
    threads(box, 250_000)


@test(backends=("ptrace", PREVIEW))
def four_threads_to_the_call(box):
    threads(box, 20_000)


@test(backends=(PREVIEW,))
def what_is_hard_to_count_from_inside(box):
    """Threads, handlers that interrupt calls, children of three kinds and a late library, counted by themselves."""
    doc, r = box.report([box.build("inside.c"), "2000"])
    assert r.returncode == 0 and doc["exact"], doc["problems"]
    words = r.stdout.split()
    made = {name.decode(): int(n) for name, n in zip(words[::2], words[1::2])}
    calls = counted(doc)
    assert calls["getppid"] == (made["getppid"], 0), (calls["getppid"], r.stdout)
    # The loader looks for its list of libraries to preload, in each of the six programs.
    assert calls["faccessat"] == (made["access"] + 6, made["access"] + 6), (calls["faccessat"], r.stdout)
    # By ptrace alone it is 7,000 to 9,000 there.
    assert doc["observer_ns_per_call"] < 2_000, doc["observer_ns_per_call"]


@test(backends=BOTH)
def a_thousand_forks_none_missed(box):
    for at_once in ("1", "10"):
        doc, _ = box.report([box.build("forks.c"), "1000", at_once])
        assert doc["exact"], doc["problems"]
        calls = counted(doc)
        assert calls["getppid"] == (3000, 0), calls["getppid"]
        # A fork that a child's SIGCHLD interrupts begins again: a tracer sees two calls, and there is one child.
        restarted = {r["syscall"]: r["errors"] for r in doc["by_syscall"]}["clone"]
        assert set(restarted) <= {"ERESTARTNOINTR"}, restarted
        assert calls["clone"][0] - calls["clone"][1] == 1000, calls["clone"]
        assert calls["wait4"][0] >= 1000, calls["wait4"]


@test(backends=("inproc",))
def killed_at_any_moment_of_their_start(box):
    """The calls of a child before it was killed are counted; a child that never ran made none."""
    startled, notes = box.build("killed_at_start.c"), os.path.join(box.dir, "notes")
    for seed, most_us in ((1, 3_000), (2, 12_000), (3, 40_000)):
        box.file("notes")
        doc, r = box.report([startled, notes, str(seed), "120", str(most_us)])
        begun, done, killed = map(int, re.findall(rb"\d+", r.stdout))
        assert killed == 120, r.stdout
        assert doc["exact"], doc["problems"]
        calls = counted(doc)
        # The parent counts the end of a child at a time between the child's two notes.
        assert done <= calls["getppid"][0] <= begun, (calls["getppid"], r.stdout)
        assert calls["kill"] == (120, 0) and calls["wait4"] == (120, 0), (calls["kill"], calls["wait4"])


@test(backends=("inproc",))
def every_process_has_its_own_contexts(box):
    """Later processes of the same files need not ask for contexts that earlier ones asked for, even if the call's
    number is known only when it is made."""
    runs, n = 24, 40
    doc, _ = box.report(["/bin/sh", "-c", f"for i in $(seq {runs}); do {box.build('numbers.c')} {n}; done"])
    assert doc["exact"], doc["problems"]
    seen = {}
    for row in doc["rows"]:
        if row["syscall"] in ("getppid", "getpgid") and row["api"] == "syscall":
            caller = next((f for f in row["stack"] if f in ("one", "two")), None)
            seen.setdefault(row["process"], {})[row["syscall"], caller] = row["calls"]
    wanted = {("getppid", "one"): n, ("getppid", "two"): 2 * n, ("getpgid", "two"): 3 * n}
    assert len(seen) == runs and all(rows == wanted for rows in seen.values()), seen


@test(backends=BOTH)
def totals_add_up(box):
    doc, _ = box.report(["/bin/sh", "-c", "/bin/ls / | /bin/cat; /bin/true"])
    assert doc["calls"] == sum(r["calls"] for r in doc["by_syscall"])
    by_row = {}
    for row in doc["rows"]:
        by_row[row["syscall"]] = by_row.get(row["syscall"], 0) + row["calls"]
    assert {k: v for k, v in by_row.items() if v} == {k: v for k, (v, _) in counted(doc).items()}
    assert doc["systoll"]["schema"] >= 1 and doc["backend"] == box.backend and doc["exact"] is True, doc["problems"]


@test(backends=BOTH)
def strace_columns(box):
    mix = box.build("mix.c")
    r = box.run(box.watch([mix], "-c"))
    assert r.returncode == 0 and r.stdout == b"200 failures\n", r.stdout
    table = {}
    for line in r.stderr.decode().splitlines():
        w = line.split()
        if len(w) in (5, 6) and w[3].isdigit():
            table[w[-1]] = (int(w[3]), int(w[4]) if len(w) == 6 else 0)
    table.pop("total", None)
    d = differences({k: v for k, v in table.items() if v[0]}, strace_table(box, [mix]))
    assert not d, "; ".join(d)
