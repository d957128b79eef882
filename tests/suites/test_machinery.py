"""The tests' own machinery skips, reports failures and makes the tables that counts are compared with as it should."""
import importlib
import os
import re
import shutil
import sys

from harness import HERE, LONG_S, TESTS, TURNS, Skip, chosen, known_seconds, test, text, tool

CASES = os.path.join(os.path.dirname(HERE), "cases")


def module(name):
    """Loads a module of the cases' own."""
    if CASES not in sys.path:
        sys.path.append(CASES)
    return importlib.import_module(name)


def corpus(box, case, **changed):
    """Makes a corpus of one case with some of its keys changed. Returns the path of its score.py."""
    tool("gcc")
    for name in os.listdir(CASES):
        if name.endswith(".py"):
            shutil.copy(os.path.join(CASES, name), box.dir)
    place = os.path.join(box.dir, "cases", case)
    shutil.copytree(os.path.join(CASES, "cases", case), place)
    file = os.path.join(place, "case.toml")
    with open(file) as f:
        contents = f.read()
    for key, value in changed.items():
        contents, n = re.subn(rf"(?m)^{key} = .*$", f"{key} = {value}", contents)
        assert n == 1, (key, n)
    with open(file, "w") as f:
        f.write(contents)
    return os.path.join(box.dir, "score.py")


def score(box, case, *flags, **changed):
    r = box.run(["/usr/bin/python3", corpus(box, case, **changed), "--systoll", box.systoll, *flags], env=dict(box.env, PYTHONDONTWRITEBYTECODE="1"))
    return r.returncode, text(r.stdout).splitlines(), text(r.stderr)


@test(users=("root",))
def another_machines_counts_decide_nothing(box):
    why = module("verify").why_no_strace()
    if why:
        raise Skip(why)
    status, lines, err = score(box, "c-fcntl-toggle", sick_focus=1, cured_focus=1)
    assert (status, lines[-1]) == (0, "2 passed, 0 failed, 0 skipped"), (lines, err)


@test(users=("root",))
def a_case_without_its_tools_is_skipped_and_says_why(box):
    status, lines, err = score(box, "c-fcntl-toggle", needs='["no-such-tool"]')
    assert (status, lines[-1]) == (0, "0 passed, 0 failed, 1 skipped"), (lines, err)
    assert any("no-such-tool: not installed" in line for line in lines), lines
    shutil.rmtree(os.path.join(box.dir, "cases"))
    status, lines, err = score(box, "c-fcntl-toggle", "--strict", needs='["no-such-tool"]')
    assert (status, lines[-1]) == (1, "0 passed, 1 failed, 0 skipped"), (lines, err)
    assert any(line.startswith("FAILED c-fcntl-toggle: ") and "no-such-tool" in line for line in lines), lines


@test(users=("root",))
def constant_failures_are_not_called_flaky(box):
    status, lines, err = score(box, "c-fcntl-toggle", cause='"tz-unset"')
    failed = [line for line in lines if line.startswith("FAILED ")]
    assert status == 1 and len(failed) == 1 and "c-fcntl-toggle: the cause was not named" in failed[0], (lines, err)
    assert not any("FLAKY" in line for line in lines), lines


@test(users=("root",))
def two_failures_in_six_attempts_are_a_failure_where_nothing_may_be_left_out(box):
    del box
    tally = module("tally")
    once, twice = [["bad luck"], []], [["bad luck"], [], [], ["again"]]
    for strict, fails, expected, remark in (
        (False, twice, (1, 0), "FLAKY sometimes: not at the first attempt: bad luck"),
        (True, once, (1, 0), "FLAKY sometimes: not at the first attempt: bad luck"),
        (True, twice, (0, 1), "FAILED sometimes: again; at the first attempt: bad luck; at the second: passed"),
    ):
        counted, left = tally.Tally(strict), list(fails)
        counted.attempt("sometimes", lambda again, left=left: ("", left.pop(0) if left else []))
        assert (counted.passed, counted.failed) == expected, (strict, fails, counted.remarks)
        assert counted.remarks == [remark], counted.remarks


@test(users=("root",))
def cases_are_read_alike_by_every_python(box):
    del box
    casefile = module("casefile")
    if not casefile.loads:
        raise Skip("this Python has no tomllib to compare with")
    names = os.listdir(os.path.join(CASES, "cases"))
    for name in names:
        with open(os.path.join(CASES, "cases", name, "case.toml")) as f:
            contents = f.read()
        assert casefile.simple(contents) == casefile.loads(contents), name
    assert len(names) > 100


@test(users=("root",))
def each_short_test_runs_each_time_and_all_in_every_way_within_twelve_commits(box):
    del box
    users = ("root", "nobody")
    names = lambda run: {name for name, *_ in run}
    usual = [one for one in chosen(users, [], True, 0)[0] if not one[2][4]]
    seconds = known_seconds()
    long = {test[:2] for name, _, test in usual if seconds.get(name, 0) >= LONG_S}
    for turn in range(4):
        due, left_out = chosen(users, [], False, turn)
        left_out_altogether = {test[:2] for _, _, test in usual} - long - {test[:2] for _, _, test in due}
        assert left_out and not left_out_altogether, left_out_altogether
        missing = names(usual) - set().union(*(names(chosen(users, [], False, turn + later)[0]) for later in range(4 * TURNS)))
        assert not missing, missing


TINY_SUITE = """
from harness import test

for n in range(6):
    @test(f"number {n}", users=("nobody",) if n == 5 else ("root", "nobody"))
    def passes(box, n=n):
        assert n != 4, "four"
"""


@test(users=("root",))
def workers_run_each_test_once(box):
    os.mkdir(os.path.join(box.dir, "suites"))
    for name in ("run.py", "harness.py"):
        shutil.copy(os.path.join(HERE, name), box.dir)
    box.file("suites/rights.py", TINY_SUITE)
    seconds = os.path.join(box.dir, "took")
    r = box.run(["/usr/bin/python3", os.path.join(box.dir, "run.py"), "--systoll", "/bin/true", "--jobs", "5", "--long", "--seconds", seconds])
    lines = text(r.stdout).splitlines()
    ran = sorted(line.split("]")[0] for line in lines if re.search(r"\] +(ok|FAILED) +[0-9.]+ s$", line))
    users = [("number 5", "nobody")] + [(f"number {n}", user) for n in range(5) for user in ("root", "nobody")]
    assert ran == sorted(f"rights.{name} [{user}" for name, user in users), lines
    sums = [re.fullmatch(r"(\d+) passed, (\d+) failed, 0 skipped", line) for line in lines]
    passed, failed = (sum(int(m[part]) for m in sums if m) for part in (1, 2))
    assert (r.returncode, passed, failed) == (1, 9, 2), lines
    assert sum(line.startswith("FAILED rights.number 4") for line in lines) == 2, lines
    assert os.path.exists(seconds), lines
