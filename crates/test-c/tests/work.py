"""Work of Python's whose calls are counted by systoll (`count`) or by strace between two marks (`plain`)."""
import os
import subprocess
import sys
import tempfile
import threading

import systoll


def files():
    with tempfile.TemporaryDirectory(dir=os.environ["WORK"]) as folder:
        for i in range(30):
            with open(os.path.join(folder, str(i)), "w") as f:
                f.write("systoll")
        return sum(len(open(e.path).read()) for e in os.scandir(folder))


def threads():
    done = []
    for _ in range(3):
        thread = threading.Thread(target=lambda: done.append(os.getppid()))
        thread.start()
        while not done:
            pass
        done.clear()
        while thread.is_alive():
            pass


def children():
    return subprocess.call(["/bin/true"])


def forks():
    child = os.fork()
    if child == 0:
        os.getppid()
        os._exit(0)
    os.waitpid(child, 0)


def imports():
    import colorsys  # noqa: F401 (what nothing else imports)


def plain(work):
    # What is set up once is no block's.
    os.stat("/")
    try:
        os.stat("/systoll-mark")
    except OSError:
        pass
    work()
    try:
        os.stat("/systoll-mark")
    except OSError:
        pass


def main(how, name):
    work = {f.__name__: f for f in (files, threads, children, forks, imports)}[name]
    if name != "imports":
        # Memory that the interpreter takes for the first run is not taken again.
        for _ in range(5):
            work()
    if how == "plain":
        return plain(work)
    with systoll.calls() as counted:
        work()
    if counted.skipped:
        print("skipped:", counted.skipped)
    assert counted.incomplete is None
    for call, calls in counted.by_name.items():
        print(call, calls)


main(*sys.argv[1:])
