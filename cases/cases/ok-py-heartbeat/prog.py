"""Runs a long job (a child process) and tells the controller every 100 ms that this node lives."""
import os
import socket
import struct
import threading


def controller(sock, report):
    """Declares the node lost if no beat comes for 200 ms."""
    sock.settimeout(2.0)
    beats = 0
    while sock.recv(8) != b"end":
        beats += 1
    os.write(report, struct.pack("i", beats))


def job(out):
    import time
    total = 0
    for part in range(6):
        time.sleep(0.2)  # the tape gives its next block
        total = (total * 31 + part) % 9973
    os.write(out, str(total).encode())


def child(fn, *args):
    pid = os.fork()
    if pid == 0:
        fn(*args)
        os._exit(0)
    return pid


def main():
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    beats_r, beats_w = os.pipe()
    job_r, job_w = os.pipe()
    pids = [child(controller, theirs, beats_w), child(job, job_w)]
    done = threading.Event()

    def heart():
        while not done.wait(0.1):
            ours.send(b"beat")
        ours.send(b"end")

    t = threading.Thread(target=heart)
    t.start()
    result = os.read(job_r, 64).decode()
    done.set()
    t.join()
    (beats,) = struct.unpack("i", os.read(beats_r, 4))
    for p in pids:
        os.waitpid(p, 0)
    print("job result", result)
    print("node was alive" if beats >= 4 else "node was lost")


main()
