"""Long waits: the line that waited, and waits that served no one."""
import json
import os

from harness import PROGRAMS, test

# Two lines share the call: one sleeps often, the other for long.
TWO_SLEEPS = """import time
def often():
    time.sleep(0.001)
def long():
    time.sleep(0.03)
for i in range(30):
    often(); often(); often()
    long()
"""

# A resolver asks a server that nobody serves, and waits for its answer before it asks the next one.
UNANSWERED = """import socket, threading
def bound():
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind(("127.0.0.1", 0))
    return s
def answer(s):
    while True:
        data, peer = s.recvfrom(100)
        if data == b"end": return
        s.sendto(data, peer)
def ask(server, name):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.settimeout(0.03)
    s.sendto(name, server)
    try:
        return s.recvfrom(100)
    except TimeoutError:
        return None
dead, live = bound(), bound()
thread = threading.Thread(target=answer, args=(live,))
thread.start()
for i in range(25):
    for server in SERVERS:
        if ask(server.getsockname(), b"name %d" % i): break
live.sendto(b"end", live.getsockname())
thread.join()
"""

# Two processes talk over a connection; a message goes out in two parts.
TWO_PARTS = """import os, socket
listener = socket.create_server(("127.0.0.1", 0))
def serve():
    s, _ = listener.accept()
    while True:
        head = s.recv(4)
        if not head: return
        body = s.recv(4)
        s.sendall(b"done")
if os.fork() == 0:
    serve()
    os._exit(0)
s = socket.create_connection(listener.getsockname())
for i in range(20):
    PARTS
    s.recv(4)
s.close()
os.wait()
"""

# A stream that stays corked after a message's last part, until the kernel's timer sends it.
CORKED = TWO_PARTS.replace("    PARTS", """    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 1)
    s.sendall(b'head'); s.sendall(b'body')
    UNCORK""").replace("range(20)", "range(8)")

# Work that takes its time: a ticker, and requests of which each needs the answer before it.
TICKER = """import time
for i in range(30):
    open("state", "w").write(str(i))
    time.sleep(0.02)
"""


def report(box, source, **kwargs):
    """Returns the report on a script, as JSON."""
    with open(os.path.join(box.dir, "main.py"), "w") as f:
        f.write(source)
    box.run(box.watch(["/usr/bin/python3", "main.py"], "-o", "report.json", "--json"), **kwargs)
    with open(os.path.join(box.dir, "report.json")) as f:
        return json.load(f)


def line_of(source, marked):
    """Returns the number of the line of a script that holds `marked`."""
    return next(at for at, line in enumerate(source.splitlines(), 1) if marked in line)


def waits(report):
    """Returns the findings about waiting."""
    return [f for f in report["findings"] if f["kind"] == "blocking"]


@test()
def the_line_that_waits_longest_is_named(box):
    with open(os.path.join(box.dir, "main.py"), "w") as f:
        f.write(TWO_SLEEPS)
    r = box.run(box.watch(["/usr/bin/python3", "main.py"]), env={**box.env, "COLUMNS": "100"})
    said = " ".join(r.stderr.decode().split())
    wall = said[said.index("wall "):]
    assert "main.py:5 in long" in wall.split("most of the time")[0], said


@test()
def a_peer_that_never_answers_is_found_with_the_line_that_waits(box):
    source = UNANSWERED.replace("SERVERS", "[dead, live]")
    found = waits(report(box, source))
    assert len(found) == 1 and "never answers" in found[0]["why"], found
    assert found[0]["lines"][0]["line"] == line_of(source, "return s.recvfrom"), found[0]["lines"]
    assert waits(report(box, UNANSWERED.replace("SERVERS", "[live]"))) == []


@test()
def data_held_back_between_two_processes_are_found(box):
    parts = TWO_PARTS.replace("PARTS", "s.sendall(b'head'); s.sendall(b'body')")
    found = waits(report(box, parts))
    assert [f["cause"] for f in found] == ["nagle-delay"], found
    assert found[0]["lines"][0]["line"] == line_of(parts, "body = s.recv"), found[0]["lines"]
    assert waits(report(box, TWO_PARTS.replace("PARTS", "s.sendall(b'headbody')"))) == []


@test()
def waits_that_serve_are_no_finding(box):
    assert waits(report(box, TICKER)) == []


@test()
def a_stream_that_stays_corked_is_found(box):
    found = waits(report(box, CORKED.replace("UNCORK", "pass")))
    assert len(found) == 1 and "corked" in found[0]["why"], found
    off = CORKED.replace("UNCORK", "s.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 0)")
    assert waits(report(box, off)) == []


def shell_report(box, source):
    """Returns the report on a shell's script, as JSON."""
    box.file("main.sh", source)
    box.run(box.watch(["/bin/bash", "main.sh"], "-o", "report.json", "--json"))
    with open(os.path.join(box.dir, "report.json")) as f:
        return json.load(f)


@test()
def a_shell_that_reads_a_childs_output_waits_for_it(box):
    wall = shell_report(box, "for i in 1 2 3; do x=$(sleep 0.2; echo hi); done\n")["wall"]
    of = {wait["waits_for"]: wait["ns"] for wait in wall["waits"]}
    assert of.get("clock", 0) + of.get("process", 0) > 150_000_000 and of.get("unknown", 0) < 100_000_000, of


@test()
def time_in_systoll_itself_is_not_running(box):
    env = {**box.env, "XDG_CACHE_HOME": os.path.join(box.dir, "cold")}
    report_ = report(box, "print(sum(range(300000)))\n", env=env)
    wall = report_["wall"]
    assert wall["running_ns"] <= report_["own_cpu_most_ns"] + 1_000_000, (wall, report_["own_cpu_ns"])
    assert wall["systoll_ns"] > 10_000_000, wall


@test()
def sleeps_are_tried_by_shortening_them(box):
    source = """import subprocess, time
for i in range(12):
    child = subprocess.Popen(["true"])
    while child.poll() is None:
        time.sleep(0.05)
"""
    found = waits(report(box, source))
    assert len(found) == 1 and found[0]["prove"][:4] == ["systoll", "prove", "--shorten", "main.py:5"], found


# A process asks another one over two named pipes, and waits for each answer.
ASKS = """import os
for name in ("ask", "answer"): os.mkfifo(name)
if os.fork() == 0:
    questions, answers = os.open("ask", os.O_RDONLY), os.open("answer", os.O_WRONLY)
    while os.read(questions, 64): os.write(answers, b"k")
    os._exit(0)
questions, answers = os.open("ask", os.O_WRONLY), os.open("answer", os.O_RDONLY)
for i in range(2000):
    os.write(questions, b"x")
    os.read(answers, 1)
os.close(questions)
os.wait()
"""


@test()
def what_goes_through_named_pipes_is_not_collected(box):
    assert report(box, ASKS)["findings"] == []


@test()
def a_wait_of_gos_scheduler_has_the_programs_line(box):
    with open(os.path.join(PROGRAMS, "go_sleeps.go")) as f:
        line = line_of(f.read(), "the line that waits")
    # Later runs know the program's contexts from earlier ones.
    for _ in range(3):
        r = box.run(box.watch([box.build("go_sleeps.go")]), env={**box.env, "COLUMNS": "100"})
        wall = r.stderr.decode()
        wall = " ".join(wall[wall.index("  wall "):].split())
        assert "waiting for time to pass" in wall and f"main.settle go_sleeps.go:{line}" in wall, wall
