"""Long waits: the line that waited, and waits that served no one."""
import json
import os

from harness import test

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
