"""Waits for each message with a selector made ready anew."""
import select
import socket
import sys

a, b = socket.socketpair()
poller = select.epoll()
total = 0
for i in range(int(sys.argv[1])):
    a.send(b"x" * 100)
    poller.register(b.fileno(), select.EPOLLIN)
    poller.poll(1)
    total += len(b.recv(4096))
    poller.unregister(b.fileno())
print(total)
