"""A long-polling client of a notification service (another process)."""
import json
import os
import socket
import threading
import time


def service(listener):
    events, cond, t0 = [], threading.Condition(), time.monotonic()

    def happen():
        for n, at in enumerate([0.15, 0.32, 0.41, 0.98, 1.2]):
            time.sleep(max(0, t0 + at - time.monotonic()))
            with cond:
                events.append(f"event {n}")
                cond.notify_all()

    threading.Thread(target=happen, daemon=True).start()
    conn, _ = listener.accept()
    with conn, conn.makefile("rw") as f:
        for line in f:
            since = json.loads(line)["since"]
            with cond:
                cond.wait_for(lambda: len(events) > since, timeout=0.4)
                f.write(json.dumps(events[since:]) + "\n")
            f.flush()


def main():
    listener = socket.create_server(("127.0.0.1", 0))
    pid = os.fork()
    if pid == 0:
        service(listener)
        os._exit(0)
    port = listener.getsockname()[1]
    listener.close()
    with socket.create_connection(("127.0.0.1", port)) as s, s.makefile("rw") as f:
        seen = 0
        while seen < 5:
            f.write(json.dumps({"since": seen}) + "\n")
            f.flush()
            for e in json.loads(f.readline()):
                print(e)
                seen += 1
    os.waitpid(pid, 0)


main()
