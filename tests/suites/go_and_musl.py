"""Threads of Go and of musl, which register no rseq area, get one of systoll's: it separates waiting from working, and
gives way to an area of the program. Signals of Go's run-time are counted where its handlers end, with cgo by the C
library's return."""
from harness import BOTH, test
from suites.kernel_counts import program as counted_by_the_kernel
from suites.names_scripts import calls_at

# Number of tries: what went wrong in two runs of three goes wrong in one of these.
TIMES = 5

GO = ["mixed", "timers", "children", "http", "collector"]
MUSL = {"static": ["-static"], "dynamic": []}


def naps(box, flags):
    return box.build("naps.c", *flags, compiler="musl-gcc")


def told_apart(doc):
    """Asserts that nothing is missing, and that the time of all calls is known."""
    assert doc["exact"], doc["problems"]
    left_out = [p for p in doc["problems"] if "what they cost is in no figure" in p]
    unknown = [row["syscall"] for row in doc["by_syscall"] if row["max_ns"] and None in (row["toll_ns"], row["waited_ns"])]
    assert not left_out and not unknown, (left_out, unknown)


def row(doc, name):
    found = [r for r in doc["by_syscall"] if r["syscall"] == name]
    assert found, f"no {name} among {[r['syscall'] for r in doc['by_syscall']]}"
    return found[0]


def mostly_waits(doc, name):
    r = row(doc, name)
    # A runtime may make a handful of calls, of which those that wait longest have not returned at its end; and waking a
    # thread takes a virtual machine tens of microseconds.
    told = r["waited_ns"] + r["toll_ns"]
    few = told < 5_000_000 and (r["waited_ns"] > r["toll_ns"] or r["unreturned"] and told < 100_000)
    assert few or r["waited_ns"] > 0.95 * told, r


def go(name, **options):
    @test(f"go_{name}{options.get('name', '')}", backends=("inproc",))
    def check(box):
        argv = [box.build(f"go_{name}.go")]
        plain = box.run(argv)
        assert plain.returncode == 0, plain
        for _ in range(TIMES):
            doc, r = box.report(argv)
            # The goroutines' sums do not depend on their order.
            assert (r.returncode, r.stdout) == (0, plain.stdout), (r, plain)
            told_apart(doc)
            mostly_waits(doc, "futex")
        box.no_leftovers()


for name in GO:
    go(name)
    counted_by_the_kernel(f"go_{name}", lambda b, name=name: [b.build(f"go_{name}.go")])


def musl(name, flags):
    @test(f"musl_{name}", backends=("inproc",))
    def check(box):
        argv = [naps(box, flags)]
        for _ in range(TIMES):
            doc, r = box.report(argv)
            assert (r.returncode, r.stdout) == (0, b"1 1\n"), r
            told_apart(doc)
            mostly_waits(doc, "nanosleep")

    counted_by_the_kernel(f"musl_{name}", lambda b: [naps(b, flags)])


def own_areas(name, compiler, *flags):
    @test(f"own_areas_{name}", backends=("inproc",))
    def check(box):
        argv = [box.build("areas.c", *flags, compiler=compiler)]
        for how in ("first", "thread", "late", "fork", "exec", "all"):
            plain = box.run([*argv, how])
            assert plain.returncode == 0 and len(plain.stdout.splitlines()) > 20, plain
            doc, r = box.report([*argv, how])
            assert (r.returncode, r.stdout) == (0, plain.stdout), f"{how}: unwatched {plain}, watched {r}"
            assert doc["exact"], doc["problems"]
            # If an area does not tell waiting from working, all that its thread did is unknown.
            if "BY_NUMBER" in "".join(flags) and how != "exec":
                assert row(doc, "nanosleep")["waited_ns"] is None, row(doc, "nanosleep")
                doc, r = box.report([*argv, how, "usual"])
                told_apart(doc)
                mostly_waits(doc, "nanosleep")


for name, flags in MUSL.items():
    musl(name, flags)
    own_areas(f"{name}_musl", "musl-gcc", *flags)
    own_areas(f"{name}_musl_by_number", "musl-gcc", "-DBY_NUMBER", *flags)
own_areas("glibc", "gcc")
own_areas("static_glibc", "gcc", "-static")


@test(users=("nobody",), backends=BOTH)
def callers_of_goroutines(box):
    """Calls of goroutines that net/http starts are told with the line that called their creator, `http.Serve`."""
    served, writes = calls_at(box, [box.build("go_http.go")], 17, ("write",))
    # Each of 200 requests is read and answered by such a goroutine.
    assert served > 400 and writes > 400, (served, writes)
