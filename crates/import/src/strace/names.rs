//! What tracers call system calls.

use systoll_model::Sysno;

/// Names of older and of other systems' calls that are those of x86-64.
#[rustfmt::skip]
static OTHER_NAMES: &[(&str, &str)] = &[
    ("_llseek", "lseek"), ("chown32", "chown"), ("clock_gettime64", "clock_gettime"),
    ("clock_nanosleep_time64", "clock_nanosleep"), ("fcntl64", "fcntl"), ("fchown32", "fchown"), ("fstat64", "fstat"),
    ("fstatat64", "newfstatat"), ("fstatfs64", "fstatfs"), ("ftruncate64", "ftruncate"), ("futex_time64", "futex"),
    ("getegid32", "getegid"), ("geteuid32", "geteuid"), ("getgid32", "getgid"), ("getgroups32", "getgroups"),
    ("getresgid32", "getresgid"), ("getresuid32", "getresuid"), ("getuid32", "getuid"), ("lchown32", "lchown"),
    ("lstat64", "lstat"), ("mmap2", "mmap"), ("ppoll_time64", "ppoll"), ("pselect6_time64", "pselect6"),
    ("_newselect", "select"), ("prlimit", "prlimit64"), ("pread", "pread64"), ("pwrite", "pwrite64"),
    ("sendfile64", "sendfile"), ("setgid32", "setgid"), ("setuid32", "setuid"), ("sigaction", "rt_sigaction"),
    ("sigprocmask", "rt_sigprocmask"), ("stat64", "stat"), ("statfs64", "statfs"), ("truncate64", "truncate"),
    ("ugetrlimit", "getrlimit"), ("umount", "umount2"), ("sync_file_range2", "sync_file_range"),
];

/// The call of this name.
pub(crate) fn named(name: &[u8]) -> Option<Sysno> {
    let name = std::str::from_utf8(name).ok()?;
    let other = || OTHER_NAMES.iter().find(|(known, _)| *known == name).and_then(|(_, ours)| Sysno::from_name(ours));
    Sysno::from_display(name).or_else(other)
}

/// Likewise of one of ltrace's, which has numbers for the calls that came after it: `SYS_334`.
pub(super) fn named_by_ltrace(name: &[u8]) -> Option<Sysno> {
    let number = || std::str::from_utf8(name).ok()?.parse().ok().map(Sysno).filter(|call| call.name().is_some());
    named(name).or_else(number)
}
