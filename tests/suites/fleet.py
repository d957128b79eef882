"""`systoll fleet` finds what is planted among many runs by one command, with the figures of the reports."""
import csv
import io
import itertools
import json
import os
import threading

import fleet
import readers
from harness import Skip, test, text, tool


def engine():
    """Returns an environment in which `systoll fleet` finds DuckDB."""
    python = readers.python()
    if not python:
        raise Skip("duckdb is not installed: tests/readers.py")
    return {"SYSTOLL_PYTHON": python}


def spark():
    """Returns an environment in which `systoll fleet` finds Spark: that of tests/readers.py --spark, or a Python that
    has it."""
    python = readers.spark()
    if not python:
        raise Skip("pyspark is not installed: tests/readers.py --spark")
    tool("java")
    return {"SYSTOLL_PYTHON": python}


def asked(box, *words, env=None, limit=120):
    """Returns the rows of an answer."""
    r = box.run([box.systoll, "fleet", "--json", *words], env={**box.env, **(env or engine())}, limit=limit)
    assert r.returncode == 0, (words, text(r.stderr))
    return json.loads(r.stdout)["rows"]


def report(box, rec):
    return json.loads(box.run([box.systoll, "report", "--json", rec]).stdout)


def simulated(box, **size):
    """Makes a small fleet by the Python that has DuckDB."""
    folder = os.path.join(box.dir, "fleet")
    sizes = [word for name, value in size.items() for word in (f"--{name}", str(value))]
    r = box.run([engine()["SYSTOLL_PYTHON"], fleet.__file__, "--systoll", box.systoll, *sizes, folder])
    assert r.returncode == 0, text(r.stderr)
    return folder


@test(users=("root",))
def totals_are_the_reports(box):
    folder, program = os.path.join(box.dir, "fleet"), box.build("served.c", name="served")
    wanted = {"calls": 0, "toll_ns": 0, "waited_ns": 0, "needless_ns": 0, "rows_in_all": 0, "runs": 3}
    for nth, (words, env) in enumerate(((["300", "sick"], {"TZ": "UTC"}), (["300"], {}), (["200", "sick"], {}))):
        rec = os.path.join(box.dir, f"{nth}.systoll")
        env = {**{n: v for n, v in box.env.items() if n != "TZ"}, **env}
        # Two runs are added as they run. One is added twice from its recording, and counts as one run.
        to = ["--save-to", folder] if nth else []
        r = box.run([box.systoll, "run", "-q", "--save", rec, *to, "--service", "shop", "--host", "h1", "--", program, *words], env=env)
        assert r.returncode == 0, text(r.stderr)
        for _ in range(0 if nth else 2):
            r = box.run([box.systoll, "report", "--parquet", folder, "--service", "shop", "--host", "h2", rec])
            assert r.returncode == 0 and not r.stdout, text(r.stderr)
        told = report(box, rec)
        for name, field in (("calls", "calls"), ("toll_ns", "toll_ns"), ("waited_ns", "waited_ns"), ("needless_ns", "needless_toll_ns")):
            wanted[name] += told[field]
        wanted["rows_in_all"] += len(told["rows"])
    [told] = asked(box, folder, "totals")
    assert {name: told[name] for name in wanted} == wanted and (told["services"], told["hosts"]) == (1, 2), (told, wanted)
    zones = asked(box, folder, "--sql", "select time_zone, count(*) as n from runs group by 1 order by 1")
    assert zones == [{"time_zone": "(unset)", "n": 2}, {"time_zone": "UTC", "n": 1}], zones
    # One file, written without a folder, holds the same table.
    out = os.path.join(box.dir, "a.parquet")
    assert box.run([box.systoll, "export", "--format", "parquet", "-o", out, rec]).returncode == 0
    query = f"import duckdb; print(*duckdb.sql(\"select sum(calls)::bigint, count(*) from '{out}'\").fetchone())"
    r = box.run([engine()["SYSTOLL_PYTHON"], "-c", query])
    assert text(r.stdout).split() == [str(report(box, rec)["calls"]), str(len(report(box, rec)["rows"]))], text(r.stderr)


@test(users=("root",))
def tables_that_are_replaced_meanwhile_are_read_once(box):
    """An agent writes the day's tables anew beside a question: each counts once, as it was or as it is, and no question fails."""
    folder, program = os.path.join(box.dir, "fleet"), box.build("served.c", name="served")
    for host in range(12):
        words = [box.systoll, "run", "-q", "--save-to", folder, "--service", "shop", "--host", f"h{host}", "--", program, str(100 + host)]
        assert box.run(words).returncode == 0
    tables = [os.path.join(of, name) for of, _, names in os.walk(folder) for name in names]
    contents = [open(table, "rb").read() for table in tables]
    is_over, replaced = threading.Event(), 0

    def replace():
        nonlocal replaced
        for at in itertools.count():
            if is_over.wait(0.02):
                return
            part = os.path.join(box.dir, "part")
            with open(part, "wb") as f:
                f.write(contents[at * 5 % len(contents)])
            os.replace(part, tables[at * 7 % len(tables)])
            replaced += 1

    replacing = threading.Thread(target=replace)
    replacing.start()
    try:
        for _ in range(15):
            r = box.run([box.systoll, "fleet", "--json", folder, "--sql", "select count(*) filter (where row = 0) as tables from fleet"], env={**box.env, **engine()})
            assert r.returncode == 0 and not r.stderr and json.loads(r.stdout)["rows"] == [{"tables": 12}], (r, replaced)
    finally:
        is_over.set()
        replacing.join()
    assert replaced > 15, replaced


@test(users=("root",))
def a_strangers_python_is_not_run(box):
    """Root with another user's HOME does not run what that user has put there, or into a folder of PATH."""
    home, folder = os.path.join(box.dir, "home"), os.path.join(box.dir, "fleet")
    ran = os.path.join(box.dir, "ran")
    for place in (os.path.join(home, ".local/share/systoll/python/bin"), os.path.join(home, "bin"), folder):
        os.makedirs(place)
    for python in (".local/share/systoll/python/bin/python3", "bin/python3"):
        box.file(os.path.join("home", python), f"#!/bin/sh\n: >{ran}\n", 0o755)
    box.file("fleet/a.parquet", "")
    env = {name: value for name, value in box.env.items() if name not in ("SYSTOLL_PYTHON", "XDG_DATA_HOME")}
    for owner, is_run in ((65534, False), (0, True)):
        for at, _, names in os.walk(home):
            for name in (at, *(os.path.join(at, name) for name in names)):
                os.chown(name, owner, owner)
        r = box.run([box.systoll, "fleet", folder], env={**env, "HOME": home, "PATH": os.path.join(home, "bin")})
        assert r.returncode == 125 and os.path.exists(ran) == is_run, (owner, r.returncode, text(r.stderr))
        assert is_run or "python3 -m venv" in text(r.stderr), text(r.stderr)


@test(users=("root",))
def planted_differences_are_found(box):
    folder = simulated(box, hosts=12, services=3, days=4)
    came = asked(box, folder, "new")
    first = came[0]
    assert (first["service"], first["release"], first["function"], first["hosts"]) == ("checkout", "2.4.0", "read_settings", 12), came
    # One host has no time zone in any release: where that costs about what a remark needs, only some runs tell of it.
    others = [row for row in came if row["service"] != "checkout" and (row["hosts"], row["cause"]) != (1, "tz-unset")]
    assert first["share"] > 10 * first["before_share"] and not others, came
    # It is told also if the release is named, and not if an older one is.
    assert asked(box, folder, "new", "--release", "2.4.0")[0] == first
    assert asked(box, folder, "new", "--release", "2.3.1") == []
    odd = {(row["host"], row["fact"]): row for row in asked(box, folder, "odd-hosts")}
    zone, clock = odd["h0007", "time zone"], odd["h0009", "clock"]
    assert (zone["value"], zone["usual"], zone["services"], zone["peers"]) == ("(unset)", "UTC", 3, 11), odd
    assert zone["share"] > zone["peers_share"] and clock["value"] == "hpet (no vDSO)" and len(odd) == 2, odd
    days = asked(box, folder, "history", "--service", "checkout", "--function", "read_settings")
    assert [row["needless_calls"] > 0 for row in days] == [True, True] and [row["release"] for row in days] == ["2.4.0"] * 2, days
    dearest = asked(box, folder)
    assert dearest == sorted(dearest, key=lambda row: -row["needless_ns"]) and dearest[0]["service"] == "checkout", dearest
    [totals] = asked(box, folder, "totals")
    assert sum(row["needless_ns"] for row in dearest) == totals["needless_ns"], (dearest, totals)
    cheap, dear = (asked(box, folder, "savings", "--core-hour", price) for price in ("0.04", "4"))
    assert cheap[0]["service"] == "(all)" and abs(cheap[0]["cores"] - sum(row["cores"] for row in cheap[1:])) < 1e-5, cheap
    assert abs(dear[0]["money_month"] - cheap[0]["cores"] * 730 * 4) < 0.02, (cheap, dear)
    assert asked(box, folder, "services", "--service", "mail", "--since", "2026-11-25") == [row for row in asked(box, folder, "services", "--since", "2026-11-25") if row["service"] == "mail"]


@test(users=("root",))
def answers_are_tables_json_and_csv(box):
    folder = os.path.join(box.dir, "fleet")
    fleet.recorded(box.systoll, folder, "shop", [box.build("served.c", name="served"), "300", "sick"], "1", None)
    env = {**box.env, **engine()}
    for width in ("60", "80", "120"):
        for question in fleet.QUESTIONS:
            r = box.run([box.systoll, "fleet", folder, question], env={**env, "COLUMNS": width})
            told = text(r.stdout)
            assert r.returncode == 0 and told and all(len(line) <= int(width) for line in told.splitlines()), (width, question, told, text(r.stderr))
    rows = asked(box, folder)
    told = list(csv.DictReader(io.StringIO(text(box.run([box.systoll, "fleet", "--csv", folder], env=env).stdout))))
    assert [(row["function"], int(row["needless_calls"])) for row in told] == [(row["function"], row["needless_calls"]) for row in rows], (told, rows)
    r = box.run([box.systoll, "fleet", "--show-sql", "dearest"])
    own = box.file("own.sql", text(r.stdout))
    assert asked(box, folder, "--sql", own) == rows
    r = box.run([box.systoll, "fleet", "-n", "1", "--json", folder, "--sql", "select * from range(5)"], env=env)
    assert json.loads(r.stdout)["more"] is True and len(json.loads(r.stdout)["rows"]) == 1


@test(users=("root",))
def names_are_data(box):
    """A service, host or release is a name, and never a path, SQL, a formula or an escape sequence."""
    folder = os.path.join(box.dir, "a [fleet]'s *")
    names = ["../../escaped", "'; drop view fleet; --", "=cmd|' /C calc'!A0", "\x1b]0;owned\x07", "x" * (1 << 16), "é/\n", "__HIVE_DEFAULT_PARTITION__", "007"]
    before = set(os.listdir(box.dir))
    for name in names:
        r = box.run([box.systoll, "run", "-q", "--save-to", folder, "--service", name, "--host", name, "--release", name, "--", "true"])
        assert r.returncode == 0, text(r.stderr)
    assert set(os.listdir(box.dir)) - before == {os.path.basename(folder)}
    services = {row["service"] for row in asked(box, folder, "services")}
    assert services >= set(names) - {"x" * (1 << 16)} and len(services) == len(names), services
    for name in names:
        if len(name) < 1000:
            assert [row["service"] for row in asked(box, folder, "services", "--service", name)] == [name]
    env = {**box.env, **engine()}
    table = text(box.run([box.systoll, "fleet", folder, "releases"], env=env).stdout)
    assert "\x1b" not in table and "\x07" not in table, table
    cells = [row["service"] for row in csv.DictReader(io.StringIO(text(box.run([box.systoll, "fleet", "--csv", folder, "releases"], env=env).stdout)))]
    assert not any(cell.startswith(("=", "+", "-", "@")) for cell in cells), cells
    # A file in the current folder is not taken for one of Python's packages.
    box.file("duckdb.py", "raise SystemExit('taken for a package')")
    assert len(asked(box, folder, "services")) == len(names)


@test()
def impossible_questions_come_with_help(box):
    def fails(*words, env=None):
        r = box.run([box.systoll, "fleet", *words], env={**box.env, **(env or {})})
        assert r.returncode == 125 and not r.stdout, (words, text(r.stdout))
        return " ".join(text(r.stderr).split())
    empty = os.path.join(box.dir, "empty")
    r = box.run(["mkdir", empty])
    assert "systoll run --save-to" in fails(empty)
    assert "can't read nowhere" in fails("nowhere")
    r = box.run([box.systoll, "run", "-q", "--save-to", "fleet", "--", "true"])
    assert r.returncode == 0, text(r.stderr)
    assert "expensive, new, odd-hosts" in fails("fleet", "dear")
    assert "pip install duckdb" in fails("fleet", env={"SYSTOLL_PYTHON": "/nowhere/python3"})
    assert "pip install pyspark" in fails("fleet", "--engine", "spark", env={"SYSTOLL_PYTHON": "/nowhere/python3"})
    r = box.run([box.systoll, "run", "-q", "--save-to", "/proc/nowhere", "--", "touch", "ran"])
    assert r.returncode == 125 and not os.path.exists(os.path.join(box.dir, "ran")), "it ran although there is no place"
    if box.user == "root" and readers.python():
        assert "no_such_column" in fails("fleet", "--sql", "select no_such_column from fleet", env=engine())
        box.file("fleet/none.parquet", "hello")
        box.file("fleet/broken.parquet", "PAR1 and nothing else PAR1")
        for sql in ("dearest", "services"):
            r = box.run([box.systoll, "fleet", "fleet", sql], env={**box.env, **engine()})
            assert r.returncode == 0 and r.stdout, (sql, text(r.stderr))
            left_out = [f"fleet/{name}.parquet is no Parquet file" in text(r.stderr) and "left out" in text(r.stderr) for name in ("none", "broken")]
            assert all(left_out), text(r.stderr)
        os.makedirs(os.path.join(box.dir, "alone"))
        box.file("alone/x.parquet", "PAR1 and nothing else PAR1")
        assert "x.parquet" in fails("alone", env=engine())


@test(users=("root",), long=True)
def spark_answers_alike(box):
    folder = simulated(box, hosts=8, services=3, days=4)
    for question in fleet.QUESTIONS:
        ours, theirs = asked(box, folder, question), asked(box, folder, question, "--engine", "spark", env=spark(), limit=300)
        assert ours == theirs, (question, ours[:3], theirs[:3])
