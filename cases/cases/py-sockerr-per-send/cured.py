"""Sends frames; looks whether the link lives before each."""
import socket
import sys

n = int(sys.argv[1]) if len(sys.argv) > 1 else 5000
a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
sent = 0
for _ in range(n):
    sent += a.send(b"x" * 600)
    b.recv(600)
print(sent)
