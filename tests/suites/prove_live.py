"""`prove --live`: calls of a running program answered in place in turns, rightly; then it runs on as it was."""
import json
import os
import signal
import subprocess
import time

from suites.attach import is_as_it_was, is_hooked, ours_in, until
from harness import test, text


CALLS = "getpid,gettid,rt_sigprocmask,getuid,geteuid"


class Answered:
    """A program of `answered_live.c`, which holds each answer against what it was at its start."""

    def __init__(self, box, *words):
        self.process = box.start([box.build("answered_live.c", "-pthread"), *words], stdin=-1, stdout=-1)
        self.pid = self.process.pid
        assert self.process.stdout.readline() == b"ready\n"

    def is_fine(self):
        is_as_it_was(self.pid)
        self.process.stdin.close()
        said = text(self.process.stdout.read())
        assert said == "fine\n" and self.process.wait(20) == 0, said


def live(box, pid, *flags, **kwargs):
    return box.start([box.systoll, "prove", "-q", "--live", str(pid), *flags], stdin=-3, stdout=-1, stderr=-1, **kwargs)


@test()
def calls_are_answered_rightly_and_made_again_in_turns(box):
    run = Answered(box, "3", "200")
    file = os.path.join(box.dir, "live.json")
    out, err = live(box, run.pid, "--elide", CALLS, "--for", "3s", "--per", "write", "--json", "-o", file).communicate(timeout=60)
    assert not err and not out, out + err
    with open(file) as f:
        doc = json.load(f)
    assert doc["turns"] == 8 and doc["unit"] == "write" and doc["problem"] is None, doc
    assert doc["answered"]["enough"] and doc["answered"]["share"] > 0.95, doc["answered"]
    order = [turn["answered"] for turn in doc["each"]]
    assert len(order) == 16 and all(a != b for a, b in zip(order[::2], order[1::2])), order
    for turn in doc["each"]:
        assert (turn["in_place"].get("getpid", 0) > 0) == turn["answered"], turn
    assert doc["b"]["elided_calls"]["median"] < doc["a"]["elided_calls"]["median"] / 4, (doc["a"], doc["b"])
    assert doc["left"] and not doc["left"]["problems"], doc["left"]
    run.is_fine()


# A server that asks who it is at each request, and a load that tells as wrk does and fails where an answer is missing. Each turn
# makes as many requests: where others use the processors, a turn of a fixed time makes a few dozen now and then, and the
# processor time of a connection's start, divided by these, contradicts all other turns.
SERVER = """
import os, socketserver
class Handler(socketserver.StreamRequestHandler):
    def handle(self):
        for line in self.rfile:
            for _ in range(200):
                os.getpid()
            self.wfile.write(b"%d\\n" % os.getpid())
server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
print(server.server_address[1], flush=True)
server.serve_forever()
"""
LOAD = """
import socket, sys, time
s = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
f = s.makefile("rwb", buffering=0)
began, n = time.monotonic(), 2000
for _ in range(n):
    f.write(b"x\\n")
    assert f.readline() == sys.argv[2].encode() + b"\\n"
print(f"  {n} requests in 1s\\nRequests/sec: {n / (time.monotonic() - began)}")
"""


@test()
def a_servers_requests_are_the_unit_of_work_and_none_is_lost(box):
    server = box.start(["/usr/bin/python3", "-c", SERVER], stdout=-1)
    port = server.stdout.readline().strip().decode()
    load = os.path.join(box.dir, "load.py")
    with open(load, "w") as f:
        f.write(LOAD)
    command = f"/usr/bin/python3 {load} {port} {server.pid}"
    if box.user == "nobody":
        out, err = live(box, server.pid, "--elide", "getpid", "--for", "1s", "--load", command).communicate(timeout=120)
        said = text(out)
        assert not err and "without them" in said and "less CPU a request" in said and "99 % between" in said, said + text(err)
        assert "it runs on as before" in said, said
        server.kill()
        server.wait()
        return
    out, err = live(box, server.pid, "--elide", "getpid", "--for", "1s", "--load", command, "--json").communicate(timeout=120)
    assert not err, err
    doc = json.loads(out)
    assert doc["unit"] == "request" and doc["turns"] == 8 and doc["b"]["failed"] == 0, doc
    assert doc["change"]["cpu"]["high"] < 0 and doc["verdict"]["cpu"] == "faster", doc["change"]
    # Only the first call of each connection's thread is made; all others are answered in place.
    assert doc["b"]["elided_calls"]["median"] < doc["a"]["elided_calls"]["median"] / 50, (doc["a"], doc["b"])
    is_as_it_was(server.pid)
    server.kill()
    server.wait()


@test()
def what_can_not_be_answered_is_declined_with_a_command_that_helps(box):
    run = Answered(box, "1")

    def refused(pid, *words):
        r = box.run([box.systoll, "prove", "-q", "--live", str(pid), *words])
        assert r.returncode == 125 and not r.stdout, (r.returncode, r.stdout)
        return text(r.stderr)

    said = refused(run.pid, "tz-unset")
    assert "takes a new start" in said and "systoll prove --cure tz-unset -- " in said, said
    # Options may stand behind the cause.
    said = refused(run.pid, "tz-unset", "--load", "true")
    assert "systoll prove --serve " in said and "--load true --cure tz-unset" in said, said
    assert "--elide" in refused(run.pid)
    assert "what can: getpid" in refused(run.pid, "--elide", "stat")
    os.kill(run.pid, signal.SIGSTOP)
    time.sleep(0.05)
    assert f"kill -CONT {run.pid}" in refused(run.pid, "--elide", "getpid")
    os.kill(run.pid, signal.SIGCONT)
    # The program makes too few of these calls to measure its work by.
    r = box.run([box.systoll, "prove", "-q", "--for", "2s", "--live", str(run.pid), "--elide", "getuid", "--per", "getppid"])
    assert r.returncode == 125 and "too few to measure by" in text(r.stderr), r.stderr
    run.is_fine()
    makes_code = box.start(["/usr/bin/python3", "-c", "import mmap; m = mmap.mmap(-1, 4096, prot=7); print('ready', flush=True); input()"], stdin=-1, stdout=-1)
    assert makes_code.stdout.readline() == b"ready\n"
    said = refused(makes_code.pid, "--elide", "getpid")
    assert "JIT-compiled code" in said and f"systoll attach --for 30s {makes_code.pid}" in said, said
    assert not ours_in(makes_code.pid)
    r = box.run([box.systoll, "attach", "-q", "--for", "0.1s", "--json", "-o", "/dev/null", str(makes_code.pid)])
    assert r.returncode == 0, r.stderr
    makes_code.stdin.close()
    makes_code.wait(20)


@test(users=("nobody",))
def another_users_program_is_declined_with_the_same_command_as_root(box):
    other = subprocess.Popen(["sleep", "60"])
    r = box.run([box.systoll, "prove", "-q", "--live", str(other.pid), "--elide", "getpid"])
    other.kill()
    other.wait()
    assert r.returncode == 125 and f"sudo systoll prove -q --live {other.pid} --elide getpid" in text(r.stderr), r.stderr


@test()
def signals_end_it_and_the_program_is_left_as_it_was(box):
    run = Answered(box, "2", "100")
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGKILL):
        p = live(box, run.pid, "--elide", CALLS, "--for", "20s")
        until(lambda: is_hooked(run.pid))
        time.sleep(0.6)
        p.send_signal(number)
        _, err = p.communicate(timeout=30)
        if number == signal.SIGKILL:
            # The second systoll learns of it when its standard input, from which it takes orders, ends.
            until(lambda: not ours_in(run.pid))
        else:
            assert p.returncode == 128 + number and b"interrupted" in err, (p.returncode, err)
        is_as_it_was(run.pid)
    run.is_fine()


@test()
def what_a_killed_watcher_leaves_is_taken_out(box):
    run = Answered(box, "2", "100")
    p = live(box, run.pid, "--elide", CALLS, "--for", "20s")
    until(lambda: is_hooked(run.pid))
    time.sleep(0.5)
    with open(f"/proc/{p.pid}/task/{p.pid}/children") as f:
        os.kill(int(f.read().split()[0]), signal.SIGKILL)
    _, err = p.communicate(timeout=30)
    assert p.returncode == 125 and b"has been taken out" in err, (p.returncode, err)
    run.is_fine()
