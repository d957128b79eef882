"""Programs whose calls depend on timing are counted like by the kernel in the same execution.

bpftrace counts, for every process below systoll, each call that was entered and returned, per
number; systoll's own process is known by its id, its helpers by its name. A thread that is killed
inside a call leaves it in the kernel, but never comes back to tell a tracer: such a call may be
counted by the kernel alone, and is listed by systoll as not returned. Works where tracepoints may be
used (root, no lockdown=confidentiality); 'integrity' kernels that refuse tracefs make it skip.
"""
import json
import os
import re
import signal
import subprocess

from harness import BOTH, Skip, test, tool
from suites.attach import free_port, is_hooked, server, until

# Calls that the in-process backend makes the program's threads do for systoll: the kernel sees them, and they are left
# out here. They map memory at an exec, ask and wait, say who asks, write over code, and set the processors that a
# thread may run on.
OF_OUR_OWN = {"open", "close", "mmap", "mremap", "munmap", "madvise", "futex", "getpid", "gettid", "clock_gettime",
              "mprotect", "rseq", "sched_setaffinity", "sched_yield", "memfd_create", "socketpair", "recvmsg"}

# Commands that list the kernel's tracepoints, which need not be mounted; nothing changes for others.
WITH_TRACEPOINTS = ["unshare", "--mount", "sh", "-c", """
[ -e /sys/kernel/tracing/events ] || mount -t tracefs tracefs /sys/kernel/tracing
exec "$@"
""", "sh"]

SCRIPT = """
BEGIN { @in_tree[cpid] = 1; }
tracepoint:sched:sched_process_fork /@in_tree[args->parent_pid]/ { @in_tree[args->child_pid] = 1; }
tracepoint:raw_syscalls:sys_enter /@in_tree[tid]/ {
  // Calls by which a thread writes a window: readlink, getrusage and process_vm_readv that are given our memory,
  // and rt_sigprocmask that can change nothing. An fstat into our memory tells it a file that it has mapped, an ioctl
  // what its heap is.
  // That memory is an image's (crates/hooks/src/layout.rs).
  $ours = 0;
  $image = (uint64)0x500000000000; $behind = $image + (uint64)0x410000000;
  if (args->id == 14 && args->args[0] > 2 && args->args[2] == 0) { $ours = 1; }
  if (args->id == 89 && args->args[0] >= $image && args->args[0] < $behind) { $ours = INPROC; }
  if (args->id == 16 && args->args[2] >= $image && args->args[2] < $behind) { $ours = INPROC; }
  if ((args->id == 5 || args->id == 98 || args->id == 310) && args->args[1] >= $image && args->args[1] < $behind) { $ours = INPROC; }
  // Interrupted, and no handler ran since: the kernel makes the call again, or goes on with restart_syscall (219).
  // Tracers see two calls (docs/reference/recording.md, "What counts as a call"), the program made one.
  if (INPROC && @again[tid] && (@again[tid] == args->id + 1 || args->id == 219)) { $ours = 1; }
  delete(@again[tid]);
  // Before an execve a thread looks by itself whether the file is there: access of the same name, for nothing but that.
  if (INPROC && args->id == 21 && args->args[1] == 0) { @looked[tid] = args->args[0] + 1; }
  if (args->id == 59) { if (@looked[tid] == args->args[0] + 1) { @own_looks = count(); } delete(@looked[tid]); }
  if ($ours) { @entered[tid] = 0; } else { @entered[tid] = args->id + 1; }
}
tracepoint:raw_syscalls:sys_exit /@in_tree[tid] && @entered[tid]/ {
  if (pid != cpid && strncmp(comm, "systoll", 7) != 0) { @calls[@entered[tid] - 1] = count(); }
  // ERESTARTSYS, ERESTARTNOINTR, ERESTARTNOHAND, ERESTART_RESTARTBLOCK (include/linux/errno.h)
  if (args->ret == -512 || args->ret == -513 || args->ret == -514 || args->ret == -516) { @again[tid] = @entered[tid]; }
  delete(@entered[tid]);
}
tracepoint:signal:signal_deliver /@again[tid] && args->sa_handler > 1/ { delete(@again[tid]); }
END { clear(@in_tree); clear(@entered); clear(@again); clear(@looked); }
"""


def usable_bpftrace(box):
    """Returns the command that starts bpftrace; skips the test where it may not use tracepoints."""
    bpftrace = [*WITH_TRACEPOINTS, tool("bpftrace")]
    with box.only_kernel_tracer():
        probe = subprocess.run([*bpftrace, "-e", "tracepoint:raw_syscalls:sys_exit { exit(); }"], capture_output=True, text=True, timeout=60)
    if probe.returncode:
        raise Skip("bpftrace may not use tracepoints here: " + probe.stderr.strip()[-120:])
    return bpftrace


def same_run(box, argv, limit=120, **kwargs):
    bpftrace = usable_bpftrace(box)
    out, counts, script = (os.path.join(box.dir, n) for n in ("report.json", "counts", "script.bt"))
    with open(script, "w") as f:
        f.write(SCRIPT.replace("INPROC", str(int(box.backend == "inproc"))))
    # bpftrace splits a command at its spaces, so the program goes into a script.
    runner = box.file("runner", "#!/bin/sh\nexec " + " ".join(map(quote, argv)) + "\n", 0o755)
    command = " ".join(box.watch([runner], "-q", "--json", "-o", out))
    env = dict(box.env, BPFTRACE_MAP_KEYS_MAX="65536")
    with box.only_kernel_tracer():
        r = box.run([*bpftrace, "-f", "json", "-o", counts, "-c", command, script], env=env, limit=limit, **kwargs)
    assert os.path.exists(out), (r.stdout + r.stderr).decode()[-400:]
    maps = maps_in(counts)
    kernel = {name_of(int(number)): n for number, n in maps.get("@calls", {}).items()}
    kernel["access"] = kernel.get("access", 0) - maps.get("@own_looks", 0)
    same_counts(box, out, kernel)


def maps_in(path):
    """Returns the maps that bpftrace has written at its end."""
    maps = {}
    with open(path) as f:
        for line in f:
            event = json.loads(line) if line.strip() else {}
            assert event.get("type") != "lost_events", "bpftrace lost events"
            maps.update(event.get("data", {}) if event.get("type") == "map" else {})
    return maps


def same_counts(box, out, kernel):
    """Asserts that the report at `out` has the kernel's counts by call, except for calls that have not returned."""
    assert kernel, "bpftrace counted nothing"
    with open(out) as f:
        doc = json.load(f)
    ours = {row["syscall"]: (row["calls"], row["unreturned"]) for row in doc["by_syscall"]}
    bad = []
    for name in sorted(set(ours) | set(kernel)):
        (calls, unreturned), seen = ours.get(name, (0, 0)), kernel.get(name, 0)
        ours_too = box.backend != "ptrace" and name in OF_OUR_OWN
        # systoll makes code writable and no longer so by two calls each time.
        odd = name == "mprotect" and ours_too and not unreturned and (seen - calls) % 2
        if odd or not calls <= seen <= (seen if ours_too else calls + unreturned):
            bad.append(f"{name}: {calls} (and {unreturned} not returned) not {seen}")
    assert not bad, f"{'; '.join(bad)}; {doc['problems']}"
    assert sum(calls for calls, _ in ours.values()) > 100


def quote(word):
    return "'" + word.replace("'", "'\\''") + "'"


NAMES = {}


def name_of(number):
    if not NAMES:
        with open("/usr/include/x86_64-linux-gnu/asm/unistd_64.h") as f:
            for m in re.finditer(r"#define __NR_(\w+) (\d+)", f.read()):
                NAMES[int(m[2])] = m[1]
    return NAMES.get(number, str(number))


def program(name, argv):
    @test(name, users=("root",), backends=BOTH)
    def check(box):
        same_run(box, argv(box))


program("mix", lambda b: [b.build("mix.c")])
program("go", lambda b: [b.build("readers.go")])
program("go_version", lambda b: [tool("go"), "version"])
program("node", lambda b: [tool("node"), "-e", "const fs = require('fs'); for (let i = 0; i < 50; i++) fs.readFileSync('/etc/passwd'); setTimeout(() => console.log('x'), 20)"])
program("java", lambda b: [tool("java"), "-version"])
NODE = """
const http = require('http'), fs = require('fs'), { Worker } = require('worker_threads');
const server = http.createServer((q, r) => fs.readFile('/etc/passwd', (e, d) => r.end(d))).listen(0, '127.0.0.1', () => {
  let left = 40;
  const ask = () => http.get({ port: server.address().port, agent: false }, r => r.resume().on('end', () => --left ? ask() : work()));
  ask();
});
function work() {
  server.close();
  let left = 3;
  for (let i = 0; i < 3; i++)
    new Worker("require('worker_threads').parentPort.postMessage(require('fs').readdirSync('/etc').length)", { eval: true })
      .on('message', n => { if (!--left) require('child_process').execFile('/bin/echo', [String(n > 0)], (e, o) => console.log(o)); });
}
"""
JAVA = """
import java.nio.file.*; import java.util.*; import java.util.concurrent.*;
public class Work { public static void main(String[] a) throws Exception {
  var e = Executors.newFixedThreadPool(4); var all = new ArrayList<Future<Long>>();
  for (int i = 0; i < 40; i++) all.add(e.submit(() -> Files.lines(Path.of("/etc/passwd")).count()));
  long s = 0; for (var f : all) s += f.get(); e.shutdown();
  System.out.println(s > 0 && new ProcessBuilder("/bin/echo", "x").start().waitFor() == 0); } }
"""
program("node_server_and_workers", lambda b: [tool("node"), b.file("serves.js", NODE)])
program("java_threads_and_child", lambda b: [tool("java"), b.file("Work.java", JAVA)])
program("python_threads", lambda b: ["/usr/bin/python3", "-c", "import threading, time\nt = [threading.Thread(target=time.sleep, args=(0.01,)) for _ in range(8)]\n[x.start() for x in t]\n[x.join() for x in t]"])
program("make_like", lambda b: ["/bin/sh", "-c", "for i in 1 2 3 4 5 6 7 8; do /bin/ls / >/dev/null & done; wait"])


@test(users=("root",), backends=BOTH)
def redis(box):
    server, cli, bench = tool("redis-server"), tool("redis-cli"), tool("redis-benchmark")
    sock = os.path.join(box.dir, "redis.sock")
    script = box.file("serve", f"""#!/bin/sh
{server} --port 0 --unixsocket {sock} --save '' --daemonize no --dir {box.dir} >/dev/null &
until [ -S {sock} ]; do sleep 0.05; done
{bench} -s {sock} -n 500 -c 4 -t ping,set -q >/dev/null
{cli} -s {sock} shutdown nosave
wait
""", 0o755)
    same_run(box, [script])


@test(users=("root",), backends=BOTH)
def nginx(box):
    server, ab = tool("nginx"), tool("ab")
    conf = box.file("nginx.conf", f"""daemon off; worker_processes 2; pid {box.dir}/pid; error_log /dev/null;
events {{ worker_connections 64; }}
http {{ access_log off; client_body_temp_path {box.dir}/b; proxy_temp_path {box.dir}/p; fastcgi_temp_path {box.dir}/f;
uwsgi_temp_path {box.dir}/u; scgi_temp_path {box.dir}/s; server {{ listen 127.0.0.1:18765; root /usr/include/linux; }} }}
""")
    script = box.file("serve", f"""#!/bin/sh
{server} -c {conf} &
pid=$!
until {ab} -n 1 http://127.0.0.1:18765/if.h >/dev/null 2>&1; do sleep 0.05; done
{ab} -n 200 -c 4 http://127.0.0.1:18765/if.h >/dev/null 2>&1
kill -QUIT $pid
wait
""", 0o755)
    same_run(box, [script])


# The span in which systoll counts begins when it lets the program's first thread go (PTRACE_DETACH, 17) and ends when
# it reads the registers of that thread, which it has stopped again (PTRACE_GETREGS, 12). Other spans are the pauses
# between attempts.
SPANS = """
tracepoint:syscalls:sys_enter_ptrace /args->pid == PID && args->request == 17/ { @span[0] = @span[0] + 1; @in_tree[0] = 1; }
tracepoint:syscalls:sys_enter_ptrace /args->pid == PID && args->request == 12/ { @in_tree[0] = 0; }
"""


def attached(box, pid, load):
    """Counts the calls of process `pid` by bpftrace and by systoll from the moment systoll has entered it until it leaves
    it, and asserts that both are the same. `load` makes the process work."""
    script = SCRIPT.replace("INPROC", "1").replace("@in_tree[tid]/", f"pid == {pid} && @in_tree[0]/").replace("@in_tree[tid] &&", f"pid == {pid} &&")
    script = script.replace("pid != cpid && strncmp(comm, \"systoll\", 7) != 0", "1").replace("@calls[", "@calls[@span[0], ")
    lines = [line for line in script.splitlines() if not line.startswith(("BEGIN", "tracepoint:sched"))]
    out, counts, script = (os.path.join(box.dir, n) for n in ("report.json", "counts", "script.bt"))
    with open(script, "w") as f:
        f.write(SPANS.replace("PID", str(pid)) + "\n".join(lines))
    bpftrace = usable_bpftrace(box)
    with box.only_kernel_tracer():
        kernel = subprocess.Popen([*bpftrace, "-f", "json", "-o", counts, script], stdin=-3, stdout=-3, stderr=-1)
        until(lambda: kernel.poll() is not None or os.path.exists(counts) and os.path.getsize(counts))
        assert kernel.poll() is None, kernel.communicate()[1]
        one = box.start([box.systoll, "attach", "-q", "--json", "-o", out, str(pid)], stdin=-3, stdout=-1, stderr=-1)
        until(lambda: is_hooked(pid) or one.poll() is not None)
        load()
        one.send_signal(signal.SIGINT)
        assert one.wait(60) == 0, one.communicate()
        kernel.send_signal(signal.SIGINT)
        kernel.communicate(timeout=60)
    spans = {}
    for key, n in maps_in(counts).get("@calls", {}).items():
        span, number = key.split(",")
        spans.setdefault(span, {})[name_of(int(number))] = n
    assert spans, "bpftrace counted nothing"
    same_counts(box, out, max(spans.values(), key=lambda span: sum(span.values())))


@test(users=("root",))
def attached_redis(box):
    port = free_port()
    argv = [tool("redis-server"), "--port", str(port), "--save", "", "--bind", "127.0.0.1", "--dir", box.dir]
    bench = [tool("redis-benchmark"), "-p", str(port), "-n", "20000", "-c", "20", "-t", "get,set", "-q"]
    with server(box, argv, port) as p:
        attached(box, p.pid, lambda: box.run(bench))
