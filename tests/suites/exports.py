"""The real reader of each export opens it and shows the report's totals."""
import base64
import csv
import json
import os
import re

import readers
from harness import GO_CACHE, HERE, Skip, test, text, tool

VALUES = {"toll": "toll_ns", "waited": "waited_ns", "calls": "calls", "needless": "needless_toll_ns"}


def recorded(box):
    """Records a program with two diseases. Returns the recording and the report's JSON."""
    program = box.build("exported.c", name="exported")
    rec = os.path.join(box.dir, "a.systoll")
    env = {name: value for name, value in box.env.items() if name != "TZ"}
    r = box.run([box.systoll, "run", "-q", "--save", rec, "--", program], env=env)
    assert r.returncode == 0, text(r.stderr)
    r = box.run([box.systoll, "report", "--json", rec])
    report = json.loads(r.stdout)
    assert report["findings"] and report["calls"] > 6000 and report["needless_toll_ns"] > 0, report["calls"]
    return rec, report


def exported(box, rec, form, value=None, name=None):
    """Exports a recording. Returns the export's path."""
    out = os.path.join(box.dir, name or f"a.{form}")
    r = box.run([box.systoll, "export", "--format", form, *(["--value", value] if value else []), "-o", out, rec])
    assert r.returncode == 0 and os.path.getsize(out) > 0, text(r.stderr)
    return out


def read(box, argv, **kwargs):
    r = box.run(argv, **kwargs)
    assert r.returncode == 0, (argv[:3], text(r.stdout)[-500:], text(r.stderr)[-500:])
    return text(r.stdout)


def near(ns, told):
    """Returns True if a time that a reader rounded (35.37ms) is `ns`."""
    number, unit = re.fullmatch(r"([\d.,]+) ?(ns|us|µs|μs|ms|s|mins)", told).groups()
    size = {"ns": 1, "us": 1e3, "µs": 1e3, "μs": 1e3, "ms": 1e6, "s": 1e9, "mins": 60e9}[unit]
    digits = len(number.partition(".")[2])
    return abs(float(number.replace(",", "")) * size - ns) <= size * 10.0 ** -digits


@test(users=("root",))
def pprof_adds_up_in_go_tool_pprof(box):
    rec, report = recorded(box)
    out = exported(box, rec, "pprof", "needless")
    env = {**box.env, "GOCACHE": GO_CACHE}
    for value, field in VALUES.items():
        told = read(box, [tool("go"), "tool", "pprof", "-top", "-nodecount=100000", "-nodefraction=0", f"-sample_index={value}", "-unit=ns" if value != "calls" else "-unit=count", out], env=env)
        total = re.search(r" of ([\d.]+)\S* total", told)
        flat = sum(float(m[1]) for m in re.finditer(r"^ *([\d.]+)(?:ns)? +[\d.e-]+%", told, re.M))
        assert total and float(total[1]) == report[field] and abs(flat - report[field]) < 1, (value, report[field], total and total[0], flat)
    told = read(box, [tool("go"), "tool", "pprof", "-top", out], env=env)
    assert "Type: needless\n" in told and "newfstatat" in told, told
    # The export lacks what only systoll reads, and a report on it says so.
    r = box.run([box.systoll, "report", out])
    assert r.returncode == 0 and "another tool rewrote the file" in text(r.stdout), text(r.stdout)


@test(users=("root",))
def csv_adds_up_in_duckdb(box):
    python = readers.python()
    if not python:
        raise Skip("duckdb is not installed: tests/readers.py")
    rec, report = recorded(box)
    out = exported(box, rec, "csv")
    query = f"select sum(calls), sum(toll_ns), sum(waited_ns), sum(needless_ns), sum(errors), count(*) from read_csv('{out}')"
    told = json.loads(read(box, [python, "-c", f"import duckdb, json; print(json.dumps([int(n) for n in duckdb.sql({query!r}).fetchone()]))"]))
    failed = sum(sum(row["errors"].values()) for row in report["rows"])
    wanted = [report["calls"], report["toll_ns"], report["waited_ns"], report["needless_toll_ns"], failed, len(report["rows"])]
    assert told == wanted, (told, wanted)


@test()
def csv_is_the_reports_rows(box):
    rec, report = recorded(box)
    with open(exported(box, rec, "csv"), newline="") as f:
        rows = list(csv.DictReader(f))
    assert len(rows) == len(report["rows"])
    for row, wanted in zip(rows, report["rows"]):
        assert (row["syscall"], int(row["calls"]), row["api"]) == (wanted["syscall"], wanted["calls"], wanted["api"] or ""), (row, wanted)
    dearest = max(rows, key=lambda row: int(row["needless_ns"]))
    assert (dearest["api"], dearest["function"], dearest["cause"]) == ("localtime", "log_line", "tz-unset"), dearest


@test(users=("root",))
def openmetrics_goes_into_prometheus(box):
    rec, report = recorded(box)
    out = exported(box, rec, "openmetrics")
    blocks = os.path.join(box.dir, "blocks")
    promtool = readers.program("promtool")
    if not promtool:
        raise Skip("promtool is not installed: tests/readers.py")
    read(box, [promtool, "tsdb", "create-blocks-from", "openmetrics", out, blocks])
    os.mkdir(os.path.join(blocks, "wal"))
    sums = {}
    for line in read(box, [promtool, "tsdb", "dump", blocks]).splitlines():
        name, value = re.match(r'\{__name__="(\w+)".*\} (\S+) \d+$', line).groups()
        sums[name] = sums.get(name, 0) + float(value)
    wanted = {"systoll_calls_total": report["calls"], "systoll_toll_seconds_total": report["toll_ns"] / 1e9,
              "systoll_waited_seconds_total": report["waited_ns"] / 1e9, "systoll_needless_toll_seconds_total": report["needless_toll_ns"] / 1e9}
    for name, value in wanted.items():
        assert abs(sums[name] - value) < 1e-9 * max(1, len(report["rows"])), (name, sums.get(name), value)


@test(users=("root",))
def firefox_profiler_adds_up(box):
    cli = readers.node("@firefox-devtools/profiler-cli")
    if not cli:
        raise Skip("@firefox-devtools/profiler-cli is not installed: tests/readers.py")
    rec, report = recorded(box)
    command = [tool("node"), os.path.join(cli, "dist", "profiler-cli.js")]
    for value in ("toll", "calls"):
        field = VALUES[value]
        try:
            load(box, command, exported(box, rec, "firefox", value))
            told = json.loads(read(box, [*command, "thread", "samples", "--json"]))
            unit = 1 if value == "calls" else 1e6
            total = told["categoryBreakdown"]["totalSamples"] * unit
            assert abs(total - report[field]) < 1, (value, total, report[field])
            if value == "toll":
                assert "newfstatat" in read(box, [*command, "thread", "markers"]), "no markers"
        finally:
            box.run([*command, "stop", "--all"])


def load(box, command, path):
    """Loads a file into the reader of Firefox profiles. Its daemon gives itself half a second to start, which is little on
    a busy machine: it then says so, and the test tries again."""
    for _ in range(20):
        r = box.run([*command, "load", path])
        if r.returncode == 0 or "did not become ready" not in text(r.stderr):
            break
        box.run([*command, "stop", "--all"])
    assert r.returncode == 0, text(r.stderr)


@test(users=("root",))
def speedscope_adds_up(box):
    module = readers.node("speedscope")
    if not module:
        raise Skip("speedscope is not installed: tests/readers.py")
    rec, report = recorded(box)
    with open(exported(box, rec, "speedscope", "calls"), "rb") as f:
        data = base64.b64encode(f.read()).decode()
    # A file is handed to speedscope by a script that it loads, its own way.
    script = box.file("given.js", f'speedscope.loadFileFromBase64("a.json", "{data}")')
    page = f"file://{module}/dist/release/index.html#localProfilePath={script}"
    dom = browse(box, page, "--allow-file-access-from-files", "--virtual-time-budget=6000")
    words = [w.strip() for w in re.sub(r"<[^>]+>", "\n", dom).splitlines() if w.strip()]
    assert "calls" in words and "(3/5)" in words, words[:60]
    for value, field in VALUES.items():
        told = words[len(words) - 1 - words[::-1].index(value) + 1]
        good = int(told.replace(",", "")) == report[field] if value == "calls" else near(report[field], told)
        assert good, (value, told, report[field])
    assert any(w.startswith("windows of exported") for w in words), words[:60]


def browse(box, page, *flags):
    """Returns the document that Chromium makes of a page."""
    chromium = tool("chromium")
    profile = os.path.join(box.dir, "chromium")
    flags = ["--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}", *flags, "--dump-dom", page]
    return read(box, [chromium, *flags], limit=60)


@test(users=("root",))
def flame_graphs_are_pictures_of_all(box):
    rec, report = recorded(box)
    for value, field in VALUES.items():
        stacks = read(box, [box.systoll, "export", "--format", "collapsed", "--value", value, rec])
        assert sum(int(line.rpartition(" ")[2]) for line in stacks.splitlines()) == report[field], value
        with open(exported(box, rec, "flamegraph", value)) as f:
            picture = f.read()
        told = re.search(r"<title>all \(([\d,]+) (?:ns|calls), 100%\)</title>", picture)
        assert told and int(told[1].replace(",", "")) == report[field], (value, told and told[0])
    r = box.run([box.systoll, "export", "--format", "flamegraph", "--against", rec, rec])
    assert r.returncode == 0 and "blue: less" in text(r.stdout), text(r.stderr)
    # A browser must take the file for a picture.
    with open(os.path.join(box.dir, "a.flamegraph")) as f:
        assert "<title>all (" in browse(box, "file://" + box.file("a.svg", f.read()))


def trace_events(path):
    with open(path) as f:
        return json.load(f)["traceEvents"]


@test()
def perfettos_events_add_up(box):
    """The events add up by the format's own rules; `perfetto_adds_up_in_its_trace_processor` asks Perfetto."""
    rec, report = recorded(box)
    events = trace_events(exported(box, rec, "perfetto"))
    last, lanes = {}, {}
    for e in events:
        if e["ph"] == "C":
            last[e["pid"], e["name"]] = e["args"]["total"]
        if e["ph"] == "X":
            lanes.setdefault(e["tid"], []).append((e["ts"], e["dur"]))
    for what, field in {"calls": "calls", "cost ns": "toll_ns", "waited ns": "waited_ns", "needless ns": "needless_toll_ns"}.items():
        assert sum(v for (_, name), v in last.items() if name.startswith(what + " of ")) == report[field], what
    assert lanes and all(a + d <= b + 1e-3 for calls in lanes.values() for (a, d), (b, _) in zip(calls, calls[1:])), "slices overlap"


@test(users=("root",), long=True)
def perfetto_adds_up_in_its_trace_processor(box):
    """Perfetto's package on PyPI fetches its trace processor from a host of its own; where that can't be reached, the
    test is skipped."""
    shell = tool("trace_processor_shell")
    rec, report = recorded(box)
    out = exported(box, rec, "perfetto")
    query = box.file("q.sql", "select cast(sum(v) as int) from (select max(value) v from counter join counter_track t on t.id = track_id where t.name like '% ns of %' group by track_id);")
    told = read(box, [shell, "-q", query, out])
    wanted = report["toll_ns"] + report["waited_ns"] + report["needless_toll_ns"]
    assert str(wanted) in told, (told, wanted)


def all_formats(box):
    """Returns the formats that `systoll export --help` lists."""
    listed = re.search(r"\n +--format <FORMAT>\s+(.*?)\n\s+--value", text(box.run([box.systoll, "export", "--help"]).stdout), re.DOTALL)
    formats = set(re.split(r",\s+|\s+or\s+", listed[1].strip()))
    assert {"csv", "speedscope"} <= formats, listed[1]
    return formats


@test(users=("root",))
def each_format_has_a_line_in_the_docs_and_a_reader(box):
    """Parquet's readers are in fleet.py; each other format must have its own here."""
    formats = all_formats(box)
    with open(os.path.join(os.path.dirname(HERE), "docs/use/export.md")) as f:
        docs = f.read()
    readers = "".join(open(os.path.join(HERE, "suites", name)).read() for name in ("exports.py", "fleet.py"))
    assert all(f"| `{form}` |" in docs for form in formats), f"lines of docs/use/export.md and {formats}"
    assert all(form in readers for form in formats), f"readers and {formats}"


@test()
def unwritable_exports_say_why(box):
    rec, _ = recorded(box)
    r = box.run([box.systoll, "run", "-q", "--save", "none.systoll", "--", "true"])
    r = box.run([box.systoll, "export", "--format", "flamegraph", "--value", "needless", "none.systoll"])
    assert r.returncode == 125 and "nothing to draw: no needless" in text(r.stderr), text(r.stderr)
    r = box.run([box.systoll, "export", "--format", "csv", "--against", rec, rec])
    assert r.returncode == 125 and "systoll diff" in text(r.stderr), text(r.stderr)
    r = box.run([box.systoll, "export", "--format", "nothing", rec])
    assert r.returncode == 125 and "speedscope" in text(r.stderr), text(r.stderr)
    r = box.run([box.systoll, "export", "--format", "csv", "-o", "no/such/folder", rec])
    assert r.returncode == 125 and not r.stdout, text(r.stderr)
    # A terminal's locale does not change what another tool reads.
    plain = box.run([box.systoll, "export", "--format", "speedscope", rec]).stdout
    assert plain == box.run([box.systoll, "export", "--format", "speedscope", rec], env={**box.env, "LC_ALL": "C"}).stdout
