"""Real programs have the same output and the same end watched from inside as unwatched."""
import os
import re
from xml.etree import ElementTree

from harness import Skip, test, text, tool


def ends(box, argv, watched, limit):
    r = box.run(box.watch(argv, "-q", "-o", os.path.join(box.dir, "report")) if watched else argv, limit=limit)
    return r.returncode, r.stdout, r.stderr


def same(box, argv, expect=0, limit=300):
    plain, watched = (ends(box, argv, watched, limit) for watched in (False, True))
    assert plain == watched, f"unwatched {plain}, watched {watched}"
    assert expect is None or plain[0] == expect, plain
    box.no_leftovers(5)
    return plain


def script(name, text_of, expect=0, needs=(), users=("root", "nobody"), long=False):
    """Registers a shell script; `{0}` and so on are the paths of the tools that it needs."""

    @test(name, users=users, backends=("inproc",), long=long)
    def check(box):
        paths = [tool(t) for t in needs]
        same(box, [tool("bash"), "-c", text_of.format(*paths, d=box.dir)], expect)


script("compressors_in_a_pipeline", "seq 60000 | {0} -T2 -c | {0} -dc | gzip | gunzip | md5sum; tar cf - -C /usr/include linux | gzip | gunzip | tar tf - | sort | md5sum", needs=["xz"])
script("database", "rm -f x.db; {0} x.db \"create table t(a,b); with recursive c(x) as (select 1 union all select x+1 from c where x<20000) insert into t select x, hex(x) from c; select count(*), sum(a), max(b) from t;\"", needs=["sqlite3"])
script("git_makes_clones_and_tells", "rm -rf a b; export GIT_AUTHOR_DATE=@0 GIT_COMMITTER_DATE=@0; g='{0} -c user.name=n -c user.email=e -c init.defaultBranch=m'; $g init -q a; cd a; for i in 1 2 3 4 5; do seq $i > f$i; $g add .; $g commit -qm c$i; done; cd ..; $g clone -q a b; $g -C b log --stat --oneline; $g -C b fsck 2>&1", needs=["git"])
script("rsync_copies", "rm -rf to; {0} -a /usr/include/linux/ to; ls to | wc -l; {0} -an --stats /usr/include/linux/ to | grep -c transferred", needs=["rsync"])
script("make_in_parallel", "rm -rf m; mkdir m; cd m; for i in 1 2 3 4 5 6; do echo 'int f'$i'(int x) {{ return x * '$i'; }}' > f$i.c; done; printf 'all: $(patsubst %%.c,%%.o,$(wildcard *.c))\\n\\tar rc l.a $^\\n%%.o: %%.c\\n\\tgcc -O1 -c $< -o $@\\n' > Makefile; {0} -j4 -s && nm l.a | grep -c ' T '", needs=["make"])
script("openmp", "printf '#include <stdio.h>\\nint main(void) {{ long s = 0; for (int r = 0; r < 50; r++) {{\\n#pragma omp parallel for reduction(+:s)\\nfor (int i = 0; i < 100000; i++) s += i; }} return printf(\"%%ld\\\\n\", s) < 0; }}' > o.c; gcc -O2 -fopenmp -o o o.c && ./o")
script("perl", "{0} -MPOSIX -e 'for (1..20) {{ my $p = fork(); if (!$p) {{ POSIX::_exit($_) }} waitpid($p, 0); print $? >> 8, \" \" }} print strftime(\"%Y\", gmtime(0)), \"\\n\"; print `echo hi`; $SIG{{ALRM}} = sub {{ print \"rang\\n\"; exit 3 }}; alarm 1; sleep 20'", needs=["perl"], expect=3)
script("ruby", "{0} -e 'require \"open3\"; 5.times {{ |i| o, s = Open3.capture2(\"cat\", stdin_data: \"x#{{i}}\"); puts o, s.exitstatus }}; r, w = IO.pipe; fork {{ w.puts \"kid\"; exit! 3 }}; Process.wait; puts $?.exitstatus, r.gets; trap(\"USR1\") {{ puts \"told\" }}; Process.kill(\"USR1\", $$); sleep 0.1; puts (1..20).map {{ |i| Thread.new {{ i * i }} }}.sum(&:value)'", needs=["ruby"])
script("bash_job_control_at_a_terminal", "{0} -qec \"bash -c 'set -m; sleep 0.2 & jobs; fg; (exit 4) & wait \\$!; echo \\$?'\" /dev/null", needs=["script"])
script("node_serves_itself", "{0} -e 'const http = require(\"http\"); let n = 0; const s = http.createServer((q, r) => r.end(\"ok\" + q.url)).listen(0, () => {{ const port = s.address().port; const go = () => http.get({{port, path: \"/\" + n, agent: false}}, r => {{ let d = \"\"; r.on(\"data\", c => d += c); r.on(\"end\", () => {{ if (++n < 100) go(); else {{ console.log(d, n); s.close() }} }}) }}); go() }})'", needs=["node"], users=("root",))
script("node_workers", "{0} -e 'const {{Worker}} = require(\"worker_threads\"); let done = 0; for (let i = 0; i < 4; i++) new Worker(\"require(\\\"worker_threads\\\").parentPort.postMessage(require(\\\"fs\\\").readdirSync(\\\"/usr/include\\\").length)\", {{eval: true}}).on(\"message\", m => {{ if (++done == 4) console.log(m) }})'", needs=["node"], long=True)
script("go_builds_and_runs", "export HOME={d} GOCACHE={d}/cache GOFLAGS=-mod=mod; mkdir -p g; cd g; printf 'module m\\n' > go.mod; printf 'package main\\nimport (\"fmt\"; \"os/exec\")\\nfunc main() {{ o, _ := exec.Command(\"echo\", \"hi\").Output(); fmt.Print(string(o)) }}\\n' > main.go; {0} build -o m . && ./m && {0} vet . && echo vetted", needs=["go"], users=("root",), long=True)
script("redis_under_load", "{0} --port 0 --unixsocket {d}/s --save '' --dir {d} >/dev/null & until [ -S s ]; do sleep 0.05; done; {1} -s {d}/s -n 2000 -c 8 -P 4 -t ping,set,lpush -q >/dev/null; {2} -s {d}/s set k v; {2} -s {d}/s get k; {2} -s {d}/s bgsave >/dev/null; {2} -s {d}/s shutdown nosave; wait; echo $?", needs=["redis-server", "redis-benchmark", "redis-cli"], users=("root",))
script("nginx_under_load", "mkdir -p w; printf 'daemon off; worker_processes 2; pid {d}/pid; error_log /dev/null; events {{ worker_connections 64; }} http {{ access_log off; client_body_temp_path {d}/b; proxy_temp_path {d}/p; fastcgi_temp_path {d}/f; uwsgi_temp_path {d}/u; scgi_temp_path {d}/c; server {{ listen unix:{d}/n; listen 127.0.0.1:18766; root /usr/include/linux; }} }}' > conf; {0} -c {d}/conf & pid=$!; until {1} -n 1 http://127.0.0.1:18766/if.h >/dev/null 2>&1; do sleep 0.05; done; {1} -n 500 -c 8 http://127.0.0.1:18766/if.h 2>/dev/null | grep -E '^(Complete|Failed)'; kill -QUIT $pid; wait $pid; echo $?", needs=["nginx", "ab"], users=("root",))

POOLS = """
import multiprocessing as m
def f(x): return x * x
if __name__ == '__main__':
    for how in ('fork', 'spawn', 'forkserver'):
        with m.get_context(how).Pool(3) as p: print(how, sum(p.map(f, range(1000))))
"""


@test(backends=("inproc",))
def python_pools(box):
    same(box, ["/usr/bin/python3", box.file("pools.py", POOLS)])


JAVA = """
import java.util.concurrent.*;
public class Hello { public static void main(String[] a) throws Exception { var e = Executors.newFixedThreadPool(8);
  var l = new java.util.ArrayList<Future<Long>>(); for (int i = 0; i < 64; i++) l.add(e.submit(() -> java.nio.file.Files.lines(java.nio.file.Path.of("/etc/passwd")).count()));
  long s = 0; for (var f : l) s += f.get(); e.shutdown(); var p = new ProcessBuilder("echo", "x").start();
  System.out.println(s > 0); System.out.println(new String(p.getInputStream().readAllBytes())); System.exit(4); } }
"""


@test(backends=("inproc",), long=True)
def java_compiles_and_runs(box):
    same(box, [tool("java"), box.file("Hello.java", JAVA)], expect=4)


# Tests between virtual machines and their hosts, which wait for ever if the host does not answer.
LEFT_OUT = ["-i", "*VSOCK*"]


def of_cpython(box, names, limit):
    """Runs CPython's own tests: those that pass unwatched must pass watched."""
    python = os.path.realpath("/usr/bin/python3")
    version = os.path.basename(python)
    if not os.path.exists(f"/usr/lib/{version}/test/test_signal.py"):
        raise Skip(f"lib{version}-testsuite is not installed")
    passed = []
    for watched in (False, True):
        # The tests' output, also from threads, may break the lines that tell results, so read them from a file.
        told = os.path.join(box.dir, "told.xml")
        code, _, _ = ends(box, [python, "-m", "test", "--junit-xml", told, *LEFT_OUT, *names], watched, limit)
        cases = ElementTree.parse(told).iter("testcase")
        passed.append((code, {case.get("name") for case in cases if case.get("result") == "completed" and not len(case)}))
        os.unlink(told)
    (plain_code, plain), (code, ours) = passed
    if plain_code:
        raise Skip(f"unwatched they end with {plain_code} here")
    assert plain, "no test was run"
    missing = plain - ours
    assert code == plain_code and not missing, f"{code}; not passed: {sorted(missing)[:10]}"


@test(backends=("inproc",))
def some_of_cpythons_tests(box):
    of_cpython(box, ["test_fcntl", "test_pty", "test_popen", "test_mmap", "test_select"], 300)


MANY = """test_signal test_posix test_fork1 test_subprocess test_threading test_os test_multiprocessing_fork test_asyncio test_socket
test_faulthandler test_time test_wait3 test_wait4 test_ssl test_thread test_io test_threadsignals test_eintr test_selectors
test_epoll test_poll test_resource test_openpty test_ctypes test_mailbox test_tempfile test_shutil
test_concurrent_futures""".split()
for module in MANY:

    @test("cpython_" + module, backends=("inproc",), long=True)
    def check(box, module=module):
        of_cpython(box, [module], 900)


def go_tests(box, package):
    """Runs the tests of a package of Go's library both ways, built unwatched."""
    go, name = tool("go"), package.replace("/", "_")
    env = dict(box.env, GOCACHE=os.path.join(box.shared.root, "go-cache"), HOME=box.dir)
    binary = os.path.join(box.dir, name + ".test")
    r = box.run([go, "test", "-c", "-o", binary, package], env=env, limit=900)
    if r.returncode:
        raise Skip("the tests don't build: " + text(r.stderr)[-200:])
    source = os.path.join(text(box.run([go, "env", "GOROOT"], env=env).stdout).strip(), "src", package)
    passed = []
    for watched in (False, True):
        inner = [binary, "-test.short", "-test.v"]
        argv = ["/bin/sh", "-c", 'cd "$1" && shift && exec "$@"', "sh", source, *(box.watch(inner, "-q", "-o", "/dev/null") if watched else inner)]
        r = box.run(argv, env=dict(env, GOROOT=source[: source.index("/src/")]), limit=900)
        passed.append(set(re.findall(r"^\s*--- PASS: (\S+)", text(r.stdout), re.M)))
    assert passed[0] and not passed[0] - passed[1], f"not passed watched: {sorted(passed[0] - passed[1])[:10]}"


for package in ("os/signal", "os/exec", "syscall", "time", "os", "runtime"):

    @test("go_" + package.replace("/", "_"), users=("root",), backends=("inproc",), long=True)
    def check_go(box, package=package):
        go_tests(box, package)
