"""Excerpts of traces, waits and tables are told as far as the few lines of a bug report can carry, and no further."""
import json

from harness import test

STAT = 'stat("/etc/localtime", {st_mode=S_IFREG|0644, st_size=2819, ...}) = 0'


def text(raw):
    return raw.decode(errors="replace")


def imported(box, content, *flags, name="pasted"):
    r = box.run([box.systoll, "import", "--json", *flags, box.file(name, content)])
    assert r.returncode == 0, text(r.stderr)
    return json.loads(r.stdout)


def causes(doc, *lists):
    return {f["cause"]: f["confidence"] for part in lists or ("findings", "also") for f in doc[part]}


def lines(*some, times=1):
    return "\n".join(list(some) * times) + "\n"


@test(users=("nobody",))
def the_stories_own_excerpts(box):
    """The stories' own excerpts, retyped: ten lines of localtime, strace -c of a Ruby, counts by name of a decoder, a
    getpid loop, one membarrier."""
    localtime = imported(box, lines(STAT, 'write(1, "Thu Nov 26 02:14:31 2026\\n", 25) = 25', times=9))
    assert causes(localtime, "findings").get("tz-unset") == "medium", localtime["told"]
    assert localtime["excerpt"] and "excerpt" in localtime["findings"][0]["told"]["shown"], localtime["findings"][0]["told"]

    ruby = imported(box, """\
% time     seconds  usecs/call     calls    errors syscall
------ ----------- ----------- --------- --------- ----------------
100.00    0.139288           0  20033025           rt_sigprocmask
  0.00    0.000000           0        12           read
  0.00    0.000000           0        10         3 open
------ ----------- ----------- --------- --------- ----------------
100.00    0.139288              20033047         3 total
""")
    (told,) = ruby["counted"]
    assert told["syscalls"] == ["rt_sigprocmask"] and {"sigmask-setjmp", "sigmask-context"} <= set(told["causes"]), told
    assert "-k" in told["find_out"] and "trace=rt_sigprocmask" in told["find_out"], told
    assert ruby["toll_ns"] >= 139_288_000 and not ruby["findings"], ruby["toll_ns"]

    decoder = imported(box, lines("  sigaltstack                  111773", "  sigreturn                    111774", "  sigprocmask                  223546"))
    assert ["rt_sigprocmask"] == decoder["counted"][0]["syscalls"][:1], decoder["counted"]
    assert {s["syscall"]: s["calls"] for s in decoder["by_syscall"]} == {"rt_sigprocmask": 223546, "rt_sigreturn": 111774, "sigaltstack": 111773}

    loop = imported(box, lines("getpid()                                = 4711", times=40))
    assert causes(loop, "findings").get("identity-per-op") == "medium", loop["told"]

    barrier = imported(box, "     0.000 (79.379 ms): main/26494 membarrier(cmd: SHARED                                         ) = 0\n")
    assert "membarrier-global" in causes(barrier), barrier["told"]
    (wait,) = barrier["waits"]
    assert (wait["syscall"], wait["ns"]) == ("membarrier", 79_379_000), wait


@test(users=("nobody",))
def confidence_comes_from_the_number_of_looks(box):
    missing = 'open("./parts/59.bin", O_RDONLY|O_CREAT, 0666) = -1 ENOENT (No such file or directory)'
    three = imported(box, lines("...", missing, missing, missing, "..."))
    assert not three["findings"] and list(causes(three, "also").values()) == ["low"], three["told"]
    assert three["also"][0]["doubt"] == "excerpt" and not three["exact"], three["also"][0]["doubt"]
    one = imported(box, lines(STAT))
    assert not one["findings"] and not one["also"], one["told"]
    # Forty calls among many others are no finding.
    others = [f'read(3, "{n}", 4096) = {len(str(n))}' for n in range(4000)]
    few = imported(box, lines(*others[:2000], STAT, STAT, STAT, *others[2000:]))
    assert "tz-unset" not in causes(few), few["also"]


@test(users=("nobody",))
def a_clock_that_shows_a_small_cost_makes_a_remark(box):
    slow = imported(box, lines(*(f"09:15:{n:02}.000000 {STAT}" for n in range(40))))
    assert not slow["findings"] and "tz-unset" in causes(slow, "also"), slow["told"]
    assert "1 a second" in slow["also"][0]["told"]["shown"] or "/s" in slow["also"][0]["told"]["shown"], slow["also"][0]["told"]
    fast = imported(box, lines(*(f"09:15:00.{40 * n:06} {STAT}" for n in range(200))))
    assert "tz-unset" in causes(fast, "findings"), fast["told"]


@test(users=("nobody",))
def waits_are_shown_with_what_they_waited_for(box):
    dns = [
        "socket(AF_INET, SOCK_DGRAM|SOCK_CLOEXEC|SOCK_NONBLOCK, IPPROTO_IP) = 5",
        'connect(5, {sa_family=AF_INET, sin_port=htons(53), sin_addr=inet_addr("192.0.2.53")}, 16) = 0',
    ]
    out, close = "poll([{fd=5, events=POLLIN}], 1, 5000)  = 0 (Timeout)", "close(5) = 0"
    for given in (
        lines(*dns, out, close, times=3),
        lines(*(f"{line} <{5.005211 if line is out else 0.00005:.6f}>" for line in (*dns, out, close)), times=3),
    ):
        doc = imported(box, given)
        (wait,) = doc["waits"]
        assert wait["syscall"] == "poll" and wait["calls"] == 3 and wait["ran_out"] and "name server" in wait["about"], wait
        assert 15e9 <= wait["ns"] <= 15.1e9, wait
    # If nothing else tells a wait's length, the next line's time does. strace's own times stand at a call's entry,
    # another tool's at its end.
    own = imported(box, lines("09:15:00.000000 epoll_wait(3, [{EPOLLIN, {u32=4, u64=4}}], 8, -1) = 1", "09:15:02.500000 close(9) = 0"))
    assert [(w["syscall"], w["ns"]) for w in own["waits"]] == [("epoll_wait", 2_500_000_000)], own["waits"]
    other = imported(box, lines("Jul 01 09:15:00.000000 close(9) = 0", "Jul 01 09:15:02.500000 wait4(-1, NULL, 0, NULL) = 77", "Jul 01 09:15:02.500001 close(8) = 0"))
    assert [(w["syscall"], w["ns"]) for w in other["waits"]] == [("wait4", 2_500_000_000)], other["waits"]
    # Times in whole seconds may lie up to one second closer together than the calls did.
    coarse = imported(box, lines("09:15:00 epoll_wait(3, [{EPOLLIN, {u32=4, u64=4}}], 8, -1) = 1", "09:15:01 close(9) = 0"))
    assert not coarse["waits"], coarse["waits"]


@test(users=("nobody",))
def a_loop_that_leaves_what_is_ready(box):
    ready = "epoll_wait(5, [{EPOLLOUT, {u32=16, u64=16}}], 200, 125) = 1"
    clock = "clock_gettime(CLOCK_THREAD_CPUTIME_ID, {1593411, 62297597%d}) = 0"
    spins = imported(box, lines(*(line for n in range(40) for line in (ready, clock % (n % 10)))))
    assert any("what is ready" in f["why"] for f in spins["findings"] + spins["also"]), spins["told"]
    serves = imported(box, lines(ready, 'write(16, "abc", 3) = 3', times=40))
    assert not any("what is ready" in f["why"] for f in serves["findings"] + serves["also"]), serves["findings"]


HEAD = "% time     seconds  usecs/call     calls    errors syscall\n------ ----------- ----------- --------- --------- ----------------\n"


@test(users=("nobody",))
def tables_tell_what_they_can_carry(box):
    two = imported(box, "before\n" + HEAD + " 99.32   32.541375         110    293336           pread64\n  0.17    0.057135         182       313           openat\nafter\n"
                   + HEAD + " 41.87    0.051831         158       327           mmap2\n  0.24    0.000300          75         4           pread64\n")
    assert two["told"]["tables"][1].startswith("pread64 293,336 → 4"), two["told"]["tables"]
    assert len(two["processes"]) == 2 and two["counted"][0]["syscalls"] == ["pread64"] and "111 µs each" in two["counted"][0]["shows"], two["counted"]
    failed = imported(box, HEAD + "  0,00    0,000000           0        12         5 openat\n 90,00    0,200000           0      2000      2000 access\n")
    assert failed["counted"][0]["shows"] == "all 2000 calls failed" and "-Z" in failed["counted"][0]["find_out"], failed["counted"]
    assert failed["toll_ns"] >= 200_000_000, failed["toll_ns"]
    step = imported(box, HEAD + "  1.00    0.001000           1      2048           lseek\n  1.00    0.001000           1      1024           read\n 98.00    0.098000           1      9000           write\n")
    assert any(c["syscalls"] == ["lseek", "read"] and c["shows"].startswith("2 calls for each read") for c in step["counted"]), step["counted"]
    # A table below an excerpt describes the whole run.
    beside = imported(box, lines("rt_sigprocmask(SIG_SETMASK, [], NULL, 8) = 0", times=20) + HEAD + "100.00    0.139288           0  20033025           rt_sigprocmask\n100.00    0.139288              20033025           total\n")
    assert beside["calls"] == 20033025 and any("of the whole run" in p for p in beside["problems"]), beside["problems"]
    assert (beside["findings"] + beside["also"])[0]["calls"] == 20033025, beside["told"]


@test(users=("nobody",))
def an_excerpt_claims_nothing_of_the_run(box):
    some = [f'openat(AT_FDCWD, "/etc/conf.d/{n}", O_RDONLY) = 3\nread(3, "{n}", 4096) = 40\nread(3, "", 4096) = 0\nclose(3) = 0' for n in range(12)]
    doc = imported(box, lines(*some))
    assert not doc["findings"] and doc["told"]["verdict"].startswith("an excerpt of "), (doc["told"]["verdict"], doc["findings"])
    r = box.run([box.systoll, "import", box.file("pasted", lines(*some))])
    assert b"nothing found" not in r.stdout and b"excerpt" in r.stdout, text(r.stdout)


@test(users=("nobody",))
def several_files_are_several_runs(box):
    files = [box.file(f"{n}.txt", lines(f"getpid() = {n}", times=n)) for n in (20, 30)]
    r = box.run([box.systoll, "import", "--json", *files])
    assert [doc["calls"] for doc in json.loads(r.stdout)] == [20, 30], text(r.stderr)
    r = box.run([box.systoll, "import", *files])
    assert text(r.stdout).count("==> ") == 2, text(r.stdout)
    r = box.run([box.systoll, "import", "--json", "--together", *files])
    assert json.loads(r.stdout)["calls"] == 50
    threads = [box.file(f"app.{n}", lines("getpid() = 7", times=n)) for n in (20, 30)]
    r = box.run([box.systoll, "import", "--json", *threads])
    assert json.loads(r.stdout)["calls"] == 50
    r = box.run([box.systoll, "import", "--json", files[0], box.file("none.txt", "no trace\n")])
    assert r.returncode == 125 and len(json.loads(r.stdout)) == 1, text(r.stderr)


@test(users=("nobody",))
def patterns_that_lines_show(box):
    up_and_down = [f"brk({0x55d1c2f21000 + 4096 * n - 0x21000 * (n % 2):#x}) = {0x55d1c2f21000 + 4096 * n - 0x21000 * (n % 2):#x}" for n in range(40)]
    only_up = [f"brk({0x55d1c2f21000 + 4096 * n:#x}) = {0x55d1c2f21000 + 4096 * n:#x}" for n in range(40)]
    assert "heap-trim" in causes(imported(box, lines(*up_and_down))) and not causes(imported(box, lines(*only_up)))
    pieces = [f"madvise({0x7fc74e87a000 + 4096 * n:#x}, 3866, MADV_WILLNEED) = 0" for n in range(20)]
    apart = [f"madvise({0x7fc74e87a000 + 65536 * n:#x}, 3866, MADV_WILLNEED) = 0" for n in range(20)]
    told = imported(box, lines(*pieces))
    assert any("next to each other" in f["why"] for f in told["also"]) and not told["findings"], told["told"]
    assert not imported(box, lines(*apart))["also"]
    asked = [f'openat(4, "dir{n}", O_RDONLY|O_CLOEXEC) = 6\nfcntl(6, F_GETFD) = 0x1 (flags FD_CLOEXEC)\nclose(6) = 0' for n in range(20)]
    told = imported(box, lines(*asked))
    assert [f["syscalls"] for f in told["findings"]] == [["fcntl"]] and "right before it closes" in told["findings"][0]["why"], told["findings"]
    # The lines do not tell who reads the program's output: it may be a person.
    printed = imported(box, lines(*(f'write(1, "line {n % 10}\\n", 7) = 7' for n in range(30))))
    assert not printed["findings"], printed["findings"]
    userdb = 'openat(7, "etc", O_RDONLY|O_PATH) = 8\nclose(7) = 0\nopenat(8, "userdb", O_RDONLY|O_PATH) = -1 ENOENT (No such file or directory)\nclose(8) = 0'
    assert "account-per-op" in causes(imported(box, lines('openat(AT_FDCWD, "/", O_RDONLY|O_PATH) = 7', *userdb.split("\n"), times=12)))
