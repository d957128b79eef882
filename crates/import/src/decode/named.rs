//! Reads arguments as perf trace writes them: `dfd: CWD, filename: "/a", flags: RDONLY|CLOEXEC`.

use crate::call::{Call, Written};
use crate::lex::arguments;
use systoll_model::constants::number_of;

/// Prefixes of constants that perf leaves out, by system call and argument.
#[rustfmt::skip]
static BEGINNINGS: &[(&str, &str, &str)] = &[
    ("open", "flags", "O_"), ("openat", "flags", "O_"), ("openat2", "flags", "O_"), ("mmap", "prot", "PROT_"),
    ("mprotect", "prot", "PROT_"), ("pkey_mprotect", "prot", "PROT_"), ("mmap", "flags", "MAP_"),
    ("madvise", "behavior", "MADV_"), ("lseek", "whence", "SEEK_"), ("fcntl", "cmd", "F_"), ("fcntl", "arg", "O_"),
    ("futex", "op", "FUTEX_"), ("epoll_ctl", "op", "EPOLL_CTL_"), ("socket", "family", "AF_"),
    ("socket", "type", "SOCK_"), ("socketpair", "family", "AF_"), ("socketpair", "type", "SOCK_"),
    ("getrlimit", "resource", "RLIMIT_"), ("setrlimit", "resource", "RLIMIT_"), ("prlimit64", "resource", "RLIMIT_"),
    ("rt_sigprocmask", "how", "SIG_"), ("prctl", "option", "PR_"), ("arch_prctl", "option", "ARCH_"),
    ("newfstatat", "flag", "AT_"), ("statx", "flags", "AT_"), ("statx", "mask", "STATX_"), ("recvfrom", "flags", "MSG_"),
    ("recvmsg", "flags", "MSG_"), ("sendto", "flags", "MSG_"), ("sendmsg", "flags", "MSG_"),
    ("pipe2", "flags", "O_"), ("dup3", "flags", "O_"), ("getrandom", "flags", "GRND_"),
    ("clock_gettime", "which_clock", "CLOCK_"), ("clock_nanosleep", "which_clock", "CLOCK_"),
    ("rt_sigaction", "sig", "SIG"), ("kill", "sig", "SIG"), ("tgkill", "sig", "SIG"), ("flock", "cmd", "LOCK_"),
    ("clone", "clone_flags", "CLONE_"), ("membarrier", "cmd", "MEMBARRIER_CMD_"),
];

/// Names of arguments in the kernel's tracepoints, with the manual's names for them.
#[rustfmt::skip]
static OTHER_NAMES: &[(&str, &[&str])] = &[
    ("dfd", &["dirfd", "olddirfd"]), ("filename", &["pathname", "path"]), ("len", &["length", "count", "buflen", "size"]),
    ("off", &["offset"]), ("behavior", &["advice"]), ("start", &["addr"]), ("count", &["len", "buflen"]),
    ("flag", &["flags"]), ("cmd", &["op", "operation", "request"]), ("brk", &["addr"]), ("ufds", &["fds"]),
    ("timeout_msecs", &["timeout"]), ("whence", &["whence"]), ("which_clock", &["clockid"]), ("rqtp", &["request", "req"]),
    ("upid", &["pid"]), ("statbuf", &["statbuf"]), ("buff", &["buf"]), ("sig", &["signum", "sig"]), ("family", &["domain"]),
    ("fildes", &["oldfd"]), ("uservaddr", &["addr"]), ("clone_flags", &["flags"]), ("nset", &["set"]), ("oset", &["oldset"]),
];

/// Returns the call's arguments as strace would have written them; `None` if perf trace did not
/// write the call. perf leaves out arguments that are 0, so that names tell the places, in the
/// registers' order.
pub(super) fn plain(call: &Call) -> Option<Vec<u8>> {
    if call.written != Written::Named {
        return None;
    }
    let syscall = call.syscall.0.name().unwrap_or_default();
    let names = call.syscall.0.signature().map_or(&[][..], |s| s.args);
    let mut places: [Option<Vec<u8>>; 6] = Default::default();
    let mut next = 0;
    for argument in arguments(&call.text).iter() {
        let (name, value) = parted(argument).unwrap_or((&[], argument));
        let is = |known: &str| {
            let others =
                OTHER_NAMES.iter().find(|(theirs, _)| theirs.as_bytes() == name).map_or(&[][..], |(_, ours)| ours);
            known.as_bytes() == name || others.contains(&known)
        };
        let at = names.iter().position(|arg| is(arg.name)).filter(|at| *at >= next).unwrap_or(next);
        let Some(place) = places.get_mut(at) else { break };
        *place = Some(written(syscall, name, value));
        next = at + 1;
    }
    let shown = places.into_iter().take(next).map(|place| place.unwrap_or_else(|| b"0".to_vec()));
    let mut out = shown.collect::<Vec<_>>().join(&b", "[..]);
    out.push(b')');
    Some(out)
}

/// Splits `flags: RDONLY` into name and value.
fn parted(argument: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = memchr::memmem::find(argument, b": ")?;
    let name = argument.get(..at)?;
    let is_name = name.iter().all(|b| b.is_ascii_alphanumeric() || *b == b'_');
    is_name.then_some((name, argument.get(at + 2..)?))
}

fn written(syscall: &str, name: &[u8], value: &[u8]) -> Vec<u8> {
    match value {
        b"CWD" => b"AT_FDCWD".to_vec(),
        _ if name == b"mode" && syscall.contains("access") => {
            value.split(|b| *b == b'|').map(|part| [part, b"_OK"].concat()).collect::<Vec<_>>().join(&b'|')
        }
        [first, ..] if first.is_ascii_alphabetic() => flags(syscall, name, value),
        _ => value.to_vec(),
    }
}

/// Returns flags with the prefixes of their constants.
fn flags(syscall: &str, name: &[u8], value: &[u8]) -> Vec<u8> {
    let begins = BEGINNINGS.iter().find(|(call, of, _)| *call == syscall && of.as_bytes() == name);
    let begins = begins.map_or("", |(.., begins)| begins);
    let parts = value.split(|b| *b == b'|').map(|part| {
        let part = String::from_utf8_lossy(part);
        let whole = format!("{begins}{part}");
        // Bits of the number without a name come in hexadecimal.
        if number_of(&part).is_some() || part.starts_with("0x") { part.into_owned() } else { whole }.into_bytes()
    });
    parts.collect::<Vec<_>>().join(&b'|')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::Syscall;
    use systoll_model::Sysno;

    #[test]
    fn constants_get_their_beginnings_back() {
        let said = |name: &str, text: &str| {
            let syscall = Syscall(Sysno::from_name(name).unwrap());
            let call = Call { syscall, text: text.into(), written: Written::Named, ..Call::default() };
            plain(&call).map(|bytes| String::from_utf8(bytes).unwrap()).unwrap_or_default()
        };
        assert_eq!(
            said("openat", r#"dfd: CWD, filename: "/a: b", flags: RDONLY|CLOEXEC)"#),
            r#"AT_FDCWD, "/a: b", O_RDONLY|O_CLOEXEC)"#
        );
        assert_eq!(
            said("mmap", "addr: NULL, len: 8192, prot: READ|WRITE, flags: PRIVATE|ANONYMOUS"),
            "NULL, 8192, PROT_READ|PROT_WRITE, MAP_PRIVATE|MAP_ANONYMOUS)"
        );
        // Arguments that are 0 are left out.
        assert_eq!(said("mmap", "len: 8192, prot: READ, fd: 3"), "0, 8192, PROT_READ, 0, 3)");
        assert_eq!(said("brk", ""), ")");
        assert_eq!(said("access", "filename: 0x4d, mode: R|W"), "0x4d, R_OK|W_OK)");
    }
}
