import asyncio
import concurrent.futures
import os
import signal
import socket
import struct
import threading
import time


def serve(listener):
    def client(s):
        with s:
            while q := s.recv(8):
                time.sleep(0.02)  # the disk
                s.sendall(struct.pack("<q", struct.unpack("<q", q)[0] * 37 % 1009))
    while True:
        s, _ = listener.accept()
        threading.Thread(target=client, args=(s,), daemon=True).start()


listener = socket.create_server(("127.0.0.1", 0))
pid = os.fork()
if pid == 0:
    serve(listener)
address = listener.getsockname()
listener.close()
local = threading.local()


def query(n):
    if not hasattr(local, "s"):
        local.s = socket.create_connection(address)
    local.s.sendall(struct.pack("<q", n))
    return struct.unpack("<q", local.s.recv(8))[0]


async def main():
    loop = asyncio.get_running_loop()
    pool = concurrent.futures.ThreadPoolExecutor(max_workers=8)
    results = await asyncio.gather(*(loop.run_in_executor(pool, query, n) for n in range(40)))
    for n, r in enumerate(results):
        print(n, r)
    pool.shutdown()


asyncio.run(main())
os.kill(pid, signal.SIGKILL)
os.waitpid(pid, 0)
