//! Says why the kernel lets nobody, or not this process, load programs, and what would help.

use crate::procfs;
use crate::sandbox::own_status;
use nix::sys::resource::{RLIM_INFINITY, Resource, getrlimit, setrlimit};
use std::io::Error;

/// Bits of capabilities (linux/capability.h).
const CAP_SYS_ADMIN: u64 = 1 << 21;
const CAP_PERFMON: u64 = 1 << 38;
const CAP_BPF: u64 = 1 << 39;

/// The number of the machine's first namespace of process numbers (PROC_PID_INIT_INO of linux/proc_ns.h).
const FIRST_PID_NAMESPACE: &str = "pid:[4026531836]";

/// Oldest kernel with all that is used: programs that are run by hand (5.10).
const OLDEST: (u32, u32) = (5, 10);

/// Refuses machines and processes for which the kernel need not be asked.
///
/// # Errors
/// The reason, as text for the user.
pub(super) fn beforehand() -> Result<(), String> {
    let capabilities = status_number("CapEff:").unwrap_or(u64::MAX);
    let lacks = |capability| capabilities & (capability | CAP_SYS_ADMIN) == 0;
    let lacking: Vec<&str> = [(CAP_BPF, "CAP_BPF"), (CAP_PERFMON, "CAP_PERFMON")]
        .iter()
        .filter(|(c, _)| lacks(*c))
        .map(|(_, n)| *n)
        .collect();
    if !lacking.is_empty() {
        return Err(format!(
            "loading programs into the kernel takes {}, which this process lacks",
            lacking.join(" and ")
        ));
    }
    let namespace = std::fs::read_link("/proc/self/ns/pid");
    if namespace.is_ok_and(|name| name.as_os_str() != FIRST_PID_NAMESPACE) {
        return Err("in a namespace of process numbers (a container) they are others than the kernel counts by; run \
                    systoll outside of it"
            .into());
    }
    Ok(())
}

/// Returns why `what` failed with `error`. `log` is the last line that the kernel's verifier wrote.
pub(super) fn of(what: &str, error: &Error, log: &str) -> String {
    let system = crate::error::reason(error);
    let locked = procfs::read("/sys/kernel/security/lockdown").is_some_and(|t| contains(&t, b"[confidentiality]"));
    let old = kernel().filter(|version| *version < OLDEST);
    let cause = match error.raw_os_error() {
        Some(libc::ENOSYS) => "this kernel has no bpf(2)".to_owned(),
        _ if locked => "the kernel is locked down (confidentiality), where programs may not read its memory".to_owned(),
        _ if old.is_some() => format!("it takes Linux {}.{} or later", OLDEST.0, OLDEST.1),
        Some(libc::EPERM) => {
            "the kernel does not permit it: a sandbox, a security module or a user namespace".to_owned()
        }
        _ if !log.is_empty() => format!("the kernel's verifier says: {log}"),
        _ => String::new(),
    };
    let dash = if cause.is_empty() { "" } else { "; " };
    format!("{what}: {system}{dash}{cause}")
}

/// Makes maps. Kernels before 5.11 charge them to the limit of locked memory, which is raised meanwhile.
///
/// # Errors
/// The reason, as text for the user.
pub(super) fn with_locked_memory<T>(make: impl Fn() -> std::io::Result<T>) -> Result<T, String> {
    let failed = |e: &Error| of("making maps in the kernel", e, "");
    let first = match make() {
        Err(e) if e.raw_os_error() == Some(libc::EPERM) => e,
        other => return other.map_err(|e| failed(&e)),
    };
    let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_MEMLOCK) else { return Err(failed(&first)) };
    if setrlimit(Resource::RLIMIT_MEMLOCK, RLIM_INFINITY, RLIM_INFINITY).is_err() {
        return Err(failed(&first));
    }
    let again = make();
    // It was possible to set higher limits, so these can be set too.
    let _ = setrlimit(Resource::RLIMIT_MEMLOCK, soft, hard);
    again.map_err(|e| failed(&e))
}

/// Returns a number of /proc/self/status, written in hexadecimal.
fn status_number(key: &str) -> Option<u64> {
    own_status().lines().find_map(|l| u64::from_str_radix(l.strip_prefix(key)?.trim(), 16).ok())
}

/// Returns the kernel's version.
fn kernel() -> Option<(u32, u32)> {
    let names = nix::sys::utsname::uname().ok()?;
    version(names.release().to_str()?)
}

fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|n| n.parse().ok());
    Some((numbers.next()??, numbers.next()??))
}

fn contains(text: &[u8], what: &[u8]) -> bool {
    memchr::memmem::find(text, what).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_read() {
        assert_eq!(version("6.18.44-fc-v657"), Some((6, 18)));
        assert_eq!(version("5.4.0"), Some((5, 4)));
        assert_eq!(version("linux"), None);
    }

    #[test]
    fn causes_are_said() {
        let of = |errno| of("loading it", &Error::from_raw_os_error(errno), "R1 is no pointer");
        assert_eq!(of(libc::ENOSYS), "loading it: Function not implemented; this kernel has no bpf(2)");
        assert!(of(libc::EPERM).starts_with("loading it: Operation not permitted; "), "{}", of(libc::EPERM));
        assert!(of(libc::EINVAL).starts_with("loading it: Invalid argument; "), "{}", of(libc::EINVAL));
    }
}
