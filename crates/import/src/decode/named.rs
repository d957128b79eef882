//! Arguments as perf trace writes them: `dfd: CWD, filename: "/a", flags: RDONLY|CLOEXEC`.

use crate::call::{Call, Written};
use crate::lex::arguments;
use systoll_model::constants::number_of;

/// What constants of an argument begin with in the kernel's headers: perf leaves it out.
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
    ("access", "mode", ""), ("faccessat", "mode", ""), ("clone", "clone_flags", "CLONE_"),
];

/// The call's arguments as strace would have written them; `None` for a call that another has written.
pub(super) fn plain(call: &Call) -> Option<Vec<u8>> {
    if call.written != Written::Named {
        return None;
    }
    let syscall = call.syscall.0.name().unwrap_or_default();
    let mut out = Vec::with_capacity(call.text.len());
    for argument in arguments(&call.text).iter() {
        if !out.is_empty() {
            out.extend_from_slice(b", ");
        }
        let named = memchr::memmem::find(argument, b": ").filter(|at| {
            argument.get(..*at).is_some_and(|name| name.iter().all(|b| b.is_ascii_alphanumeric() || *b == b'_'))
        });
        let Some(at) = named else {
            out.extend_from_slice(argument);
            continue;
        };
        let (name, value) = (argument.get(..at).unwrap_or_default(), argument.get(at + 2..).unwrap_or_default());
        if value == b"CWD" {
            out.extend_from_slice(b"AT_FDCWD");
        } else if value.first().is_some_and(u8::is_ascii_alphabetic) {
            out.extend(flags(syscall, name, value));
        } else {
            out.extend_from_slice(value);
        }
    }
    out.push(b')');
    Some(out)
}

/// Flags with what they begin with.
fn flags(syscall: &str, name: &[u8], value: &[u8]) -> Vec<u8> {
    let begins = BEGINNINGS.iter().find(|(call, of, _)| *call == syscall && of.as_bytes() == name);
    let begins = begins.map_or("", |(.., begins)| begins);
    let parts = value.split(|b| *b == b'|').map(|part| {
        let part = String::from_utf8_lossy(part);
        let whole = format!("{begins}{part}");
        // The number's bits that have no name come in hexadecimal.
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
    }
}
