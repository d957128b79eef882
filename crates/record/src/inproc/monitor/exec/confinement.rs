//! How a process is confined, by what /proc tells.

use std::sync::OnceLock;

/// How a process is confined (proc_pid_status(5)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Filters {
    None,
    /// To read, write and the end.
    Strict,
    /// By so many filters.
    Some(u32),
    /// By filters whose number the kernel does not tell.
    Uncounted,
}

/// What this process was started in.
pub(crate) struct Own {
    pub(crate) filters: Filters,
    /// PID namespaces, from that of /proc down.
    pub(crate) levels: usize,
}

/// As it was when this was first asked for.
pub(crate) fn own() -> &'static Own {
    static OWN: OnceLock<Own> = OnceLock::new();
    OWN.get_or_init(|| {
        let status = crate::sandbox::own_status();
        Own { filters: filters_in(status), levels: levels(status) }
    })
}

pub(crate) fn filters_in(status: &str) -> Filters {
    let count = || field(status, "Seccomp_filters:").and_then(|n| n.parse().ok());
    match field(status, "Seccomp:") {
        None | Some("0") => Filters::None,
        Some("2") => count().map_or(Filters::Uncounted, Filters::Some),
        Some(_) => Filters::Strict,
    }
}

/// Reads a text: for fuzzing.
#[cfg(any(test, feature = "any-target"))]
pub(crate) fn use_status(text: &str) {
    filters_in(text);
    levels(text);
}

pub(crate) fn status(of: &str) -> String {
    // A program's name is bytes.
    let bytes = crate::procfs::read(format!("/proc/{of}/status")).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

fn field<'s>(status: &'s str, key: &str) -> Option<&'s str> {
    status.lines().find_map(|line| line.strip_prefix(key)).map(str::trim)
}

/// PID namespaces from that of /proc down to the process's own.
pub(crate) fn levels(status: &str) -> usize {
    field(status, "NSpid:").map_or(0, |ids| ids.split_ascii_whitespace().count())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn confinement_is_read() {
        assert_eq!(filters_in("Name:\tx\nSeccomp:\t0\nSeccomp_filters:\t0\n"), Filters::None);
        assert_eq!(filters_in("Seccomp:\t2\nSeccomp_filters:\t3\n"), Filters::Some(3));
        assert_eq!(filters_in("Seccomp:\t2\n"), Filters::Uncounted);
        assert_eq!(filters_in("Seccomp:\t1\nSeccomp_filters:\t0\n"), Filters::Strict);
    }
}
