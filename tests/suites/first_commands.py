"""The commands that people type first work or get a hint: strace's options, a program in quotes, files of another
kind."""
import gzip
import os
import subprocess

from harness import test, text, tool

FAILED, NOT_FOUND = 125, 127


def said(box, *words, code=None, **kwargs):
    """Returns what `systoll WORDS` says on standard error."""
    r = box.run([box.systoll, *words], **kwargs)
    assert code is None or r.returncode == code, (words, r.returncode, text(r.stderr)[-300:])
    assert "tip: to pass" not in text(r.stderr), text(r.stderr)
    return text(r.stderr)


@test()
def open_selects_the_calls_that_libraries_make(box):
    program = [tool("cat"), "/etc/hostname"]
    for typed, made, not_made in (("open", "openat", "close"), ("stat", "newfstatat", "openat"), ("trace=file", "openat", "close")):
        table = said(box, "run", "-q", "-c", "-e", typed, "-o", "/dev/stderr", "--", *program, code=0)
        assert made in table.split("total")[0] and not_made not in table, (typed, table)
    assert "only open, made as openat" in said(box, "run", "-e", "open", "--all", "--", *program, code=0)
    # If none of the selected calls was made, the report says which were.
    for how in ([], ["-c"], ["--by", "api"]):
        told = said(box, "run", *how, "-e", "fork", "--", *program, code=0)
        assert "none of fork; " in told and "other system calls" in told and "no system call was seen" not in told, (how, told)


@test()
def straces_options_lead_to_ours(box):
    for typed, word in ((["-p", "1"], "systoll attach PID"), (["--attach=1"], "systoll attach PID"), (["-tt"], "strace -t"), (["-T"], "--longer"),
                        (["-C"], "-c"), (["-P", "/etc"], "--by fd"), (["-z"], "--json"), (["-s", "99"], "strace"), (["-fp", "1"], "systoll attach PID"),
                        (["-u", "nobody"], "runuser"), (["--summary"], "-c"), (["--trace-path=/etc"], "--by fd"), (["--failed-only"], "errno")):
        told = said(box, "run", *typed, "--", "true", code=FAILED)
        assert word in told and told.startswith("systoll: run has no -"), (typed, told)
    for typed, word in (("/^open", "regular expressions"), ("signal=none", "leave it out"), ("status=failed", "column of errors"),
                        ("inject=open:error=ENOENT", "strace -e inject"), ("opennat", "the nearest: openat")):
        assert word in said(box, "run", "-e", typed, "--", "true", code=FAILED), typed
    assert "nearest" not in said(box, "run", "-e", "bogus", "--", "true", code=FAILED)
    said(box, "run", "--no-such-option", "--", "true", code=FAILED)
    assert "10s" in said(box, "run", "--every", "0", "--", "true", code=FAILED)
    for name, cause in (("TZ", "tz-unset"), ("getpid", "identity-per-op"), ("localtime", "tz-unset")):
        r = box.run([box.systoll, "explain", name])
        assert r.returncode == 0 and cause in text(r.stdout), (name, r.returncode, text(r.stdout))
    assert "docs/use/install.md" in said(box, "update", code=FAILED)


@test()
def files_that_are_not_programs_come_with_hints(box):
    for line, word in (("ls -la", "systoll run -- ls -la"), ("ls | wc -l", "sh -c 'ls | wc -l'"), ("cd", "sh -c 'cd"), ("FOO=1", "-E FOO=1")):
        assert word in said(box, "run", "--", line, code=NOT_FOUND), line
        assert word in said(box, "prove", "-E", "A=1", "--", line, code=NOT_FOUND), line


@test()
def a_file_that_is_no_recording_is_not_replaced(box):
    mine, empty = box.file("mine", "mine"), box.file("empty")
    assert "--force" in said(box, "run", "-q", "--save", mine, "--", "touch", "ran", code=FAILED)
    with open(mine) as f:
        assert f.read() == "mine" and not os.path.exists(os.path.join(box.dir, "ran"))
    said(box, "run", "-q", "--save", empty, "--", "true", code=0)
    said(box, "run", "-q", "--save", empty, "--", "true", code=0)
    said(box, "run", "-q", "--save", mine, "--force", "--", "true", code=0)
    said(box, "report", mine, code=0)


@test()
def a_pipe_is_read_and_not_waited_for(box):
    """A FIFO that somebody writes to is read, like the pipe of <(…); one that nobody writes to is not waited for."""
    r = box.run([box.systoll, "run", "-q", "--save", "rec", "--", "true"])
    assert r.returncode == 0, text(r.stderr)
    fifo = os.path.join(box.dir, "fifo")
    os.mkfifo(fifo)
    os.chmod(fifo, 0o666)
    for words in (["report", fifo], ["import", fifo], ["diff", fifo, "rec"], ["check", "--budget", fifo, "--", "true"]):
        assert "nobody writes to it" in said(box, *words, code=FAILED, limit=20), words
    writer = subprocess.Popen(["/bin/sh", "-c", f"cat rec > {fifo}"], cwd=box.dir)
    r = box.run([box.systoll, "report", fifo])
    writer.wait()
    assert r.returncode == 0 and b"true" in r.stdout, text(r.stderr)
    for line in ('"$0" report <(cat rec)', 'cat rec | "$0" report', '"$0" report < rec'):
        r = box.run(["bash", "-c", line, box.systoll])
        assert r.returncode == 0 and b"true" in r.stdout, (line, text(r.stderr))


@test()
def unwritten_output_is_a_failure(box):
    """Unwritten output is a failure unless the command itself has failed; and no page or JSON is written to a
    terminal."""
    for flags in (["--save", "/dev/full"], ["-o", "/dev/full"], ["--html", "-o", "/dev/full"]):
        assert "no space left" in said(box, "run", "-q", *flags, "--", "true", code=FAILED), flags
        said(box, "run", "-q", *flags, "--", "sh", "-c", "exit 7", code=7)
    r = box.run(["bash", "-c", '"$0" run -q -o >(exec 0<&-; sleep 0.5) -- sleep 1', box.systoll])
    assert r.returncode == FAILED and "broken pipe" in text(r.stderr), (r.returncode, text(r.stderr))
    said(box, "run", "-q", "--save", "rec", "--", "ls", "/", code=0)
    for form in ("--html", "--json"):
        leader, follower = os.openpty()
        r = box.run([box.systoll, "report", form, "-o", "/dev/full", "rec"], stdout=follower, stderr=follower)
        os.close(follower)
        told = os.read(leader, 1 << 16).decode()
        os.close(leader)
        assert r.returncode == FAILED and "no space left" in told and len(told) < 300, (form, told[:300])


@test()
def a_cures_library_is_exported_only_to_safe_folders(box):
    folder = os.path.join(box.dir, "open")
    os.mkdir(folder)
    os.chmod(folder, 0o777)
    r = box.run([box.systoll, "cure", "--export", folder, "sigmask-context"])
    assert r.returncode == FAILED and "others may write" in text(r.stderr) and not r.stdout, (text(r.stdout), text(r.stderr))
    assert not os.listdir(folder)


@test()
def a_profile_holds_no_escape_of_argvs(box):
    said(box, "run", "-q", "--save", "rec", "--", "sh", "-c", "exit 0", "\x1b[31mred\u202e", code=0)
    said(box, "export", "--format", "pprof", "-o", "profile", "rec", code=0)
    with open(os.path.join(box.dir, "profile"), "rb") as f:
        inside = gzip.decompress(f.read())
    assert b"\\x1b[31mred" in inside and b"\x1b[31m" not in inside and "\u202e".encode() not in inside


@test(users=("root",))
def a_line_of_javascript_is_named_without_a_flag(box):
    """The line is named at every run: what earlier runs have stored does not take it away."""
    script = box.file("log.js", "const fs = require('fs'); for (let i = 0; i < 8000; i++) fs.appendFileSync('n.log', 'line ' + i + '\\n');")
    for _ in range(3):
        told = said(box, "run", "--", tool("node"), script, code=0)
        assert "finding" in told and "log.js:1 in" in told and "fs.appendFileSync" in told, told
        assert "--perf-basic-prof" not in told, told
