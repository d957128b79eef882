"""diff, check and bisect find planted changes in real programs, and take nothing for a change that varies by itself."""
import contextlib
import json
import os
import shutil
import subprocess
import sys
import threading
import time
import xml.etree.ElementTree

import readers
from harness import HERE, Skip, test, text, tool

sys.path.insert(0, HERE)
import histories  # noqa: E402

REPOSITORY = os.path.dirname(HERE)
# A budget accepts no finding that the learning run did not have: 250 calls cost less than one needs, on a slow box too (350
# took 0.9 ms of 1 ms on a busy one).
SCRIPT = """import os
def look(n):
    for i in range(n):
        os.stat("/etc/hosts")
def main():
    look(%d)
    for i in range(30):
        open("/etc/passwd").read()
main()
"""
NODE = "const fs=require('fs'); for(let i=0;i<%d;i++) fs.statSync('/etc/hosts'); fs.promises.readFile('/etc/passwd').then(() => {})\n"
GO = """package main

import (
	"os"
	"sync"
)

func main() {
	var all sync.WaitGroup
	for i := 0; i < 20; i++ {
		all.Add(1)
		go func() {
			defer all.Done()
			for j := 0; j < 20; j++ {
				os.ReadFile("/etc/passwd")
			}
		}()
	}
	all.Wait()
}
"""


def save(box, name, argv):
    # `diff` runs commands with these streams, and a command's calls depend on its streams.
    streams = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
    r = box.run([box.systoll, "run", "-q", "--save", name, "--", *argv], **streams)
    assert r.returncode == 0, r.returncode
    return os.path.join(box.dir, name)


def diff(box, *args):
    r = box.run([box.systoll, "diff", "--json", *args])
    assert r.returncode == 0, text(r.stderr)[-400:]
    return json.loads(r.stdout)


def python():
    """Returns an interpreter that no wrapper starts: a wrapper's children would be counted, too."""
    return os.path.realpath(tool("/usr/bin/python3"))


@test()
def a_recording_against_itself_is_no_change(box):
    rec = save(box, "a.systoll", [python(), box.file("a.py", SCRIPT % 50)])
    for by in ("syscall", "row", "api", "caller", "line", "library", "process"):
        found = diff(box, "--by", by, rec, rec)
        assert not found["changed"] and not found["varying"] and not found["findings_new"] and found["same"] > 0, (by, found)
    assert "no change" in text(box.run([box.systoll, "diff", rec, rec]).stdout)


def two_runs(box, argv):
    one, other = (save(box, f"{n}.systoll", argv) for n in "ab")
    for by in ("syscall", "row"):
        found = diff(box, "--by", by, one, other)
        assert not found["changed"], (by, found["changed"])
        assert not found["findings_new"] and not found["findings_gone"], found


@test()
def two_runs_of_python_differ_by_chance_only(box):
    two_runs(box, [python(), box.file("a.py", SCRIPT % 50)])


@test()
def two_runs_of_node_differ_by_chance_only(box):
    two_runs(box, [tool("node"), box.file("a.js", NODE % 50)])


@test()
def two_runs_of_go_differ_by_chance_only(box):
    tool("go")
    box.file("go-diff.go", GO)
    two_runs(box, [box.build(os.path.join(box.dir, "go-diff.go"), name=f"go-diff-{box.user}")])


@test()
def changes_are_reported_with_their_caller(box):
    old, new = (save(box, f"{n}.systoll", [python(), box.file("a.py", SCRIPT % n)]) for n in (50, 950))
    found = diff(box, old, new)
    by_call = {c["syscall"]: c for c in found["changed"]}
    assert set(by_call) & {"stat", "newfstatat"} and len(by_call) == 1, list(by_call)
    change = next(iter(by_call.values()))
    assert change["new"]["calls"]["median"] - change["old"]["calls"]["median"] == 900, change
    line = diff(box, "--by", "line", old, new)["changed"]
    assert [c["function"] for c in line] == ["look"], line
    markdown = text(box.run([box.systoll, "diff", "--markdown", old, new]).stdout)
    assert "| +900 |" in markdown, markdown
    assert box.run([box.systoll, "diff", "--exit-code", old, new]).returncode == 1
    assert box.run([box.systoll, "diff", "--exit-code", old, old]).returncode == 0


@test()
def commands_are_run_in_turns(box):
    script = box.file("a.py", "import os, sys\nfor i in range(int(sys.argv[1])): os.stat('/etc/hosts')\n")
    vs = f"{python()} {script} 70"
    found = diff(box, "--vs", vs, "--", python(), script, "10")
    assert (found["old"]["runs"], found["new"]["runs"]) == (3, 3), found
    deltas = [c["new"]["calls"]["median"] - c["old"]["calls"]["median"] for c in found["changed"]]
    assert deltas == [60], found["changed"]
    kept = save(box, "old.systoll", [python(), script, "10"])
    found = diff(box, "--runs", "1", kept, "--", python(), script, "10")
    assert not found["changed"], found["changed"]


@test()
def bad_input_of_diff_has_a_word(box):
    rec = save(box, "a.systoll", ["/bin/true"])
    folder = os.path.join(box.dir, "tmp")
    junk = box.file("junk", "not a recording")
    for args, words in [([rec], "only one recording"), ([rec, rec, rec], "put a : between"), ([rec, ":"], "no recording"),
                        ([rec, junk], "not a recording"), ([rec, "missing"], "No such file"), ([folder, rec], "no recording"),
                        (["--vs", "/bin/false"], "--"), (["--", "/bin/true"], "with what"), (["-E", "A=1", "--", "/nonexistent"], "nonexistent")]:
        r = box.run([box.systoll, "diff", *args])
        assert r.returncode in (125, 127) and words in text(r.stderr), (args, r.returncode, text(r.stderr))


def check(box, *args):
    r = box.run([box.systoll, "check", *args])
    return r.returncode, text(r.stdout), text(r.stderr)


@test()
def a_budget_that_was_learnt_at_a_terminal_holds_in_a_pipe(box):
    """CMD's output goes into pipes whatever systoll's streams are, also with --quiet."""
    # Few lines to stderr: many would be a finding where they take 5 % of the processor time, and not where they take 4.
    program = [python(), box.file("asks.py", "import os, sys\nfor i in range(300):\n    print(i)\n    if i % 15 == 0: sys.stderr.write(f'{i}\\n')\nprint('rows:', 7)\n")]
    leader, follower = os.openpty()
    drained = threading.Thread(target=drain, args=(leader,))
    drained.start()
    r = box.run([box.systoll, "check", "--update", "--", *program], stdout=follower, stderr=follower)
    os.close(follower)
    drained.join(30)
    assert r.returncode == 0
    for quiet in ([], ["--quiet"]):
        code, out, err = check(box, *quiet, "--", *program)
        assert code == 0 and ("rows: 7" in err) == (not quiet), (quiet, out, err[-300:])
    # The same budget holds if the streams are files, or closed.
    r = box.run(["/bin/sh", "-c", '"$0" check -- "$@" > out 2> err; code=$?; "$0" check -q -- "$@" >&- 2>&-; exit $code', box.systoll, *program])
    assert r.returncode == 0, text(r.stderr)


def drain(terminal):
    with contextlib.suppress(OSError):
        while os.read(terminal, 1 << 16):
            pass


@test()
def a_budget_is_learnt_held_and_broken(box):
    few, many = ([python(), box.file(f"{n}.py", SCRIPT % n)] for n in (50, 250))
    assert check(box, "--", *few)[0] == 125, "there is no budget"
    code, out, err = check(box, "--update", "--", *few)
    assert code == 0 and os.path.exists(os.path.join(box.dir, "systoll.toml")), err
    code, out, err = check(box, "--", *few)
    assert code == 0 and "systoll.toml holds" in out, (out, err)
    code, out, err = check(box, "--", *many)
    line = [line for line in out.splitlines() if line.startswith("over")]
    assert code == 1 and len(line) == 1 and "look 250.py:4" in line[0], (out, err)
    # Each format says the same.
    junit = xml.etree.ElementTree.fromstring(check(box, "--format", "junit", "--", *many)[1])
    assert junit.get("failures") == "1" and int(junit.get("tests")) > 10, junit.attrib
    sarif = json.loads(check(box, "--format", "sarif", "--", *many)[1])
    place = sarif["runs"][0]["results"][0]["locations"][0]["physicalLocation"]
    assert place == {"artifactLocation": {"uri": "250.py"}, "region": {"startLine": 4}}, place
    assert "::error file=250.py,line=4," in check(box, "--format", "github", "--", *many)[1]
    assert "250.py:4:1: error: " in check(box, "--format", "vim", "--", *many)[1]
    stat = "newfstatat" if "newfstatat" in line[0] else "stat"
    bencher = json.loads(check(box, "--format", "bencher", "--", *many)[1])
    assert bencher[stat]["system-calls"]["value"] >= 250, bencher[stat]
    names = {b["name"]: b for b in json.loads(check(box, "--format", "benchmark", "--", *many)[1])}
    assert names[f"{stat}: calls"]["value"] == bencher[stat]["system-calls"]["value"]
    # The budget that was written anew holds.
    assert check(box, "--update", "--", *many)[0] == 0
    assert check(box, "--", *many)[0] == 0
    # A finding that the budget accepts is not reported at each build.
    assert check(box, "--format", "github", "--", *many)[1] == ""


@test()
def forms_conform_to_their_schemas(box):
    """JUnit's XML is valid by the schema that Jenkins uses, SARIF by its standard's: for a budget that holds, one that
    is broken, and names that must be escaped."""
    schemas, validator = [readers.schema(name) for name in ("junit.xsd", "sarif.json")], readers.formats()
    if not (validator and all(schemas)):
        raise Skip("the schemas are not installed: tests/readers.py")
    few, many = ([python(), box.file(name, SCRIPT % n)] for name, n in (("50.py", 50), ('<3"&\x01ü.py', 250)))
    assert check(box, "--update", "--", *few)[0] == 0
    box.file("broken.toml", '[[limit]]\nsyscall = "read"\nrate = 0\n\n[[limit]]\nline = "a<b&c.py:2"\ncalls = 3\n')
    written = []
    for budget, command in (("systoll.toml", few), ("systoll.toml", many), ("broken.toml", many)):
        for form in ("junit", "sarif"):
            code, out, err = check(box, "--budget", budget, "--format", form, "--all", "--", *command)
            assert out and code == int(command is many), (code, err)
            written.append(box.file(f"{len(written)}.{form}", out))
    judge = """import json, sys, jsonschema, xmlschema
junit, sarif, *files = sys.argv[1:]
junit, sarif = xmlschema.XMLSchema(junit), json.load(open(sarif))
sarif = jsonschema.validators.validator_for(sarif)(sarif)
refused = [str(e.reason) for f in files if f.endswith("junit") for e in junit.iter_errors(f)]
refused += [str(e.message) for f in files if f.endswith("sarif") for e in sarif.iter_errors(json.load(open(f)))]
print(json.dumps(refused))
"""
    assert json.loads(box.run([validator, "-c", judge, *schemas, *written]).stdout) == [], "refused"
    # The schemas are seen to refuse what is invalid.
    bad = [box.file("bad.junit", "<testsuites><testsuite/></testsuites>"), box.file("bad.sarif", '{"version": "2.1.0", "runs": [{"results": []}]}')]
    assert len(json.loads(box.run([validator, "-c", judge, *schemas, *bad]).stdout)) >= 2


def steps(path, *way):
    """Returns the value at a place in a YAML file."""
    import_yaml = "require 'yaml'; require 'json'; puts YAML.load_file(ARGV[0]).to_json"
    with_ruby = subprocess.run([tool("ruby"), "-e", import_yaml, path], capture_output=True, text=True, check=True)
    found = json.loads(with_ruby.stdout)
    for step in way:
        found = found[step]
    return found


@test()
def settings_of_ci_services_do_what_they_say(box):
    """Runs the steps of the GitHub Action and of GitLab's template as those services would."""
    few, many = ([python(), box.file(f"{n}.py", SCRIPT % n)] for n in (50, 250))
    assert check(box, "--update", "--", *few)[0] == 0
    action = os.path.join(REPOSITORY, "action.yml")
    [build, hold] = steps(action, "runs", "steps")
    # The step names a crate that exists. Building it takes minutes, and CI has done so.
    assert os.path.exists(os.path.join(REPOSITORY, "crates/systoll/Cargo.toml")) and "/crates/systoll\"" in build["run"], build
    assert set(hold["env"]) == {"COMMAND", "BUDGET", "SYSTOLL"} and set(steps(action, "inputs")) == {"command", "budget", "systoll"}
    [script] = steps(os.path.join(REPOSITORY, ".gitlab/systoll.yml"), ".systoll", "script")
    for command, breaches in ((few, 0), (many, 1)):
        env = {**box.env, "COMMAND": " ".join(command), "BUDGET": "systoll.toml", "SYSTOLL": box.systoll}
        r = box.run(["bash", "-eo", "pipefail", "-c", hold["run"]], env=env)
        assert r.returncode == breaches and text(r.stdout).count("::error ") == breaches, text(r.stdout + r.stderr)
        r = box.run(["bash", "-eo", "pipefail", "-c", script], env=env)
        with open(os.path.join(box.dir, "systoll.xml")) as f:
            junit = xml.etree.ElementTree.fromstring(f.read())
        assert r.returncode == breaches and junit.get("failures") == str(breaches), text(r.stdout + r.stderr)


@test()
def limits_count_the_selected_calls(box):
    script = box.file("a.py", "import os\nfor i in range(30): os.stat('/etc/hosts')\nprint('served 10 requests')\n")
    budget = box.file("b.toml", 'per = "served {} requests"\n\n[[limit]]\nline = "a.py:2"\nrate = "..=3.5"\n\n'
                                '[[limit]]\nsyscall = "%%stat"\napi = "stat"\nphase = "main"\nrate = "..=2"\n\n'
                                '[[limit]]\nsyscall = "ptrace"\ncalls = 0\n')
    code, out, err = check(box, "--budget", budget, "--all", "--", python(), script)
    over = [line for line in out.splitlines() if line.startswith("over")]
    assert code == 1 and len(over) == 1 and "at most 2" in over[0], (out, err)
    assert "served 10 requests" in err and "ptrace: 0 calls of 0" in out, (out, err)
    # A flag on the command line takes precedence.
    code, out, err = check(box, "-q", "--budget", budget, "--per", "1000", "--", python(), script)
    assert code == 0, (out, err)


@test()
def bad_budgets_have_a_word(box):
    for name, body, words in [("typo", "[[limit]]\nsyscal = 'read'\n", "line 2: unknown field `syscal`"),
                              ("call", "[[limit]]\nsyscall = 'opnat'\ncalls = 1\n", "no system call opnat"),
                              ("no-toml", "a b c", "line 1"), ("bytes", b"\xff\xfe", "no UTF-8")]:
        code, out, err = check(box, "--budget", box.file(name, body), "--", "/bin/true")
        assert code == 125 and words in err, (name, err)
    code, out, err = check(box, "--budget", box.dir, "--", "/bin/true")
    assert code == 125 and "directory" in err.lower(), err
    empty = box.file("empty", "")
    assert check(box, "--budget", empty, "--", "/bin/true")[0] == 0
    code, out, err = check(box, "--budget", empty, "--", "/bin/false")
    assert code == 2 and "exit code 1" in err, err
    assert check(box, "--budget", empty, "--", "/nonexistent")[0] == 127
    assert check(box, "--budget", box.file("one", "exit = 1\n"), "--", "/bin/false")[0] == 0


def bisect(box, name, commits=8, extra=()):
    for needed in ["git", *histories.LANGUAGES[name.split("-")[0]]["needs"]]:
        tool(needed)
    at = os.path.join(box.dir, "repository")
    planted = histories.make(name, at, commits)
    if box.user == "nobody":
        for folder, _, files in os.walk(at):
            for each in [folder, *(os.path.join(folder, f) for f in files)]:
                shutil.chown(each, 65534, 65534)
    # The repository has a file of the user's own, and HEAD at a place of the user's choice.
    box.file("repository/mine", "not in git")
    with open(os.path.join(at, "NOTES"), "a") as f:
        f.write("changed and not committed\n")
    before = state(box, at)
    first = histories.git(at, "-c", "safe.directory=*", "rev-list", "--max-parents=0", "HEAD")
    r = box.run([box.systoll, "bisect", "--json", "-C", at, *extra, first, "HEAD", "--", histories.command(name)])
    assert state(box, at) == before, "the user's tree has changed"
    box.no_leftovers()
    return planted, first, at, r


def state(box, at):
    """Returns all files of a repository's tree, and what git says of it."""
    found = {}
    for folder, folders, files in os.walk(at):
        if ".git" in folders:
            folders.remove(".git")
        for f in files:
            with open(os.path.join(folder, f), "rb") as opened:
                found[os.path.join(folder, f)] = opened.read()
    said = [text(box.run(["git", "-C", at, *args]).stdout) for args in (["status", "--porcelain"], ["rev-parse", "HEAD"], ["worktree", "list"], ["for-each-ref"])]
    return found, said


@test()
def a_bisection_that_was_killed_leaves_nothing_for_long(box):
    tool("git")
    at = os.path.join(box.dir, "repository")
    histories.make("python-cache", at, 4)
    if box.user == "nobody":
        for folder, _, files in os.walk(at):
            for each in [folder, *(os.path.join(folder, f) for f in files)]:
                shutil.chown(each, 65534, 65534)
    trees = lambda: text(box.run(["git", "-C", at, "worktree", "list"]).stdout).splitlines()
    process = box.start([box.systoll, "bisect", "-C", at, "HEAD~2", "HEAD", "--", "sleep 600"])
    end = time.monotonic() + 30
    while len(trees()) < 2 and time.monotonic() < end:
        time.sleep(0.05)
    assert len(trees()) == 2, trees()
    # A bisection that runs meanwhile leaves the repository alone.
    box.run([box.systoll, "bisect", "-C", at, "HEAD~2", "HEAD", "--", "true"])
    assert len(trees()) == 2, trees()
    process.kill()
    process.wait()
    box.run([box.systoll, "bisect", "-C", at, "HEAD~2", "HEAD", "--", "true"])
    assert len(trees()) == 1 and not [f for f in os.listdir(box.tmp) if f.startswith("systoll-bisect")], (trees(), os.listdir(box.tmp))


@test(users=("nobody",))
def bisect_finds_the_commit_in_c(box):
    planted, first, at, r = bisect(box, "c-stat")
    found = json.loads(r.stdout)
    assert r.returncode == 0 and found["first_bad"]["id"] == planted, (found, text(r.stderr))
    assert found["first_bad"]["calls"] == 2000 and found["calls_before"] == 1 and "work" in found["row"], found
    assert found["hunks"][0]["file"] == "app.c" and any("k < 50" in line for line in found["hunks"][0]["lines"]), found["hunks"]
    assert found["runs"] <= found["steps"] + 2, "one run a step"


@test(users=("root",))
def bisect_finds_the_commit_in_python(box):
    planted, first, at, r = bisect(box, "python-cache", extra=("--calls", "openat < read_config"))
    found = json.loads(r.stdout)
    assert r.returncode == 0 and found["first_bad"]["id"] == planted, (found, text(r.stderr))
    # With HEAD detached it works as well, and impossible ends are refused with a message.
    histories.git(at, "checkout", "-q", "--force", "--detach", "HEAD")
    for good, bad, words in [("HEAD", first, "wrong order"), (first, first, "same commit"), (first, "nothing", "no commit nothing"),
                             ("--help", "HEAD", "")]:
        r = box.run([box.systoll, "bisect", "-C", at, good, bad, "--", "python3 app.py"])
        assert words in text(r.stderr) and (r.returncode == 125 or good == "--help"), (good, bad, text(r.stderr))
    r = box.run([box.systoll, "bisect", "-C", at, f"{first}", "HEAD", "--", "python3 nothing.py && false && ./no"])
    assert r.returncode == 125 and "does not build" in text(r.stderr), text(r.stderr)
    r = box.run([box.systoll, "bisect", "-C", box.tmp, first, "HEAD", "--", "true"])
    assert r.returncode == 125 and "no git repository" in text(r.stderr), text(r.stderr)
    empty = dict(box.env, PATH=box.tmp)
    r = box.run([box.systoll, "bisect", "-C", at, first, "HEAD", "--", "true"], env=empty)
    assert r.returncode == 125 and "git can't be run" in text(r.stderr), text(r.stderr)
