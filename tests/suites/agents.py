"""`systoll mcp` serves tools to agents: to a real client, and to one that behaves badly."""
import json
import os
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import readers  # noqa: E402
from harness import HERE, Skip, test, text, tool  # noqa: E402

SOON = 20


class Client:
    """A client that writes lines to a server and reads its answers."""

    def __init__(self, box):
        self.box = box
        self.server = box.start([box.systoll, "mcp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.number = 0
        assert "serverInfo" in self.ask("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}})

    def send(self, method, params, number=None):
        message = {"jsonrpc": "2.0", "method": method, "params": params}
        if number is not None:
            message["id"] = number
        self.server.stdin.write(json.dumps(message).encode() + b"\n")
        self.server.stdin.flush()

    def start(self, method, params):
        self.number += 1
        self.send(method, params, self.number)
        return self.number

    def hear(self):
        line = self.server.stdout.readline()
        assert line, "the server is gone: " + text(self.server.stderr.read())
        return json.loads(line)

    def ask(self, method, params):
        number = self.start(method, params)
        while True:
            heard = self.hear()
            if heard.get("id") == number:
                return heard["result"] if "result" in heard else heard

    def call(self, name, **arguments):
        return self.ask("tools/call", {"name": name, "arguments": arguments})

    def end(self):
        self.server.stdin.close()
        rest = self.server.stdout.read()
        assert self.server.wait(timeout=SOON) == 0, text(self.server.stderr.read())
        return rest


def begun(box, name="begun"):
    """Waits until a program has made its file."""
    path, end = os.path.join(box.dir, name), time.monotonic() + 60
    while not os.path.exists(path):
        assert time.monotonic() < end, "the program was not started"
        time.sleep(0.01)


# A program whose child has a session of its own and no parent, because its grandparent has let go of it.
SLEEPER = ["/bin/sh", "-c", "trap '' TERM; (setsid sleep 600 &); : > begun; sleep 600 & sleep 600"]


def real_client(box, mode):
    python = readers.python()
    if not python:
        raise Skip("PyPI's mcp is not there: tests/readers.py fetches it")
    program = [box.build("localtime.c"), "40000"]
    # The program is slow enough for its progress to be reported.
    r = box.run([python, os.path.join(HERE, "agent_client.py"), box.systoll, mode, *program], limit=100)
    assert r.returncode == 0, text(r.stderr)[-1500:]
    got = json.loads(r.stdout)
    assert got["protocol"] == ("2026-07-28" if mode == "auto" else "2025-11-25"), got["protocol"]
    runs = {name for name, a in got["tools"].items() if a["destructive_hint"] and not a["read_only_hint"]}
    assert runs == {"run", "prove", "diff"} and set(got["tools"]) - runs == {"report", "explain", "import"}, got["tools"]
    finding = got["run"]["findings"][0]
    assert finding["cause"] == "tz-unset" and got["run"] == got["text"], finding
    row = got["row"]["value"][0]
    assert row["syscall"] in finding["syscalls"] and row["calls"] >= finding["calls"] / 2, row
    assert "TZ" in got["explain"], got["explain"]
    assert got["diff"]["changed"] == [] and got["diff"]["findings_gone"] == [], got["diff"]
    for is_error, words in got["wrong"]:
        assert is_error and words.strip(), got["wrong"]
    box.no_leftovers(5)


@test(users=("root",))
def the_protocols_own_client_asks_the_new_way(box):
    real_client(box, "auto")


@test(users=("nobody",))
def the_protocols_own_client_asks_the_old_way(box):
    real_client(box, "legacy")


@test()
def program_output_never_mixes_with_answers(box):
    """The program writes megabytes to both streams, with lines among them that look like answers."""
    client = Client(box)
    lie = '{"jsonrpc": "2.0", "id": 2, "result": {}}'
    script = f"yes '{lie}' | head -c 3000000; yes '{lie}' | head -c 3000000 >&2; cat; echo last"
    result = client.call("run", command=["/bin/sh", "-c", script])
    output = result["structuredContent"]["output"]
    assert output["stdout"]["bytes"] == 3000005 and output["stderr"]["bytes"] == 3000000, output
    assert output["stdout"]["text"].endswith("last\n") and "left out" in output["stdout"]["text"], output
    assert len(json.dumps(result)) < 120_000, len(json.dumps(result))
    assert client.end() == b""
    box.no_leftovers(5)


@test()
def a_program_that_does_not_end_is_ended(box):
    """It is ended after its time, by the client, at the input's end and by SIGTERM; then nothing of it runs any
    more."""
    client = Client(box)
    late = client.call("run", command=["/bin/sh", "-c", "echo here; sleep 600"], timeout_seconds=1)["structuredContent"]
    assert late["timed_out"] and late["output"]["stdout"]["text"] == "here\n", late
    # Answers hold the dearest rows only, and two programs have started, so a write need not be among them.
    told = len(late["rows"]) + late.get("left_out", {}).get("/rows", 0)
    assert told > 20 and late["calls"] >= told and late["wall_ns"] > 5e8, (told, late["calls"], late["wall_ns"])
    assert len(box.leftovers()) == 1, box.leftovers()
    number = client.start("tools/call", {"name": "run", "arguments": {"command": SLEEPER}})
    begun(box)
    client.send("notifications/cancelled", {"requestId": number})
    explained = client.call("explain", cause="tz-unset")
    assert "TZ" in explained["content"][0]["text"]
    end = time.monotonic() + SOON
    while len(box.leftovers()) > 1 and time.monotonic() < end:
        time.sleep(0.02)
    assert len(box.leftovers()) == 1, box.leftovers()
    os.unlink(os.path.join(box.dir, "begun"))
    client.start("tools/call", {"name": "run", "arguments": {"command": SLEEPER}})
    begun(box)
    assert client.end() == b"", "what was taken back was answered"
    box.no_leftovers(5)
    client = Client(box)
    os.unlink(os.path.join(box.dir, "begun"))
    client.start("tools/call", {"name": "run", "arguments": {"command": SLEEPER}})
    begun(box)
    client.server.terminate()
    assert client.server.wait(timeout=SOON) in (143, -signal.SIGTERM), client.server.returncode
    box.no_leftovers(5)


@test(users=("root",))
def two_commands_are_not_measured_at_once(box):
    client = Client(box)
    script = ["/bin/sh", "-c", "mkdir alone || exit 9; sleep 0.3; rmdir alone"]
    numbers = [client.start("tools/call", {"name": "run", "arguments": {"command": script}}) for _ in range(3)]
    heard = {}
    while len(heard) < 3:
        message = client.hear()
        heard[message["id"]] = message["result"]["structuredContent"]["exit"]
    assert heard == {n: {"code": 0} for n in numbers}, heard
    client.end()


@test()
def a_text_will_do_where_a_list_of_one_would(box):
    """A text stands for a list of one; and what an agent must read first of a report comes first."""
    client = Client(box)
    program = box.build("localtime.c")
    report = client.call("run", command=[program, "9000"])["structuredContent"]
    assert list(report)[:2] == ["findings", "also"], list(report)
    diff = client.call("diff", old=report["recording"], new=report["recording"])
    assert not diff.get("isError"), diff
    assert client.call("run", command="true")["structuredContent"]["exit"] == {"code": 0}
    said = client.call("run", command="ls -l")
    assert said["isError"] and "no shell splits it" in said["content"][0]["text"], said
    # A file that is no recording is not replaced.
    mine = box.file("notes", "mine")
    said = client.call("run", command=["true"], save=mine)
    with open(mine) as f:
        assert said["isError"] and "is no recording" in said["content"][0]["text"] and f.read() == "mine", said
    assert client.end() == b""


@test(users=("nobody",))
def a_cure_is_proved(box):
    client = Client(box)
    program = [box.build("localtime.c"), "20000"]
    proof = client.call("prove", command=program, cure=["tz-unset"], limit_seconds=20)["structuredContent"]
    assert proof["same_outcome"] is True and proof["change"]["calls"] <= -19_000, proof
    client.end()
    box.no_leftovers(5)


@test(users=("root",))
def no_argument_becomes_a_flag(box):
    client = Client(box)
    for name, arguments in (
        ("report", {"recording": "--help"}),
        ("explain", {"cause": "--help"}),
        ("diff", {"old": ["-o"], "new": [":"]}),
        ("run", {"command": ["--help"]}),
        ("prove", {"command": ["true"], "cure": ["--output=/tmp/x"]}),
        ("run", {"command": ["true"], "backend": "--help"}),
    ):
        result = client.call(name, **arguments)
        assert result.get("isError"), (name, arguments, result)
        assert "Usage" not in result["content"][0]["text"], result
    client.end()


@test(users=("root",))
def a_megabyte_without_an_end_does_no_harm(box):
    client = Client(box)
    client.server.stdin.write(b"[" * (3 << 20) + b"\n\xff\xfe\n{}\nnull\n")
    client.server.stdin.flush()
    codes = [client.hear()["error"]["code"] for _ in range(4)]
    assert codes == [-32600, -32700, -32600, -32600], codes
    # A long text comes whole.
    listed = client.call("explain")["content"][0]["text"]
    assert "tz-unset" in listed and "left out" not in listed, listed
    longest = client.call("explain", cause="process-per-item")["content"][0]["text"]
    assert len(longest) > 7000 and "left out" not in longest, len(longest)
    with open(f"/proc/{client.server.pid}/status") as f:
        status = dict(line.split(":", 1) for line in f)
    assert int(status["VmHWM"].split()[0]) < 60_000, status["VmHWM"]
    client.end()


@test()
def a_pasted_trace_is_read(box):
    """A trace as a bug report shows it is read as text or as a file; other text is refused in words."""
    client = Client(box)
    pasted = "> stat(\"/etc/localtime\", {st_mode=S_IFREG|0644, st_size=2819, ...}) = 0\n" * 20
    for arguments in ({"text": pasted}, {"trace": box.file("pasted.txt", pasted)}):
        read = client.call("import", **arguments)["structuredContent"]
        assert read["excerpt"] and read["findings"][0]["cause"] == "tz-unset" and read["calls"] == 20, read["told"]
    again = client.call("report", recording=read["recording"])["structuredContent"]
    assert again["calls"] == 20 and again["excerpt"], again["told"]
    refused = client.call("import", text="nothing of a trace")
    assert refused["isError"] and "strace" in refused["content"][0]["text"], refused
    assert client.call("import")["isError"] and client.call("import", text="a", trace="b")["isError"]
    client.end()
