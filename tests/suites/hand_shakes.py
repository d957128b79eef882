"""A steady program does not wait for systoll: threads ask it about a context once, and about samples more and more
seldom.

Counted are the questions that the threads put into the queue of the memory that they share with systoll, not time, so
the load of the machine changes nothing. The memory's layout is that of crates/hooks/src/layout.rs."""
import contextlib
import json
import os
import re
import signal
import struct
import subprocess
import threading
import time

from harness import HERE, LIMIT, test, tool, wait_for
from suites.attach import attach, is_hooked

# Questions for each million calls of a steady program, at most.
MOST = 20
# Questions of interpreters, whose stacks only systoll can read: some 30 were measured, of which rare places ask most.
MOST_OF_INTERPRETERS = 60
# Processor time after which a program counts as steady, s, and the time after which it does at last.
SETTLES, AT_LAST = 2.5, 21


def layout(name, within):
    """Returns a number of the layout: that of a constant of a module, or of the whole layout."""
    with open(os.path.join(HERE, "..", "crates", "hooks", "src", "layout.rs")) as f:
        source = f.read()
    source = source[source.index(within) :]
    return int(re.search(rf"pub const {name}: u64 = (0x[0-9a-f]+|\d+);", source)[1], 0)


def asked(pid):
    """Returns how many questions the threads of all programs have put to the systoll with this process id."""
    version, ticket = layout("VERSION", "//! The memory"), layout("TICKET", "pub mod image")
    total, images = 0, 0
    for fd in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(OSError):
            if not os.readlink(f"/proc/{pid}/fd/{fd}").startswith("/memfd:systoll"):
                continue
            with open(f"/proc/{pid}/fd/{fd}", "rb") as f:
                head = f.read(ticket + 8)
            if struct.unpack_from("<Q", head)[0] == version:
                images, total = images + 1, total + struct.unpack_from("<Q", head, ticket)[0]
    assert images, "the shared memory was not found"
    return total


def processor_time(pid):
    """Returns the processor time of a process, s."""
    with open(f"/proc/{pid}/stat") as f:
        user, system = f.read().rsplit(")", 1)[1].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


class Steady:
    """A program that runs for ever and prints how much it has done."""

    def __init__(self, box, argv):
        self.done = 0
        self.process = box.start(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        threading.Thread(target=self.read, daemon=True).start()
        wait_for(lambda: self.done > 0 or self.process.poll() is not None, "its first line")
        assert self.process.poll() is None, self.process.stderr.read()[-400:]

    def read(self):
        for line in self.process.stdout:
            with contextlib.suppress(ValueError):
                self.done = int(line)

    def end(self):
        self.process.kill()
        self.process.wait()


def asks_seldom(box, argv, work, each_million=MOST, settling=1, stretches=1):
    """Asserts that a steady program's threads ask at most `each_million` questions for each million calls. They are counted while
    it does `work`, after it has done as much, or `settling` times as much: on a slow machine both take longer. A program that
    meets rare paths late may settle in the last of several `stretches` of work."""
    run = Steady(box, argv)
    try:
        watching, out = attach(box, run.process.pid)
        wait_for(lambda: is_hooked(run.process.pid) or watching.poll() is not None, "being entered")
        assert watching.poll() is None, "attaching failed"
        first, worked, began = run.done, processor_time(run.process.pid), time.monotonic()
        is_steady = lambda: processor_time(run.process.pid) >= worked + SETTLES or time.monotonic() > began + AT_LAST
        wait_for(is_steady, "being steady")
        wait_for(lambda: run.done >= first + settling * work, "settling", LIMIT)
        for _ in range(stretches):
            settled, before = run.done, asked(watching.pid)
            wait_for(lambda: run.done >= settled + work, "the work", LIMIT)  # noqa: B023
            last, questions = run.done, asked(watching.pid) - before
            if questions <= each_million:
                break
        watching.send_signal(signal.SIGINT)
        watching.wait(60)
        end = run.done
    finally:
        run.end()
    with open(out) as f:
        doc = json.load(f)
    assert doc["exact"], doc["problems"]
    # The same calls are made again and again, so their number follows from the work that was done.
    millions = doc["calls"] * (last - settled) / max(1, end - first) / 1e6
    assert millions > 0.1, f"only {millions:.3f} million calls"
    most = each_million * max(1.0, millions)
    assert questions <= most, f"{questions} questions of {millions:.2f} million calls, {most:.0f} at most"


@test()
def coroutines_on_any_thread(box):
    asks_seldom(box, [box.build("coroutines.c"), box.file("read.txt", "some text\n")], 300_000)


@test()
def goroutines(box):
    # All its questions are about contexts that are new, of rare paths through its runtime: 216 in the first two seconds
    # (50,000 requests), 25 in the next two, then 7, 3 and 4. Beside other work it met its rare paths later: 22 to 34 after
    # three times the work, 24 after eight times beside two tests and a compiler.
    asks_seldom(box, [box.build("go_files.go"), box.file("read.txt", "some text\n")], 40_000, settling=3, stretches=12)


RUBY = """
path = ARGV[0]
done = 0
def deep(n, path) = n == 0 ? File.read(path) : deep(n - 1, path)
fibers = 50.times.map { |i| Fiber.new { loop { deep(i % 7, path); done += 1; Fiber.yield } } }
3.times { |i| Thread.new { loop { deep(i, path); done += 1 } } }
$stdout.sync = true
Thread.new { loop { sleep 0.1; puts done } }
loop { fibers.each(&:resume) }
"""


@test()
def ruby_with_threads_and_fibers(box):
    asks_seldom(box, [tool("ruby"), box.file("fibers.rb", RUBY), box.file("read.txt", "some text\n")], 200_000, MOST_OF_INTERPRETERS)


PYTHON = """
import asyncio, sys
done = 0
async def serve(reader, writer):
    while await reader.readline():
        with open(sys.argv[1], "rb") as f:
            writer.write(b"%d\\n" % len(f.read()))
        await writer.drain()
async def ask(port):
    global done
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    while True:
        writer.write(b"x\\n")
        await reader.readline()
        done += 1
async def tell():
    while True:
        await asyncio.sleep(0.1)
        print(done, flush=True)
async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    await asyncio.gather(tell(), *(ask(server.sockets[0].getsockname()[1]) for _ in range(8)))
asyncio.run(main())
"""


@test()
def python_with_asyncio(box):
    asks_seldom(box, [tool("python3"), box.file("server.py", PYTHON), box.file("read.txt", "some text\n")], 40_000, MOST_OF_INTERPRETERS)


NODE = """
const http = require('http'), fs = require('fs');
let done = 0;
const server = http.createServer((request, response) => {
  fs.readFile(process.argv[2], (error, data) => response.end(String(data.length)));
});
server.listen(0, '127.0.0.1', () => {
  const agent = new http.Agent({ keepAlive: true, maxSockets: 8 });
  const ask = () => http.get({ host: '127.0.0.1', port: server.address().port, agent }, (response) => {
    response.resume();
    response.on('end', () => { done++; ask(); });
  });
  for (let i = 0; i < 8; i++) ask();
});
setInterval(() => console.log(done), 100);
"""


@test()
def node_with_a_pool(box):
    asks_seldom(box, [tool("node"), box.file("server.js", NODE), box.file("read.txt", "some text\n")], 15_000, MOST_OF_INTERPRETERS)


JAVA = """
import java.io.*;
import java.net.*;
import java.nio.file.*;
import java.util.concurrent.atomic.AtomicLong;

public class Steady {
    static final AtomicLong done = new AtomicLong();

    interface Work { void run() throws Exception; }

    static void start(Work work) {
        new Thread(() -> { try { work.run(); } catch (Exception e) { System.exit(1); } }).start();
    }

    public static void main(String[] args) throws Exception {
        Path path = Paths.get(args[0]);
        ServerSocket server = new ServerSocket(0, 50, InetAddress.getByName("127.0.0.1"));
        for (int i = 0; i < 4; i++) {
            start(() -> {
                Socket s = server.accept();
                while (s.getInputStream().read() >= 0)
                    s.getOutputStream().write(Files.readAllBytes(path).length);
            });
            start(() -> {
                Socket s = new Socket("127.0.0.1", server.getLocalPort());
                for (;;) {
                    s.getOutputStream().write(1);
                    s.getInputStream().read();
                    done.incrementAndGet();
                }
            });
        }
        for (;;) {
            Thread.sleep(100);
            System.out.println(done.get());
        }
    }
}
"""


@test()
def java_with_threads(box):
    tool("javac")
    # java compiles a source file when it starts it.
    asks_seldom(box, [tool("java"), box.file("Steady.java", JAVA), box.file("read.txt", "some text\n")], 120_000, MOST_OF_INTERPRETERS)
