"""Each bad input gives a clear error with its documented exit code, and leaves nothing behind."""
import gzip
import json
import os
import struct
import subprocess

from harness import Skip, test, text

FAILED, NOT_EXECUTABLE, NOT_FOUND = 125, 126, 127


def refuses(box, argv, code, *words, **kwargs):
    """Asserts that systoll ARGV fails with `code` and one clear message, which contains `words`, and prints nothing
    else."""
    before = set(os.listdir(box.dir))
    r = box.run([box.systoll, *argv], **kwargs)
    err = text(r.stderr)
    assert r.returncode == code, f"{argv}: exit {r.returncode} not {code}: {err[-300:]}"
    assert "panicked" not in err and "RUST_BACKTRACE" not in err, err[-400:]
    assert err.startswith("systoll: ") or err.startswith("error: "), f"{argv}: {err[:300]!r}"
    assert len(err) < 2000, f"{argv}: {len(err)} bytes of message"
    for word in words:
        assert word in err, f"{argv}: no {word!r} in {err!r}"
    assert r.stdout in (b"", None), f"{argv}: {r.stdout[:200]}"
    box.no_leftovers()
    left = set(os.listdir(box.dir)) - before
    assert not left, f"{argv} left {left}"


@test()
def no_such_program(box):
    refuses(box, ["run", "--", "/nonexistent/program"], NOT_FOUND, "/nonexistent/program")
    refuses(box, ["run", "--", "no-such-program-anywhere"], NOT_FOUND, "no-such-program-anywhere")
    refuses(box, ["run", "--", ""], NOT_FOUND)


@test()
def not_executable(box):
    refuses(box, ["run", "--", box.file("plain", "#!/bin/sh\n")], NOT_EXECUTABLE, "plain")
    refuses(box, ["run", "--", box.dir], NOT_EXECUTABLE, "directory")
    refuses(box, ["run", "--", box.file("script", "#!/nonexistent/interpreter\n", 0o755)], NOT_EXECUTABLE, "interpreter")
    refuses(box, ["run", "--", box.file("empty", "", 0o755)], NOT_EXECUTABLE)
    refuses(box, ["run", "--", box.file("text", "echo no magic\n", 0o755)], NOT_EXECUTABLE)
    # The file claims a machine that does not exist; for a file of another architecture the message would be another.
    refuses(box, ["run", "--", box.file("damaged", b"\x7fELF" + b"\0" * 200, 0o755)], FAILED, "damaged")


@test()
def thirty_two_bit_target(box):
    """The program, made by hand, is exit(7) for i386, so no compiler for i386 is needed."""
    code = bytes.fromhex("b801000000" "bb07000000" "cd80")
    base = 0x08048000
    header = b"\x7fELF\x01\x01\x01" + b"\0" * 9 + struct.pack("<HHIIIIIHHHHHH", 2, 3, 1, base + 84, 52, 0, 0, 52, 32, 1, 0, 0, 0)
    segment = struct.pack("<IIIIIIII", 1, 0, base, base, 84 + len(code), 84 + len(code), 5, 4096)
    program = box.file("prog32", header + segment + code, 0o755)
    refuses(box, ["run", "--", program], FAILED, "32-bit")
    # A watched script calls it; it runs unwatched.
    try:
        if subprocess.run([program]).returncode != 7:
            raise Skip("this kernel runs no 32-bit programs")
    except OSError as e:
        raise Skip("this kernel runs no 32-bit programs") from e
    r = box.run([box.systoll, "run", "-q", "--", "/bin/sh", "-c", f"{program}; exit $?"])
    assert r.returncode == 7, (r.returncode, text(r.stderr)[-300:])


@test(users=("nobody",))
def set_uid_target(box):
    if os.getuid() != 0:
        raise Skip("only root can make a set-uid program")
    path = os.path.join(box.dir, "helper")
    with open(box.build("setid.c"), "rb") as source, open(path, "wb") as f:
        f.write(source.read())
    os.chown(path, 0, 0)
    os.chmod(path, 0o4755)
    refuses(box, ["run", "--", path], FAILED, "set-uid")


@test()
def recordings(box):
    good = os.path.join(box.dir, "good")
    r = box.run([box.systoll, "run", "-q", "-o", "/dev/null", "--save", good, "--", "/bin/ls", "/"])
    assert r.returncode == 0 and os.path.getsize(good) < 300_000, (r.returncode, text(r.stderr))
    r = box.run([box.systoll, "report", good])
    assert r.returncode == 0 and b"/bin/ls" in r.stdout, (r.returncode, text(r.stderr))
    with open(good, "rb") as f:
        data = f.read()
    refuses(box, ["report", "/nonexistent/rec"], FAILED, "/nonexistent/rec")
    refuses(box, ["report", box.dir], FAILED)
    refuses(box, ["report", box.file("empty")], FAILED)
    refuses(box, ["report", box.file("text", "hello\n" * 100)], FAILED)
    refuses(box, ["report", box.file("random", bytes((i * i * 7 + i // 3) % 256 for i in range(5000)))], FAILED)
    for cut in (1, len(data) // 3, len(data) // 2, len(data) - 1):
        refuses(box, ["report", box.file("cut", data[:cut])], FAILED)
    if box.user == "nobody":
        refuses(box, ["report", box.file("mine", data, 0)], FAILED, "mine")


@test()
def damaged_recordings_never_crash(box):
    """Bits are flipped inside the compressed message: the result is an error or a report, but no crash and no hang."""
    good = os.path.join(box.dir, "good")
    box.run([box.systoll, "run", "-q", "-o", "/dev/null", "--save", good, "--", "/bin/true"])
    with open(good, "rb") as f:
        plain = bytearray(gzip.decompress(f.read()))
    for i in range(60 if not box.shared.long else 2000):
        broken = bytearray(plain)
        broken[(i * 7919) % len(broken)] ^= 1 << (i % 8)
        r = box.run([box.systoll, "report", box.file("broken", gzip.compress(bytes(broken), 1))], limit=20)
        assert r.returncode in (0, FAILED), (i, r.returncode, text(r.stderr)[-300:])
        assert "panicked" not in text(r.stderr), (i, text(r.stderr)[-300:])
    # A small file that unpacks to a gigabyte is refused before it does.
    bomb = box.file("bomb", gzip.compress(b"\0" * (64 << 20), 9))
    r = box.run([box.systoll, "report", bomb], limit=20)
    assert r.returncode == FAILED, r.returncode


@test()
def words_not_known(box):
    refuses(box, ["explain", "no-such-cause"], FAILED, "no-such-cause", "systoll causes")
    refuses(box, ["demo", "no-such-story"], FAILED, "no-such-story")


@test()
def command_lines_that_make_no_sense(box):
    for argv in (["run"], ["run", "--"], ["run", "--no-such-flag", "--", "/bin/true"], ["no-such-command"], []):
        r = box.run([box.systoll, *argv])
        assert r.returncode == FAILED, (argv, r.returncode)
        assert r.stderr and b"panicked" not in r.stderr, argv
    for flags in (["-c", "--json"], ["--backend", "no-such-backend"]):
        r = box.run([box.systoll, "run", *flags, "--", "/bin/sh", "-c", "echo ran"])
        assert r.returncode == FAILED and b"ran" not in r.stdout, (flags, r.returncode, r.stdout)
        assert r.stderr and b"panicked" not in r.stderr, flags


@test()
def words_that_are_no_text(box):
    for argv in ([b"--x\xff"], [b"\xff"], [b"-\xff"], ["run", b"--x\xff", "--", "true"]):
        refuses(box, argv, FAILED)


@test()
def report_not_writable(box):
    ran = os.path.join(box.dir, "ran")
    for out in ("/nonexistent/folder/report", box.dir, "/proc/nothing"):
        refuses(box, ["run", "-o", out, "--", "/bin/sh", "-c", f"touch {ran}"], FAILED, out)
        refuses(box, ["run", "--save", out, "--", "/bin/sh", "-c", f"touch {ran}"], FAILED, out)
    assert not os.path.exists(ran), "the program ran though its report could not be written"


@test()
def report_to_a_full_device(box):
    r = box.run([box.systoll, "run", "-q", "-o", "/dev/full", "--", "/bin/sh", "-c", "echo out; exit 6"])
    assert r.stdout == b"out\n" and r.returncode in (6, FAILED), (r.returncode, text(r.stderr))
    assert b"panicked" not in r.stderr and r.stderr, text(r.stderr)


@test()
def streams_closed_or_broken(box):
    """If nobody can read the output, systoll says so before the program runs. If nobody reads any more, there is no
    panic, and the program's exit code stands."""
    ran = os.path.join(box.dir, "ran")
    for closing, code in ((">&-", 6), ("2>&-", FAILED), (">&- 2>&-", FAILED), ("2>/dev/full", 6)):
        r = box.run(["/bin/sh", "-c", f'"$0" run -- /bin/sh -c "touch {ran}; exit 6" {closing}', box.systoll])
        assert r.returncode == code or (closing == "2>/dev/full" and r.returncode == FAILED), (closing, r.returncode, text(r.stderr))
        assert b"panicked" not in r.stderr, text(r.stderr)
        assert os.path.exists(ran) == (code == 6), closing
        if os.path.exists(ran):
            os.unlink(ran)
    # A report that goes to a file needs no standard stream.
    r = box.run(["/bin/sh", "-c", '"$0" run -o report -- /bin/sh -c "exit 6" >&- 2>&-', box.systoll])
    assert r.returncode == 6 and os.path.getsize(os.path.join(box.dir, "report")) > 0, r.returncode
    for command in ("causes", "explain tz-unset", "doctor"):
        for closing in ("| true", ">&-"):
            r = box.run(["/bin/sh", "-c", f'"$0" {command} {closing}', box.systoll])
            assert b"panicked" not in r.stderr, (command, closing, text(r.stderr))
    read_end, write_end = os.pipe()
    os.close(read_end)
    r = box.run([box.systoll, "run", "--", "/bin/sh", "-c", "exit 6"], stderr=write_end)
    os.close(write_end)
    assert r.returncode == 6, r.returncode


@test()
def json_is_the_contract(box):
    doc, _ = box.report(["/bin/ls", "/"])
    want = {"systoll", "command", "exit", "backend", "exact", "lost", "wall_ns", "user_ns", "sys_ns", "crossing_ns", "observer_ns_per_call",
            "calls", "toll_ns", "waited_ns", "needless_toll_ns", "by_syscall", "rows", "findings", "also", "longest", "problems"}
    assert not want - set(doc), f"missing: {sorted(want - set(doc))}"
    assert doc["command"] == ["/bin/ls", "/"] and doc["exit"] == {"code": 0}
    assert 20 < doc["crossing_ns"]["before"] < 20_000, doc["crossing_ns"]
    # However busy the machine was during the estimate, watching can't have taken longer than the run did.
    assert doc["observer_wall_ns_per_call"] <= doc["wall_ns"] / doc["calls"], (doc["observer_wall_ns_per_call"], doc["wall_ns"], doc["calls"])
    # Without a file's name the JSON goes to stderr: one object, and the program's stdout is untouched.
    r = box.run([box.systoll, "run", "--json", "--", "/bin/sh", "-c", "echo out; kill -9 $$"])
    assert r.returncode == -9 and r.stdout == b"out\n", (r.returncode, r.stdout)
    assert json.loads(r.stderr)["exit"] == {"signal": 9}


@test()
def help_by_any_name(box):
    commands = ("run", "report", "demo", "box", "doctor", "explain", "causes")
    for command in commands:
        shown = {flag: box.run([box.systoll, *argv]) for flag, argv in (("-h", [command, "-h"]), ("help", ["help", command]))}
        for flag, r in shown.items():
            assert r.returncode == 0 and b"Examples:" in r.stdout and not r.stderr, (command, flag, text(r.stdout), text(r.stderr))
    r = box.run([box.systoll, "--help"])
    assert r.returncode == 0 and all(c.encode() in r.stdout for c in (*commands, "Exit codes", "125", "126", "127")), text(r.stdout)
    r = box.run([box.systoll, "-V"])
    assert r.returncode == 0 and r.stdout.startswith(b"systoll ") and len(r.stdout.split()) == 2, r.stdout
