//! Changes to a run that an experiment can make.

use std::ffi::OsString;

/// A change to the environment a program starts with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EnvChange {
    /// The variable to set, and its value.
    Set(OsString, OsString),
    /// The variable to remove.
    Remove(OsString),
}

/// A call that the hooks answer without entering the kernel, to measure the gain of its absence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Elision {
    /// A `getpid`.
    Getpid,
    /// A `gettid`.
    Gettid,
    /// A `getuid`.
    Getuid,
    /// A `geteuid`.
    Geteuid,
    /// An `rt_sigprocmask` that changes nothing.
    RtSigprocmask,
}

impl Elision {
    /// Every kind of call that the hooks can answer.
    pub const ALL: [Self; 5] = [Self::Getpid, Self::Gettid, Self::Getuid, Self::Geteuid, Self::RtSigprocmask];

    /// Returns the system call's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Getpid => "getpid",
            Self::Gettid => "gettid",
            Self::Getuid => "getuid",
            Self::Geteuid => "geteuid",
            Self::RtSigprocmask => "rt_sigprocmask",
        }
    }

    /// Returns the elision for calls of this name, or `None` if the hooks can't answer them.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|e| e.name() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sysno::Sysno;

    #[test]
    fn elisions_go_by_the_names_of_system_calls() {
        for elision in Elision::ALL {
            assert_eq!(Elision::from_name(elision.name()), Some(elision));
            assert!(Sysno::from_name(elision.name()).is_some());
        }
        assert_eq!(Elision::from_name("getppid"), None);
    }
}
