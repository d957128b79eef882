"""What ended waits, and which thread, held against the kernel's own events of the same run.

bpftrace notes each time that a thread of the program is woken (sched_waking), by whom, and whether a timer or an interrupt
did it. A wait of systoll's is right if its class is that of the last waking before its end, or if it is for a processor or
the kernel and the thread did not sleep for most of it, by sched_switch; the thread is right if it is the one that the kernel names. Shares
are of the time waited.
"""
import collections
import json
import os

from harness import test
from suites.kernel_counts import quote, usable_bpftrace

# Least part of the waited time whose class is right, and whose waking thread is right where a watched one woke it.
LEAST_CLASS = 0.95
LEAST_THREAD = 0.90
# Part of the waited time, at most, that is not held against the kernel: no long call of its thread lies within it, because a
# busy box had the thread wait for a processor between the readings of the clock and the call.
MOST_UNMATCHED = 0.15
# Part of a wait for which its thread is ready to run or runs in the kernel, at least, if it is one for a processor or the
# kernel: the judge's MOSTLY_QUEUED.
LEAST_AWAKE = 0.5
KINDS = ("futex", "pipe", "pair", "tcp", "flock", "child", "sleep", "fsync", "epoll", "signal")

# The clocks are aligned to this, ns.
BIN_NS = 20_000
# Difference between systoll's begin, end or time of a call and the kernel's, ns, at most.
ALIKE_NS = 200_000
# Time from the start of the run's clock to the exec, ns, at most.
MOST_LEAD_NS = 30_000_000

SCRIPT = """
BEGIN { @in_tree[cpid] = 1; }
tracepoint:sched:sched_process_fork /@in_tree[args->parent_pid]/ { @in_tree[args->child_pid] = 1; }
tracepoint:sched:sched_process_exec /@in_tree[args->pid]/ { printf("exec %llu %d %d\\n", nsecs, pid, tid); }
tracepoint:raw_syscalls:sys_enter /@in_tree[tid]/ { @entered[tid] = nsecs; @slept[tid] = 0; }
tracepoint:raw_syscalls:sys_exit /@entered[tid]/ {
  if (nsecs - @entered[tid] > 900000) {
    printf("returned %llu %d %llu %llu\\n", nsecs, tid, nsecs - @entered[tid], @slept[tid]);
  }
}
// States below 256 are those of a thread that waits for something.
tracepoint:sched:sched_switch /@in_tree[args->prev_pid]/ {
  @asleep[args->prev_pid] = (args->prev_state & 255) == 0 ? 0 : nsecs;
}
tracepoint:sched:sched_waking /@asleep[args->pid]/ {
  @slept[args->pid] += nsecs - @asleep[args->pid];
  @asleep[args->pid] = 0;
}
tracepoint:timer:hrtimer_expire_entry { @timer[cpu] = 1; }
tracepoint:timer:hrtimer_expire_exit { @timer[cpu] = 0; }
tracepoint:irq:irq_handler_entry { @interrupt[cpu] = 1; }
tracepoint:irq:irq_handler_exit { @interrupt[cpu] = 0; }
// What interrupts leave to do: vectors 1 (timers) and 4 (disks). The network's (3) is done for the thread that sends.
tracepoint:irq:softirq_entry /args->vec == 1/ { @timer[cpu] = 1; }
tracepoint:irq:softirq_exit /args->vec == 1/ { @timer[cpu] = 0; }
tracepoint:irq:softirq_entry /args->vec == 4/ { @interrupt[cpu] = 1; }
tracepoint:irq:softirq_exit /args->vec == 4/ { @interrupt[cpu] = 0; }
tracepoint:sched:sched_waking /@in_tree[args->pid]/ {
  printf("woken %llu %d %d %d %d %d\\n", nsecs, args->pid, pid, tid, @timer[cpu], @interrupt[cpu]);
}
END { clear(@in_tree); clear(@entered); clear(@slept); clear(@asleep); clear(@timer); clear(@interrupt); }
"""

# Classes of systoll's that each kind of waker of the kernel's fits.
FITS = {
    "timer": {"clock"},
    "interrupt": {"disk", "peer", "kernel"},
    "kernel": {"disk", "peer", "kernel"},
    "same": {"thread", "signal"},
    "other": {"process", "signal"},
}

Waking = collections.namedtuple("Waking", "at woken pid tid timer interrupt")
# A long call: when it returned, its time, and for how much of it its thread slept; ns.
Call = collections.namedtuple("Call", "at ns slept")


def traced(box, argv):
    """Returns the report on a program, the time of its first exec, its threads' wakings, and returns of long calls, in the kernel's
    time."""
    bpftrace = usable_bpftrace(box)
    out, events, script = (os.path.join(box.dir, n) for n in ("report.json", "events", "script.bt"))
    with open(script, "w") as f:
        f.write(SCRIPT)
    runner = box.file("runner", "#!/bin/sh\nexec " + " ".join(map(quote, argv)) + "\n", 0o755)
    command = " ".join(box.watch([runner], "-q", "--waits", "--json", "-o", out))
    env = dict(box.env, BPFTRACE_PERF_RB_PAGES="512", BPFTRACE_MAP_KEYS_MAX="65536")
    with box.only_kernel_tracer():
        r = box.run([*bpftrace, "-o", events, "-c", command, script], env=env)
    assert os.path.exists(out), (r.stdout + r.stderr).decode()[-400:]
    with open(out) as f:
        report = json.load(f)
    execs, wakings, returns = [], collections.defaultdict(list), collections.defaultdict(list)
    with open(events) as f:
        for line in f:
            kind, *words = line.split() or [""]
            assert "ost" not in line or kind in ("exec", "woken", "returned", "Attaching"), line
            if kind == "exec":
                execs.append(tuple(map(int, words)))
            elif kind == "woken":
                waking = Waking(*map(int, words))
                wakings[waking.woken].append(waking)
            elif kind == "returned":
                at, tid, *times = map(int, words)
                returns[tid].append(Call(at, *times))
    main = report["processes"][0]["pid"]
    begun = min(at for at, pid, _ in execs if pid == main)
    return report, begun, wakings, returns


def kind_of(waking, wait, watched):
    if waking.timer:
        return "timer"
    if waking.interrupt:
        return "interrupt"
    if waking.pid not in watched:
        return "kernel"
    return "same" if waking.pid == wait["pid"] else "other"


def lead(waits, begun, returns):
    """Returns how long before the exec the run's clock starts, ns: each wait ends where a call returns that took as long."""
    bins = collections.Counter()
    for wait in waits:
        end = begun + wait["begin_ns"] + wait["ns"]
        bins.update((end - at) // BIN_NS for at in as_long(wait, returns) if abs(end - at) < MOST_LEAD_NS)
    return max(bins, key=lambda at: bins[at] + bins[at + 1], default=0) * BIN_NS


def as_long(wait, returns):
    """Returns when calls of the wait's thread returned that took as long."""
    return [call.at for call in returns[wait["tid"]] if abs(call.ns - wait["ns"]) < ALIKE_NS]


def same_call(wait, begun, returns):
    """Returns the wait's call, by the kernel: the longest of its thread within the wait, as systoll reads the clock before the
    call and after it; of no time if there is none."""
    begin = begun + wait["begin_ns"]
    end = begin + wait["ns"]
    calls = [call for call in returns[wait["tid"]] if call.at - call.ns > begin - ALIKE_NS and call.at < end + ALIKE_NS]
    return max(calls, key=lambda call: call.ns, default=Call(0, 0, 0))


def agreement(box, argv):
    """Returns the shares of waited time with the right class, and with the right thread, and what is wrong."""
    report, begun, wakings, returns = traced(box, argv)
    watched = {process["pid"] for process in report["processes"]}
    waits = [wait for wait in report["wall"]["each"] if wait["ns"] >= 1_000_000]
    right = collections.Counter()
    wrong = collections.Counter()
    row_of = lambda wait: report["rows"][wait["row"] - 1]["syscall"]
    # A call that does not return is ended by nothing.
    waits = [wait for wait in waits if row_of(wait) not in ("exit", "exit_group", "execve")]
    begun -= lead(waits, begun, returns)
    for wait in waits:
        call = same_call(wait, begun, returns)
        of_wait = [w for w in wakings[wait["tid"]] if call.at - call.ns - ALIKE_NS < w.at < call.at]
        row = row_of(wait)
        if not of_wait:
            right["unmatched"] += wait["ns"]
            continue
        last = of_wait[-1]
        kind = kind_of(last, wait, watched)
        right["all"] += wait["ns"]
        if wait["waits_for"] in FITS[kind]:
            right["class"] += wait["ns"]
        elif wait["waits_for"] == "processor" and call.ns - call.slept >= LEAST_AWAKE * call.ns:
            right["class"] += wait["ns"]
            right["awake"] += wait["ns"]
        else:
            wrong[f"{row} is {wait['waits_for']} and not {kind}, slept {call.slept / call.ns:.2f}"] += wait["ns"]
        if kind in ("same", "other"):
            right["woken"] += wait["ns"]
            by = wait["by"] and wait["by"]["tid"]
            if by == last.tid:
                right["thread"] += wait["ns"]
            else:
                wrong[f"{row} by {'another' if by else 'nobody known'} and not {last.tid}"] += wait["ns"]
    share = lambda part, of: right[part] / right[of] if right[of] else 1.0
    return share("class", "all"), share("thread", "woken"), right, wrong


def agrees(box, kind, *more):
    by_class, by_thread, right, wrong = agreement(box, [box.build("known_wakers.c"), kind, *more])
    said = f"class {by_class:.3f}, thread {by_thread:.3f} of {right['all'] / 1e6:.0f} ms, {right['unmatched'] / 1e6:.0f} ms unmatched, {right['awake'] / 1e6:.0f} ms awake; {dict(wrong)}"
    if os.environ.get("SYSTOLL_TEST_FIGURES"):
        with open(os.environ["SYSTOLL_TEST_FIGURES"], "a") as f:
            f.write(f"{kind} {' '.join(more)}: {said}\n")
    if kind == "fsync" and right["all"] + right["unmatched"] == 0:
        # A disk in memory makes nobody wait.
        return
    assert right["all"] > 0 and right["unmatched"] < MOST_UNMATCHED * right["all"], said
    assert by_class >= LEAST_CLASS and by_thread >= LEAST_THREAD, said


def register(kind):
    @test(f"{kind}_waits_are_the_kernels", users=("root",))
    def alone(box):
        agrees(box, kind)

    @test(f"{kind}_waits_are_the_kernels_beside_a_busy_thread", users=("root",))
    def beside(box):
        agrees(box, kind, "busy")


for kind in KINDS:
    register(kind)
