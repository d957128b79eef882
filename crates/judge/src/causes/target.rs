//! Types of the objects behind calls' descriptors, as far as cures depend on them.

use crate::collections::named::named;
use systoll_model::{Sysno, WindowCall};

named! {
    /// The type of the object behind a call's descriptor.
    Target:
    /// Standard input or output: descriptor 0 or 1, whatever is behind it.
    Standard = "standard",
    /// Standard error: descriptor 2, whatever is behind it.
    StandardError = "standard-error",
    /// A terminal that is no standard stream.
    Terminal = "terminal",
    /// A socket that is no standard stream.
    Socket = "socket",
    /// A pipe that is no standard stream.
    Pipe = "pipe",
    /// A file with a path that is none of these.
    File = "file",
}

/// Beginnings of sockets' names.
const SOCKETS: &[&str] = &["socket:[", "TCP", "UDP", "UNIX", "NETLINK:", "RAW", "PACKET", "SCTP"];

impl Target {
    /// Returns the type of the object behind the call's descriptor; `None` if the call has none, or it is unknown.
    pub(crate) fn of(syscall: Sysno, call: &WindowCall) -> Option<Self> {
        let at = syscall.signature()?.fd_arg()?;
        let descriptor = call.args.get(at).map(|arg| *arg as i32)?;
        match call.fd.as_deref() {
            _ if (0..=1).contains(&descriptor) => Some(Self::Standard),
            _ if descriptor == 2 => Some(Self::StandardError),
            Some(name) => Self::of_name(name),
            None => None,
        }
    }

    /// Returns the type of an object by its name.
    fn of_name(name: &str) -> Option<Self> {
        let is_terminal = name.starts_with("/dev/pts/") || name.starts_with("/dev/tty") || name == "/dev/console";
        match name {
            _ if is_terminal => Some(Self::Terminal),
            _ if name.starts_with('/') => Some(Self::File),
            _ if name.starts_with("pipe:[") => Some(Self::Pipe),
            _ if name.contains(":[") && SOCKETS.iter().any(|begins| name.starts_with(begins)) => Some(Self::Socket),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_descriptors_tell_what_they_are() {
        for (name, target) in [
            ("/var/log/app.log", Some(Target::File)),
            ("/dev/pts/3", Some(Target::Terminal)),
            ("pipe:[4711]", Some(Target::Pipe)),
            ("TCP:[127.0.0.1:80->127.0.0.1:4711]", Some(Target::Socket)),
            ("UNIX-STREAM:[5->6]", Some(Target::Socket)),
            ("socket:[7]", Some(Target::Socket)),
            ("anon_inode:[eventfd]", None),
        ] {
            assert_eq!(Target::of_name(name), target, "{name}");
        }
        for target in Target::ALL {
            assert_eq!(Target::named(target.name()), Some(target));
        }
    }
}
