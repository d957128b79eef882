"""`systoll prove` and `cure` claim what is true of real programs, and nothing else."""
import json
import os

from harness import test, text, tool


def proves(box, *args, code=0, **kwargs):
    """Runs systoll prove ARGS. Returns its JSON and what it wrote."""
    out = os.path.join(box.dir, "proof.json")
    r = box.run([box.systoll, "prove", "--json", "-o", out, *args], **kwargs)
    assert r.returncode == code, f"exit {r.returncode}: {text(r.stderr)[-400:]}"
    assert r.stdout == b"", r.stdout[:200]
    with open(out) as f:
        return json.load(f)


@test()
def environment_cure(box):
    """The time zone's cure takes away exactly the calls that it claims, and their time."""
    calls = 20000
    program = box.build("localtime.c")
    env = {k: v for k, v in box.env.items() if k != "TZ"}
    p = proves(box, "--pairs", "9", "--cure", "tz-unset", "--", program, str(calls), env=env)
    stats = [{c["syscall"]: c for c in p[side]["by_syscall"]}["newfstatat"]["median"] for side in "ab"]
    # The first call reads the file; each later one only asks for its state.
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
    """A change that alters output, crashes or hangs is told as such."""
    sh = tool("sh")
    for other, difference, problem in [
        ("echo b", "stdout", "different-outcome"),
        ("echo a; echo e >&2", "stderr", "different-outcome"),
        ("echo a; kill -SEGV $$", "exit", "different-outcome"),
    ]:
        p = proves(box, "--pairs", "8", "--vs", f"{sh} -c '{other}'", "--", sh, "-c", "echo a", code=1)
        assert (p["difference"], p["problem"], p["verdict"], p["pairs"]) == (difference, problem, None, 0), p
    r = box.run([box.systoll, "prove", "--vs", f"{sh} -c 'echo same; echo b'", "--", sh, "-c", "echo same; echo a"])
    assert r.returncode == 1 and "line 2   - a\n             + b\n" in text(r.stdout) and "--same exit" in text(r.stdout), text(r.stdout)
    p = proves(box, "--pairs", "8", "-E", "A=1", "--", sh, "-c", "cat /proc/sys/kernel/random/uuid", code=1)
    assert p["difference"] == "varies-by-itself", p
    # Outcomes that need not be the same are not compared.
    p = proves(box, "--pairs", "8", "--same", "exit", "-E", "A=1", "--", sh, "-c", "cat /proc/sys/kernel/random/uuid")
    assert p["same_outcome"] and (p["compared"], p["same_output"]) == (["exit"], None), p
    p = proves(box, "--pairs", "8", "--same", "none", "--vs", f"{sh} -c 'echo b; exit 3'", "--", sh, "-c", "echo a")
    assert (p["compared"], p["same_output"], p["exit"]) == ([], None, None), p
    r = box.run([box.systoll, "prove", "--pairs", "8", "--watched", "0", "--same", "exit", "--vs", f"{sh} -c 'echo b'", "--", sh, "-c", "echo a"])
    assert "same exit code, output was not compared" in text(r.stdout) and "same output" not in text(r.stdout), text(r.stdout)
    p = proves(box, "--pairs", "8", "--same", "wc -l < $SYSTOLL_STDOUT", "--vs", f"{sh} -c 'echo b'", "--", sh, "-c", "echo a")
    assert p["same_outcome"], p


@test(users=("root",))
def a_cure_that_hangs(box):
    causes, program = wrong_cure(box)
    p = proves(box, "--pairs", "8", *causes, "--cure", "hang", "--", *program, code=1)
    assert (p["difference"], p["problem"]) == ("hangs", "timeout"), p
    box.no_leftovers(within=5)


@test()
def hyperfines_words(box):
    """Options named like hyperfine's do the same: hooks run as often as they should, input is fed, exports contain
    every run."""
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
    # Two unchanged runs and one changed, two warm-ups and eight pairs of each side, one watched run of each.
    assert lines[0] == "setup" and lines[-1] == "cleanup" and lines.count("prepare") == 3 + 4 + 16 + 2 == len(lines) - 2, lines
    with open(exported) as f:
        results = json.load(f)["results"]
    assert [len(r["times"]) for r in results] == [8, 8] and all(r["exit_codes"] == [0] * 8 for r in results)
    with open(table) as f:
        assert f.read().count("\n") == 4
    r = box.run([box.systoll, "prove", "--prepare", "exit 3", "-E", "A=1", "--", tool("true")])
    assert r.returncode == 125 and "exit code 3" in text(r.stderr), text(r.stderr)


@test()
def wrong_commands_and_cures_are_refused(box):
    for args, code, word in [
        (["--cure", "no-such-cause", "--", "true"], 125, "no-such-cause"),
        (["--cure", "sync-per-op", "--", "true"], 125, "systoll explain sync-per-op"),
        (["--cure", "tz-unset:3", "--", "true"], 125, "systoll explain tz-unset"),
        (["-E", "A=1", "--", "/nonexistent"], 127, "/nonexistent"),
        (["--vs", "/nonexistent", "--", "true"], 127, "/nonexistent"),
        (["-E", "A=1", "--", box.file("plain")], 126, "plain"),
        (["--pairs", "3", "-E", "A=1", "--", "true"], 125, "3 pairs"),
        (["--", "true"], 125, "--cure"),
    ]:
        r = box.run([box.systoll, "prove", *args])
        assert r.returncode == code and word in text(r.stderr), f"{args}: {r.returncode} {text(r.stderr)}"
    box.no_leftovers()

@test()
def calls_answered_in_place(box):
    """The price of calls is measured in a program that nobody has mended, even a static one."""
    calls = 40000
    for flags in ((), ("-static",)):
        program = box.build("asks_id.c", *flags)
        p = proves(box, "--pairs", "8", "--watched", "1", "--elide", "getpid", "--", program, str(calls))
        made = [{c["syscall"]: c for c in p[side]["by_syscall"]}["getpid"]["median"] for side in "ab"]
        assert made[0] == 2 * calls and made[1] < 10, made
        assert p["watched"] and p["b"]["elided"] == ["getpid"] and p["a"]["elided"] == [], p
        assert p["same_outcome"] and p["verdict"]["cpu"] == "faster" and p["change"]["cpu"]["percent"] < -40, p["change"]
    r = box.run([box.systoll, "prove", "--pairs", "8", "--watched", "0", "--elide", "getpid", "--", program, str(calls)])
    assert "watched alike" in text(r.stdout) and "without them" in text(r.stdout) and "experiment" in text(r.stdout), text(r.stdout)
    for calls, word in [("getuid", "makes no such calls"), ("read", "can't be answered in place")]:
        r = box.run([box.systoll, "prove", "--elide", calls, "--", program, "10"])
        assert r.returncode == 125 and word in text(r.stderr), text(r.stderr)


@test()
def contexts_saved_on_many_pages_are_answered(box):
    """Wherever the stack happens to lie, the gain is that of all calls, and systoll says so."""
    program = box.build("saved.c")
    for shift in range(0, 4096, 1024):
        p = proves(box, "--pairs", "8", "--watched", "0", "--elide", "rt_sigprocmask", "--", program, "4000", str(shift))
        (calls,) = p["answered"]["calls"]
        assert p["answered"]["enough"] and p["problem"] is None, p["answered"]
        assert calls["answered"] + calls["missed"] == p["answered"]["runs"] * (4000 * 10 + 1), p["answered"]


@test()
def a_part_of_the_calls_has_no_prediction(box):
    program = box.build("half_elided.c")
    p = proves(box, "--pairs", "8", "--watched", "1", "--elide", "rt_sigprocmask", "--", program, "20000")
    assert p["same_outcome"] and p["problem"] == "answered-in-part" and p["verdict"] is None and p["change"] is None, p
    (calls,) = p["answered"]["calls"]
    assert not p["answered"]["enough"] and calls["why"]["unseen"] == 20000 and calls["answered"] >= 19000, p["answered"]
    r = box.run([box.systoll, "prove", "--pairs", "8", "--watched", "0", "--elide", "rt_sigprocmask", "--", program, "20000"])
    assert r.returncode == 0 and "not predicted" in text(r.stdout) and "of 40,000 rt_sigprocmask" in text(r.stdout), text(r.stdout)
    assert "20,000 were made where nothing is answered" in text(r.stdout), text(r.stdout)


@test()
def straight_on_from_the_report(box):
    """run --prove proves the best finding, about the command as it was typed, and ends as the command did."""
    program = box.build("localtime.c")
    env = {k: v for k, v in box.env.items() if k != "TZ"}
    sh = tool("sh")
    r = box.run([box.systoll, "run", "--prove", "--", sh, "-c", '"$0" 20000 >/dev/null; cat; exit 3', program], env=env, input=b"once\n")
    said = text(r.stderr)
    assert r.returncode == 3 and r.stdout == b"once\n", (r.returncode, r.stdout)
    # A sentence may go on in the next line.
    sentences = " ".join(said.split())
    assert "tz-unset is put to the proof by: systoll prove --cure tz-unset" in said, said
    assert "both end with exit code 3" in sentences and "keep it  export TZ=:/etc/localtime" in said, said
    assert "standard input is empty now" in said, said
    r = box.run([box.systoll, "run", "--prove", "--", tool("true")])
    assert r.returncode == 0 and "nothing was found" in text(r.stderr), text(r.stderr)


def wrong_cure(box):
    """Makes a folder with a cause whose cure tells the program to misbehave."""
    os.makedirs(os.path.join(box.dir, "causes"), exist_ok=True)
    for mode in ("other", "crash", "hang"):
        box.file(
            f"causes/{mode}.toml",
            f'id = "{mode}"\ntitle = "t"\nwhy = "w"\nrecognise = "r"\napply = "env"\nmended = []\nreports = []\ncases = []\n'
            '[[match]]\nkinds = ["repeat"]\nsyscalls = ["getpid"]\n'
            f'[[stop]]\nhow = "h"\nkind = "environment"\nenv = {{ MODE = "{mode}" }}\ngives_up = "all"\n',
        )
    script = "case $MODE in other) echo b;; crash) echo a; kill -SEGV $$;; hang) echo a; exec sleep 1000;; *) echo a;; esac"
    return ["--causes", os.path.join(box.dir, "causes")], [tool("sh"), "-c", script]


@test()
def cures_that_harm(box):
    """A cure that changes the output or crashes the program is told as such, and offered nowhere."""
    causes, program = wrong_cure(box)
    for mode, difference in [("other", "stdout"), ("crash", "exit")]:
        p = proves(box, "--pairs", "8", *causes, "--cure", mode, "--", *program, code=1)
        assert (p["difference"], p["problem"], p["verdict"]) == (difference, "different-outcome", None), p
        r = box.run([box.systoll, "prove", "--pairs", "8", *causes, "--cure", mode, "--", *program])
        sentences = " ".join(text(r.stdout).split())
        assert r.returncode == 1 and "nothing is claimed" in sentences and "keep it" not in text(r.stdout), text(r.stdout)


def serve(box, server, *args, code=0, **kwargs):
    return proves(box, "--serve", server, *args, code=code, **kwargs)


@test()
def servers_that_tell_nothing(box):
    """A server is ready when it prints a line; if its load tells nothing, its runs are counted."""
    sh = tool("sh")
    server = f"{sh} -c 'echo ready now; exec sleep 100'"
    common = ["--ready", "ready now", "--load", tool("true"), "--for", "1ms"]
    p = serve(box, server, *common, "-E", "A=1")
    assert p["turns"] == 8 and p["unit"] == "load" and p["problem"] is None, p
    assert p["a"]["calls"] > 1 and p["a"]["killed"] == p["b"]["killed"] == 0, p
    dies = f"{sh} -c 'echo ready now; sleep 0.1; echo oh no; exit 7'"
    load = ["--ready", "ready now", "--load", f"{tool('sleep')} 20", "--for", "1ms"]
    p = serve(box, server, *common[:2], "--load", tool("sleep") + " 0.2", "--for", "1ms", "--vs", dies, code=1)
    assert p["problem"] == "failed" and "exit code 7 under its load" in p["why"] and "oh no" in p["why"], p
    r = box.run([box.systoll, "prove", "--serve", dies, *load, "-E", "A=1"])
    assert r.returncode == 125 and "exit code 7" in text(r.stderr), text(r.stderr)
    r = box.run([box.systoll, "prove", "--serve", server, *common[:2], "--load", f"{sh} -c 'echo bad load; exit 9'", "-E", "A=1"])
    assert r.returncode == 125 and "exit code 9" in text(r.stderr) and "bad load" in text(r.stderr), text(r.stderr)
    box.no_leftovers(within=5)


@test(users=("root",))
def servers_under_redis_benchmark(box):
    """The load tells throughput and latency; calls are told per request."""
    import socket

    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
        s.listen()
        argv = ["--serve", f"{tool('redis-server')} --port {port} --save ''", "--ready", str(port), "--for", "1ms"]
        argv += ["--load", f"{tool('redis-benchmark')} -p {port} -n 400 -c 2 -t set", "-E", "A=1"]
        r = box.run([box.systoll, "prove", *argv])
        assert r.returncode == 125 and "listens at" in text(r.stderr), text(r.stderr)
    p = proves(box, *argv)
    assert p["unit"] == "request" and p["turns"] == 8, p
    for side in (p["a"], p["b"]):
        # Each request takes a read and a write at least; the server's start is included.
        assert side["per_second"]["median"] > 0 and side["latency_ns"]["median"] > 0 and 2 < side["calls"] < 100, side
    box.no_leftovers(within=5)
