"""Answers N requests of a child; `resolve` tells where a name leads."""
import os
import socket
import sys

PARTS = [".html", ".css", ".js", ".png"]


def serve(n, resolve):
    listener = socket.create_server(("127.0.0.1", 0))
    child = os.fork()
    if not child:
        with socket.create_connection(listener.getsockname()) as s:
            for i in range(n):
                s.sendall(b"page%d" % (i % 7))
                s.recv(4096)
        os._exit(0)
    connection, _ = listener.accept()
    told = 0
    while name := connection.recv(4096):
        paths = [resolve(name.decode() + part) for part in PARTS]
        told += len(paths)
        connection.sendall(" ".join(path.rsplit("/", 1)[1] for path in paths).encode())
    os.waitpid(child, 0)
    print(told)


N = int(sys.argv[1])
