"""Resolves the hosts of an access list with a small stub resolver."""
import socket
import struct
import threading

HOSTS = ["host%d.example" % i for i in range(30)]


def name_server(sock):
    while True:
        data, addr = sock.recvfrom(512)
        qid, name = struct.unpack("!H", data[:2])[0], data[2:].decode()
        if name == "quit":
            return
        ip = "10.0.%d.%d" % (len(name), sum(name.encode()) % 256)
        sock.sendto(struct.pack("!H", qid) + ip.encode(), addr)


class Resolver:
    def __init__(self, servers, timeout):
        self.servers, self.timeout, self.qid = list(servers), timeout, 0

    def ask(self, server, name):
        self.qid = (self.qid + 1) & 0xFFFF
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            s.settimeout(self.timeout)
            s.sendto(struct.pack("!H", self.qid) + name.encode(), server)
            while True:
                data, _ = s.recvfrom(512)
                if struct.unpack("!H", data[:2])[0] == self.qid:
                    return data[2:].decode()

    def resolve(self, name):
        for server in self.servers:
            try:
                return self.ask(server, name)
            except socket.timeout:
                # iteration goes on over the old list
                self.servers = [s for s in self.servers if s != server] + [server]
        raise OSError("no server answers for " + name)


def udp():
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind(("127.0.0.1", 0))
    return s


def main():
    dead, live = udp(), udp()  # nobody reads the first
    t = threading.Thread(target=name_server, args=(live,))
    t.start()
    r = Resolver([dead.getsockname(), live.getsockname()], 0.04)
    table = {h: r.resolve(h) for h in HOSTS}
    live.sendto(b"\0\0quit", live.getsockname())
    t.join()
    for h in HOSTS[::10]:
        print(h, table[h])
    print(len(table), "hosts,", len(set(table.values())), "addresses")


main()
