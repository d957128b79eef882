"""systoll forwards signals, prints interim reports, and keeps its recordings small."""
import json
import os
import signal
import subprocess

from harness import BOTH, flat, test, text, wait_for


def started(box, script, *flags, before="true"):
    """Starts a watched shell and waits until it says that it is ready."""
    p = box.start(box.watch(["/bin/sh", "-c", f"{before}; echo ready; {script}"], *flags), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert p.stdout.readline() == b"ready\n", text(p.stderr.read())
    return p


def ended(p, within=20.0):
    """Returns (stdout, stderr) of a systoll that ends before its command would have ended by itself."""
    return p.communicate(timeout=within)


@test(backends=BOTH)
def sigterm_is_forwarded(box):
    p = started(box, "exec sleep 60")
    p.terminate()
    _, err = ended(p)
    assert p.returncode == -signal.SIGTERM, p.returncode
    assert b"system calls" in flat(err), text(err)
    box.no_leftovers()


@test(backends=BOTH)
def sigterm_may_be_handled(box):
    p = started(box, "while :; do sleep 0.05; done", before="trap 'echo bye; exit 9' TERM")
    p.terminate()
    out, err = ended(p)
    assert (p.returncode, out) == (9, b"bye\n") and b"system calls" in flat(err), (p.returncode, out)
    box.no_leftovers()


@test(backends=BOTH)
def sigterm_with_a_child_that_stays(box):
    """The report comes even if a background child goes on; the child is left alone."""
    stays = "(trap '' TERM HUP; : > begun; i=0; while [ $i -lt 30 ]; do sleep 0.1; i=$((i+1)); done; echo finished > note) >/dev/null 2>&1 &"
    p = started(box, "exec sleep 60", before=stays + " until [ -e begun ]; do sleep 0.01; done")
    p.terminate()
    _, err = ended(p)
    assert b"system calls" in flat(err), text(err)
    wait_for(lambda: os.path.exists(os.path.join(box.dir, "note")), "the child did not go on")
    box.no_leftovers(5)


@test(backends=BOTH)
def sigusr1_prints_the_report_so_far(box):
    p = started(box, "i=0; while [ $i -lt 30 ]; do /bin/true; sleep 0.05; i=$((i+1)); [ $i = 5 ] && : > under_way; done; echo end; exit 4")
    wait_for(lambda: os.path.exists(os.path.join(box.dir, "under_way")), "the program did not begin")
    p.send_signal(signal.SIGUSR1)
    out, err = ended(p, 60)
    assert (p.returncode, out) == (4, b"end\n"), (p.returncode, out)
    assert flat(err).count(b"system calls") >= 2, text(err)


@test(backends=BOTH)
def a_recording_does_not_grow_with_the_calls(box):
    """A recording of 200,000 calls stays under 300 KB."""
    rec = os.path.join(box.dir, "rec")
    r = box.run(box.watch([box.build("threads.c"), "1", "200000"], "--save", rec), limit=300)
    assert r.returncode == 0 and b"200," in r.stderr, text(r.stderr)
    assert os.path.getsize(rec) < 300_000, f"{os.path.getsize(rec)} bytes"


@test(backends=BOTH)
def a_saved_recording_says_the_same(box):
    rec = os.path.join(box.dir, "rec")
    program = box.build("localtime.c")
    live, _ = box.report([program, "5000"], flags=["--save", rec])
    r = box.run([box.systoll, "report", "--json", rec])
    assert r.returncode == 0, text(r.stderr)
    kept = json.loads(r.stdout)
    for key in ("command", "exit", "calls", "exact", "lost", "by_syscall", "crossing_ns", "wall_ns"):
        assert kept[key] == live[key], f"{key}: {kept[key]} not {live[key]}"
    of = lambda doc: [(f["cause"], f["kind"], f["calls"], f["apis"], f["user"]) for f in doc["findings"]]  # noqa: E731
    assert of(kept) == of(live) and of(live), (of(kept), of(live))
