//! Describes, in strace's words, the options of a call beside its descriptor or path.
//!
//! A number without a name stays a number; nothing is guessed.

use crate::syscalls::Moment;
use crate::syscalls::constants::*;
use crate::sysno::Sysno;
use crate::window::WindowCall;
use std::fmt::Write as _;

/// The way to put an argument into words.
#[derive(Clone, Copy)]
enum Word {
    /// The argument is one of these names.
    One(&'static Names),
    /// The argument has flags of these names; the text is shown if none is set.
    Bits(&'static Names, &'static str),
    /// The argument has flags of these names; no text is shown if none is set.
    SomeBits(&'static Names),
    /// The argument is a signal's number.
    Signal,
    /// The argument points to a signal set, read before the call.
    Signals,
    /// The argument is a socket's type with its flags.
    SocketType,
    /// The argument has the type and the flags of a mapping.
    Mapping,
    /// The argument is an operation of futex with its flags.
    Futex,
    /// The argument is an ioctl's request.
    Request,
    /// The argument is a socket option of the level in the argument before it.
    Option,
}

/// The arguments to put into words, by call.
#[rustfmt::skip]
static WORDS: &[(&str, &[(u8, Word)])] = &[
    ("accept4", &[(3, Word::SomeBits(SOCKET_FLAGS))]),
    ("arch_prctl", &[(0, Word::One(ARCH_PRCTL))]),
    ("bpf", &[(0, Word::One(BPF))]),
    ("clock_adjtime", &[(0, Word::One(CLOCKS))]),
    ("clock_getres", &[(0, Word::One(CLOCKS))]),
    ("clock_gettime", &[(0, Word::One(CLOCKS))]),
    ("clock_nanosleep", &[(0, Word::One(CLOCKS))]),
    ("clock_settime", &[(0, Word::One(CLOCKS))]),
    ("epoll_ctl", &[(1, Word::One(EPOLL))]),
    ("fadvise64", &[(3, Word::One(FADVISE))]),
    ("fallocate", &[(1, Word::SomeBits(FALLOCATE))]),
    ("fcntl", &[(1, Word::One(FCNTL))]),
    ("flock", &[(1, Word::One(FLOCK))]),
    ("futex", &[(1, Word::Futex)]),
    ("getitimer", &[(0, Word::One(ITIMERS))]),
    ("getpriority", &[(0, Word::One(PRIORITIES))]),
    ("getrandom", &[(2, Word::SomeBits(RANDOM))]),
    ("getrlimit", &[(0, Word::One(RLIMITS))]),
    ("getrusage", &[(0, Word::One(USAGES))]),
    ("getsockopt", &[(1, Word::One(LEVELS)), (2, Word::Option)]),
    ("io_uring_register", &[(1, Word::One(IO_URING))]),
    ("ioctl", &[(1, Word::Request)]),
    ("keyctl", &[(0, Word::One(KEYCTL))]),
    ("kill", &[(1, Word::Signal)]),
    ("lseek", &[(2, Word::One(WHENCE))]),
    ("madvise", &[(2, Word::One(MADVISE))]),
    ("membarrier", &[(0, Word::One(MEMBARRIER))]),
    ("mmap", &[(2, Word::Bits(PROT, "PROT_NONE")), (3, Word::Mapping)]),
    ("mprotect", &[(2, Word::Bits(PROT, "PROT_NONE"))]),
    ("msgctl", &[(1, Word::One(IPC))]),
    ("msync", &[(2, Word::SomeBits(SYNC))]),
    ("pidfd_send_signal", &[(1, Word::Signal)]),
    ("pkey_mprotect", &[(2, Word::Bits(PROT, "PROT_NONE"))]),
    ("prctl", &[(0, Word::One(PRCTL))]),
    ("prlimit64", &[(1, Word::One(RLIMITS))]),
    ("process_madvise", &[(3, Word::One(MADVISE))]),
    ("ptrace", &[(0, Word::One(PTRACE))]),
    ("recvfrom", &[(3, Word::SomeBits(MSG))]),
    ("recvmmsg", &[(3, Word::SomeBits(MSG))]),
    ("recvmsg", &[(2, Word::SomeBits(MSG))]),
    ("rt_sigaction", &[(0, Word::Signal)]),
    ("rt_sigprocmask", &[(0, Word::One(MASK)), (1, Word::Signals)]),
    ("rt_sigtimedwait", &[(0, Word::Signals)]),
    ("sched_get_priority_max", &[(0, Word::One(POLICIES))]),
    ("sched_get_priority_min", &[(0, Word::One(POLICIES))]),
    ("sched_setscheduler", &[(1, Word::One(POLICIES))]),
    ("seccomp", &[(0, Word::One(SECCOMP))]),
    ("semctl", &[(2, Word::One(IPC))]),
    ("sendmmsg", &[(3, Word::SomeBits(MSG))]),
    ("sendmsg", &[(2, Word::SomeBits(MSG))]),
    ("sendto", &[(3, Word::SomeBits(MSG))]),
    ("setitimer", &[(0, Word::One(ITIMERS))]),
    ("setns", &[(1, Word::SomeBits(NAMESPACES))]),
    ("setpriority", &[(0, Word::One(PRIORITIES))]),
    ("setrlimit", &[(0, Word::One(RLIMITS))]),
    ("setsockopt", &[(1, Word::One(LEVELS)), (2, Word::Option)]),
    ("shmctl", &[(1, Word::One(IPC))]),
    ("shutdown", &[(1, Word::One(SHUTDOWN))]),
    ("signalfd4", &[(1, Word::Signals)]),
    ("socket", &[(0, Word::One(FAMILIES)), (1, Word::SocketType)]),
    ("socketpair", &[(0, Word::One(FAMILIES)), (1, Word::SocketType)]),
    ("tgkill", &[(2, Word::Signal)]),
    ("timer_create", &[(0, Word::One(CLOCKS))]),
    ("timerfd_create", &[(0, Word::One(CLOCKS))]),
    ("tkill", &[(1, Word::Signal)]),
    ("unshare", &[(0, Word::SomeBits(NAMESPACES))]),
];

impl WindowCall {
    /// Describes what the call, one of `syscall`, asks for beside its descriptor or path, as strace
    /// writes it: `SOL_TCP, TCP_NODELAY`, `F_GETFL`, `TIOCGWINSZ`, `SIG_BLOCK, [INT TERM]`. Returns
    /// `None` if it asks for nothing of the kind.
    pub fn option(&self, syscall: Sysno) -> Option<String> {
        let name = syscall.name()?;
        let at = WORDS.binary_search_by_key(&name, |(call, _)| call).ok()?;
        let (_, words) = WORDS.get(at)?;
        let said: Vec<String> = words.iter().filter_map(|(arg, word)| self.word(*arg, *word)).collect();
        (!said.is_empty()).then(|| said.join(", "))
    }

    fn word(&self, arg: u8, word: Word) -> Option<String> {
        let low = *self.args.get(usize::from(arg))? as u32;
        match word {
            Word::One(names) => Some(one(names, low)),
            Word::Bits(names, none) => Some(if low == 0 { none.to_owned() } else { bits(names, low) }),
            Word::SomeBits(names) => (low != 0).then(|| bits(names, low)),
            Word::Signal => Some(signal_name(low as i32)),
            Word::Signals => self.signals(arg),
            Word::SocketType => Some(socket_type(low)),
            Word::Mapping => Some(mapping(low)),
            Word::Futex => Some(futex(low)),
            Word::Request => Some(request(low)),
            Word::Option => Some(one(options(*self.args.get(usize::from(arg.checked_sub(1)?))? as u32), low)),
        }
    }

    fn signals(&self, arg: u8) -> Option<String> {
        if *self.args.get(usize::from(arg))? == 0 {
            return Some("NULL".into());
        }
        let bytes = self.arg_data(arg, Moment::Entry)?.bytes.first_chunk::<8>()?;
        Some(signals(u64::from_le_bytes(*bytes)))
    }
}

/// Returns the name of signal `number` on x86-64 (signal(7)) as strace writes it; `RT_N` counts
/// from SIGRTMIN, the kernel's 32. A number that is no signal stays a number.
pub fn signal_name(number: i32) -> String {
    let name = usize::try_from(number).ok().and_then(|n| SIGNALS.get(n.checked_sub(1)?));
    match (name, number) {
        (Some(name), _) => format!("SIG{name}"),
        (None, 32) => "SIGRTMIN".into(),
        (None, 33..=64) => format!("SIGRT_{}", number - 32),
        (None, other) => other.to_string(),
    }
}

/// Returns the number of the signal that [`signal_name`] calls `name`, with or without `SIG` in
/// front.
pub fn signal_number(name: &str) -> Option<i32> {
    let bare = name.strip_prefix("SIG").unwrap_or(name);
    let usual = || SIGNALS.iter().position(|known| *known == bare).and_then(|at| i32::try_from(at + 1).ok());
    let real_time =
        |text: &str| text.strip_prefix("RT_")?.parse().ok().filter(|n| (1..=32).contains(n)).map(|n: i32| n + 32);
    match bare {
        "RTMIN" => Some(32),
        "CLD" => Some(17),
        "POLL" => Some(29),
        "UNUSED" => Some(31),
        _ => usual().or_else(|| real_time(bare)),
    }
}

const SIGNALS: [&str; 31] = [
    "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2", "PIPE", "ALRM", "TERM",
    "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG", "XCPU", "XFSZ", "VTALRM", "PROF", "WINCH", "IO",
    "PWR", "SYS",
];

/// Writes a signal set whose bit 0 is signal 1: `[INT TERM]`. If most signals are in it, writes
/// those that are not: `~[KILL]`.
fn signals(set: u64) -> String {
    // strace writes the complement if two thirds of all signals are in the set.
    let most = set.count_ones() >= 64 * 2 / 3;
    let (sign, shown) = if most { ("~", !set) } else { ("", set) };
    let names = (1..=64).filter(|n| shown >> (n - 1) & 1 == 1).map(|n| signal_name(n).split_off(3));
    format!("{sign}[{}]", names.collect::<Vec<_>>().join(" "))
}

fn find(names: &Names, value: u32) -> Option<&'static str> {
    names.binary_search_by_key(&value, |(n, _)| *n).ok().and_then(|at| names.get(at)).map(|(_, name)| *name)
}

fn one(names: &Names, value: u32) -> String {
    find(names, value).map_or_else(|| number(value), str::to_owned)
}

/// Writes small and negative numbers in decimal, others in hexadecimal.
fn number(value: u32) -> String {
    match value as i32 {
        small @ -4096..=255 => small.to_string(),
        _ => format!("{value:#x}"),
    }
}

/// Joins the names of the flags in `value` with `|`, then the bits without a name in hexadecimal.
fn bits(names: &Names, value: u32) -> String {
    let mut out = String::new();
    let mut left = value;
    for (bit, name) in names.iter().filter(|(bit, _)| *bit != 0) {
        if left & bit == *bit {
            left &= !bit;
            push(&mut out, name);
        }
    }
    if left != 0 || out.is_empty() {
        push(&mut out, &format!("{left:#x}"));
    }
    out
}

fn push(out: &mut String, flag: &str) {
    if !out.is_empty() {
        out.push('|');
    }
    out.push_str(flag);
}

fn socket_type(value: u32) -> String {
    let (kind, flags) = (value & 0xf, value & !0xf);
    let mut out = one(SOCKET_TYPES, kind);
    if flags != 0 {
        push(&mut out, &bits(SOCKET_FLAGS, flags));
    }
    out
}

fn mapping(value: u32) -> String {
    let mut out = one(MAP_TYPES, value & 0xf);
    if value & !0xf != 0 {
        push(&mut out, &bits(MAP, value & !0xf));
    }
    out
}

fn futex(value: u32) -> String {
    const PRIVATE: u32 = FUTEX_PRIVATE_FLAG;
    const CLOCK_REALTIME: u32 = 0x100;
    let Some(name) = find(FUTEX, value & !(PRIVATE | CLOCK_REALTIME)) else { return number(value) };
    let mut out = name.to_owned();
    if value & PRIVATE != 0 {
        out.push_str("_PRIVATE");
    }
    if value & CLOCK_REALTIME != 0 {
        out.push_str("|FUTEX_CLOCK_REALTIME");
    }
    out
}

/// Names an ioctl request. A request without a name is shown by the parts that the kernel's _IOC
/// puts together: direction in two bits, size in fourteen, the driver's letter and number in eight
/// each.
fn request(value: u32) -> String {
    if let Some(name) = find(IOCTLS, value) {
        return name.to_owned();
    }
    let direction = ["_IOC_NONE", "_IOC_WRITE", "_IOC_READ", "_IOC_READ|_IOC_WRITE"][(value >> 30) as usize & 3];
    let mut out = String::new();
    let (kind, nr, size) = (value >> 8 & 0xff, value & 0xff, value >> 16 & 0x3fff);
    // Writing to a String does not fail.
    _ = write!(out, "_IOC({direction}, {kind:#x}, {nr:#x}, {size:#x})");
    out
}

/// Returns the names of the options of `level`: a protocol's number, or one of the kernel's own
/// levels above 255.
fn options(level: u32) -> &'static Names {
    match level {
        SOL_IP => IP,
        SOL_SOCKET => SOCKET,
        SOL_TCP => TCP,
        SOL_UDP => UDP,
        SOL_IPV6 => IPV6,
        SOL_PACKET => PACKET,
        SOL_NETLINK => NETLINK,
        _ => &[],
    }
}

/// Returns calls that use every number with a name, for a test that compares their words with
/// strace's.
#[doc(hidden)]
pub fn described_calls() -> Vec<(&'static str, [u64; 6])> {
    let mut calls = Vec::new();
    for (call, words) in WORDS {
        for (arg, word) in *words {
            let at = usize::from(*arg);
            let mut with = |first: Option<u64>, value: u32| {
                let mut args = [0; 6];
                if at > 0 {
                    args[0] = u64::from(u32::MAX);
                    args[at - 1] = first.unwrap_or(args[at - 1]);
                }
                args[at] = value.into();
                calls.push((*call, args));
            };
            match *word {
                Word::One(names) | Word::Bits(names, _) | Word::SomeBits(names) => {
                    names.iter().for_each(|(value, _)| with(None, *value));
                }
                Word::Request => IOCTLS.iter().for_each(|(value, _)| with(None, *value)),
                Word::Signal => (1..=64).for_each(|value| with(None, value)),
                Word::Futex => FUTEX.iter().for_each(|(value, _)| with(None, value | 0x80)),
                Word::SocketType => SOCKET_TYPES.iter().for_each(|(value, _)| with(None, value | 0x8_0000)),
                Word::Mapping => MAP.iter().for_each(|(value, _)| with(None, value | 2)),
                Word::Option => LEVELS.iter().for_each(|(level, _)| {
                    options(*level).iter().for_each(|(value, _)| with(Some((*level).into()), *value));
                }),
                Word::Signals => {}
            }
        }
    }
    calls
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ArgData, RowId};

    fn call(args: [u64; 6], set: Option<u64>) -> WindowCall {
        let data = set.map(|set| ArgData { arg: 1, at: Moment::Entry, bytes: set.to_le_bytes().to_vec(), cut: false });
        WindowCall {
            row: RowId(0),
            nth: 1,
            args,
            data: data.into_iter().collect(),
            fd: None,
            result: Some(0),
            entry_ns: 0,
            elapsed_ns: 0,
            waited_ns: None,
            signals_before: 0,
            faults: None,
            stack: None,
            before: crate::Before::Unknown,
            request: None,
        }
    }

    fn said(name: &str, args: [u64; 6]) -> String {
        call(args, Some(1 << 1 | 1 << 14)).option(Sysno::from_name(name).unwrap()).unwrap_or_default()
    }

    #[test]
    fn tables_ascend_and_name_calls_there_are() {
        assert!(WORDS.is_sorted_by_key(|(call, _)| *call));
        for (name, words) in WORDS {
            let signature = Sysno::from_name(name).and_then(Sysno::signature).expect(name);
            for (arg, word) in *words {
                assert!(usize::from(*arg) < signature.args.len(), "{name}");
                if let Word::One(names) | Word::Bits(names, _) | Word::SomeBits(names) = word {
                    assert!(names.is_sorted_by(|a, b| a.0 < b.0), "{name}");
                }
            }
        }
        for names in [IP, SOCKET, TCP, UDP, IPV6, PACKET, NETLINK, SOCKET_TYPES, MAP, FUTEX, IOCTLS] {
            assert!(names.is_sorted_by(|a, b| a.0 < b.0));
        }
    }

    #[test]
    fn names_of_signals_are_read_back() {
        assert!((1..=64).all(|n| signal_number(&signal_name(n)) == Some(n)));
        assert_eq!((signal_number("INT"), signal_number("RT_33"), signal_number("SIG")), (Some(2), None, None));
    }

    #[test]
    fn options_are_in_straces_words() {
        assert_eq!(said("setsockopt", [3, 6, 1, 0, 4, 0]), "SOL_TCP, TCP_NODELAY");
        assert_eq!(said("getsockopt", [3, 1, 4, 0, 4, 0]), "SOL_SOCKET, SO_ERROR");
        assert_eq!(said("setsockopt", [3, 999, 77, 0, 4, 0]), "0x3e7, 77");
        assert_eq!(said("fcntl", [3, 3, 0, 0, 0, 0]), "F_GETFL");
        assert_eq!(said("ioctl", [0, 0x5413, 0, 0, 0, 0]), "TIOCGWINSZ");
        assert_eq!(said("ioctl", [0, 0xc008_4601, 0, 0, 0, 0]), "_IOC(_IOC_READ|_IOC_WRITE, 0x46, 0x1, 0x8)");
        assert_eq!(said("futex", [0, 0x80, 0, 0, 0, 0]), "FUTEX_WAIT_PRIVATE");
        assert_eq!(said("futex", [0, 0x189, 0, 0, 0, 0]), "FUTEX_WAIT_BITSET_PRIVATE|FUTEX_CLOCK_REALTIME");
        assert_eq!(said("mmap", [0, 4096, 3, 0x22, u64::MAX, 0]), "PROT_READ|PROT_WRITE, MAP_PRIVATE|MAP_ANONYMOUS");
        assert_eq!(said("mprotect", [0, 4096, 0, 0, 0, 0]), "PROT_NONE");
        assert_eq!(said("socket", [2, 0x8_0801, 0, 0, 0, 0]), "AF_INET, SOCK_STREAM|SOCK_NONBLOCK|SOCK_CLOEXEC");
        assert_eq!(said("getrusage", [u64::from(u32::MAX), 0, 0, 0, 0, 0]), "RUSAGE_CHILDREN");
        assert_eq!(
            (said("recvmsg", [3, 0, 0, 0, 0, 0]), said("read", [3, 0, 0, 0, 0, 0])),
            (String::new(), String::new())
        );
        assert_eq!(said("recvmsg", [3, 0, 0x8000_0040, 0, 0, 0]), "MSG_DONTWAIT|0x80000000");
        assert_eq!(said("clock_gettime", [u64::MAX - 5, 0, 0, 0, 0, 0]), "-6");
    }

    #[test]
    fn signal_sets_are_in_straces_words() {
        assert_eq!(said("rt_sigprocmask", [0, 0x1000, 0, 8, 0, 0]), "SIG_BLOCK, [INT TERM]");
        assert_eq!(said("rt_sigprocmask", [2, 0, 0x1000, 8, 0, 0]), "SIG_SETMASK, NULL");
        assert_eq!(said("rt_sigaction", [34, 0, 0, 8, 0, 0]), "SIGRT_2");
        assert_eq!([0, !0, !(0b11 << 31), 1 << 8].map(signals), ["[]", "~[]", "~[RTMIN RT_1]", "[KILL]"]);
        assert_eq!([9, 31, 0, -1, 65].map(signal_name), ["SIGKILL", "SIGSYS", "0", "-1", "65"]);
    }
}
