"""A recording is kept whole or not at all, and the report is printed in any case; the exit code is the command's."""
import json
import os
import threading

from harness import Skip, test, text, tool

FAILED = 125
RUNS = ["sh", "-c", "exit 7"]


def on_full_disk(box, argv, names=("new", "old")):
    """Runs argv as the box's user in a small file system that is full except for its last pages. Returns the finished
    process and the files' contents afterwards; `old` is there before, and holds "as it was"."""
    if os.getuid() != 0:
        raise Skip("needs root to make a small file system")
    place = os.path.join(box.dir, "full")
    os.makedirs(place, exist_ok=True)
    script = """
mount -t tmpfs -o size=32k,mode=777 tmpfs "$1" && cd "$1" && head -c 24576 /dev/zero > fill
printf 'as it was' > old && chmod 666 old
shift
"$@"; code=$?
for name in new old; do [ -e $name ] && { printf '\\0%s=' $name; cat $name; }; done
ls -A | grep -v -x -e fill -e new -e old >&2
exit $code
"""
    command = ["unshare", "--mount", "sh", "-c", script, "sh", place, *box.command(argv)]
    saved, box.user = box.user, "root"
    try:
        r = box.run(command)
    finally:
        box.user = saved
    parts = text(r.stdout).split("\0")
    return r, parts[0], dict(p.split("=", 1) for p in parts[1:])


@test()
def a_full_disk_costs_neither_the_report_nor_the_exit_code(box):
    for name in ("new", "old"):
        r, _, files = on_full_disk(box, [box.systoll, "run", "--force", "--save", name, "--", *RUNS])
        err = text(r.stderr)
        assert r.returncode == 7, (r.returncode, err)
        assert "system calls" in err and "exit 7" in err, f"no report: {err}"
        assert f"systoll: the recording was not kept: {name}: no space left on device (needs " in err, err
        assert " KiB)\n" in err and "os error" not in err and ".systoll-" not in err, err
        assert files == {"old": "as it was"}, files


@test()
def a_report_that_its_file_cant_hold_goes_to_standard_error(box):
    r, _, files = on_full_disk(box, [box.systoll, "run", "--json", "-o", "old", "--", *RUNS])
    document, end = json.JSONDecoder().raw_decode(text(r.stderr))
    assert r.returncode == 7 and document["exit"] == {"code": 7}, r.returncode
    assert "systoll: the report was not kept: old: no space left on device (needs " in text(r.stderr)[end:], text(r.stderr)[end:]
    assert files == {"old": "as it was"}, files
    # A systoll that has no command's exit code to pass on fails.
    few = ["prove", "--pairs", "8", "--watched", "0", "--json", "-o", "old", "--vs", "true", "--", "true"]
    r, _, files = on_full_disk(box, ["sh", "-c", 'head -c 8192 /dev/zero 2>/dev/null | tr "\\0" x > new 2>/dev/null; exec "$0" "$@"', box.systoll, *few])
    document, end = json.JSONDecoder().raw_decode(text(r.stderr))
    assert r.returncode == FAILED and document["pairs"] == 8, (r.returncode, text(r.stderr)[end:])
    assert "the report was not kept" in text(r.stderr)[end:] and files["old"] == "as it was", files.keys()


@test()
def a_limit_of_the_size_of_files_ends_nobody(box):
    """Under ulimit -f a recording that is too large is not kept; the command gets the signal as it would unwatched."""
    script = 'ulimit -f 4; exec "$0" "$@"'
    rec = os.path.join(box.dir, "rec")
    r = box.run(["bash", "-c", script, box.systoll, "run", "--save", rec, "--", "sh", "-c", "ls / >/dev/null; exit 7"])
    err = text(r.stderr)
    assert r.returncode == 7 and "system calls" in err, (r.returncode, err)
    assert f"systoll: the recording was not kept: {rec}: file too large (needs " in err, err
    assert not os.path.exists(rec) and not [f for f in os.listdir(box.dir) if f.startswith(".systoll")], os.listdir(box.dir)
    write = [tool("dd"), "if=/dev/zero", f"of={rec}", "bs=1k", "count=64"]
    r = box.run(["bash", "-c", script, box.systoll, "run", "-q", "--", *write])
    assert r.returncode == -25, (r.returncode, text(r.stderr))
    # The signal is ignored or not, as it was when systoll started.
    ignored = "trap '' XFSZ; "
    for how in ("", ignored):
        shown = ["grep", "-E", "^Sig(Ign|Cgt|Blk)", "/proc/self/status"]
        plain = box.run(["bash", "-c", how + script.replace("4", "unlimited"), *shown])
        for watched in (["run", "-q", "--"], ["cure", "sigmask-context", "--"]):
            r = box.run(["bash", "-c", how + script.replace("4", "unlimited"), box.systoll, *watched, *shown])
            assert r.stdout == plain.stdout, (how, watched, text(r.stdout), text(plain.stdout))


@test()
def pipes_and_devices_are_written_in_place(box):
    """A pipe, a descriptor or a device is written in place: a file can't take its place."""
    fifo = os.path.join(box.dir, "fifo")
    os.mkfifo(fifo)
    os.chmod(fifo, 0o666)
    for flags, first in ((["--save", fifo], b"\x1f\x8b"), (["-o", fifo], b"systoll  ")):
        got = []
        reader = threading.Thread(target=lambda: got.append(open(fifo, "rb").read()))
        reader.start()
        r = box.run([box.systoll, "run", "-q", *flags, "--", *RUNS])
        reader.join(30)
        assert r.returncode == 7 and got and got[0].startswith(first), (flags, r.returncode, text(r.stderr), got[:1])
        assert os.path.exists(fifo) and not os.path.isfile(fifo), "the pipe was replaced"
    # Output that the command itself wrote there stays.
    for where in ("/dev/stdout", "/proc/self/fd/1", "/dev/fd/1"):
        out = os.path.join(box.dir, "out")
        r = box.run(["sh", "-c", f'"$0" run -q -o {where} -- sh -c "echo own; exit 7" > {out}', box.systoll])
        with open(out) as f:
            told = f.read()
        assert r.returncode == 7 and told.startswith("own\nsystoll  sh"), (where, r.returncode, told, text(r.stderr))
    r = box.run(["sh", "-c", '"$0" run -q --save /dev/fd/3 -- sh -c "exit 7" 3> rec && :; code=$?; "$0" report rec; exit $code', box.systoll])
    assert r.returncode == 7 and b"exit 7" in r.stdout, (r.returncode, text(r.stdout), text(r.stderr))
    r = box.run([box.systoll, "run", "-q", "--save", "/dev/full", "--", *RUNS])
    assert r.returncode == 7 and "not kept: /dev/full: no space left" in text(r.stderr), (r.returncode, text(r.stderr))


@test()
def an_unwritable_folder_is_reported_before_anything_runs(box):
    folder = os.path.join(box.dir, "folder")
    os.mkdir(folder)
    ran = os.path.join(box.dir, "ran")
    there = os.path.join(folder, "there")
    with open(there, "w") as f:
        f.write("as it was" * 10000)
    os.chmod(there, 0o666)
    if box.user == "nobody":
        os.chmod(folder, 0o555)
        where = os.path.join(folder, "new")
        for flag in ("--save", "-o"):
            r = box.run([box.systoll, "run", flag, where, "--", "touch", ran])
            assert r.returncode == FAILED and "Permission denied" in text(r.stderr), (r.returncode, text(r.stderr))
            assert not os.path.exists(ran), "the command ran"
    # A writable file in such a folder is written in place.
    r = box.run([box.systoll, "run", "-q", "-o", there, "--", *RUNS])
    with open(there) as f:
        told = f.read()
    assert r.returncode == 7 and told.startswith("systoll  sh") and "as it was" not in told, (r.returncode, told[:100], text(r.stderr))
    assert os.listdir(folder) == ["there"] and os.stat(there).st_mode & 0o777 == 0o666, os.listdir(folder)


@test()
def links_and_modes_stay(box):
    file = box.file("file", "as it was", 0o640)
    link = os.path.join(box.dir, "link")
    os.symlink("file", link)
    r = box.run([box.systoll, "run", "-q", "--force", "--save", link, "--", *RUNS])
    assert r.returncode == 7 and os.path.islink(link), (r.returncode, text(r.stderr))
    s = os.stat(file)
    assert s.st_mode & 0o777 == 0o640 and s.st_size > 100, s
    r = box.run([box.systoll, "report", file])
    assert r.returncode == 0 and b"exit 7" in r.stdout, text(r.stderr)
