"""`systoll prove` and `cure`: what is claimed and what is not, on real programs."""
import json
import os

from harness import test, text, tool


def proves(box, *args, code=0, **kwargs):
    """systoll prove ARGS: its JSON and what it wrote."""
    out = os.path.join(box.dir, "proof.json")
    r = box.run([box.systoll, "prove", "--json", "-o", out, *args], **kwargs)
    assert r.returncode == code, f"exit {r.returncode}: {text(r.stderr)[-400:]}"
    assert r.stdout == b"", r.stdout[:200]
    with open(out) as f:
        return json.load(f)


@test()
def environment_cure(box):
    """The time zone's cure takes away what it says, exactly, and the time with it."""
    calls = 20000
    program = box.build("localtime.c")
    env = {k: v for k, v in box.env.items() if k != "TZ"}
    p = proves(box, "--pairs", "9", "--cure", "tz-unset", "--", program, str(calls), env=env)
    stats = [{c["syscall"]: c for c in p[side]["by_syscall"]}["newfstatat"]["median"] for side in "ab"]
    # The first look reads the file; each later one only asks for it.
    assert calls - 1 <= stats[0] - stats[1] <= calls, stats
    assert p["same_outcome"] and p["a"]["exact"] and p["b"]["exact"], p["problem"]
    assert p["b"]["env"] == {"TZ": ":/etc/localtime"} and p["a"]["env"] == {}
    assert p["verdict"]["cpu"] == "faster" and p["change"]["cpu"]["percent"] < -40, p["change"]
    r = box.run([box.systoll, "prove", "--pairs", "9", "--cure", "tz-unset", "--", program, str(calls)], env=env)
    assert "keep it  export TZ=:/etc/localtime" in text(r.stdout), text(r.stdout)
    cured = box.run([box.systoll, "cure", "tz-unset", "--", "sh", "-c", "echo $TZ; exit 7"], env=env)
    assert (cured.stdout, cured.returncode) == (b":/etc/localtime\n", 7)


@test()
def two_commands(box):
    sleep = [tool("sleep")]
    p = proves(box, "--pairs", "8", "--vs", f"{sleep[0]} 0.01", "--", *sleep, "0.1")
    assert p["verdict"]["wall"] == "faster" and -99 < p["change"]["wall"]["percent"] < -30, p["change"]
    assert p["change"]["calls"] == 0 and p["pairs"] == 8 and p["stopped"] == "asked"
    p = proves(box, "--pairs", "8", "--vs", f"{sleep[0]} 0.1", "--", *sleep, "0.01")
    assert p["verdict"]["wall"] == "slower", p["change"]


@test()
def other_outcomes_claim_nothing(box):
    """A change that alters output, crashes or hangs is told as that."""
    sh = tool("sh")
    for other, difference, problem in [
        ("echo b", "stdout", "different-outcome"),
        ("echo a; echo e >&2", "stderr", "different-outcome"),
        ("echo a; kill -SEGV $$", "exit", "different-outcome"),
    ]:
        p = proves(box, "--pairs", "8", "--vs", f"{sh} -c '{other}'", "--", sh, "-c", "echo a", code=1)
        assert (p["difference"], p["problem"], p["verdict"], p["pairs"]) == (difference, problem, None, 0), p
    p = proves(box, "--pairs", "8", "-E", "A=1", "--", sh, "-c", "cat /proc/sys/kernel/random/uuid", code=1)
    assert p["difference"] == "varies-by-itself", p
    # What need not be the same is not looked at.
    p = proves(box, "--pairs", "8", "--same", "exit", "-E", "A=1", "--", sh, "-c", "cat /proc/sys/kernel/random/uuid")
    assert p["same_outcome"], p
    p = proves(box, "--pairs", "8", "--same", "wc -l < $SYSTOLL_STDOUT", "--vs", f"{sh} -c 'echo b'", "--", sh, "-c", "echo a")
    assert p["same_outcome"], p


@test(users=("root",))
def a_side_that_hangs(box):
    sh = tool("sh")
    p = proves(box, "--pairs", "8", "--vs", f"{sh} -c 'sleep 100'", "--", sh, "-c", ":", code=1)
    assert (p["difference"], p["problem"]) == ("hangs", "timeout"), p
    box.no_leftovers(within=5)


@test()
def hyperfines_words(box):
    """Hooks run as often as they should, input is fed, exports hold every run."""
    log, fed = (os.path.join(box.dir, n) for n in ("log", "fed"))
    box.file("log"), box.file("fed", "some input\n")
    exported, table = (os.path.join(box.dir, n) for n in ("runs.json", "runs.md"))
    p = proves(
        box, "--pairs", "8", "--watched", "1", "-w", "2", "--input", fed, "--export-json", exported, "--export-markdown", table,
        "--setup", f"echo setup >> {log}", "--prepare", f"echo prepare >> {log}", "--cleanup", f"echo cleanup >> {log}",
        "-E", "A=1", "--", tool("wc"), "-c",
    )
    assert p["same_outcome"]
    with open(log) as f:
        lines = f.read().split()
    # Twice itself and once changed, two warm-ups and eight pairs of either, one watched of either.
    assert lines[0] == "setup" and lines[-1] == "cleanup" and lines.count("prepare") == 3 + 4 + 16 + 2 == len(lines) - 2, lines
    with open(exported) as f:
        results = json.load(f)["results"]
    assert [len(r["times"]) for r in results] == [8, 8] and all(r["exit_codes"] == [0] * 8 for r in results)
    with open(table) as f:
        assert f.read().count("\n") == 4
    r = box.run([box.systoll, "prove", "--prepare", "exit 3", "-E", "A=1", "--", tool("true")])
    assert r.returncode == 125 and "exit code 3" in text(r.stderr), text(r.stderr)


@test()
def what_cant_be_proved_says_so(box):
    for args, code, word in [
        (["--cure", "no-such-cause", "--", "true"], 125, "no-such-cause"),
        (["--cure", "sync-per-op", "--", "true"], 125, "systoll explain sync-per-op"),
        (["--cure", "tz-unset:2", "--", "true"], 125, "systoll explain tz-unset"),
        (["-E", "A=1", "--", "/nonexistent"], 127, "/nonexistent"),
        (["--vs", "/nonexistent", "--", "true"], 127, "/nonexistent"),
        (["-E", "A=1", "--", box.file("plain")], 126, "plain"),
        (["--pairs", "3", "-E", "A=1", "--", "true"], 125, "3 pairs"),
        (["--", "true"], 125, "--cure"),
    ]:
        r = box.run([box.systoll, "prove", *args])
        assert r.returncode == code and word in text(r.stderr), f"{args}: {r.returncode} {text(r.stderr)}"
    box.no_leftovers()
