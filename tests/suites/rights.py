"""Processes that change their rights get memory of their own, and stay counted exactly."""
import os
import shutil
import subprocess

from harness import Skip, test, tool
from suites.namespaces_and_tracers import same
from suites.counts import counted


def exact(doc):
    assert doc["exact"], doc["problems"]
    return counted(doc)


def calls_of(doc, program):
    """Returns the calls of the processes that ran a program, largest number first."""
    numbers = [i + 1 for i, p in enumerate(doc["processes"]) if os.path.basename(p["exe"]) == program]
    return sorted((sum(r["calls"] for r in doc["rows"] if r["process"] == n) for n in numbers), reverse=True)


def drops(name, threads, *how, users=("root",)):
    @test(name, users=users, backends=("inproc",))
    def check(box):
        program = box.build("drops_rights.c")
        doc, r = box.report([program, str(threads), *how])
        assert r.returncode == 0, r
        made = sum(map(int, r.stdout.split()))
        calls = exact(doc)
        assert calls["getppid"] == (made, 0), (calls["getppid"], made)
        # The last worker becomes another program, which may not open the files that systoll has open.
        assert calls_of(doc, "true")[0] > 10, doc["processes"]
        box.no_leftovers()


drops("a_worker_gives_root_up", 0, "user")
drops("by_raw_calls", 0, "raw")
drops("with_threads", 4, "user")
drops("in_turns", 2, "user", "namespace", "root")
drops("a_call_that_is_refused", 0, "fails", users=("nobody",))


@test(users=("root",), backends=("inproc",))
def workers_share_no_memory_with_root(box):
    """The worker maps another file as its image than its maker does."""
    script = (
        "import os, sys\n"
        "def image(): return [l.split()[4] for l in open('/proc/self/maps') if 'memfd:systoll' in l and ' rw' in l]\n"
        "r, w = os.pipe()\n"
        "if os.fork() == 0:\n"
        "    before = image()\n"
        "    os.setgid(65534); os.setuid(65534)\n"
        "    os.write(w, repr((before, image())).encode()); os._exit(0)\n"
        "os.wait(); before, after = eval(os.read(r, 999)); own = image()\n"
        "print(len(own), before == own, after == own, len(after))\n"
    )
    doc, r = box.report([tool("python3"), "-c", script])
    assert r.stdout == b"1 True False 1\n", r
    exact(doc)


@test(users=("root",), backends=("inproc",))
def nginx_workers(box):
    """A real server answers requests from workers of another user."""
    nginx, ab = tool("nginx"), tool("ab")
    os.chmod(box.dir, 0o755)
    box.file("index.html", "hello\n")
    port = 18000 + os.getpid() % 2000
    conf = box.file(
        "nginx.conf",
        f"user nobody nogroup; daemon off; worker_processes 2; pid {box.dir}/pid; error_log {box.dir}/error.log;\n"
        f"events {{}} http {{ access_log off; client_body_temp_path {box.dir}/b; proxy_temp_path {box.dir}/p;"
        f" fastcgi_temp_path {box.dir}/f; uwsgi_temp_path {box.dir}/u; scgi_temp_path {box.dir}/s;"
        f" server {{ listen 127.0.0.1:{port}; root {box.dir}; }} }}\n",
    )
    script = (
        f"{nginx} -c {conf} & n=$!\n"
        f"i=0; until {ab} -q -n 1 http://127.0.0.1:{port}/index.html >/dev/null 2>&1; do i=$((i+1)); [ $i -lt 100 ] || exit 9; sleep 0.1; done\n"
        f"{ab} -q -n 500 -c 4 http://127.0.0.1:{port}/index.html | grep -E 'Complete|Failed'\n"
        "kill -QUIT $n; wait $n\n"
    )
    doc, r = box.report(["/bin/sh", "-c", script])
    assert b"Complete requests:      500" in r.stdout and r.returncode == 0, r
    assert doc["exact"], doc["problems"]
    assert calls_of(doc, "nginx")[0] > 500, doc["processes"]


@test(backends=("inproc",))
def a_library_that_a_fork_child_loads(box):
    """The library is hooked in the child's memory, not in its maker's."""
    source = box.file("own.c", "void own(int n) { while (n--) { long r; __asm__ volatile(\"mov $110, %%eax\\n syscall\\n cmp $-4095, %%rax\" : \"=a\"(r) :: \"rcx\", \"r11\", \"memory\"); } }\n")
    library = os.path.join(box.dir, "libown.so")
    subprocess.run([tool("gcc"), "-O1", "-shared", "-fPIC", "-o", library, source], check=True)
    script = (
        "import ctypes, os\n"
        "for i in range(3):\n"
        f"    if os.fork() == 0: ctypes.CDLL({library!r}).own(100); os._exit(0)\n"
        "    os.wait()\n"
    )
    doc, r = box.report([tool("python3"), "-c", script])
    assert r.returncode == 0, r
    calls = exact(doc)
    assert calls["getppid"][0] >= 300, calls.get("getppid")


@test(users=("root",), backends=("inproc",))
def tools_that_start_others_without_root(box):
    for argv in (
        ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"],
        ["setpriv", "--bounding-set=-all", "--inh-caps=-all"],
        ["unshare", "-U", "-r"],
        ["unshare", "-U"],
        ["gosu", "nobody"],
        ["chroot", "/"],
    ):
        if not shutil.which(argv[0]):
            if argv[0] == "gosu":
                continue
            raise Skip(f"{argv[0]} is not installed")
        doc, _ = same(box, [tool(argv[0]), *argv[1:], "/bin/sh", "-c", "id -u; /bin/true; exit 3"])
        exact(doc)


@test(users=("nobody",), backends=("inproc",))
def a_namespace_of_ones_own(box):
    if box.run([tool("unshare"), "-U", "-r", "/bin/true"]).returncode:
        raise Skip("no user namespaces for users here")
    doc, _ = same(box, [tool("unshare"), "-U", "-r", "/bin/sh", "-c", "id -u; /bin/true; exit 3"])
    exact(doc)


@test(users=("root",), backends=("inproc",))
def workers_forked_after_systoll_was_killed(box):
    """No launcher is there to ask: the workers take a private copy of the memory that they count in."""
    script = (
        "import os, sys\n"
        "def flags(): return {l.split()[1] for l in open('/proc/self/maps') if l.startswith('500000000000-')}\n"
        "print('ready', flush=True); sys.stdin.read()\n"
        "if os.fork() == 0:\n"
        "    os.setgid(65534); os.setuid(65534); print(flags(), flush=True); os._exit(0)\n"
        "os.wait(); print(flags(), flush=True)\n"
    )
    p = box.start(box.watch([tool("python3"), "-c", script]), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert p.stdout.readline() == b"ready\n"
    p.kill()
    p.wait()
    p.stdin.close()
    assert p.stdout.read() == b"{'rw-p'}\n{'rw-s'}\n"


@test(backends=("inproc",))
def ids_set_to_their_present_value(box):
    """Each job of GNU make sets its users and groups to their present values, which changes nothing."""
    box.file("Makefile", "all: one two\none two:\n\t@/bin/true $@\n")
    doc, r = box.report([tool("make"), "-s", "-j2"])
    assert r.returncode == 0, r
    calls = exact(doc)
    # If make starts jobs by fork instead, it makes no such call.
    assert calls["setresuid"][0] in (0, 2), calls["setresuid"]
    trues = calls_of(doc, "true")
    assert len(trues) == 2 and min(trues) > 10, doc["processes"]


@test(backends=("inproc",))
def code_that_must_not_be_written_by_its_own_program(box):
    """A thread that may not write its jumps comes back, and they are written from outside."""
    program = box.build("mdwe.c")
    doc, r = box.report([program, tool("ls"), box.dir])
    if r.returncode == 77:
        raise Skip("PR_SET_MDWE is of Linux 6.3")
    assert r.returncode == 0, r
    exact(doc)
    plain, _ = box.report([tool("env"), tool("ls"), box.dir])
    exact(plain)
    assert calls_of(doc, "ls")[0] == calls_of(plain, "ls")[0] > 20, (calls_of(doc, "ls"), calls_of(plain, "ls"))


@test(backends=("inproc",))
def a_program_that_only_probes_filters_is_not_confined(box):
    """libseccomp asks the kernel about filters whenever it is loaded (man, systemd's tools): what such a program forks
    and becomes is watched."""
    program = box.build("probes_filters.c")
    doc, r = box.report([program, "none"])
    assert r.returncode == 0 and exact(doc)["getppid"] == (150, 0), doc["problems"]
    assert len(calls_of(doc, "ls")) == 3 and min(calls_of(doc, "ls")) > 10, doc["processes"]
    same(box, [program, "none"])


@test(backends=("inproc",))
def a_program_started_under_a_filter_is_reported(box):
    """Such a program can't be watched, whoever installed the filter and however many processes there are beside it, and
    nothing is exact."""
    program = box.build("probes_filters.c")
    for who in ("child", "first"):
        for argv in ([program, who], ["sh", "-c", f"{program} {who}; true"]):
            doc, r = box.report(argv)
            said = [p for p in doc["problems"] if "ran unwatched" in p or "what it ran or mapped then is not counted" in p]
            assert r.returncode == 0 and not doc["exact"] and said, (argv, doc["exact"], doc["problems"])
            # The children's earlier calls are counted; a shell asks for its parent, too.
            its_own = [i + 1 for i, p in enumerate(doc["processes"]) if p["exe"] == program]
            made = sum(r["calls"] for r in doc["rows"] if r["syscall"] == "getppid" and r["process"] in its_own)
            assert made == 150, (argv, made)
