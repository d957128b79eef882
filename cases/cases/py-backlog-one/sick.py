"""A small line server and a burst of clients, each a process."""
import os
import socket
import struct
import time


def server(listener):
    for _ in range(8):
        conn, _ = listener.accept()
        with conn:
            (n,) = struct.unpack("!I", conn.recv(4))
            time.sleep(0.015)  # the page's disk
            total = sum(n * i for i in range(500)) % 65521
            conn.sendall(struct.pack("!I", total))


def client(port, n, out):
    with socket.socket() as s:
        s.connect(("127.0.0.1", port))
        s.sendall(struct.pack("!I", n))
        (total,) = struct.unpack("!I", s.recv(4))
    os.write(out, b"%d %5d\n" % (n, total))


def spawn(fn, *args):
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            fn(*args)
            code = 0
        finally:
            os._exit(code)
    return pid


def main():
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(1)
    port = listener.getsockname()[1]
    r, w = os.pipe()
    clients = [spawn(client, port, n, w) for n in range(1, 9)]
    pids = clients + [spawn(server, listener)]
    os.close(w)
    listener.close()
    for p in pids:
        os.waitpid(p, 0)
    with os.fdopen(r) as f:
        print("".join(sorted(f)), end="")


main()
