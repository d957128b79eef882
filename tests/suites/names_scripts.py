"""Names in scripts: the line that makes the calls, compared with the truth in the script's text.

Each case is a script in which one line, with the word HERE, makes some hundreds of getppid calls. The row with most of
these calls has to name that line and its function. SYSTOLL_TEST_PYTHONS and SYSTOLL_TEST_RUBIES may hold other
interpreters' paths, with colons between them; each then runs every case of its language."""
import json
import os
import re
import subprocess
import time

from harness import BOTH, test, tool

CASES = []

CALLS = 300


def case(name, function, body, program="python3", file=None, run=None, shown=None):
    """Adds a script, the function that contains HERE, and how it is run: as a file, or by `run`."""
    CASES.append((name, program, function, body, file, run, file if shown is None else shown))


def python(name, function, body, **how):
    case(name, function, "import os\n" + body, file=how.pop("file", f"{name}.py"), **how)


def ruby(name, function, body, **how):
    case(name, function, body, program="ruby", file=how.pop("file", f"{name}.rb"), **how)


python("three_deep", "leaf", f"""
def leaf():
    for _ in range({CALLS}):
        os.getppid()  # HERE

def render():
    leaf()

def main():
    render()

main()
""")
python("thread", "work", f"""
import threading
def work():
    for _ in range({CALLS}):
        os.getppid()  # HERE
threads = [threading.Thread(target=work) for _ in range(3)]
for t in threads: t.start()
for t in threads: t.join()
""")
python("a_thread_for_each_item", "handle", f"""
import threading
def begin():
    for _ in range(40):
        os.getppid()
def handle():
    os.getppid()  # HERE
begin()
for _ in range({CALLS}):
    t = threading.Thread(target=handle)
    t.start()
    t.join()
""")
python("generator", "numbers", f"""
def numbers():
    for _ in range({CALLS}):
        yield os.getppid()  # HERE
def consume():
    return sum(numbers())
consume()
""")
python("called_back_by_c", "key", f"""
def key(x):
    return os.getppid() + x  # HERE
def rank():
    return sorted(range({CALLS}), key=key)
rank()
""")
python("exception", "careful", f"""
def careful():
    for _ in range({CALLS}):
        try:
            raise ValueError
        except ValueError:
            os.getppid()  # HERE
careful()
""")
python("foreign_function", "ask", f"""
import ctypes
getppid = ctypes.CDLL(None).getppid
def ask():
    for _ in range({CALLS}):
        getppid()  # HERE
ask()
""")
python("callback_through_libc", "compare", f"""
import ctypes
kind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
def compare(a, b):
    os.getppid()  # HERE
    return 0
def sort():
    ctypes.CDLL(None).qsort((ctypes.c_int * {CALLS})(), {CALLS}, 4, kind(compare))
sort()
""")
python("forked_by_multiprocessing", "work", f"""
import multiprocessing
def work(n):
    for _ in range(n):
        os.getppid()  # HERE
p = multiprocessing.get_context("fork").Process(target=work, args=({CALLS},))
p.start()
p.join()
""")
python("method_and_lambda", "<lambda>", f"""
class Page:
    def show(self, each):
        for _ in range({CALLS}):
            each()
Page().show(lambda: [
    1,
    os.getppid(),  # HERE
])
""")
python("command_line", "<module>", f"""
for _ in range({CALLS}):
    os.getppid()  # HERE
""", run=lambda program, path, body: ([program, "-c", body], b""), shown="<string>")
python("standard_input", "<module>", f"""
for _ in range({CALLS}):
    os.getppid()  # HERE
""", run=lambda program, path, body: ([program], body.encode()), shown="<stdin>")
python("letters", "mäßig", f"""
def mäßig():
    for _ in range({CALLS}):
        os.getppid()  # HERE
mäßig()
""", file="größe-日本.py")
python("no_utf8", "f", f"""
def f():
    for _ in range({CALLS}):
        os.getppid()  # HERE
f()
""", file=b"caf\xe9.py", shown="caf\\xe9.py")
python("through_the_standard_library", "replacement", f"""
import re
def replacement(m):
    return str(os.getppid())  # HERE
def render():
    re.sub("x", replacement, "x" * {CALLS})
render()
""")
python("deep", "down", f"""
def down(n):
    if n:
        return down(n - 1)
    for _ in range({CALLS}):
        os.getppid()  # HERE
down(150)
""")
ruby("three_deep_in_ruby", "block in leaf", f"""
def leaf
  {CALLS}.times do
    Process.ppid # HERE
  end
end
def render() leaf end
def main
  render
end
main
""")
ruby("while_in_ruby", "leaf", f"""
def leaf
  i = 0
  while i < {CALLS}
    i += 1
    Process.ppid # HERE
  end
end
leaf
""")
ruby("thread_in_ruby", "work", f"""
def work
  for i in 1..{CALLS}
    i
  end
  i = 0
  (Process.ppid; i += 1) while i < {CALLS} # HERE
end
3.times.map {{ Thread.new {{ work }} }}.each(&:join)
""")
ruby("rescue_in_ruby", "rescue in careful", f"""
def careful
  raise "x"
rescue
  Process.ppid # HERE
end
{CALLS}.times {{ careful }}
""")
ruby("fiber_in_ruby", "block in <main>", f"""
f = Fiber.new do
  loop_of = 0
  while loop_of < {CALLS}
    Process.ppid # HERE
    loop_of += 1
  end
end
f.resume
""")
ruby("long_method_in_ruby", "long", "def long\n" + "".join(f"  a{n} = {n} + 1\n" for n in range(700)) + f"""
  i = 0
  while (i += 1) <= {CALLS}
    Process.ppid # HERE
  end
end
long
""")
ruby("sort_by_in_ruby", "block in rank", f"""
def rank
  (1..{CALLS}).sort_by do |x|
    x +
      Process.ppid # HERE
  end
end
rank
""")
ruby("command_line_in_ruby", "<main>", f"""
i = 0
while (i += 1) <= {CALLS}
  Process.ppid # HERE
end
""", run=lambda program, path, body: ([program, "-e", body], b""), shown="-e")
ruby("letters_in_ruby", "mäßig", f"""
def mäßig
  i = 0
  while (i += 1) <= {CALLS}
    Process.ppid # HERE
  end
end
mäßig
""", file="größe.rb")


def wrong(box, name, program, function, body, file, run, shown):
    """Returns what a case's report says instead of the truth; None if it says the truth."""
    line = next(n for n, text in enumerate(body.split("\n"), 1) if "HERE" in text)
    path = os.path.join(os.fsencode(box.dir), os.fsencode(file))
    with open(path, "w", encoding="utf-8") as f:
        f.write(body)
    os.chmod(path, 0o644)
    argv, stdin = run(program, path, body) if run else ([program, path], b"")
    doc, r = box.report(argv, input=stdin)
    assert r.returncode == 0, f"{name}: {r.stderr[:300]} {r.stderr[-300:]}"
    rows = [r for r in doc["rows"] if r["syscall"] == "getppid"]
    if not rows:
        return "no calls seen"
    row = max(rows, key=lambda r: r["calls"])
    user = row["user"] or {}
    told = (os.path.basename(user.get("file") or ""), user.get("line"), user.get("function"), row["api"])
    truth = (shown, line, function, "getppid")
    return None if told == truth else f"{told} and not {truth}; lines {row['lines'][:3]}; {doc['problems']}"


def programs(name):
    """The interpreter of a language that is installed, and the others that are to be tried."""
    installed = "/usr/bin/python3" if name == "python3" else tool(name)
    others = {"python3": "SYSTOLL_TEST_PYTHONS", "ruby": "SYSTOLL_TEST_RUBIES"}.get(name, "")
    return [installed, *filter(None, os.environ.get(others, "").split(":"))]


def to_run(cases):
    """Returns all cases; where SYSTOLL_TEST_SCRIPTS is N, for an emulated machine, every Nth, beginning elsewhere each day."""
    every = int(os.environ.get("SYSTOLL_TEST_SCRIPTS", 1))
    return cases[int(time.time() // 86400) % every :: every]


def hold(box, cases):
    failed = {}
    runs = [(program, case) for case in to_run(cases) for program in programs(case[1])]
    for program, (name, _, function, body, file, run, shown) in runs:
        why = wrong(box, name, program, function, body, file, run, shown)
        if why:
            failed[f"{name} {program}"] = why
    print(f"      {len(runs) - len(failed)} of {len(runs)} scripts named by their line")
    assert not failed, failed


@test(users=("nobody",), backends=BOTH)
def lines_of_scripts(box):
    hold(box, CASES)


def calls_at(box, argv, line, syscalls):
    """Returns the number of calls that `--by line` groups under a line, and that of all calls of `syscalls`."""
    r = box.run(box.watch(argv, "-q", "--save", "pool.rec", "--force"))
    assert r.returncode == 0, (r.returncode, r.stderr[-300:])
    doc = json.loads(box.run([box.systoll, "report", "--json", "--by", "line", "pool.rec"]).stdout)
    asked = sum(g["calls"] for g in doc["grouped"]["groups"] if (g["user"] or {}).get("line") == line)
    return asked, sum(s["calls"] for s in doc["by_syscall"] if s["syscall"] in syscalls)


# Ways to have a pool's threads call a function in C, of which no stack has a line of the script.
EXECUTORS = {
    "submit": """
with ThreadPoolExecutor(2) as pool:
    for _ in range(N):
        pool.submit(os.readlink, "/proc/self/exe").result()  # HERE
""",
    "run_in_executor": """
async def each():
    for _ in range(N):
        await asyncio.get_running_loop().run_in_executor(None, os.readlink, "/proc/self/exe")  # HERE
asyncio.run(each())
""",
    "apply_async": """
with multiprocessing.pool.ThreadPool(2) as pool:
    for _ in range(N):
        pool.apply_async(os.readlink, ("/proc/self/exe",)).get()  # HERE
""",
}


@test(users=("nobody",), backends=BOTH)
def callers_of_executors(box):
    """Calls that a pool's threads make are told with the line that gave the pool its work."""
    for name, body in EXECUTORS.items():
        body = f"import asyncio, multiprocessing.pool, os\nfrom concurrent.futures import ThreadPoolExecutor\nN = {4 * CALLS}\n" + body
        line = next(n for n, text in enumerate(body.split("\n"), 1) if "HERE" in text)
        asked, made = calls_at(box, ["/usr/bin/python3", box.file(f"{name}.py", body)], line, ("readlink",))
        assert asked > made > 4 * CALLS * 0.9, (name, asked, made)


@test(users=("nobody",))
def users_of_transports(box):
    """What asyncio's loop reads for a connection is told with the lines that use the connection's ends."""
    body = f"""
import asyncio
class Echo(asyncio.Protocol):
    def connection_made(self, transport):
        self.transport = transport
    def data_received(self, data):
        self.transport.write(data)  # line 7
async def main():
    server = await asyncio.get_running_loop().create_server(Echo, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for _ in range({3 * CALLS}):
        writer.write(b"hello\\n")  # line 13
        await reader.readline()
    writer.close()
asyncio.run(main())
"""
    box.run(box.watch(["/usr/bin/python3", box.file("used.py", body)], "-q", "--save", "used.rec"))
    doc = json.loads(box.run([box.systoll, "report", "--json", "--by", "line", "-e", "recvfrom", "used.rec"]).stdout)
    told = {(g["user"] or {}).get("line"): g["calls"] for g in doc["grouped"]["groups"]}
    assert told.get(7, 0) + told.get(13, 0) > 6 * CALLS * 0.9, told


# A program of each language that runs until it is ended, with the lines that it is in again and again: the call, and the
# function's name.
RUNNING = {
    "running.py": """
import os, threading, time
def leaf():
    os.getppid()  # getppid leaf
def work():
    while True:
        leaf()
        time.sleep(0.001)
threading.Thread(target=work).start()
work()
""",
    "running.rb": """
def leaf
  begin
    raise "x"
  rescue
    Process.ppid # getppid rescue in leaf
  end
end
def link
  File.readlink("/proc/self/exe") # readlink link
end
loop { leaf; link; sleep 0.001 }
""",
    "running.pl": """
sub leaf {
  return eval {
    getppid(); # getppid main::leaf
  };
}
sub target {
  readlink("/proc/self/exe"); # readlink main::target
}
while (1) { leaf(); target(); select(undef, undef, undef, 0.001); }
""",
    "running.js": """
const fs = require('fs');
async function leaf() {
  await null;
  return process.ppid; // getppid leaf
}
const link = () => {
  return fs.readlinkSync('/proc/self/exe'); // readlink link
};
(async () => {
  for (;;) {
    await leaf();
    link();
    await new Promise((done) => setTimeout(done, 1));
  }
})();
""",
    "running.php": """<?php
function links() {
  for ($i = 0; $i < 3; $i++)
    yield readlink('/proc/self/exe'); // readlink links
}
class Page {
  static function show() {
    posix_getppid(); // getppid Page::show
  }
}
while (true) { Page::show(); foreach (links() as $l); usleep(1000); }
""",
    "running.sh": """
now() {
  x=$(:)  # clone now
}
log() {
  : > /dev/null  # openat log
}
while :; do
  now
  for i in 1 2 3 4 5; do log; done
done
""",
    "Running.java": """
import java.io.*;
class Running {
  static long size() {
    return new File("/etc/hostname").length(); // stat Running.size
  }
  static boolean may() {
    return new File("/etc/hostname").canRead(); // access Running.may
  }
  public static void main(String[] a) throws Exception {
    for (;;) { size(); may(); Thread.sleep(1); }
  }
}
""",
}


def started(box, name, body):
    """Starts a program of `RUNNING`."""
    path = box.file(name, body)
    if name.endswith(".java"):
        subprocess.run([tool("javac"), "-d", box.dir, path], check=True, timeout=300)
        os.chmod(os.path.join(box.dir, name.replace(".java", ".class")), 0o644)
        return box.start([tool("java"), "-cp", box.dir, name.removesuffix(".java")], stdin=-3)
    program = {"py": "python3", "rb": "ruby", "pl": "perl", "js": "node", "php": "php", "sh": "bash"}[name.rsplit(".", 1)[1]]
    return box.start(["/usr/bin/python3" if program == "python3" else tool(program), path], stdin=-3)


@test()
def lines_of_running_scripts(box):
    """Programs that are attached to while they run are told by the same lines as those that systoll starts."""
    running = {name: started(box, name, body) for name, body in RUNNING.items()}
    time.sleep(2.5)
    failed = {}
    watch = [box.systoll, "attach", "-q", "--for", "2s", "--json", "-o"]
    watching = {name: box.start([*watch, f"{name}.json", str(process.pid)], stdin=-3, stderr=-1) for name, process in running.items()}
    for name, process in running.items():
        _, said = watching[name].communicate(timeout=60)
        assert watching[name].returncode == 0 and process.poll() is None, (name, said[-300:])
        with open(os.path.join(box.dir, f"{name}.json"), encoding="utf-8") as f:
            rows = json.load(f)["rows"]
        for line, text in enumerate(RUNNING[name].split("\n"), 1):
            mark = re.search(r"(?:#|//) (\w+) ([\w:. ]+)$", text)
            if mark is None:
                continue
            of_call = [r for r in rows if r["syscall"] == mark[1] or mark[1] == "stat" and r["syscall"] == "newfstatat"]
            user = (max(of_call, key=lambda r: r["calls"])["user"] or {}) if of_call else {}
            told = (os.path.basename(user.get("file") or ""), user.get("line"), user.get("function"))
            if told != (name, line, mark[2]):
                failed[f"{name}:{line}"] = f"{told} and not {mark[2]}"
        process.kill()
        process.wait()
    assert not failed, failed
