"""Echoes messages through a pair of sockets, with a time limit on each receive."""
import socket
import sys

a, b = socket.socketpair()
b.settimeout(5)
total = 0
for i in range(int(sys.argv[1])):
    a.send(b"x" * 100)
    total += len(b.recv(4096))
print(total)
