"""A terminal that is gone (a closed ssh, a multiplexer that was killed) ends what is shown there, and the watched process is left."""
import contextlib
import json
import os
import pty
import select
import signal
import subprocess
import time

from harness import test, text, tool, wait_for
from suites.attach import Running, calls, is_as_it_was, is_fine, is_hooked

# Seconds in which a command ends once its terminal is gone.
SOON = 20


# A shell in a terminal that starts another one, which starts top. Once there is a file "kill", the inner one is killed, and the outer one has the
# terminal again.
SHELLS = """
import os, signal, time
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
inner = os.fork()
if inner == 0:
    os.setpgid(0, 0)
    os.tcsetpgrp(0, os.getpid())
    if os.fork() == 0:
        signal.signal(signal.SIGTTOU, signal.SIG_DFL)
        os.execv("{systoll}", ["systoll", "top", "{pid}"])
    time.sleep(600)
while not os.path.exists("kill"):
    time.sleep(0.05)
os.kill(inner, signal.SIGKILL)
os.waitpid(inner, 0)
os.tcsetpgrp(0, os.getpgrp())
time.sleep(600)
"""


class OnTerminal:
    """A command that is the foreground of a terminal of its own. With `deaf`, it ignores SIGHUP."""

    def __init__(self, box, argv, deaf=False):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            try:
                signal.signal(signal.SIGHUP, signal.SIG_IGN if deaf else signal.SIG_DFL)
                os.chdir(box.dir)
                argv = box.command(argv)
                os.execvpe(argv[0], argv, {**box.env, "TERM": "xterm"})
            finally:
                os._exit(127)

    def reads(self, seconds):
        """Reads what comes within a time, so that the command never waits for its reader."""
        end, seen = time.monotonic() + seconds, b""
        while (left := end - time.monotonic()) > 0:
            if select.select([self.fd], [], [], left)[0]:
                with contextlib.suppress(OSError):
                    seen += os.read(self.fd, 65536)
        return seen

    def close(self):
        """Takes the terminal away."""
        os.close(self.fd)

    def ended(self, within=SOON):
        """Returns the wait status once the command has ended, and `None` if it does not end in time."""
        end = time.monotonic() + within
        while time.monotonic() < end:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                return status
            time.sleep(0.05)
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        return None


def watches(terminal, pid):
    wait_for(lambda: terminal.reads(0.1) is not None and is_hooked(pid), "the process is not entered")
    terminal.reads(0.5)


@test()
def top_leaves_when_its_terminal_is_gone(box):
    for deaf in (False, True):
        run = Running(box, "0")
        top = OnTerminal(box, [box.systoll, "top", str(run.pid)], deaf)
        watches(top, run.pid)
        top.close()
        assert top.ended() is not None, f"top goes on without a terminal, deaf to SIGHUP: {deaf}"
        is_as_it_was(run.pid)
        is_fine(run)


@test()
def top_leaves_when_the_shell_that_started_it_is_gone_and_the_terminal_another_programs(box):
    """A shell in the terminal starts another shell, which starts top and is killed; then the first has the terminal again."""
    run = Running(box, "0")
    script = SHELLS.format(systoll=box.systoll, pid=run.pid)
    shell = OnTerminal(box, [tool("python3"), "-c", script])
    watches(shell, run.pid)
    box.file("kill")
    shell.reads(1)
    os.write(shell.fd, b"typed for another program")
    wait_for(lambda: shell.reads(0.1) is not None and not is_hooked(run.pid), "top goes on in the background", SOON)
    os.kill(shell.pid, signal.SIGKILL)
    shell.close()
    shell.ended()
    is_as_it_was(run.pid)
    is_fine(run)


@test()
def attach_reports_and_leaves_when_its_terminal_is_gone_unless_it_ignores_that(box):
    for deaf in (False, True):
        run = Running(box, "0")
        out = os.path.join(box.dir, f"report-{deaf}")
        limit = "3s" if deaf else "600s"
        attach = OnTerminal(box, [box.systoll, "attach", "--json", "-o", out, "--for", limit, str(run.pid)], deaf)
        watches(attach, run.pid)
        attach.close()
        if deaf:
            assert run.ask("ppid 5") == "done" and is_hooked(run.pid), "nohup's command was ended"
        assert attach.ended() == 0
        with open(out) as f:
            doc = json.load(f)
        assert doc["exact"] and calls(doc, "getppid") == (5 if deaf else 0), doc["problems"]
        is_as_it_was(run.pid)
        is_fine(run)


@test()
def nohup_and_setsid_go_on(box):
    for starter in (["nohup"], ["setsid", "--wait"]):
        run = Running(box, "0")
        out = os.path.join(box.dir, "report")
        p = box.start([*starter, box.systoll, "attach", "--json", "-o", out, "--for", "3s", str(run.pid)], stdin=subprocess.DEVNULL, stdout=-1, stderr=-1)
        wait_for(lambda: is_hooked(run.pid) or p.poll() is not None)
        if starter == ["nohup"]:
            p.send_signal(signal.SIGHUP)
        assert run.ask("ppid 7") == "done" and is_hooked(run.pid), starter
        _, err = p.communicate(timeout=60)
        assert p.returncode == 0, (starter, text(err))
        with open(out) as f:
            assert calls(json.load(f), "getppid") == 7
        is_fine(run)


@test()
def a_comparison_in_a_running_process_ends_with_its_terminal(box):
    run = Running(box, "0")
    prove = OnTerminal(box, [box.systoll, "prove", "--live", str(run.pid), "--elide", "getpid", "--per", "getppid", "--for", "600s"])
    watches(prove, run.pid)
    prove.close()
    assert prove.ended() is not None, "prove goes on without a terminal"
    wait_for(lambda: not is_hooked(run.pid), "the process is still watched", SOON)
    is_as_it_was(run.pid)
    is_fine(run)


@test()
def tools_for_agents_end_with_their_input(box):
    p = box.start([box.systoll, "mcp"], stdin=-1, stdout=-1, stderr=-1)
    p.stdin.write(b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
    p.stdin.flush()
    assert b'"id":1' in p.stdout.readline()
    p.stdin.close()
    assert p.wait(SOON) == 0
