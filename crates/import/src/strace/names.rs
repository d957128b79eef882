//! Translates the names that tracers give system calls.

use systoll_model::Sysno;

/// Names of calls of older and of other systems that are calls of x86-64, with their names there.
#[rustfmt::skip]
static OTHER_NAMES: &[(&str, &str)] = &[
    ("_llseek", "lseek"), ("_newselect", "select"), ("arm_fadvise64_64", "fadvise64"), ("clock_getres_time64", "clock_getres"), ("clock_settime64", "clock_settime"), ("fadvise64_64", "fadvise64"),
    ("io_pgetevents_time64", "io_pgetevents"), ("mq_timedreceive_time64", "mq_timedreceive"),
    ("mq_timedsend_time64", "mq_timedsend"), ("nanosleep_time64", "nanosleep"), ("old_mmap", "mmap"),
    ("old_select", "select"), ("oldfstat", "fstat"), ("oldlstat", "lstat"), ("oldstat", "stat"), ("oldolduname", "uname"),
    ("olduname", "uname"), ("recv", "recvfrom"), ("recvmmsg_time64", "recvmmsg"), ("rt_sigtimedwait_time64", "rt_sigtimedwait"),
    ("sched_rr_get_interval_time64", "sched_rr_get_interval"), ("semtimedop_time64", "semtimedop"), ("send", "sendto"),
    ("setfsgid32", "setfsgid"), ("setfsuid32", "setfsuid"), ("setgroups32", "setgroups"), ("setregid32", "setregid"),
    ("setresgid32", "setresgid"), ("setresuid32", "setresuid"), ("setreuid32", "setreuid"), ("sigpending", "rt_sigpending"),
    ("sigreturn", "rt_sigreturn"), ("sigsuspend", "rt_sigsuspend"), ("timer_gettime64", "timer_gettime"),
    ("timer_settime64", "timer_settime"), ("timerfd_gettime64", "timerfd_gettime"), ("timerfd_settime64", "timerfd_settime"),
    ("utimensat_time64", "utimensat"), ("waitpid", "wait4"), ("chown32", "chown"), ("clock_gettime64", "clock_gettime"),
    ("clock_nanosleep_time64", "clock_nanosleep"), ("fcntl64", "fcntl"), ("fchown32", "fchown"), ("fstat64", "fstat"),
    ("fstatat64", "newfstatat"), ("fstatfs64", "fstatfs"), ("ftruncate64", "ftruncate"), ("futex_time64", "futex"),
    ("getegid32", "getegid"), ("geteuid32", "geteuid"), ("getgid32", "getgid"), ("getgroups32", "getgroups"),
    ("getresgid32", "getresgid"), ("getresuid32", "getresuid"), ("getuid32", "getuid"), ("lchown32", "lchown"),
    ("lstat64", "lstat"), ("mmap2", "mmap"), ("ppoll_time64", "ppoll"), ("pselect6_time64", "pselect6"),
    ("prlimit", "prlimit64"), ("pread", "pread64"), ("pwrite", "pwrite64"),
    ("sendfile64", "sendfile"), ("setgid32", "setgid"), ("setuid32", "setuid"), ("sigaction", "rt_sigaction"),
    ("sigprocmask", "rt_sigprocmask"), ("stat64", "stat"), ("statfs64", "statfs"), ("truncate64", "truncate"),
    ("ugetrlimit", "getrlimit"), ("umount", "umount2"), ("sync_file_range2", "sync_file_range"),
];

/// Number of x86-64's first calls, for all of which every strace in use has a name.
const NAMED_SINCE_2009: u32 = 300;

/// Returns the call of this name.
pub(crate) fn named(name: &[u8]) -> Option<Sysno> {
    let name = std::str::from_utf8(name).ok()?;
    // strace writes the numbers of calls that it has no name for. It has had names for x86-64's
    // first 300 calls since 2009 (4.5.19), so that a lower number is another architecture's.
    let number = name.strip_prefix("syscall_0x").and_then(|number| u32::from_str_radix(number, 16).ok());
    if number.is_some_and(|number| number < NAMED_SINCE_2009) {
        return None;
    }
    let other = || OTHER_NAMES.iter().find(|(known, _)| *known == name).and_then(|(_, ours)| Sysno::from_name(ours));
    Sysno::from_display(name).or_else(other)
}

/// Returns the call of a name that ltrace writes. Calls that came after ltrace have numbers:
/// `SYS_334`.
pub(super) fn named_by_ltrace(name: &[u8]) -> Option<Sysno> {
    let number = || std::str::from_utf8(name).ok()?.parse().ok().map(Sysno).filter(|call| call.name().is_some());
    named(name).or_else(number)
}
