"""A program that changes itself, by the pages of the manual, has the same output and end as unwatched.

If watching could not continue, systoll lets the program go before, and the report says so. The programs are named by what they
change: own_memory (mmap and its neighbours), own_limits (setrlimit, mlockall), own_settings (prctl, personality, clone,
clone3, unshare, arch_prctl and more).
"""
from harness import BOTH, test
from suites.counts import RESULTLESS, strace_table

LET_GO = "what it did from then on is not watched"
# Calls whose number depends on which thread comes first, or on a tracer.
CHANCE = {"futex", "clock_nanosleep", "restart_syscall"} | set(RESULTLESS)


def same(box, argv, watched=None, why=None):
    """Asserts that `argv` is watched as it runs unwatched. `watched`: True if all of it must be; `why`: words of the
    reason if not."""
    plain, (doc, r) = box.run(argv), box.report(argv)
    what = " ".join(argv[1:])
    assert plain.returncode == 0, f"{what} is of no use here: {plain}"
    assert (r.returncode, r.stdout) == (plain.returncode, plain.stdout), (
        f"{what}: unwatched {plain.returncode} {plain.stdout.decode()}, watched {r.returncode} {r.stdout.decode()}: {doc['problems']}"
    )
    told = [p for p in doc["problems"] if LET_GO in p]
    if watched is not None:
        assert bool(told) != watched and (doc["exact"] or not watched), f"{what}: {doc['problems']}"
    if why:
        assert any(why in p for p in told) and not doc["exact"], f"{what}: {doc['problems']}"
    return doc


def all_same(box, program, commands, **how):
    for command in commands:
        same(box, [program, *command.split()], **how)


def of(what, ways):
    return [f"{what} {way}" for way in ways.split()]


@test(backends=("inproc",))
def memory_is_mapped_over_taken_away_or_protected(box):
    """The program changes memory where systoll's lies, by its address or by all that /proc/self/maps lists; also while
    threads are in calls."""
    ways = "fixed none number unmap protect remap shm unmaps protects reserves moves dontfork remove".split()
    for program in (box.build("own_memory.c"), box.build("own_memory.c", "-static", compiler="musl-gcc")):
        for beside in ("", " threads"):
            all_same(box, program, [way + beside for way in ways], why="maps over, unmaps or protects memory")
            all_same(box, program, ["noreplace" + beside], why="maps memory where that of watching lies")
            all_same(box, program, ["dontneed" + beside], watched=True)


@test(backends=("inproc",))
def memory_is_bounded(box):
    """systoll's memory does not count against a program's limits: it has as much as unwatched, to the last page."""
    bounding = "both soft old number bad crossed raised back tiny"
    glibc, musl = box.build("own_limits.c"), box.build("own_limits.c", "-static", compiler="musl-gcc")
    for program in (glibc, musl):
        all_same(box, program, [*of("addresses", bounding), "count as"], why="bounds its own memory")
        all_same(box, program, of("addresses", "nowhere ends") + of("data", "nowhere ends"), watched=True)
    # Only a program that is given rseq areas has writable private memory of systoll's.
    all_same(box, glibc, [*of("data", bounding), "count data"], watched=True)
    all_same(box, musl, [*of("data", bounding), "count data"], why="bounds its own memory")


@test(backends=("inproc",))
def memory_is_locked(box):
    """Neither present nor later memory of systoll's is locked."""
    all_same(box, box.build("own_limits.c"), [*of("lock", "0 1 2 3 4"), "locked"], why="locks all its memory")


@test(backends=BOTH)
def other_limits(box):
    limits = "fsize stack stackall core memlock sigpending msgqueue nice rtprio rttime rss locks cpu nofile nofile3 nofile0"
    all_same(box, box.build("own_limits.c"), limits.split())


@test(backends=("inproc",))
def calls_are_dispatched_to_it(box):
    """Under Syscall User Dispatch the program's handler gets its own calls only, while other threads make theirs."""
    program = box.build("own_settings.c")
    all_same(box, program, of("dispatch", "all range number"), why="has its system calls sent to itself")


@test(backends=("inproc",))
def the_clock_or_gs_is_taken(box):
    program = box.build("own_settings.c")
    all_same(box, program, ["clock gone"], why="gives its time stamp counter up")
    all_same(box, program, ["arch gs"], why="sets its gs base")
    all_same(box, program, ["clock kept"], watched=True)


@test(backends=BOTH)
def options_and_personalities(box):
    program = box.build("own_settings.c")
    options = (
        "dumpable no_new_privs mdwe mdwe_no_inherit thp subreaper slack pdeathsig keepcaps securebits capbset ambient "
        "speculation speculation2 flusher core merge mce perf fpemu timing endian tagged ptracer unknown"
    )
    persons = "plain norandom exec compat zero linux32 3gb 32bit short whole sticky uname26 svr4 fdpic"
    all_same(box, program, [*of("option", options), "names", "mm", *of("person", persons)])


@test(backends=BOTH)
def every_way_to_make_a_process(box):
    """Processes are made by each flag of clone, clone3 and unshare. Exact counts equal strace's, too."""
    program = box.build("own_settings.c")
    clones = (
        "none vm vfork vforkonly files fs sighand nosignal usr1 io sysvsem parent parentsettid childsettid cleartid pidfd newns "
        "newpid newuser newuts newipc newnet newcgroup all bad badthread badns"
    )
    clone3 = "plain short tiny clear pidfd settid cgroup badcgroup nosignal vfork newtime fault"
    unshares = "files fs sysvsem ns uts ipc net pid user cgroup time thread bad"
    for command in of("clone", clones) + of("clone3", clone3) + of("unshare", unshares):
        argv = [program, *command.split()]
        doc = same(box, argv)
        if doc["exact"]:
            ours = {row["syscall"]: row["calls"] for row in doc["by_syscall"] if row["calls"] and row["syscall"] not in CHANCE}
            theirs = {name: calls for name, (calls, _) in strace_table(box, argv).items() if name not in CHANCE}
            assert ours == theirs, f"{command}: {set(ours.items()) ^ set(theirs.items())}"


@test(backends=BOTH)
def other_state_of_threads_is_as_unwatched(box):
    program = box.build("own_settings.c")
    odd = "membarrier robust rseq cleartid uring keyring altstack brk stack growsdown low huge seal sched vhangup"
    commands = of("arch", "getgs getfs cpuid shstk tagged xcomp ldt iopl") + ["keys"] + of("odd", odd)
    all_same(box, program, commands)
