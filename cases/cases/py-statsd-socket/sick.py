"""Counts words of lines and sends one counter for each line to a metrics daemon."""
import hashlib
import socket
import sys


class Stats:
    def __init__(self, address):
        self.address = address

    def count(self, name, value):
        sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 65536)
        sock.connect(self.address)
        sock.send(b"%s:%d|c" % (name, value))
        sock.close()


def main(lines):
    daemon = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    daemon.bind(("127.0.0.1", 0))
    stats = Stats(daemon.getsockname())
    digest = b""
    for n in range(lines):
        digest = hashlib.sha256(digest + b"line %d" % n * 20).digest()
        stats.count(b"words.%d" % (n % 7), digest[0])
    print(digest.hex())


main(int(sys.argv[1]))
