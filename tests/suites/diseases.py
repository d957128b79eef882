"""Each small program with one waste gets its finding under the right name, and its healthy neighbour gets none.
The programs were written by going through the table of system calls, not through cases/."""
import re
import resource

from harness import test

# Name in tests/programs/sick.c -> its cause, or its kind if no cause knows it.
SICK = {
    "s_getppid": "identity-per-op", "s_sockname": "socket-name-per-op", "s_sockopt": "sockopt-per-op",
    "s_threadname": "attribute-per-op", "s_umask": "umask-per-op", "s_chdir": "cwd-toggle",
    "s_priority": "affinity-per-op", "s_rlimit": "attribute-per-op", "s_uname": "attribute-per-op",
    "s_altstack": "attribute-per-op", "s_sysinfo": "usage-per-op", "s_fionread": "peek-then-read",
    "s_peek": "peek-then-read", "s_cloexec": "flags-set-later", "s_cork": "cork-toggle", "s_espipe": "seek-in-pipe",
    "s_enosys": "unsupported-call", "s_unsupported": "unsupported-call", "s_missing": "refused-again",
    "s_mkdir": "refused-again", "s_nobody": "refused-again", "s_alarm": "timer-rearm", "s_itimer": "timer-rearm",
    "s_madvise": "madvise-churn", "s_mmap": "mmap-churn", "s_eventfd": "toggle", "s_inotify": "toggle",
    "s_dup": "toggle", "s_yield": "spin-wait", "s_again": "spin-wait", "s_select0": "spin-wait",
    "s_parts": "split-sends", "s_select": "select-high-fds", "s_stat": "stat-per-op", "s_statfs": "stat-per-op",
    "s_xattr": "absent-attribute", "s_exe": "path-canonicalise", "s_winsize": "terminal-per-op", "s_pread": "tiny-io",
    "s_writev": "unbuffered-output", "s_ftruncate": "no-op", "s_sigpending": "sigaction-toggle",
    "s_urandom": "random-per-number", "s_meminfo": "proc-reread",
}
ROUNDS = "10000"
FEWER = "3000"


def names():
    """Returns the names of the programs in sick.c, the sick and the healthy ones."""
    with open(__file__.rsplit("/", 2)[0] + "/programs/sick.c") as f:
        found = set(re.findall(r"ROUND\((\w+)\)", f.read()))
    return sorted(n for n in found if n.startswith("s_")), sorted(n for n in found if n.startswith("h_"))


def judged(box, program, name, rounds):
    doc, _ = box.report([program, name, rounds], env=dict(box.env, SICK_DIR=box.dir))
    return [f["cause"] or f["kind"] for f in doc["findings"]]


def hands_over(box, argv, share):
    """Returns True if more than this share of a program's yields give its processor to others: then they are no waste.
    They count as switches that it did not ask for."""
    switches = lambda: resource.getrusage(resource.RUSAGE_CHILDREN).ru_nivcsw
    before = switches()
    box.run(argv, env=dict(box.env, SICK_DIR=box.dir))
    return switches() - before > share * int(argv[-1])


@test(users=("nobody",))
def waste_of_each_class_is_found_and_named(box):
    program = box.build("sick.c")
    sick, _ = names()
    assert sorted(SICK) == sick, set(SICK) ^ set(sick)
    wrong = {name: judged(box, program, name, ROUNDS) for name in sick}
    # Chance decides which calls are sampled, and on a busy machine they are few: try again.
    for _ in range(3):
        wrong = {name: got for name, got in wrong.items() if got != [SICK[name]]}
        wrong = {name: judged(box, program, name, ROUNDS) for name in wrong}
    wrong = {name: got for name, got in wrong.items() if got != [SICK[name]]}
    if wrong == {"s_yield": []} and any(hands_over(box, [program, "s_yield", ROUNDS], 0.01) for _ in range(5)):
        return
    assert not wrong, wrong


@test(users=("nobody",))
def their_healthy_neighbours_are_left_alone(box):
    program = box.build("sick.c")
    _, healthy = names()
    found = {name: judged(box, program, name, FEWER) for name in healthy}
    assert len(found) >= 10 and not any(found.values()), found
