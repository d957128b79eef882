"""Lines of a script that share a function of libc: each finding names the line that touches its own file.

An interpreter opens every file from the same place, so all lines of a script that open one share a row. Each script here
has several such lines, one or two of them wasteful; whatever is said about a wasteful line's file has to name that line,
and no other. Without --long each script runs once, with it ten times."""
import contextlib
import json
import os
import re
import shutil
import socket
import subprocess
import threading
import time

from harness import test, text, tool, wait_for
from suites.attach import watched as attached

# Times that each line runs, and runs of each script with --long.
TIMES, RUNS = 2500, 10
# A line that has at most this share of the samples may be another than the file's own: a file is also read by an import.
STRAY = 0.02

# Lines that share functions: those in capitals are wasteful, and each is about one file.
CFG, LOG, ASK, data, new, seen = "CFG", "LOG", "ASK", "data", "new", "seen"
SETS = [(LOG, CFG), (CFG, data), (LOG, new), (ASK, seen), (CFG, data, new), (LOG, new, seen), (LOG, new, CFG, seen, ASK)]
# The sets of a short run. Among five lines, one may cost too little to be reported.
SHORT, FEW = (SETS[0], SETS[2], SETS[-1]), 3
OBJECTS = {CFG: "cfg.json", LOG: "out.log", ASK: "flag"}

# Of each language: the file's ending, the command, the frame around the lines, and each line, where i is the number of the
# turn. `BODY` stands for the calls, `LINES` for the functions.
LANGUAGES = {
    "python": ("py", ["/usr/bin/python3"], "import os\nLINES\nfor i in range(TIMES):\nBODY\n", "    {}(i)", "#", {
        CFG: "def f_CFG(i): return open('cfg.json').read()",
        LOG: "def f_LOG(i):\n    with open('out.log', 'a') as f: f.write('line\\n')",
        ASK: "def f_ASK(i): return os.path.exists('flag')",
        data: "def f_data(i): return open('d/%d' % i).read()",
        new: "def f_new(i):\n    with open('n/%d' % i, 'w') as f: f.write('line\\n')",
        seen: "def f_seen(i): return os.path.exists('d/%d' % i)",
    }),
    "ruby": ("rb", ["ruby"], "LINES\nTIMES.times do |i|\nBODY\nend\n", "  {}(i)", "#", {
        CFG: "def f_CFG(i) File.read('cfg.json') end",
        LOG: "def f_LOG(i) File.open('out.log', 'a') { |f| f.write(\"line\\n\") } end",
        ASK: "def f_ASK(i) File.exist?('flag') end",
        data: "def f_data(i) File.read(\"d/#{i}\") end",
        new: "def f_new(i) File.open(\"n/#{i}\", 'w') { |f| f.write(\"line\\n\") } end",
        seen: "def f_seen(i) File.exist?(\"d/#{i}\") end",
    }),
    "perl": ("pl", ["perl"], "LINES\nfor my $i (0..TIMES-1) {\nBODY\n}\n", "  {}($i);", "#", {
        CFG: "sub f_CFG { open my $f, '<', 'cfg.json' or die; my $x = <$f>; close $f }",
        LOG: "sub f_LOG {\n  open my $f, '>>', 'out.log' or die; print $f \"line\\n\"; close $f }",
        ASK: "sub f_ASK { -e 'flag' }",
        data: "sub f_data { open my $f, '<', \"d/$_[0]\" or die; my $x = <$f>; close $f }",
        new: "sub f_new {\n  open my $f, '>', \"n/$_[0]\" or die; print $f \"line\\n\"; close $f }",
        seen: "sub f_seen { -e \"d/$_[0]\" }",
    }),
    "php": ("php", ["php"], "<?php\nLINES\nfor ($i = 0; $i < TIMES; $i++) {\nBODY\n}\n", "  {}($i);", "//", {
        CFG: "function f_CFG($i) { return file_get_contents('cfg.json'); }",
        LOG: "function f_LOG($i) {\n  file_put_contents('out.log', \"line\\n\", FILE_APPEND); }",
        ASK: "function f_ASK($i) { clearstatcache(); return file_exists('flag'); }",
        data: "function f_data($i) { return file_get_contents(\"d/$i\"); }",
        new: "function f_new($i) {\n  file_put_contents(\"n/$i\", \"line\\n\"); }",
        seen: "function f_seen($i) { clearstatcache(); return file_exists(\"d/$i\"); }",
    }),
    # A shell that reads a line of a file has no cure to offer, so that is not wasteful here.
    "bash": ("sh", ["bash"], "LINES\nfor ((i = 0; i < TIMES; i++)); do\nBODY\ndone\n", "  {} $i", "#", {
        LOG: "f_LOG() {\n  echo line >> out.log; }",
        ASK: "f_ASK() { [ -e flag ]; }",
        data: "f_data() { read -r x < d/$1; }",
        new: "f_new() {\n  echo line > n/$1; }",
        seen: "f_seen() { [ -e d/$1 ]; }",
    }),
    "node": ("js", ["node"], "const fs = require('fs');\nLINES\nfor (let i = 0; i < TIMES; i++) {\nBODY\n}\n", "  {}(i);", "//", {
        CFG: "function f_CFG(i) { return fs.readFileSync('cfg.json'); }",
        LOG: "function f_LOG(i) {\n  fs.appendFileSync('out.log', 'line\\n'); }",
        ASK: "function f_ASK(i) { return fs.existsSync('flag'); }",
        data: "function f_data(i) { return fs.readFileSync('d/' + i); }",
        new: "function f_new(i) {\n  fs.writeFileSync('n/' + i, 'line\\n'); }",
        seen: "function f_seen(i) { return fs.existsSync('d/' + i); }",
    }),
    "lua": ("lua", ["lua5.4"], "LINES\nfor i = 0, TIMES - 1 do\nBODY\nend\n", "  {}(i)", "--", {
        CFG: "function f_CFG(i) local f = io.open('cfg.json'); local x = f:read('a'); f:close() end",
        LOG: "function f_LOG(i)\n  local f = io.open('out.log', 'a'); f:write('line\\n'); f:close() end",
        data: "function f_data(i) local f = io.open('d/' .. i); local x = f:read('a'); f:close() end",
        new: "function f_new(i)\n  local f = io.open('n/' .. i, 'w'); f:write('line\\n'); f:close() end",
    }),
    "java": ("java", ["java"], "import java.nio.file.*;\nclass T {\nLINES\npublic static void main(String[] a) throws Exception {\n"
             "for (int i = 0; i < TIMES; i++) {\nBODY\n} } }\n", "  {}(i);", "//", {
        CFG: "static void f_CFG(int i) throws Exception { Files.readString(Path.of(\"cfg.json\")); }",
        LOG: "static void f_LOG(int i) throws Exception {\n"
             "  Files.writeString(Path.of(\"out.log\"), \"line\\n\", StandardOpenOption.CREATE, StandardOpenOption.APPEND); }",
        ASK: "static void f_ASK(int i) throws Exception { Files.exists(Path.of(\"flag\")); }",
        data: "static void f_data(int i) throws Exception { Files.readString(Path.of(\"d/\" + i)); }",
        new: "static void f_new(int i) throws Exception {\n  Files.writeString(Path.of(\"n/\" + i), \"line\\n\"); }",
        seen: "static void f_seen(int i) throws Exception { Files.exists(Path.of(\"d/\" + i)); }",
    }),
}


def marked_lines(source, marks):
    """Returns the number of the line that ends with each mark."""
    return {op: number for op in marks for number, line in enumerate(source.splitlines(), 1) if line.endswith(f" @{op}")}


def installed(command):
    """Returns a command with the path of its program."""
    return [command[0] if command[0].startswith("/") else tool(command[0]), *command[1:]]


def there(box):
    """Returns the beginning of a command that runs another one in the box's folder."""
    return ["sh", "-c", 'cd "$1" && shift && exec "$@"', "sh", box.dir]


class Script:
    """A script of some lines, and the number of each."""

    def __init__(self, box, language, lines, times=TIMES):
        self.ending, self.command, frame, call, comment, code = LANGUAGES[language]
        self.name = f"t.{self.ending}"
        marked = "\n".join(f"{code[op]} {comment} @{op}" for op in lines)
        body = "\n".join(call.format(f"f_{op}") for op in lines)
        source = frame.replace("LINES", marked).replace("BODY", body).replace("TIMES", str(times))
        with open(os.path.join(box.dir, self.name), "w") as f:
            f.write(source)
        self.lines = marked_lines(source, lines)
        self.command = [*installed(self.command), self.name]
        if language == "java":
            # Compiled first: beside the compiler's second and a half, what the lines cost is hardly worth a report.
            subprocess.run([tool("javac"), "-d", box.dir, self.name], cwd=box.dir, check=True, timeout=300)
            self.command = [tool("java"), "-cp", box.dir, "T"]


def files(box):
    """Makes the files that the lines read, and the folders that they write to."""
    for folder in ("d", "n"):
        os.makedirs(os.path.join(box.dir, folder), exist_ok=True)
        os.chmod(os.path.join(box.dir, folder), 0o777)
    for i in range(TIMES):
        # To make files would cost so much that the rest is hardly worth a report.
        for folder in ("d", "n"):
            with open(os.path.join(box.dir, folder, str(i)), "w") as f:
                f.write("data\n")
            os.chmod(os.path.join(box.dir, folder, str(i)), 0o666)
    for name in ("cfg.json", "flag"):
        with open(os.path.join(box.dir, name), "w") as f:
            f.write("{}\n")
    os.chmod(box.dir, 0o777)


def object_of(finding):
    """Returns the wasteful line whose file a finding is about, if it is about one."""
    # Where only some of the calls have an object, `what` is empty and `objects` has it.
    only = [of["name"] for of in finding["objects"] if of["share"] == 1]
    what = os.path.basename(finding["what"] or "".join(only))
    return next((op for op, name in OBJECTS.items() if what == name), None)


def names_its_line(finding, name, lines, who):
    """Asserts that a finding names the line that touches its file, and no other."""
    op = object_of(finding)
    user = finding["user"] or {}
    at = f"{who}: {finding['cause']} of {OBJECTS[op]}: "
    assert user.get("line") == lines[op] and os.path.basename(user.get("file") or "") == name, f"{at}{user}, not {lines[op]}"
    others = [line for line in finding["lines"] if line["share"] > STRAY and line["line"] != lines[op]]
    assert not others, f"{at}other lines {others}"


def watched(box, command):
    """Returns the JSON of a run."""
    report = os.path.join(box.dir, "report.json")
    r = box.run([*there(box), box.systoll, "run", "-q", "--json", "-o", report, "--", *command])
    assert r.returncode == 0, text(r.stderr)[-600:]
    with open(report) as f:
        return json.load(f)


def holds(report, name, lines, who):
    """Asserts that all that is said of wasteful lines' files is about these lines, and that something is said of each."""
    all_of_it = report["findings"] + report["also"]
    about = [f for f in all_of_it if object_of(f) in lines]
    for finding in about:
        names_its_line(finding, name, lines, who)
    wasteful = {op for op in lines if op in OBJECTS and len(lines) <= FEW}
    missing = wasteful - {object_of(f) for f in about}
    assert not missing, f"{who}: nothing about {missing}: {[(f['cause'], f['what']) for f in all_of_it]}"


def suite(language):
    def run(box):
        files(box)
        for lines in SETS if box.shared.long else SHORT:
            lines = [op for op in lines if op in LANGUAGES[language][5]]
            for order in (lines, lines[::-1]) if box.shared.long else (lines[::-1],):
                script = Script(box, language, order)
                for turn in range(RUNS if box.shared.long else 1):
                    log = os.path.join(box.dir, "out.log")
                    if os.path.exists(log):
                        os.unlink(log)
                    report = watched(box, script.command)
                    holds(report, script.name, script.lines, f"{language}, {', '.join(order)}, run {turn}")
    return run


for language in LANGUAGES:
    test(f"lines_of_{language}")(suite(language))


# Times that a script runs its lines while it is attached to; more than it comes to. Its seconds, and its turns, of being
# watched, at least.
FOREVER, SECONDS, TURNS = 1_000_000_000, 3, 10_000


def attached_suite(language):
    def run(box):
        files(box)
        lines = [op for op in (LOG, CFG, ASK) if op in LANGUAGES[language][5]]
        script = Script(box, language, lines, FOREVER)
        process = box.start([*there(box), *script.command],
                            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        log = os.path.join(box.dir, "out.log")
        turns = lambda: os.path.getsize(log) // len("line\n") if os.path.exists(log) else 0

        def watch():
            begun = turns()
            time.sleep(SECONDS)
            wait_for(lambda: turns() >= begun + TURNS, "turns")

        try:
            # Interpreters have begun.
            wait_for(lambda: turns() >= TIMES, "the first turns")
            report = attached(box, process.pid, watch)
        finally:
            process.kill()
            process.wait()
        holds(report, script.name, script.lines, f"{language}, attached")
    return run


for language in LANGUAGES:
    test(f"lines_of_{language}_attached", users=("nobody",))(attached_suite(language))


# A script that writes to a kept socket, to a new one and to a file: all three share a function of libc. Lines are marked as above.
SOCKETS = {
    "python": ("py", ["/usr/bin/python3"], """import socket
kept = socket.create_connection(('127.0.0.1', PORT))
def f_ask(i): kept.sendall(b'x' * 300); return kept.recv(100)
def f_HELLO(i):
    with socket.create_connection(('127.0.0.1', PORT)) as s: s.sendall(b'x' * 300); return s.recv(100) # @HELLO
def f_LOG(i):
    with open('out.log', 'a') as f: f.write('line\\n') # @LOG
for i in range(TIMES):
    f_ask(i); f_HELLO(i); f_LOG(i)
"""),
    "ruby": ("rb", ["ruby"], """require 'socket'
$kept = TCPSocket.new('127.0.0.1', PORT)
def f_ask(i) $kept.write('x' * 300); $kept.readpartial(100) end
def f_HELLO(i)
  TCPSocket.open('127.0.0.1', PORT) { |s| s.write('x' * 300); s.readpartial(100) } end # @HELLO
def f_LOG(i) File.open('out.log', 'a') { |f| f.write("line\\n") } end # @LOG
TIMES.times { |i| f_ask(i); f_HELLO(i); f_LOG(i) }
"""),
    "php": ("php", ["php"], """<?php
$kept = fsockopen('127.0.0.1', PORT);
function f_ask($i) { global $kept; fwrite($kept, str_repeat('x', 300)); return fread($kept, 100); }
function f_HELLO($i) {
  $s = fsockopen('127.0.0.1', PORT); fwrite($s, str_repeat('x', 300)); fread($s, 100); fclose($s); } // @HELLO
function f_LOG($i) { file_put_contents('out.log', "line\\n", FILE_APPEND); } // @LOG
for ($i = 0; $i < TIMES; $i++) { f_ask($i); f_HELLO($i); f_LOG($i); }
"""),
    "perl": ("pl", ["perl"], """use IO::Socket::INET;
my $kept = IO::Socket::INET->new('127.0.0.1:PORT');
sub f_ask { $kept->syswrite('x' x 300); $kept->sysread(my $x, 100) }
sub f_HELLO {
  my $s = IO::Socket::INET->new('127.0.0.1:PORT'); $s->syswrite('x' x 300); $s->sysread(my $x, 100); close $s } # @HELLO
sub f_LOG { open my $f, '>>', 'out.log' or die; print $f "line\\n"; close $f } # @LOG
for my $i (0..TIMES-1) { f_ask($i); f_HELLO($i); f_LOG($i) }
"""),
}


@contextlib.contextmanager
def answers(once=False):
    """Gives the port of a server that answers whatever it receives; it ends each connection after an answer if `once`."""
    def answer(connection):
        with connection, contextlib.suppress(OSError):
            while connection.recv(4096):
                connection.sendall(b"good\n")
                if once:
                    return

    def accept(server):
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=answer, args=(server.accept()[0],), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=accept, args=(server,), daemon=True).start()
        yield server.getsockname()[1]


@test()
def lines_beside_sockets(box):
    files(box)
    for language, (ending, command, source) in SOCKETS.items():
        with answers() as port:
            source = source.replace("PORT", str(port)).replace("TIMES", str(TIMES))
            name = os.path.basename(box.file(f"s.{ending}", source))
            report = watched(box, [*installed(command), name])
        lines = marked_lines(source, (LOG, "HELLO"))
        holds(report, name, {LOG: lines[LOG]}, language)
        for finding in report["findings"] + report["also"]:
            if finding["cause"] == "connection-per-request":
                assert finding["user"]["line"] == lines["HELLO"], f"{language}: {finding['user']}"


# A script that connects to two servers by one function: the first ends each connection itself, the second would keep it.
PEERS = {
    "python": ("py", ["/usr/bin/python3"], """import socket
def ask(s): s.sendall(b'x' * 30); return s.recv(100)
for i in range(TIMES):
    a = socket.create_connection(('127.0.0.1', ENDS))
    ask(a); a.recv(100); a.close()
    b = socket.create_connection(('127.0.0.1', PORT)) # @HELLO
    ask(b); b.close()
"""),
    "php": ("php", ["php"], """<?php
function ask($s) { fwrite($s, str_repeat('x', 30)); return fread($s, 100); }
for ($i = 0; $i < TIMES; $i++) {
  $a = stream_socket_client('tcp://127.0.0.1:ENDS');
  ask($a); fread($a, 100); fclose($a);
  $b = stream_socket_client('tcp://127.0.0.1:PORT'); // @HELLO
  ask($b); fclose($b);
}
"""),
}


@test()
def lines_of_two_peers(box):
    files(box)
    for language, (ending, command, source) in PEERS.items():
        with answers() as port, answers(once=True) as ends:
            source = source.replace("PORT", str(port)).replace("ENDS", str(ends)).replace("TIMES", str(TIMES))
            name = os.path.basename(box.file(f"p.{ending}", source))
            report = watched(box, [*installed(command), name])
        line = marked_lines(source, ("HELLO",))["HELLO"]
        # Windows may show too little of the connections to say that they could be kept.
        for finding in report["findings"] + report["also"]:
            if finding["cause"] == "connection-per-request":
                assert finding["user"]["line"] == line, f"{language}: {finding['user']}"
                assert str(ends) not in (finding["what"] or ""), f"{language}: {finding['what']}"


# Each program runs by one line. By then, more processes were made than are kept one by one.
PROGRAMS = """mkdir in
i=0
while [ $i -lt 60 ]; do
    cat /etc/passwd > in/$i.txt # @cat
    i=$((i + 1))
done
for f in in/*.txt in/1*.txt; do
    base=$(basename "$f" .txt) # @basename
    gzip -n < "$f" > "in/$base.gz" # @gzip
done
"""


@test()
def lines_of_programs(box):
    lines = marked_lines(PROGRAMS, ("cat", "basename", "gzip"))
    for shell in ("dash", "bash"):
        name = os.path.basename(box.file(f"{shell}.sh", PROGRAMS))
        report = watched(box, [*installed([shell]), name])
        shutil.rmtree(os.path.join(box.dir, "in"))
        about = [f for f in report["findings"] + report["also"] if f["starts"]]
        assert about, f"{shell}: {[(f['cause'], f['what']) for f in report['also']]}"
        for finding in about:
            programs = [finding["what"]] if finding["what"] else [of["name"] for of in finding["objects"]]
            names = [os.path.basename(program) for program in programs]
            user = finding["user"] and finding["user"]["line"]
            # Which line waited for a program is seen of few; a line that is known runs the first one.
            assert user in (lines[names[0]], None), f"{shell}: {user} for {names}"


@test()
def callers_of_one_helper(box):
    files(box)
    program = box.build("helped.c", "-O0")
    callers = {"cfg.json": "cfg", "out.log": "log_line"}
    for reversed in ((), ("reversed",)):
        r = box.run([*there(box), box.systoll, "run", "-o", "report.txt", "--", program, "20000", *reversed])
        assert r.returncode == 0, text(r.stderr)[-600:]
        with open(os.path.join(box.dir, "report.txt")) as f:
            findings = re.split(r"\n(?=  \d  )", f.read())[1:]
        for name, caller in callers.items():
            about = [finding for finding in findings if name in finding.splitlines()[0]]
            assert about, f"nothing about {name}: {findings}"
            # The most expensive of the calls on the file comes first.
            chain = next(line for line in about[0].splitlines() if "  <  " in line)
            assert f"<  {caller} helped.c" in chain, f"{name}: {chain}"
