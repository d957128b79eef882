"""The command's own processor time equals that of its unwatched twin by the kernel's account, or is unknown. The box is
kept busy meanwhile, and bounds are factors: the suite finds figures that can't be true."""
import contextlib
import os
import resource
import subprocess
import sys

from harness import Skip, test, tool

SMALL_MS = 1.5
THREADS = """
#include <pthread.h>
#include <unistd.h>
static void *work(void *p) {
    volatile long sum = 0;
    for (int i = 0; i < 300; i++) { for (int j = 0; j < 5000; j++) sum += j; getppid(); }
    return p;
}
int main(void) {
    pthread_t all[8];
    for (int i = 0; i < 8; i++) pthread_create(&all[i], 0, work, 0);
    for (int i = 0; i < 8; i++) pthread_join(all[i], 0);
    return 0;
}
"""
STORM = """
#include <sys/wait.h>
#include <unistd.h>
int main(void) {
    for (int i = 0; i < 100; i++) {
        if (!fork()) { volatile long sum = 0; for (int j = 0; j < 50000; j++) sum += j; _exit(0); }
        wait(0);
    }
    return 0;
}
"""


@contextlib.contextmanager
def busy():
    """Keeps one processor busy."""
    spinner = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        yield
    finally:
        spinner.kill()
        spinner.wait()


def compiled(box, name, source):
    program = os.path.join(box.dir, name)
    built = box.run([tool("gcc"), "-O1", "-pthread", "-o", program, box.file(f"{name}.c", source)])
    assert built.returncode == 0, built.stderr
    return [program]


def commands(box):
    lines = box.file("lines.txt", "".join(f"{i * 7919 % 10007} the quick brown fox {i}\n" for i in range(20000)))
    words = box.file("words.py", f"import json, re\nd = {{}}\nfor l in open('{lines}'):\n    d[l[:3]] = d.get(l[:3], 0) + 1\n")
    makefile = box.file("Makefile", f"all: a b c d e\na b c d e:\n\t@wc -l {lines} > /dev/null\n")
    page = box.file("page.1", ".TH X 1\n" + ".SH NAME\nx \\- y\n.PP\nSome words, and more of them, and so on.\n" * 300)
    hello = box.file("hello.c", "#include <stdio.h>\nint main(void) { puts(\"hello\"); return 0; }\n")
    hello_o = os.path.join(box.dir, "hello.o")
    wanted = [
        ("sh", ["-c", "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done"]),
        ("sh", ["-c", "for i in 1 2 3 4 5 6 7 8 9 10; do true; /bin/true; done"]),
        ("sh", ["-c", f"for i in 1 2 3 4 5; do cat {lines} | wc -l; done"]),
        ("find", ["/usr/include", "-name", "*.h"]), ("grep", ["-r", "include", "/usr/include/linux"]),
        ("gcc", ["-c", hello, "-o", hello_o]), ("python3", ["-c", "sum(range(500000))"]), ("python3", [words]),
        ("perl", ["-e", "my $s = 0; $s += $_ for 1..300000"]), ("sort", ["-n", lines]), ("ls", ["-l", "/usr/bin"]),
        ("dd", ["if=/dev/zero", "of=/dev/null", "bs=512", "count=20000"]), ("groff", ["-man", "-Tascii", page]),
        ("make", ["-s", "-f", makefile]), ("awk", ["{ c[$1 % 97]++ } END { for (k in c) print k, c[k] }", lines]),
    ]
    for name, args in wanted:
        with contextlib.suppress(Skip):
            yield [tool(name), *args]
    yield compiled(box, "threads", THREADS)
    yield compiled(box, "storm", STORM)


def spent_ms(box, argv):
    """Returns the processor time of an unwatched run and all that it waited for, in ms."""
    p = box.start(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(p.pid, 0)
    p.returncode = os.waitstatus_to_exitcode(status)
    return (usage.ru_utime + usage.ru_stime) * 1e3


def children_ms():
    """Returns the processor time of all processes that this one has waited for, by the kernel's account, in ms."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (usage.ru_utime + usage.ru_stime) * 1e3


def holds(doc, argv, twins, before_ms, all_ms):
    """Returns true if the told time is like that of unwatched twins. Fails if it can't be true: `all_ms` is what the
    watched run took with systoll itself."""
    own, toll = doc["own_cpu_ns"], doc["toll_ns"]
    shares = [f["share_of_cpu"] for f in doc["findings"] + doc["also"]]
    if own is None:
        assert any("own CPU time is unknown" in p for p in doc["problems"]), (argv, doc["problems"])
        assert all(share is None for share in shares), (argv, shares)
        return True
    assert toll is None or toll <= own, (argv, toll, own)
    assert own / 1e6 <= all_ms + SMALL_MS, f"{own / 1e6:.2f} ms told of its own, {all_ms:.2f} ms of all: {argv}"
    least, most = (min(twins) - before_ms) / 2 - SMALL_MS, max(twins) * 3 + SMALL_MS
    return least <= own / 1e6 <= most


@test()
def processor_time_equals_that_of_unwatched_twins_or_is_unknown(box):
    with busy():
        # A run as the box's user includes the time that it takes to become that user.
        before_ms = min(spent_ms(box, [tool("true")]) for _ in range(3)) if box.user == "nobody" else 0.0
        for argv in commands(box):
            spent_ms(box, argv)
            twins, seen = [], []
            for _ in range(20 if box.shared.long else 3):
                twins.append(spent_ms(box, argv))
                before = children_ms()
                doc, _ = box.report(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                all_ms = children_ms() - before
                twins.append(spent_ms(box, argv))
                seen.append((holds(doc, argv, twins, before_ms, all_ms), doc["own_cpu_ns"], all_ms))
            # The machine may take from one run of three what it takes from no twin: a page's compaction, a stolen tick.
            assert sum(held for held, _, _ in seen) * 3 >= len(seen) * 2, (argv, sorted(twins), seen)


MANY = """
i=0
while [ $i -lt 60 ]; do
  b=$(basename /usr/include/f$i.h); n=$(echo "$b" | cut -d. -f1); e=$(echo "$b" | sed 's/.*[.]//')
  d=$(date +%s); i=$(expr $i + 1)
done
"""


@test()
def processor_time_of_a_script_of_many_starts_lies_in_its_interval(box):
    """Watching takes as long as such a script does. Its part that no clock sees is measured on programs of the same
    kinds. Twins differ on a busy machine: one of three runs may lie beside its interval."""
    argv = [tool("bash"), "-c", MANY]
    with busy():
        held, seen = 0, []
        for _ in range(3):
            before = spent_ms(box, argv)
            doc, _ = box.report(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            twins = sorted([before, spent_ms(box, argv)])
            own, least, most = (doc[f"own_cpu{end}_ns"] / 1e6 for end in ("", "_least", "_most"))
            assert least <= own <= most and most - least < 0.6 * own, (least, own, most)
            # The bounds leave room for what a machine does by chance to one run of a program and not to another.
            held += least * 0.96 <= twins[1] and twins[0] * 0.96 <= most
            seen.append((twins, least, own, most))
        assert held >= 2, seen


@test(users=("root",), backends=("ptrace",))
def under_ptrace_never_all_of_it_where_it_is_not(box):
    """The cost of stops is an estimate: if it leaves less than the calls took, nothing is told."""
    argv = [tool("dd"), "if=/dev/zero", "of=/dev/null", "bs=512", "count=20000"]
    with busy():
        for _ in range(20 if box.shared.long else 3):
            doc, _ = box.report(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            own, toll = doc["own_cpu_ns"], doc["toll_ns"]
            assert own is None or toll <= own, (toll, own)
            assert own is not None or all(f["share_of_cpu"] is None for f in doc["findings"]), doc["findings"]


@test()
def sleeping_is_not_processor_time(box):
    """A short program that sleeps takes little processor time, and its sleep is not part of it."""
    doc, _ = box.report([tool("sh"), "-c", "sleep 0.3"])
    assert doc["own_cpu_ns"] is None or doc["own_cpu_ns"] < 100e6, doc["own_cpu_ns"]
    assert doc["own_cpu_ns"] is None or doc["toll_ns"] <= doc["own_cpu_ns"], doc
