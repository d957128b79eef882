"""Traces that people have pasted into public issues, by their facts: which calls, how often, in which of strace's forms.

Each is made anew here, in words of ours, and stands for the issue that it is named by; with it the cause that
its author, or who answered, had found by reading.
"""

TRACES = {}


def trace(issue, cause, sure=True, others=()):
    """Registers a trace. `sure`: its cause is a finding, not a remark. `others`: causes that are in it too, and
    findings where calls cost enough."""

    def register(lines):
        TRACES[issue] = cause, sure, others, lines
        return lines

    return register


def clock(us):
    """Returns a time as strace -tt writes it."""
    return f"{us // 3_600_000_000:02}:{us // 60_000_000 % 60:02}:{us // 1_000_000 % 60:02}.{us % 1_000_000:06}"


@trace("openvstorage/framework#1701", "tz-unset")
def log_lines():
    return ['stat("/etc/localtime", {st_mode=S_IFREG|0644, st_size=2970, ...}) = 0'] * 6000


@trace("eaccelerator/eaccelerator#15", "spin-wait")
def a_lock_that_yields():
    return ["sched_yield()                           = 0"] * 12000


@trace("RsyncProject/rsync#267", "tiny-io")
def a_list_of_files():
    for letter in "/var/lib/name " * 300:
        yield f'read(3</list>, "{letter}", 1) = 1'
        yield "pselect6(4, [3</list>], NULL, [3</list>], {tv_sec=60, tv_nsec=0}, NULL) = 1 (in [3], left {tv_sec=59, tv_nsec=999999729})"


@trace("neovim/neovim#4855", "tiny-io")
def what_an_editor_remembers():
    yield 'open("/home/me/main.shada", O_RDONLY|O_CLOEXEC) = 15'
    for _ in range(4000):
        yield 'read(15, "\\316", 1)                     = 1'
        yield 'read(15, "eighteen of these.", 18)      = 18'
    yield 'read(15, "", 1)                         = 0'
    yield "close(15)                               = 0"


@trace("Icinga/icinga2#8437", "close-storm")
def a_high_limit():
    return (f"16994 close({fd})                          = -1 EBADF (Bad file descriptor)" for fd in range(3, 20_000))


@trace("rstudio/rstudio#2470", "close-storm")
def a_child_for_git():
    for fd in range(3, 4096):
        yield f"11425 {clock(50_238_000_000 + fd * 130)} close({fd})       = -1 EBADF (Bad file descriptor) <0.000047>"


@trace("libgit2/libgit2#4460", "stat-per-op")
def attributes_of_each_folder():
    asked = [
        'stat("/home/me/linux/.gitattributes", {st_mode=S_IFREG|0664, st_size=30, ...}) = 0',
        'access("/etc/gitattributes", F_OK) = -1 ENOENT (No such file or directory)',
        'stat("/home/me/linux/Documentation/part%d/.gitattributes", 0x7ffe261fe130) = -1 ENOENT (No such file or directory)',
        'stat("/home/me/linux/Documentation/.gitattributes", 0x7ffe261fe130) = -1 ENOENT (No such file or directory)',
    ]
    for n in range(3600):
        yield f"{clock(27_518_000_000 + n * 40)} {asked[n % 4].replace('%d', str(n))} <0.000010>"


@trace("oridb/mc#16", "stat-per-op")
def a_build_that_asks_twenty_times():
    for _ in range(20):
        for n in range(400):
            yield f'stat("/home/me/src/part{n}.myr", {{st_mode=S_IFREG|0644, st_size=590, ...}}) = 0'


@trace("shundhammer/qdirstat#274", "proc-reread")
def all_mounts_for_each_mount():
    for _ in range(1500):
        yield 'openat(AT_FDCWD, "/proc/self/mountinfo", O_RDONLY|O_CLOEXEC) = 5'
        yield "fstat(5, {st_mode=S_IFREG|0444, st_size=0, ...}) = 0"
        yield from ['read(5, "22 28 0:20 / /sys rw,nosuid,node"..., 4096) = 4096'] * 4
        yield 'read(5, "", 4096) = 0'
        yield "close(5) = 0"


@trace("beyondgrep/ack3#42", "check-then-open", others=("open-extras",))
def three_questions_before_each_file():
    for n in range(2000):
        yield from [f'stat("/tmp/linux/part{n}.c", {{st_mode=S_IFREG|0644, st_size=59, ...}}) = 0'] * 3
        yield from ["geteuid()                               = 1000"] * 2
        for _ in range(2):
            yield f'open("/tmp/linux/part{n}.c", O_RDONLY) = 4'
            yield "ioctl(4, TCGETS, 0x7ffc7a670930)        = -1 ENOTTY (Inappropriate ioctl for device)"
            yield "lseek(4, 0, SEEK_CUR)                   = 0"
            yield "fstat(4, {st_mode=S_IFREG|0644, st_size=59, ...}) = 0"
            yield 'read(4, "a line of it, and another, and n"..., 8192) = 59'
            yield 'read(4, "", 8192)                       = 0'
            yield "close(4)                                = 0"


@trace("containers/storage#938", "seek-read-pair", sure=False)
def who_holds_the_lock():
    for _ in range(2000):
        yield "lseek(7, 0, SEEK_SET)                   = 0"
        yield 'read(7, "1623230000-1234-and-more-of-it-a"..., 64)          = 64'
