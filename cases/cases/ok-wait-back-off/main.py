"""Connects to a server that takes 300 ms to start, with growing pauses between attempts."""
import os, socket, time

s = socket.socket()
s.bind(("127.0.0.1", 0))
address = s.getsockname()
if os.fork() == 0:
    time.sleep(0.3)
    s.listen()
    c, _ = s.accept()
    c.sendall(b"hello")
    os._exit(0)
s.close()
pause = 0.01
while True:
    c = socket.socket()
    try:
        c.connect(address)
        break
    except ConnectionRefusedError:
        c.close()
        time.sleep(pause)
        pause *= 2
print(c.recv(5).decode())
os.wait()
