"""SIGTERM ends systoll whatever it is doing, and the watched command runs on."""
import fcntl
import os
import signal
import struct
import subprocess
import termios
import threading
import time

from harness import BOTH, Skip, flat, test, text, tool, wait_for

# Limit in seconds. Two are promised; a machine that is busy with seven other things is given more.
SOON = 15
# Least capacity of a pipe, in bytes.
FULL = 4096


def ended(p, within=SOON):
    out, err = p.communicate(timeout=within)
    return p.returncode, out, err


DEAF = "trap '' TERM; : > begun; echo ready; i=0; while [ $i -lt 30 ]; do sleep 0.1; i=$((i+1)); done; echo $i > note"


@test(backends=BOTH)
def a_command_that_does_not_end_runs_on_unwatched(box):
    p = box.start(box.watch(["/bin/sh", "-c", DEAF]), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert p.stdout.readline() == b"ready\n", text(p.stderr.read())
    p.terminate()
    # The command still has its standard output open.
    assert p.wait(timeout=SOON) == 143, p.returncode
    note = os.path.join(box.dir, "note")
    assert not os.path.exists(note), "systoll waited for the command"
    wait_for(lambda: os.path.exists(note) and open(note).read() == "30\n", "the command did not go on")
    _, err = p.communicate(timeout=60)
    assert b"system calls" in flat(err) and b"runs on unwatched" in flat(err), text(err)
    box.no_leftovers(5)


def full_pipe(box):
    """Makes a FIFO of the least capacity and opens it for a reader that does not read."""
    path = os.path.join(box.dir, "fifo")
    os.mkfifo(path)
    os.chmod(path, 0o666)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    fcntl.fcntl(reader, 1031, FULL)
    return path, reader


@test(backends=BOTH)
def an_unread_report_does_not_hold_systoll(box):
    """systoll is told to end after the command's end, and while it runs."""
    for script, flags in (("exit 3", ()), (DEAF, ("--every", "0.2s"))):
        path, reader = full_pipe(box)
        argv = box.watch(["/bin/sh", "-c", script], "--json", "-o", path, *flags)
        p = box.start(argv, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        # The pipe is full, so systoll is in the middle of its writing.
        wait_for(lambda: unread(reader) == FULL, "the pipe was not filled")
        if flags:
            wait_for(lambda: os.path.exists(os.path.join(box.dir, "begun")), "the command did not begin")
        p.terminate()
        assert p.wait(timeout=SOON) == 143, p.returncode
        os.close(reader)
        os.unlink(path)
        if flags:
            note = os.path.join(box.dir, "note")
            wait_for(lambda: os.path.exists(note), "the command did not go on")
        err = p.communicate(timeout=60)[1]
        assert b"ended by SIGTERM" in err, text(err)
        box.no_leftovers(5)


def unread(pipe):
    """Returns the number of bytes in a pipe."""
    return struct.unpack("i", fcntl.ioctl(pipe, termios.FIONREAD, b"\0" * 4))[0]


@test(users=("root",), backends=("ptrace",))
def memory_that_its_program_serves_does_not_hold_systoll(box):
    """A program brings its own memory's pages: systoll reads no page that is not there yet, and sleeps on none."""
    program = box.build("holdsreader.c")
    plain = box.run([program, "0"])
    if plain.returncode == 3:
        raise Skip("userfaultfd is refused here")
    assert (plain.returncode, plain.stdout) == (0, b"named\nwent on\n"), plain
    r = box.run(box.watch([program, "1"]))
    assert (r.returncode, r.stdout) == (0, plain.stdout), r
    # The program is the same; systoll is told to end while the page is still missing.
    p = box.start(box.watch([program, "3"]), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert p.stdout.readline() == b"named\n"
    p.terminate()
    assert p.wait(timeout=SOON) == 143, p.returncode
    assert p.communicate(timeout=60)[0] == b"went on\n"
    box.no_leftovers(5)


@test()
def its_own_children_end_with_systoll(box):
    """prove, demo, box and doctor leave no child, in whatever phase they end."""
    server = ["/bin/sh", "-c", "sleep 60 & sleep 60"]
    commands = {
        "prove": [box.systoll, "prove", "--pairs", "8", "--env", "A=1", "--", *server],
        "box": [box.systoll, "box"],
        "doctor": [box.systoll, "doctor"],
        "elide": [box.systoll, "prove", "--pairs", "8", "--elide", "getpid", "--", *server],
    }
    try:
        tool("gcc")
        commands["demo"] = [box.systoll, "demo"]
    except Skip:
        pass
    for name, argv in commands.items():
        for delay in (0.02, 0.1, 0.2, 0.4, 1.0, 2.0) if box.shared.long else (0.1, 0.6):
            for number in (signal.SIGTERM, signal.SIGINT):
                p = box.start(argv, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
                time.sleep(delay)
                p.send_signal(number)
                code, _, err = ended(p)
                # A command that is over sooner has ended by itself.
                over = name in ("box", "doctor") and code in (0, 1)
                # It ended by the signal, or by itself after it had said what is known.
                assert code in (-number, 128 + number) or over, f"{name} after {delay} s: {code} {text(err)[-300:]}"
                box.no_leftovers(5)


@test(backends=BOTH)
def sigterm_as_it_ends_is_no_failure(box):
    """A SIGTERM at the command's end is named and reported: systoll ends with the command's code or by the signal, and
    does not hang."""
    for n in range(100 if box.shared.long else 10):
        p = box.start(box.watch(["/bin/sh", "-c", "exit 7"]), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        timer = threading.Timer(0.005 * (n % 20), p.terminate)
        timer.start()
        code, _, err = ended(p)
        timer.join()
        assert code in (7, -signal.SIGTERM), f"{code} {text(err)[-300:]}"
        assert code != 7 or b"system calls" in flat(err), text(err)
    box.no_leftovers()
