"""Programs beyond cases/ get the findings that they must have, and no others."""
from harness import GLIBC, test, tool


def about(doc, **want):
    """Returns the findings with these values; a list must contain its value."""
    return [f for f in doc["findings"] if all(v in f[k] if isinstance(f[k], list) else f[k] == v for k, v in want.items())]


def check_localtime(doc, calls, api):
    found = about(doc, cause="tz-unset")
    assert len(found) == 1, [f.get("cause") or f["kind"] for f in doc["findings"]]
    f = found[0]
    assert api in f["apis"], f["apis"]
    assert abs(f["calls"] - calls) <= 10, f["calls"]
    assert "/etc/localtime" in (f["what"] or ""), f["what"]
    assert any("TZ=:/etc/localtime" in s for s in f["stop"]), f["stop"]
    assert f["why"] and f["gives_up"] and "--cure" in f["prove"] and "tz-unset" in f["prove"], f
    assert f["evidence"]["agree"] > 0 and f["needless_calls"]["low"] > 0.5 * calls, f
    return f


@test()
def localtime_in_c(box):
    program = box.build("localtime.c")
    doc, _ = box.report([program, "100000"])
    f = check_localtime(doc, 100_000, "localtime")
    assert f["user"]["function"] == "main" and f["user"]["file"].endswith("localtime.c") and f["user"]["line"] == 10, f["user"]
    assert f["share_of_calls"] > 0.99 and (f["share_of_cpu"] is None or f["share_of_cpu"] > 0.5), f
    cured, _ = box.report([program, "100000"], env=dict(box.env, TZ=":/etc/localtime"))
    assert not cured["findings"], cured["findings"]


@test()
def barriers_after_main_are_as_needless_as_those_before(box):
    doc, _ = box.report([box.build("membarriers.c")])
    [found] = about(doc, cause="membarrier-global")
    needless = found["needless_calls"]
    assert (found["calls"], needless["estimate"], needless["high"]) == (14, 14, 14) and needless["low"] > 10, found
    assert found["basis"] == "counts" and "mostly before main" in found["told"]["cost"], found
    assert not doc["told"]["verdict"].endswith("before main begins"), doc["told"]


@test()
def program_starts_are_separate_from_needless_calls(box):
    """The time of programs that are started is their own: more than all system calls cost, and not a part of that."""
    script = "for i in $(seq 200); do d=$(date +%s); b=$(basename /a/$i.c); done"
    doc, _ = box.report(["/bin/sh", "-c", script])
    [found] = about(doc, cause="process-per-item")
    assert found["starts"] and doc["starting_ns"] == found["needless_toll_ns"] <= doc["needless_toll_ns"], doc["starting_ns"]
    assert "starting programs" in doc["told"]["verdict"], doc["told"]
    assert found["told"]["evidence"].startswith("every start was counted"), found["told"]
    gain = found["expected_gain"]
    assert gain["high_ns"] <= 1.11 * found["needless_toll_ns"], gain


@test()
def localtime_in_perl(box):
    argv = [tool("perl"), "-e", "localtime for 1..100000"]
    doc, _ = box.report(argv)
    # Perl's localtime is localtime_r after a tzset of its own, and the tzset makes the stat.
    f = check_localtime(doc, 100_000, "tzset")
    assert "localtime" in f["why"] + f["user"]["function"], f
    cured, _ = box.report(argv, env=dict(box.env, TZ=":/etc/localtime"))
    assert not cured["findings"], cured["findings"]


@test()
def mktime_in_python(box):
    doc, _ = box.report(["/usr/bin/python3", "-c", "import time\nt = (2024, 1, 1, 0, 0, 0, 0, 0, -1)\nfor _ in range(20000): time.mktime(t)"])
    found = about(doc, cause="tz-unset", apis="mktime")
    assert found, doc["findings"]


@test()
def reentrant_ones_do_not_stat(box):
    doc, _ = box.report(["/usr/bin/python3", "-c", "import time\nfor i in range(20000): time.localtime(i)"])
    assert not doc["findings"], doc["findings"]
    doc, _ = box.report([tool("ruby"), "-e", "20000.times { Time.at(0).localtime }"])
    assert not doc["findings"], doc["findings"]


@test()
def a_mask_set_to_its_present_value(box):
    doc, _ = box.report([box.build("noop.c"), "200000"])
    found = about(doc, kind="no-op", syscalls="rt_sigprocmask")
    assert len(found) == 1 and len(doc["findings"]) == 1, doc["findings"]
    assert found[0]["calls"] >= 200_000 and "nothing had changed" in found[0]["why"], found[0]


@test(backends=("inproc", "ptrace"))
def states_that_another_call_changes_are_not_needless(box):
    """A state that several calls set has one key: a call that undoes another's is not needless."""
    program = box.build("set_states.c")
    # Each road runs alone, because the machine's prices decide how large a part of a run each is.
    for road, call in [("descriptor", "ioctl"), ("limit", "setrlimit"), ("memory", "madvise"), ("terminal", "ioctl")]:
        doc, r = box.report([program, "sick", "5000", road])
        calls = {tuple(f["syscalls"]) for f in doc["findings"] + doc["also"] if f["kind"] == "no-op"}
        assert r.returncode == 0 and (call,) in calls, (road, doc["findings"], doc["also"])
    doc, r = box.report([program, "healthy", "5000"])
    assert r.returncode == 0 and not [f for f in doc["findings"] + doc["also"] if f["kind"] == "no-op"], doc


@test()
def the_report_names_everything(box):
    """The report names API, line and cure."""
    program = box.build("localtime.c")
    r = box.run([box.systoll, "run", "--", program, "20000"])
    report = r.stderr.decode()
    # Before 2.33 glibc made a call of its own for stat.
    stat = "newfstatat" if GLIBC >= (2, 33) else "stat"
    for word in ("localtime", stat, "TZ=:/etc/localtime", "localtime.c:10", "tz-unset", "systoll prove --cure tz-unset -- "):
        assert word in report, f"no {word!r} in:\n{report}"
    assert "__tz_convert" not in report, report


@test()
def healthy_programs_are_left_in_peace(box):
    for argv in (["/bin/ls", "-lR", "/etc"], [tool("perl"), "-e", "print 1"], ["/usr/bin/python3", "-c", "import json, email, http.client"], [tool("git"), "--version"]):
        doc, _ = box.report(argv)
        assert not doc["findings"], (argv, doc["findings"])


@test()
def the_five_stories(box):
    r = box.run([box.systoll, "demo"], limit=1200)
    out = r.stdout.decode() + r.stderr.decode()
    assert r.returncode == 0, out[-600:]
    for word in ("tz-unset", "sigmask-context", "sigmask-setjmp", "membarrier-global", "getpid"):
        assert word in out, f"no {word} in the demo"
    assert out.count("times faster") >= 4, out
    box.no_leftovers()
