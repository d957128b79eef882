"""`--by request`: kinds and counts are those that the servers and their clients know, and no value is kept."""
import gzip
import json
import os
import random
import signal
import socket
import subprocess
import time

from harness import BOTH, GO_CACHE, test, text, tool

SECRET = "xyzzysecretxyzzy"


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def connect(port, limit=30):
    end = time.monotonic() + limit
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port), timeout=30)
        except OSError:
            assert time.monotonic() < end, "the server does not listen"
            time.sleep(0.02)


def http(port, requests, keep):
    """Asks for each path of `requests`: over one connection, or over one each."""
    s = None
    for path in requests:
        if s is None or not keep:
            if s:
                s.close()
            s = connect(port)
        s.sendall(f"GET {path}?key={SECRET} HTTP/1.1\r\nHost: a\r\nCookie: {SECRET}\r\n\r\n".encode())
        answer = b""
        while b"\r\n\r\n" not in answer:
            more = s.recv(65536)
            assert more, answer
            answer += more
        head, _, body = answer.partition(b"\r\n\r\n")
        length = [int(l.split(b":")[1]) for l in head.lower().split(b"\r\n") if l.startswith(b"content-length:")]
        while length and len(body) < length[0]:
            body += s.recv(65536)
    s.close()


def raw(port, messages):
    """Sends each message over one connection and waits for some answer."""
    with connect(port) as s:
        for message in messages:
            s.sendall(message)
            assert s.recv(65536)


def told(box, argv, load, *flags):
    """The kinds that a recording of a server tells, by name, and what else it has."""
    rec = os.path.join(box.dir, "rec")
    p = box.start(box.watch(argv, "-q", *flags, "--by", "request", "--save", rec, "--force"), stdout=-1, stderr=-1)
    try:
        load()
    finally:
        p.send_signal(signal.SIGTERM)
        _, err = p.communicate(timeout=60)
    assert "panicked" not in text(err), text(err)[-400:]
    return of_recording(box, rec)


def of_recording(box, rec):
    with open(rec, "rb") as f:
        assert SECRET.encode() not in gzip.decompress(f.read()), "a value is in the recording"
    r = box.run([box.systoll, "report", "--by", "request", "--json", rec])
    assert r.returncode == 0, text(r.stderr)[-400:]
    screen = box.run([box.systoll, "report", "--by", "request", "--all", rec])
    assert screen.returncode == 0 and SECRET not in text(screen.stdout) + text(r.stdout)
    page = os.path.join(box.dir, f"page-{time.monotonic_ns()}.html")
    html = box.run([box.systoll, "report", "--html", "-o", page, rec])
    assert html.returncode == 0, text(html.stderr)[-400:]
    with open(page, encoding="utf-8") as f:
        page = f.read()
    assert SECRET not in page
    doc = json.loads(r.stdout)
    assert json.loads(page.split('id="data">')[1].split("</script>")[0])["requests"] == doc["requests"]
    kinds = {kind["name"]: kind for kind in doc["requests"]["kinds"]}
    for name in kinds:
        assert name in text(screen.stdout), (name, text(screen.stdout))
    return kinds, doc["requests"]


def agrees(kinds, true, wide=0):
    """The kinds are those of `true`, and their counts exact, or within bounds that receives not looked at widen by `wide`
    at most."""
    assert set(kinds) == set(true), (set(kinds), set(true))
    for name, n in true.items():
        count = kinds[name]["requests"]
        assert count["low"] <= count["estimate"] <= count["high"], count
        assert count["low"] <= n <= count["high"], (name, n, count)
        assert count["high"] - count["low"] <= wide, (name, n, count)


PYTHON = """
import http.server, os, signal, sys
count = {}
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = 4096
    def log_message(self, *a): pass
    def do_GET(self):
        kind = self.path.split("/")[1].split("?")[0]
        count[kind] = count.get(kind, 0) + 1
        for _ in range(5 if kind == "orders" else 0): os.stat("/etc/hostname")
        self.send_response(200); self.send_header("Content-Length", "2"); self.end_headers(); self.wfile.write(b"ok")
def end(*a):
    with open(sys.argv[2], "w") as f: f.write(repr(count))
    os._exit(0)
signal.signal(signal.SIGTERM, end)
getattr(http.server, sys.argv[3])(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""
# Three of /orders to one of /about, in no rhythm.
DRAW = random.Random(7)
PATHS = [f"/orders/{4711 + i}" if DRAW.random() < 0.75 else "/about" for i in range(400)]


def is_told_of_python(box, kinds):
    with open(os.path.join(box.dir, "own")) as f:
        own = eval(f.read())
    agrees(kinds, {"GET /orders/N": own["orders"], "GET /about": own["about"]}, wide=5)
    orders, about = (kinds[name] for name in ("GET /orders/N", "GET /about"))
    stats = {call["syscall"]: call for call in orders["by_call"]}["newfstatat"]
    assert 4.8 <= stats["calls"] <= 5.2 and stats["needless"] >= 4 and orders["needless"]["mean"] >= 4, orders
    assert "newfstatat" not in {call["syscall"] for call in about["by_call"] if call["calls"] > 0.2}, about
    assert abs(orders["calls"]["mean"] - about["calls"]["mean"] - 5) < 0.5, (orders["calls"], about["calls"])


@test(backends=BOTH)
def a_python_server(box):
    port = free_port()
    argv = ["/usr/bin/python3", box.file("server.py", PYTHON), str(port), os.path.join(box.dir, "own"), "HTTPServer"]
    kinds, _ = told(box, argv, lambda: http(port, PATHS, keep=True))
    is_told_of_python(box, kinds)


@test(backends=BOTH, users=("root",))
def a_thread_for_each_connection(box):
    port = free_port()
    argv = ["/usr/bin/python3", box.file("server.py", PYTHON), str(port), os.path.join(box.dir, "own"), "ThreadingHTTPServer"]
    kinds, _ = told(box, argv, lambda: http(port, PATHS[:120], keep=False))
    with open(os.path.join(box.dir, "own")) as f:
        own = eval(f.read())
    agrees(kinds, {"GET /orders/N": own["orders"], "GET /about": own["about"]}, wide=5)
    stats = {call["syscall"]: call["calls"] for call in kinds["GET /orders/N"]["by_call"]}
    assert 4.5 <= stats["newfstatat"] <= 5.5, stats


@test()
def attached(box):
    port, rec = free_port(), os.path.join(box.dir, "rec")
    argv = ["/usr/bin/python3", box.file("server.py", PYTHON), str(port), os.path.join(box.dir, "own"), "HTTPServer"]
    server = box.start(argv)
    connect(port).close()
    p = box.start([box.systoll, "attach", "-q", "--by", "request", "--save", rec, str(server.pid)], stdout=-1, stderr=-1)
    try:
        # Watching begins before the load and ends after it.
        time.sleep(2)
        http(port, PATHS, keep=True)
    finally:
        p.send_signal(signal.SIGINT)
        _, err = p.communicate(timeout=60)
        server.send_signal(signal.SIGTERM)
        server.wait(30)
    assert p.returncode == 0, text(err)[-400:]
    is_told_of_python(box, of_recording(box, rec)[0])


NODE = """
const http = require("http"), fs = require("fs");
http.createServer((q, r) => { if (q.url.startsWith("/orders")) fs.statSync("/etc/hostname"); r.end("ok"); }).listen(+process.argv[2], "127.0.0.1");
"""


@test(backends=BOTH, users=("root",))
def node(box):
    port = free_port()
    argv = [tool("node"), box.file("server.js", NODE), str(port)]
    kinds, _ = told(box, argv, lambda: http(port, PATHS, keep=True))
    agrees(kinds, {"GET /orders/N": sum(p != "/about" for p in PATHS), "GET /about": PATHS.count("/about")}, wide=5)
    assert 0.9 <= {c["syscall"]: c["calls"] for c in kinds["GET /orders/N"]["by_call"]}["statx"] <= 1.1, kinds


GO = """
package main
import ("fmt"; "net/http"; "os")
func main() {
	http.HandleFunc("/orders/", func(w http.ResponseWriter, r *http.Request) { os.Stat("/etc/hostname"); os.Stat("/etc/hosts"); fmt.Fprint(w, "ok") })
	http.HandleFunc("/about", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "ok") })
	http.ListenAndServe("127.0.0.1:"+os.Args[1], nil)
}
"""


@test(backends=BOTH, users=("root",))
def go(box):
    go, port = tool("go"), free_port()
    source = box.file("server.go", GO)
    env = dict(box.env, GOCACHE=GO_CACHE, GO111MODULE="off")
    binary = os.path.join(box.dir, "server")
    r = subprocess.run([go, "build", "-o", binary, source], env=env, capture_output=True, timeout=300, check=False)
    assert r.returncode == 0, text(r.stderr)
    kinds, _ = told(box, [binary, str(port)], lambda: http(port, PATHS, keep=True))
    agrees(kinds, {"GET /orders/N": sum(p != "/about" for p in PATHS), "GET /about": PATHS.count("/about")}, wide=20)
    assert 1.5 <= {c["syscall"]: c["calls"] for c in kinds["GET /orders/N"]["by_call"]}["newfstatat"] <= 2.5, kinds


@test(backends=BOTH, users=("root",))
def redis(box):
    redis, port = tool("redis-server"), free_port()
    argv = [redis, "--port", str(port), "--save", "", "--dir", box.dir]
    set_, get = (f"*3\r\n$3\r\nSET\r\n$16\r\n{SECRET}\r\n$16\r\n{SECRET}\r\n", f"*2\r\n$3\r\nGET\r\n$16\r\n{SECRET}\r\n")
    messages = [(set_ if i < 300 else get).encode() for i in DRAW.sample(range(1000), 1000)] + [(get * 3).encode()] * 1000
    kinds, _ = told(box, argv, lambda: raw(port, messages))
    agrees(kinds, {"SET": 300, "GET": 700, "GET (pipelined)": 1000}, wide=5)


@test(backends=BOTH, users=("root",))
def many_requests_are_sampled(box):
    port, n = free_port(), 6_000 if box.backend == "ptrace" else 24_000
    half = [m for message in (b"get a\r\n", b"set b 0 0 1\r\nx\r\n") for m in [message] * (n // 2)]
    kinds, _ = told(box, ["/usr/bin/python3", box.file("any.py", ANY), str(port), "recv"], lambda: raw(port, half))
    agrees(kinds, {"get": n // 2, "set": n // 2}, wide=0 if box.backend == "ptrace" else n // 10)


@test(backends=BOTH, users=("root",))
def lines_in_pieces_and_hostile_bytes(box):
    port = free_port()
    pieces = [b"G", b"ET /a HTTP/1.1\r\n", b"GET /b", b"/c HTTP/1.1\r\n\r\n", b"GET /d HTTP/1.1\r\nX: " + b"y" * 4000, os.urandom(3000),
              b"GET /" + b"z" * 1_000_000, b"*999999999\r\n$", b"Q\xff\xff\xff\xff", b"\0" * 300]

    def load():
        # Each piece is one receive of the server, or several: it answers each.
        with connect(port) as s:
            for piece in pieces:
                s.sendall(piece)
                time.sleep(0.05)
    kinds, _ = told(box, ["/usr/bin/python3", box.file("any.py", ANY), str(port), "recv"], load)
    for name in ("GET /a", "GET (line in pieces)", "GET /d", "GET /*"):
        assert kinds[name]["requests"]["low"] == 1 == kinds[name]["requests"]["estimate"], (name, kinds[name])


@test(backends=BOTH, users=("root",))
def nginx(box):
    nginx, port = tool("nginx"), free_port()
    paths = "".join(f"{kind}_temp_path {box.dir}/{kind}; " for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    conf = box.file("conf", f"daemon off; pid {box.dir}/pid; error_log /dev/null; events {{}} http {{ access_log off; {paths} server {{ listen 127.0.0.1:{port}; root /usr/include/linux; }} }}")
    load = ["/if.h" if i < 320 else f"/gone/{i}" for i in DRAW.sample(range(400), 400)]
    kinds, _ = told(box, [nginx, "-c", conf], lambda: http(port, load, keep=True))
    agrees(kinds, {"GET /if.h": 320, "GET /gone/N": 80}, wide=5)
    # The end of the connection is received like a request.
    openat = {c["syscall"]: c["calls"] for c in kinds["GET /if.h"]["by_call"]}["openat"]
    assert 0.99 < openat <= 1, kinds


ANY = """
import os, socket, sys
s = socket.create_server(("127.0.0.1", int(sys.argv[1])))
how = sys.argv[2]
while True:
    c, _ = s.accept()
    while True:
        if how == "recvmsg": got = c.recvmsg(4096)[0]
        elif how == "readv":
            room = bytearray(4096); got = room[:os.readv(c.fileno(), [room])]
        elif how == "read": got = os.read(c.fileno(), 4096)
        else: got = c.recv(4096)
        if not got: break
        c.send(b"ok")
"""


def postgres(kind, body):
    return kind + (len(body) + 4).to_bytes(4, "big") + body


# What each protocol is called, by the call that receives it.
MESSAGES = {
    f"get {SECRET}\r\n".encode(): "get",
    f"set {SECRET} 0 0 16\r\n{SECRET}\r\n".encode(): "set",
    postgres(b"Q", f"select a from orders where b = '{SECRET}'\0".encode()): "SELECT orders",
    postgres(b"P", b"\0insert into t values ($1)\0\0\0") + postgres(b"B", f"\0\0\0\0\0\1\0\0\0\x10{SECRET}\0\0".encode()): "INSERT t",
    f"POST /login/{SECRET * 2} HTTP/1.1\r\nContent-Length: 16\r\n\r\n{SECRET}".encode(): "POST /login/*",
    f"HTTP/1.1 200 OK\r\n\r\n{SECRET}".encode(): None,
    b"\x17\x03\x03\x00\x20" + b"x" * 32: None,
    f"GET /\x1b[31m{SECRET} HTTP/1.1\r\n\r\n".encode(): None,
}


@test(backends=BOTH, users=("root",))
def each_protocol_by_each_call(box):
    for how in ("recv", "recvmsg", "readv", "read"):
        port = free_port()
        load = DRAW.sample(list(MESSAGES) * 30, 30 * len(MESSAGES))
        kinds, requests = told(box, ["/usr/bin/python3", box.file("any.py", ANY), str(port), how], lambda: raw(port, load))
        # Bytes that were received into several buffers are gone when a window that a thread wrote is read.
        agrees(kinds, dict.fromkeys(filter(None, MESSAGES.values()), 30), wide=10 if how in ("recv", "read") else 100)
        assert requests["tls"] > 0, (how, requests)


@test(users=("root",))
def off_unless_asked_for(box):
    port = free_port()
    argv = ["/usr/bin/python3", box.file("any.py", ANY), str(port), "recv"]
    rec = os.path.join(box.dir, "rec")
    p = box.start(box.watch(argv, "-q", "--save", rec), stdout=-1, stderr=-1)
    raw(port, list(MESSAGES) * 5)
    p.send_signal(signal.SIGTERM)
    p.communicate(timeout=60)
    doc = json.loads(box.run([box.systoll, "report", "--json", rec]).stdout)
    assert doc["requests"] is None
    r = box.run([box.systoll, "report", "--by", "request", rec])
    assert r.returncode == 0 and "does not tell requests" in text(r.stdout).replace("\n  ", " "), text(r.stdout)
