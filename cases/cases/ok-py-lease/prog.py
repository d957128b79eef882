import os
import signal
import socket
import threading
import time


def lock_server(s):
    s.settimeout(0.25)
    renewed = 0
    lost = False
    while True:
        try:
            q, who = s.recvfrom(100)
        except TimeoutError:
            lost = True
            continue
        if q == b"renew":
            renewed += 1
            s.sendto(b"lost" if lost else b"held", who)
        else:
            s.sendto(b"released" if renewed > 20 and not lost else b"was lost", who)
            return


server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
server.bind(("127.0.0.1", 0))
pid = os.fork()
if pid == 0:
    lock_server(server)
    os._exit(0)
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(5)
s.connect(server.getsockname())
stop = threading.Event()


def renew():
    while not stop.wait(0.02):
        s.send(b"renew")
        if s.recv(100) != b"held":
            print("lost")
            return


t = threading.Thread(target=renew)
t.start()
out = []
for page in range(6):  # a printer that prints a page in a quarter of a second
    time.sleep(0.2)
    out.append(sum(i * page % 7 for i in range(1000)))
stop.set()
t.join()
s.send(b"release")
print(s.recv(100).decode(), out)
os.waitpid(pid, 0)
