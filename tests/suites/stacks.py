"""Calls without a stack, and calls with memory that an observer must not read, are counted; the program ends as unwatched."""
from harness import BOTH, Skip, test

BUILDS = {
    "": (("-pthread",), "gcc"),
    "_static": (("-pthread", "-static"), "gcc"),
    "_musl": ((), "musl-gcc"),
    "_musl_static": (("-static",), "musl-gcc"),
}
# Programs whose number of calls is the same each time; in others signals come by the clock.
STEADY = ("odd", "detached", "unmapped", "given", "roaming", "taken", "children")


def calls(doc, name):
    return sum(row["calls"] for row in doc["by_syscall"] if row["syscall"] == name)


def stacks(suffix, flags, compiler):
    @test(f"calls_without_a_stack{suffix}", backends=("inproc",))
    def check(box):
        program = box.build("stacks.c", "-O1", *flags, compiler=compiler)
        for confined in ((), ("confined",)):
            for mode in (*STEADY, "handled"):
                argv = [program, mode, *confined]
                plain = box.run(argv)
                doc, r = box.report(argv)
                assert (plain.returncode, r.returncode) == (0, 0), (argv, plain, r)
                assert mode == "handled" or r.stdout == plain.stdout, (argv, plain.stdout, r)
                assert doc["exact"], (argv, doc["problems"])
                made = int(r.stdout)
                assert calls(doc, "getpgrp") == made, (argv, calls(doc, "getpgrp"), made)
        box.no_leftovers()


for suffix, (flags, compiler) in BUILDS.items():
    stacks(suffix, flags, compiler)


@test(backends=("inproc",))
def contexts_on_stacks_that_come_and_go(box):
    """Each call is told apart by its caller, on whatever stack, even if no call may be made to find out."""
    program = box.build("stacks.c", "-O1", "-pthread")
    for confined in ((), ("confined",)):
        doc, r = box.report([program, "roaming", *confined], flags=("--all",))
        assert r.returncode == 0, r
        by = {}
        for row in doc["rows"]:
            caller = next((f for f in row["stack"] if f in ("first", "second")), None)
            if row["syscall"] == "getpgrp":
                by[caller] = by.get(caller, 0) + row["calls"]
        assert (by.get("first"), by.get("second"), sum(by.values())) == (1000, 1000, 2005), (confined, by)


def memory(mode, backends, users=("root", "nobody")):
    @test(f"memory_that_is_{mode}", users=users, backends=backends)
    def check(box):
        argv = [box.build("unreadable_memory.c", "-O1", "-pthread"), mode]
        plain = box.run(argv)
        if plain.stdout == b"can't serve\n":
            raise Skip("no userfaultfd here")
        assert plain.returncode == 0, plain
        for _ in range(3 if mode == "cut" else 1):
            doc, r = box.report(argv)
            assert (r.returncode, r.stdout) == (0, plain.stdout), (plain, r)
            assert doc["exact"], doc["problems"]
        box.no_leftovers()


# The kernel lets only root serve pages that the kernel itself reads.
memory("served", BOTH, users=("root",))
memory("device", BOTH, users=("root",))
# This program traces its own process, so systoll reads its memory by the kernel alone.
memory("cut", ("inproc",))
