"""systoll opens files that a target or another file names only if they are plain files, and waits for none."""
import os
import subprocess

from harness import BOTH, test, text, tool

PROGRAM = """
#include <unistd.h>
#include <sys/syscall.h>
int main(void) { for (int i = 0; i < 50; i++) syscall(SYS_getppid); return 3; }
"""


def built(box, *flags):
    source = box.file("linked.c", PROGRAM)
    out = os.path.join(box.dir, "linked")
    r = subprocess.run([tool("gcc"), "-g", "-O1", "-o", out, source, *flags], capture_output=True, text=True)
    assert r.returncode == 0, r.stderr
    os.chmod(out, 0o755)
    return out


def fifo(path):
    os.mkfifo(path)
    os.chmod(path, 0o777)
    return path


@test(backends=BOTH)
def a_debug_link_that_names_a_fifo(box):
    program = built(box, "-Wl,--build-id=none")
    debug = os.path.join(box.dir, "linked.debug")
    objcopy = tool("objcopy")
    subprocess.run([objcopy, "--only-keep-debug", program, debug], check=True)
    subprocess.run([objcopy, "--strip-debug", "--strip-unneeded", f"--add-gnu-debuglink={debug}", program], check=True)
    for hidden in (False, True):
        os.unlink(debug)
        if hidden:
            os.mkdir(os.path.join(box.dir, ".debug"), 0o755)
            debug = os.path.join(box.dir, ".debug", "linked.debug")
        fifo(debug)
        doc, r = box.report([program], limit=20)
        assert r.returncode == 3 and doc["calls"] > 50, (r.returncode, doc["calls"])


@test(backends=BOTH)
def a_fifo_is_executed_or_named_by_a_script(box):
    pipe = fifo(os.path.join(box.dir, "pipe"))
    script = box.file("script", f"#!{pipe}\necho no\n", 0o755)
    for path in (pipe, script):
        r = box.run(box.watch([path]), limit=20)
        assert r.returncode == 126 and b"not executable" in r.stderr, (r.returncode, text(r.stderr))
        # The file is named to a watched shell, and through /proc/PID/root.
        r = box.run(box.watch(["/bin/sh", "-c", f"{path}; echo $?"]), limit=20)
        assert r.stdout == b"126\n", (r.stdout, text(r.stderr)[-300:])
    r = box.run([box.systoll, "prove", "--pairs", "8", "--env", "A=1", "--", script], limit=20)
    assert r.returncode == 126, (r.returncode, text(r.stderr))


@test(backends=BOTH)
def a_map_of_functions_that_is_a_fifo(box):
    """Anybody may make /tmp/perf-PID.map."""
    script = "mkfifo /tmp/perf-$$.map; i=0; while [ $i -lt 20 ]; do /bin/true; i=$((i+1)); done; rm /tmp/perf-$$.map; exit 3"
    doc, r = box.report(["/bin/sh", "-c", script], limit=60, private_tmp=True)
    assert r.returncode == 3 and doc["calls"] > 50, (r.returncode, text(r.stderr))


@test()
def a_recording_may_come_through_a_pipe(box):
    """The user may name a pipe: `systoll report <(cat REC)`."""
    rec = os.path.join(box.dir, "rec")
    assert box.run(box.watch(["/bin/true"], "-q", "--save", rec)).returncode == 0
    r = box.run([tool("bash"), "-c", f"{box.systoll} report <(cat {rec})"], limit=30)
    assert r.returncode == 0 and b"system calls" in r.stdout, text(r.stderr)
