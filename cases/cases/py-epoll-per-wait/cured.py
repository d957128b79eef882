"""Waits for each message."""
import select
import socket
import sys

a, b = socket.socketpair()
poller = select.epoll()
poller.register(b.fileno(), select.EPOLLIN)
total = 0
for i in range(int(sys.argv[1])):
    a.send(b"x" * 100)
    poller.poll(1)
    total += len(b.recv(4096))
print(total)
