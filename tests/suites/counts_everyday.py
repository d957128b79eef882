"""Of everyday commands, each call is counted as often, and fails as often, as `strace -f -c` says of the same machine.

The table of `systoll run -c` is compared, which is counted without names and stacks. Commands vary a little by themselves, so
any of a few runs of either may be the one that agrees, as in `counts`, which holds reports with names to the same.
"""
import os

from harness import test, tool
from suites.counts import TRIES, differences, printed, strace_table

# A call whose result depends on which of two processes ends first.
WAITS = {"wait4"}


def files(box):
    """Makes a folder of files to work on. Returns its path."""
    folder = os.path.join(box.dir, "files")
    os.makedirs(os.path.join(folder, "below"), exist_ok=True)
    for n in range(20):
        for name in (f"{n}.txt", f"below/{n}.c"):
            with open(os.path.join(folder, name), "w") as f:
                f.writelines(f"line {(7 * k + n) % 100} of {name}\n" for k in range(100))
    for path, _, names in os.walk(folder):
        os.chmod(path, 0o777)
        for name in names:
            os.chmod(os.path.join(path, name), 0o666)
    return folder


def command(name, *argv, chance=frozenset()):
    """Registers a command; FILES in its words is a folder of files."""

    @test(name, users=("nobody",), backends=("ptrace",))
    def check(box):
        words = [tool(argv[0]), *(word.replace("FILES", files(box)) for word in argv[1:])]
        ours, theirs, best = [], [], None
        for _ in range(TRIES):
            for tables, table in ((ours, printed(box, words)), (theirs, strace_table(box, words))):
                tables.append({k: v for k, v in table.items() if k not in chance})
            best = min((differences(a, b) for a in ours for b in theirs), key=len)
            if not best:
                return
        raise AssertionError("; ".join(best))


command("true", "true")
command("echo", "echo", "a", "b")
command("ls", "ls", "-la", "/usr/bin")
command("ls_missing", "ls", "/nonexistent", "FILES")
command("cat", "cat", "FILES/1.txt", "FILES/2.txt", "FILES/none")
command("cp", "cp", "-r", "FILES/below", "FILES/copy")
command("mv", "mv", "FILES/1.txt", "FILES/moved")
command("rm", "rm", "-rf", "FILES/below")
command("ln", "ln", "-sf", "1.txt", "FILES/link")
command("mkdir", "mkdir", "-p", "FILES/a/b/c")
command("stat", "stat", "FILES/1.txt")
command("du", "du", "-s", "FILES")
command("df", "df", "FILES")
command("wc", "wc", "FILES/1.txt", "FILES/2.txt")
command("sort", "sort", "FILES/1.txt")
command("cut", "cut", "-d", " ", "-f", "2", "FILES/1.txt")
command("tail", "tail", "-n", "3", "FILES/1.txt")
command("tac", "tac", "FILES/1.txt")
command("dd", "dd", "if=/dev/zero", "of=/dev/null", "bs=512", "count=200")
command("sha256sum", "sha256sum", "FILES/1.txt", "FILES/2.txt")
command("od", "od", "-c", "FILES/1.txt")
command("id", "id")
command("date", "date")
command("env", "env", "A=1", "true")
command("timeout", "timeout", "5", "true", chance=WAITS)
command("find", "find", "FILES", "-name", "*.c")
command("find_exec", "find", "FILES/below", "-name", "1*", "-exec", "true", "{}", ";")
command("grep", "grep", "-r", "line 7", "FILES")
command("sed", "sed", "-i", "s/line/row/", "FILES/1.txt")
command("awk", "mawk", "{ n += $2 } END { print n }", "FILES/1.txt")
command("tar", "tar", "cf", "FILES/../all.tar", "FILES")
command("xargs", "xargs", "-n", "100", "-a", "FILES/1.txt", "true")
command("dash", "dash", "-c", "for i in 1 2 3; do /bin/echo $i; done | cat; [ -e /nonexistent ]", chance=WAITS)
command("bash", "bash", "-c", "x=$(echo a); for f in FILES/*; do [ -r $f ] && read line <$f; done; exit 3")
command("zsh", "zsh", "-f", "-c", "for f in FILES/*(.); do read line <$f; done")
command("lua", "lua5.4", "-e", "for l in io.lines('FILES/1.txt') do io.write(#l) end io.open('/nonexistent')")
command("php", "php", "-n", "-r", "foreach (glob('FILES/*.txt') as $f) echo strlen(file_get_contents($f));")
command("make", "make", "-s", "-f", "/dev/null", "-p", "-q", chance=WAITS)
command("nm", "nm", "-D", "/usr/bin/true")
command("sqlite3", "sqlite3", "-batch", ":memory:", "create table t(a); insert into t values(1),(2); select sum(a) from t;")
