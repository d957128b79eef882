"""Regrouped calls add up to those of the plain run, and descriptors have strace's names."""
import json
import os
import re

from harness import BOTH, test, text, tool

EXACT = ("caller", "api", "library", "line", "process", "thread")


def kept(box, argv):
    """Returns a recording of argv, and its JSON by each grouping: one run, seen in many ways."""
    rec = os.path.join(box.dir, "rec")
    r = box.run(box.watch(argv, "-q", "--save", rec))
    assert r.returncode == 0, text(r.stderr)[-400:]

    def report(*flags):
        r = box.run([box.systoll, "report", *flags, rec])
        assert r.returncode == 0, text(r.stderr)[-400:]
        return text(r.stdout)

    return report


@test(backends=BOTH)
def groups_add_up(box):
    program = box.build("grouped.c")
    report = kept(box, [program, os.path.join(box.dir, "data"), "2000"])
    plain = json.loads(report("--json"))
    rows = plain["rows"]
    for by in EXACT:
        found = json.loads(report("--json", "--by", by))["grouped"]
        assert found["by"] == by and not found["sampled"], found
        assert sum(g["calls"] for g in found["groups"]) == plain["calls"] == found["calls"], (by, found)
        failed = sum(sum(r["errors"].values()) for r in rows)
        assert sum(g["failed"] for g in found["groups"]) == failed, (by, failed, found)
        # A group is the sum of its rows, and each row is in one group.
        if by != "thread":
            assert sorted(i for g in found["groups"] for i in g["rows"]) == [i for i, r in enumerate(rows) if r["calls"]], by
            for g in found["groups"]:
                assert g["calls"] == sum(rows[i]["calls"] for i in g["rows"]), (by, g)
    sampled = json.loads(report("--json", "--by", "fd"))["grouped"]
    assert sampled["sampled"] and abs(sum(g["calls"] for g in sampled["groups"]) - plain["calls"]) <= len(rows), sampled
    for g in sampled["groups"]:
        assert g["low"] <= g["calls"] <= g["high"], g


@test(backends=BOTH)
def groups_are_the_programs(box):
    data = os.path.join(box.dir, "data")
    report = kept(box, [box.build("grouped.c"), data, "2000"])

    def groups(by, *flags):
        return {g["name"]: g for g in json.loads(report("--json", "--by", by, *flags))["grouped"]["groups"]}

    callers = groups("caller", "-e", "lseek,getppid")
    assert callers["seek"]["calls"] == 4000 and callers["ask"]["calls"] == 2000 and len(callers) == 2, callers
    lines = json.loads(report("--json", "--by", "line", "-e", "lseek"))["grouped"]["groups"]
    assert sorted(g["calls"] for g in lines) == [2000, 2000] and len({g["user"]["line"] for g in lines}) == 2, lines
    apis = groups("api", "-e", "lseek,getppid")
    assert apis["lseek"]["calls"] == 4000 and apis["getppid"]["calls"] == 2000, apis
    # The thread made half of the calls of one line, and no others.
    threads = json.loads(report("--json", "--by", "thread", "-e", "lseek"))["grouped"]["groups"]
    assert sorted(g["calls"] for g in threads) == [2000, 2000] and len({g["tid"] for g in threads}) == 2, threads
    fds = groups("fd", "-e", "lseek")
    assert data in fds and fds[data]["low"] <= 4000 <= fds[data]["high"] and fds[data]["looked_at"] > 0, fds
    assert groups("fd", "-e", "getppid")[""]["calls"] == 2000
    table = report("--by", "caller", "-e", "lseek")
    assert re.search(r"^ +4,000 .* seek grouped\.c$", table, re.M) and "only lseek" in table, table
    assert report("--by", "line", "-n", "1", "-e", "lseek").count(" seek ") == 1


@test(backends=BOTH)
def descriptors_are_called_as_strace_calls_them(box):
    """A program makes few calls with every kind of descriptor: those in samples have strace's name."""
    program = box.build("descriptors.c")
    trace = os.path.join(box.dir, "trace")
    r = box.run([tool("strace"), "-qq", "-yy", "-e", "trace=fstat,read,sendto,recvfrom,fcntl,ioctl", "-o", trace, program])
    assert r.returncode == 0, text(r.stderr)
    with open(trace, errors="replace") as f:
        theirs = f.read().splitlines()
    report = kept(box, [program])
    ours = report("--all", "-n", "999", "-y", "--by", "api")

    def lasting(target):
        return re.sub(r"\d+", "N", target.split("<char ")[0])

    wanted = set()
    for line in theirs:
        m = re.match(r"(\w+)\((\d+)<(.*?)>((?:\(deleted\))?)[,)]", line)
        # The loader's files come and go; the program prints those that it opened.
        if m and int(m[2]) >= 50:
            wanted.add((m[2], lasting(m[3]) + m[4]))

    def whole(fd, shown):
        """Returns strace's name of a descriptor, for a long path that a screen shows without its middle."""
        begin, cut, end = shown.partition("…")
        fits = (t for f, t in wanted if f == fd and len(t) > len(begin) + len(end) and t.startswith(begin) and t.endswith(end))
        return next(fits, shown) if cut else shown

    shown = re.findall(r"^ +(?:fd)? +(\d+)<(.*)>((?:\(deleted\))?)   \d+ of", ours, re.M)
    found = {(fd, whole(fd, lasting(target) + gone)) for fd, target, gone in shown}
    assert len(wanted) >= 8, (wanted, theirs)
    # A helper thread names sockets as far as its budget allows, so some may still be numbers.
    ours_of = {}
    for fd, target in found:
        ours_of.setdefault(fd, set()).add(target)
    for fd, target in wanted:
        others = ours_of.get(fd, set()) - {t for f, t in wanted if f == fd} - {"socket:[N]"}
        assert not others, f"{fd} is {target}, not {others}\n{ours}"
    # Windows hold some calls, not all; most kinds are among them.
    assert len(wanted & found) >= 6, f"{wanted}\nnot in\n{found}\n{ours}"


@test(backends=BOTH)
def options_are_called_as_strace_calls_them(box):
    """Options that a finding is about have strace's words."""
    report, _ = box.report([box.build("grouped.c"), os.path.join(box.dir, "data"), "20000"])
    about = {f["what"] for f in report["findings"] + report["also"] if "lseek" in f["syscalls"]}
    assert about == {f"SEEK_CUR on {os.path.join(box.dir, 'data')}"}, report["findings"] + report["also"]


@test()
def tables_have_straces_columns(box):
    def table(*flags):
        r = box.run(box.watch(["/bin/true"], "-c", *flags))
        assert r.returncode == 0, text(r.stderr)
        lines = text(r.stderr).splitlines()
        rule = next(i for i, line in enumerate(lines) if line.startswith("-"))
        return lines[rule - 1].split(), [line.split() for line in lines[rule + 1 : -2]]

    assert table("-U", "calls,name")[0] == ["calls", "syscall"]
    heading, rows = table("-U", "name,max-time,total-time", "-S", "name", "-e", "%desc")
    assert heading == ["syscall", "longest", "seconds"] and [r[0] for r in rows] == sorted(r[0] for r in rows), (heading, rows)
    assert table("-w", "-S", "max-time", "-e", "!%desc")[0] == ["%", "time", "seconds", "usecs/call", "calls", "errors", "syscall"]
    columns = "total-time,wall-total,wall-min,wall-avg,wall-max,min-time,max-time,calls,name"
    heading, rows = table("-U", columns, "-S", "wall-min")
    assert heading == ["seconds", "wall-total", "wall-min", "wall-avg", "wall-max", "shortest", "longest", "calls", "syscall"], heading
    timed = [[float(cell) for cell in row[1:7]] + [int(row[7])] for row in rows if "?" not in row and not row[0].startswith("-")]
    assert len(timed) > 5 and [r[1] for r in timed] == sorted((r[1] for r in timed), reverse=True), rows
    for whole, least, average, most, shortest, longest, calls in timed:
        assert 0 < least <= average / 1e6 + 1e-6 and average / 1e6 <= most + 1e-6 and (shortest, longest) == (least, most), rows
        assert least * calls <= whole + 1e-5 and (calls > 1 or least == most), rows
    less = table("-U", "wall-total,name", "-O", "1s")[1]
    assert {row[0] for row in less if not row[0].startswith("-")} <= {"0.000000", "?"}, less
    theirs = box.run([tool("strace"), "-c", "-U", "calls,errors,name", "/bin/true"])
    assert text(theirs.stderr).splitlines()[0].split() == table("-U", "calls,errors,name")[0]


@test(backends=BOTH)
def long_calls_are_listed_one_by_one(box):
    program = box.build("lulls.c")
    doc, r = box.report([program], flags=("--longer", "5ms"))
    assert r.returncode == 0 and doc["exact"], (r, doc["problems"])
    sleeps = [c for c in doc["longest"] if c["syscall"] == "clock_nanosleep"]
    # Under a tracer a call's time is its own alone, without the time that it was queued for a processor.
    assert len(sleeps) == 12 and sum(c["ns"] >= 20_000_000 for c in sleeps) >= 7, doc["longest"]
    assert len({c["thread"] for c in sleeps}) == 2, sleeps
    begun = sorted(c["at_ns"] for c in sleeps)
    assert all(later - sooner >= 9_000_000 for sooner, later in zip(begun, begun[1:])), begun
    told = box.run(box.watch([program], "--longer", "5ms"))
    lines = [line for line in text(told.stderr).splitlines() if "clock_nanosleep" in line and " at +" in line]
    assert len(lines) == 12 and "not kept one by one" not in text(told.stderr), text(told.stderr)


def stacks(screen):
    """Returns the stacks of a `-k` screen: the functions of each, by the line above them."""
    found, head = {}, None
    for line in screen.splitlines():
        frame = re.match(r"( {5,})(\S+)  \S+( \S+:\d+)?$", line)
        if frame and head:
            found[head].append(frame.group(2))
        else:
            head = line.strip()
            found.setdefault(head, [])
    return {head: frames for head, frames in found.items() if frames}


@test(backends=("inproc",))
def stacks_agree_with_findings_in_every_run(box):
    program = box.build("grouped.c")
    argv = [program, os.path.join(box.dir, "data"), "20000"]
    for _ in range(2):
        # Contexts that an earlier run has stored are unwound again.
        screen = text(box.run(box.watch(argv, "-k", "--all")).stderr)
        asked = [frames for frames in stacks(screen).values() if "ask" in frames]
        assert asked and all(frames[frames.index("ask") + 1] == "main" for frames in asked), screen
        assert all(a != b for frames in stacks(screen).values() for a, b in zip(frames, frames[1:])), screen
        grouped = text(box.run(box.watch(argv, "-k", "--by", "caller", "-e", "getppid")).stderr)
        assert [frames for frames in stacks(grouped).values() if "ask" in frames][0] == asked[0], (grouped, screen)
