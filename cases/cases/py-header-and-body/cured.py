"""Asks a server that runs beside it; a request is a header and a body."""
import os
import socket
import sys

n = int(sys.argv[1]) if len(sys.argv) > 1 else 26
listener = socket.create_server(("127.0.0.1", 0))


def exactly(stream, size):
    got = b""
    while len(got) < size:
        more = stream.recv(size - len(got))
        if not more:
            return b""
        got += more
    return got


if os.fork() == 0:
    server, _ = listener.accept()
    while exactly(server, 4) and exactly(server, 100):
        server.sendall(b"ok")
    os._exit(0)
client = socket.create_connection(listener.getsockname())
good = 0
for _ in range(n):
    client.sendall(b"head" + b"x" * 100)
    good += exactly(client, 2) == b"ok"
client.close()
os.wait()
print(good)
