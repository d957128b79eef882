//! What the descriptor of a call leads to, as far as a cure depends on it.

use systoll_model::{Sysno, WindowCall};

macro_rules! targets {
    ($($(#[$doc:meta])* $target:ident = $name:literal;)*) => {
        /// What the descriptor of a call leads to.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Target {
            $($(#[$doc])* $target,)*
        }

        impl Target {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$target),*];

            /// Its name in causes' files.
            pub fn name(self) -> &'static str {
                match self { $(Self::$target => $name,)* }
            }
        }
    };
}

targets! {
    /// Standard input or output: descriptor 0 or 1, whatever that is.
    Standard = "standard";
    /// Standard error: descriptor 2, whatever that is.
    StandardError = "standard-error";
    /// A terminal that is no standard stream.
    Terminal = "terminal";
    /// A socket that is no standard stream.
    Socket = "socket";
    /// A pipe that is no standard stream.
    Pipe = "pipe";
    /// A file with a name that is none of these.
    File = "file";
}

/// How the names of sockets begin.
const SOCKETS: &[&str] = &["socket:[", "TCP", "UDP", "UNIX", "NETLINK:", "RAW", "PACKET", "SCTP"];

impl Target {
    /// The target with this name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|target| target.name() == name)
    }

    /// Returns what the call's descriptor leads to; `None` where it has none, or where that is not known.
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

    /// What a descriptor of this name is.
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
            assert_eq!(Target::named(target.name()), Some(*target));
        }
    }
}
