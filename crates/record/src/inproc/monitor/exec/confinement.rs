//! Reads a process's confinement from /proc.

use std::sync::OnceLock;

/// The seccomp mode of a process (proc_pid_status(5)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Filters {
    None,
    /// Strict mode: read, write and exit only.
    Strict,
    /// Filter mode, with this number of filters.
    Some(u32),
    /// Filter mode on a kernel that does not tell the number of filters.
    Uncounted,
}

/// The confinement of this process.
pub(crate) struct Own {
    pub(crate) filters: Filters,
    /// Number of nested PID namespaces, counted from that of /proc.
    pub(crate) levels: usize,
}

/// Returns this process's confinement, read once.
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

/// Parses the text of a status file: for fuzzing.
#[cfg(any(test, feature = "any-target"))]
pub(crate) fn use_status(text: &str) {
    filters_in(text);
    levels(text);
}

pub(crate) fn status(of: &str) -> String {
    // A program's name may be no UTF-8.
    let bytes = crate::procfs::read(format!("/proc/{of}/status")).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

fn field<'s>(status: &'s str, key: &str) -> Option<&'s str> {
    status.lines().find_map(|line| line.strip_prefix(key)).map(str::trim)
}

/// Returns the number of PID namespaces from that of /proc down to the process's own.
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
