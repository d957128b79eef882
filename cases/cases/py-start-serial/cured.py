"""A test fixture that brings up six backends and asks each one something."""
import multiprocessing
import time

ctx = multiprocessing.get_context("fork")


def backend(name, pipe):
    time.sleep(0.2)  # loads its index
    pipe.send("ready")
    while (query := pipe.recv()) is not None:
        pipe.send(f"{name}:{sum(map(ord, query))}")


class Backend:
    def __init__(self, name):
        self.pipe, theirs = ctx.Pipe()
        self.process = ctx.Process(target=backend, args=(name, theirs))
        self.process.start()
        theirs.close()

    def wait_ready(self):
        if self.pipe.recv() != "ready":
            raise SystemExit("backend failed")

    def ask(self, query):
        self.pipe.send(query)
        return self.pipe.recv()

    def stop(self):
        self.pipe.send(None)
        self.process.join()


def start_all(names):
    procs = [Backend(name) for name in names]
    for p in procs:
        p.wait_ready()
    return procs


def main():
    procs = start_all(["auth", "cart", "mail", "stock", "search", "audit"])
    for i, p in enumerate(procs):
        print(p.ask("query %d" % i))
    for p in procs:
        p.stop()


main()
