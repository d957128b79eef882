"""Functions named as markup, formulas, SQL, escape sequences or a million letters stay plain text in every export and its
reader. Folders of tables that a stranger has changed do no harm."""
import contextlib
import csv
import glob
import io
import json
import os
import re
import shutil

from browser import Browser
from harness import GO_CACHE, Skip, test, text, tool
from suites.exports import all_formats
from suites.fleet import asked, engine

NAMES = ("</script><script>alert(1)</script>", "=cmd|' /C calc'!A0", "\x1b]0;owned\x07\x1b[2J\n# EOF", "'; drop view fleet; --", "a;b \"c\" %3Cb%3E {data} 12")
# Characters that a terminal obeys: no text that systoll prints may contain one.
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def recorded(box):
    """Records a program whose functions have these names. Returns the recording and the report's JSON."""
    place = lambda nth: f"here_{nth}_".ljust(39, "x").encode()
    long = box.file("long.h", f"#define LONG {'L' * 1_000_000}\n")
    with open(box.build("names/hostile.c", "-include", long, "-fno-ipa-icf", name="hostile-names"), "rb") as f:
        program = f.read()
    for nth, name in enumerate(NAMES):
        assert place(nth) in program
        program = program.replace(place(nth), name.encode().ljust(39, b"_"))
    path = box.file("named", program, 0o755)
    r = box.run([box.systoll, "run", "-q", "--save", "named.systoll", "--", path])
    assert r.returncode == 0, text(r.stderr)
    return "named.systoll", json.loads(box.run([box.systoll, "report", "--json", "named.systoll"]).stdout)


@test(users=("root",))
def exports_make_nothing_of_names(box):
    rec, report = recorded(box)
    for words in (["report"], ["report", "--all"], ["report", "-c"], ["report", "--by", "caller"]):
        told = text(box.run([box.systoll, *words, rec]).stdout)
        assert told and not CONTROL.search(told) and len(told) < 100_000, (words, CONTROL.findall(told)[:3])
    for form in all_formats(box):
        r = box.run([box.systoll, "export", "--format", form, "-o", f"a.{form}", rec])
        size = os.path.getsize(os.path.join(box.dir, f"a.{form}"))
        assert r.returncode == 0 and 0 < size < 2_000_000, (form, size, text(r.stderr))
    read = lambda form: open(os.path.join(box.dir, f"a.{form}"), encoding="utf-8", newline="").read()
    for form in ("collapsed", "csv", "flamegraph", "openmetrics"):
        found = CONTROL.findall(read(form))
        assert not found, (form, found[:3])
    for form in ("firefox", "perfetto", "speedscope"):
        json.loads(read(form))
    cells = [cell for row in csv.reader(io.StringIO(read("csv"))) for cell in row]
    assert not any(cell.startswith(("=", "+", "-", "@")) for cell in cells) and any("'=cmd" in cell for cell in cells), cells
    told = text(box.run([tool("go"), "tool", "pprof", "-top", "-nodecount=1000", "-nodefraction=0", "-cum", "-sample_index=calls", "-unit=count", "a.pprof"],
                        env={**box.env, "GOCACHE": GO_CACHE}).stdout)
    assert f" of {report['calls']} total" in told.replace("count", ""), told[:400]


# Control characters of the second kind, which some terminals obey as they obey ESC, and characters that reorder or hide others.
UNSEEN = re.compile("[\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f]")


@test()
def no_format_for_machines_holds_what_a_terminal_obeys(box):
    """A person has JSON and tables on the terminal, too."""
    name = "\u009b31mred\u202egnp.exe"
    program = os.path.join(box.dir, name)
    shutil.copy(tool("true"), program)
    os.chmod(program, 0o755)
    r = box.run([box.systoll, "run", "-q", "--save", "r.systoll", "--save-to", "runs", "--service", name, "--", program])
    assert r.returncode == 0, text(r.stderr)
    seen = {"report": box.run([box.systoll, "report", "--json", "r.systoll"]), "diff": box.run([box.systoll, "diff", "--json", "r.systoll", "r.systoll"])}
    for form in ("speedscope", "perfetto", "firefox", "csv"):
        seen[form] = box.run([box.systoll, "export", "--format", form, "r.systoll"])
    seen["html"] = box.run([box.systoll, "report", "--html", "r.systoll"])
    with contextlib.suppress(Skip):
        seen["fleet"] = box.run([box.systoll, "fleet", "runs", "services", "--json"], env={**box.env, **engine()})
        seen["fleet csv"] = box.run([box.systoll, "fleet", "runs", "services", "--csv"], env={**box.env, **engine()})
    for what, r in seen.items():
        told = r.stdout.decode()
        assert r.returncode == 0 and told and not UNSEEN.search(told), (what, r.returncode, UNSEEN.findall(told)[:3], text(r.stderr))
    exe = json.loads(seen["report"].stdout)["command"][0]
    assert exe.endswith(name), "it is the same name still"


@test(users=("root",))
def browsers_show_names_as_text(box):
    rec, _ = recorded(box)
    for made in (["report", "--html", "-o", "a.html"], ["export", "--format", "flamegraph", "-o", "a.svg"]):
        r = box.run([box.systoll, *made, rec])
        assert r.returncode == 0, text(r.stderr)
        with Browser(box, f"file://{os.path.join(box.dir, made[-1])}") as page:
            told = page.js("document.documentElement.textContent")
            assert NAMES[0] in told and "drop view fleet" in told, made
            assert not page.complaints and len(page.fetched) == 1, (page.complaints, page.fetched)


@test(users=("root",))
def engines_take_names_for_data(box):
    rec, report = recorded(box)
    for nth, name in enumerate(NAMES):
        r = box.run([box.systoll, "report", "--parquet", "fleet", "--service", name, "--host", f"h{nth}", "--release", name, rec])
        assert r.returncode == 0, text(r.stderr)
    [totals] = asked(box, "fleet", "totals")
    assert (totals["services"], totals["calls"]) == (len(NAMES), len(NAMES) * report["calls"]), (totals, report["calls"])
    functions = {row["function"] for row in asked(box, "fleet", "dearest")}
    assert {name.ljust(39, "_") for name in NAMES} <= functions, functions
    for words in ([], ["new"], ["releases"], ["history"], ["odd-hosts"], ["savings"], ["--sql", "select function, release, service as \"\x1b[2J\" from fleet"]):
        for form in ([], ["--csv"]):
            r = box.run([box.systoll, "fleet", *form, "fleet", *words], env={**box.env, **engine()})
            assert r.returncode == 0 and not CONTROL.search(text(r.stdout)), (words, text(r.stdout)[:300], text(r.stderr))


# Script that makes DuckDB write files beside a good one, as another version of systoll or an attacker would have
# written them.
STRANGE = """
import duckdb, os, sys
good = sys.argv[1]
def out(name, sql, more=""):
    folder = f"{name}/day=2026-11-22/service=a/host=b"
    os.makedirs(folder)
    duckdb.sql(f"copy ({sql}) to '{folder}/x.parquet' (format parquet {more})")
table = f"read_parquet('{good}', hive_partitioning = false)"
out("many", f"select s.* from (select * from {table} limit 1) s, range(300000)", ", row_group_size 300000")
out("newer", f"select *, 1 as later from {table}")
out("texts", f"select * replace ('x' as calls) from {table}")
out("less", f"select * exclude (calls) from {table}")
out("extremes", f"select * replace (9223372036854775807 as calls, -9223372036854775808 as needless_ns) from {table}")
out("long", f"select * replace (repeat(chr(27) || '[2J', 250000) as function, 'x' as cause, 1 as needless_calls, 1 as needless_ns) from {table}")
"""


@test(users=("root",))
def files_of_strangers_do_no_harm(box):
    r = box.run([box.systoll, "run", "-q", "--save-to", "good", "--service", "shop", "--host", "h1", "--", "true"])
    assert r.returncode == 0, text(r.stderr)
    [good] = glob.glob(os.path.join(box.dir, "good", "*", "*", "*", "*.parquet"))
    with open(good, "rb") as f:
        data = f.read()
    r = box.run([engine()["SYSTOLL_PYTHON"], "-c", STRANGE, good])
    assert r.returncode == 0, text(r.stderr)

    def ask(folder, *words):
        r = box.run([box.systoll, "fleet", folder, *words], env={**box.env, **engine()}, limit=60)
        assert not CONTROL.search(text(r.stdout) + text(r.stderr)), (folder, text(r.stdout) + text(r.stderr))
        return r.returncode, text(r.stdout), text(r.stderr)

    # A damaged table is named and left out; a file that is not a regular one is no table.
    totals = ask("good", "totals")[1]
    day = os.path.basename(os.path.dirname(os.path.dirname(os.path.dirname(good))))
    footer = int.from_bytes(data[-8:-4], "little")
    lying = data[: -8 - footer] + bytes([0xFF, 0xFF, 0xFF, 0xFF, 0x0F]) * (footer // 5 + 1) + data[-8:]
    for name, bad in {"cut": data[: len(data) // 2], "empty": b"", "lying": lying, "beyond": data[:-8] + b"\xff\xff\xff\x7fPAR1"}.items():
        shutil.copytree(os.path.join(box.dir, "good", day), os.path.join(box.dir, name, day))
        with open(os.path.join(box.dir, name, day, "service=shop", "host=h1", "z.parquet"), "wb") as f:
            f.write(bad)
        code, told, why = ask(name, "totals")
        assert (code, told) == (0, totals) and "z.parquet" in "".join(why.split()) and "left out" in why, (name, told, why)
    # So is one that lies in other folders than the rest, which engines would refuse together.
    shutil.copytree(os.path.join(box.dir, "good", day), os.path.join(box.dir, "elsewhere", day))
    shutil.copytree(os.path.join(box.dir, "good", day), os.path.join(box.dir, "elsewhere", "day=2001-01-01"))
    for folder in ("extra", "day=2001-01-02"):
        os.makedirs(os.path.join(box.dir, "elsewhere", folder))
        shutil.copy(good, os.path.join(box.dir, "elsewhere", folder, "x.parquet"))
    code, told, why = ask("elsewhere", "totals")
    assert code == 0 and told and "".join(why.split()).count("x.parquet") == 2 and "left out" in why, (told, why)
    shutil.copytree(os.path.join(box.dir, "good"), os.path.join(box.dir, "links"))
    links = os.path.join(box.dir, "links", day, "service=shop", "host=h1")
    os.mkfifo(os.path.join(links, "fifo.parquet"))
    os.symlink("/dev/zero", os.path.join(links, "zero.parquet"))
    os.symlink("/nowhere", os.path.join(links, "nowhere.parquet"))
    os.symlink("../..", os.path.join(links, "up"))
    os.symlink(".", os.path.join(box.dir, "links", "again"))
    os.mkdir(os.path.join(links, "folder.parquet"))
    code, told, why = ask("links", "totals")
    assert (code, told) == (0, totals), (told, why)
    # Folders' names are data, too.
    quoted = os.path.join(box.dir, "quoted", day, "service=o'x\";--%1b[2J", "host=%27%00%zz")
    os.makedirs(quoted)
    shutil.copy(good, quoted)
    assert [row["service"] for row in asked(box, "quoted", "services")] == ["o'x\";--\x1b[2J"] and ask("quoted", "releases")[0] == 0
    # These are tables of other versions, and impossible ones.
    for name, code in {"many": 0, "newer": 0, "texts": 125, "less": 125, "extremes": 0, "long": 0}.items():
        got, _, why = ask(name, "totals")
        assert got == code and (code == 0 or "calls" in why), (name, why)
        assert ask(name, "odd-hosts")[0] == 0, name
