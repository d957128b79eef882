"""The shells themselves complete systoll's words: a word is begun at a terminal, then Tab is typed."""
import os
import pty
import re
import select
import subprocess
import time

from harness import test, text, tool

# Text that is typed, and the line after Tab, without its quotes: commands, flags, causes, stories, system calls,
# programs.
TYPED = [
    ("systoll prov", "systoll prove"),
    ("systoll run --sav", "systoll run --save"),
    ("systoll explain tz-", "systoll explain tz-unset"),
    ("systoll cure tz-", "systoll cure tz-unset"),
    ("systoll prove --cure tz-", "systoll prove --cure tz-unset"),
    ("systoll demo localt", "systoll demo localtime"),
    ("systoll prove --elide gete", "systoll prove --elide geteuid"),
    ("systoll prove --live 1 --per clock_nanos", "systoll prove --live 1 --per clock_nanosleep"),
    ("systoll top --no-ch", "systoll top --no-children"),
    ("systoll run --by lib", "systoll run --by library"),
    ("systoll run -e newfst", "systoll run -e newfstatat"),
    ("systoll report -e %netw", "systoll report -e %network"),
    ("systoll run -- setpri", "systoll run -- setpriv"),
    ("systoll prove -- setpri", "systoll prove -- setpriv"),
    ("systoll top -- setpri", "systoll top -- setpriv"),
    # A fleet's folders come first, then a question. Without a folder there is no question, and a flag's value is no
    # folder.
    ("systoll fleet fol", "systoll fleet folder of runs"),
    ("systoll fleet 'folder of runs' sav", "systoll fleet folder of runs savings"),
    ("systoll fleet . --csv --service fol odd", "systoll fleet . --csv --service fol odd-hosts"),
    ("systoll fleet --service . hist", "systoll fleet --service . hist"),
    ("systoll fleet --show-sql hist", "systoll fleet --show-sql history"),
    ("systoll fleet . . sav", "systoll fleet . . savings"),
    ("systoll fleet . --cause tz-", "systoll fleet . --cause tz-unset"),
]
SHELLS = {
    "bash": (["--norc", "--noprofile", "-i"], "bind 'set enable-bracketed-paste off'; source {}"),
    "zsh": (["-f", "-i"], "PROMPT='> '; unsetopt zle_bracketed_paste 2>/dev/null; bindkey -e; autoload -U compinit; compinit -u -D; source {}"),
    "fish": (["--no-config", "-i"], "source {}"),
}
LIMIT = 60


class Terminal:
    """A shell at a terminal of 80 columns, driven by the test."""

    def __init__(self, argv, env, cwd):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(cwd)
            os.execvpe(argv[0], argv, env)
        self.seen = b""

    def type(self, keys):
        os.write(self.fd, keys.encode())

    def until(self, pattern):
        """Returns the match of a pattern in what was written since the last match."""
        end = time.monotonic() + LIMIT
        while time.monotonic() < end:
            plain = re.sub(rb"\x1b(\[[0-9;?>=]*[A-Za-z]|[()][A-Z0-9]|\][^\x07\x1b]*(\x07|\x1b\\)|[=>])", b"", self.seen)
            found = re.search(pattern, plain.replace(b"\r", b""))
            if found:
                self.seen = b""
                return text(found.group(1))
            if select.select([self.fd], [], [], 0.1)[0]:
                try:
                    self.seen += os.read(self.fd, 65536)
                except OSError:
                    break
        raise AssertionError(f"no {pattern} in {LIMIT} s: {text(self.seen)[-600:]!r}")

    def close(self):
        os.close(self.fd)
        os.kill(self.pid, 9)
        os.waitpid(self.pid, 0)


def completes(box, shell):
    program = tool(shell)
    flags, prepare = SHELLS[shell]
    script = os.path.join(box.dir, f"completions.{shell}")
    with open(script, "wb") as f:
        f.write(subprocess.run([box.systoll, "completions", shell], capture_output=True, check=True).stdout)
    env = dict(box.env, TERM="xterm", PS1="> ", PATH=os.path.dirname(box.systoll) + ":" + box.env["PATH"], XDG_CONFIG_HOME=box.dir)
    os.mkdir(os.path.join(box.dir, "folder of runs"))
    terminal = Terminal([program, *flags], env, box.dir)
    wrong = []
    try:
        terminal.type(prepare.format(script) + "; echo rea''dy\n")
        terminal.until(rb"\n(ready)\n")
        for n, (typed, wanted) in enumerate(TYPED):
            # The completed line becomes an argument of echo, which prints it: so the test sees what the shell made of
            # it.
            terminal.type(typed + "\t")
            time.sleep(0.3)
            terminal.type(f"\x01echo G{n}O: \n")
            # Zsh takes a folder's slash back if a space follows.
            said = terminal.until(rb"\nG%dO: (systoll[^\n]*)\n" % n).rstrip(" /")
            if said != wanted:
                wrong.append((typed, said, wanted))
    finally:
        terminal.close()
    assert not wrong, wrong


@test(users=("root",))
def in_bash(box):
    completes(box, "bash")


@test(users=("root",))
def in_zsh(box):
    completes(box, "zsh")


@test(users=("root",))
def in_fish(box):
    completes(box, "fish")
