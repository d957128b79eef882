//! Classes of system calls in strace's sense, as in `-e trace=%file`.

/// One of strace's classes of system calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Class {
    /// Calls that take or return a file descriptor.
    Desc,
    /// Calls that take a path.
    File,
    /// Calls that make, end, await or signal processes.
    Process,
    /// Calls about sockets.
    Network,
    /// Calls about signals.
    Signal,
    /// Calls that change the address space.
    Memory,
    /// Calls of System V inter-process communication.
    Ipc,
    /// Calls about user and group ids and capabilities.
    Creds,
    /// Calls that read or set the system's clocks.
    Clock,
    /// Calls that take no arguments and can't fail, such as `getpid`.
    Pure,
    /// Calls of `stat` in all its versions.
    Stat,
    /// Calls of `lstat` in all its versions.
    Lstat,
    /// Calls of `fstat` in all its versions.
    Fstat,
    /// Calls of the whole stat family.
    StatLike,
    /// Calls of `statfs` in all its versions.
    Statfs,
    /// Calls of `fstatfs` in all its versions.
    Fstatfs,
    /// Calls of the whole statfs family.
    StatfsLike,
}

const NAMES: &[(Class, &str)] = &[
    (Class::Desc, "%desc"),
    (Class::File, "%file"),
    (Class::Process, "%process"),
    (Class::Network, "%network"),
    (Class::Signal, "%signal"),
    (Class::Memory, "%memory"),
    (Class::Ipc, "%ipc"),
    (Class::Creds, "%creds"),
    (Class::Clock, "%clock"),
    (Class::Pure, "%pure"),
    (Class::Stat, "%stat"),
    (Class::Lstat, "%lstat"),
    (Class::Fstat, "%fstat"),
    (Class::StatLike, "%%stat"),
    (Class::Statfs, "%statfs"),
    (Class::Fstatfs, "%fstatfs"),
    (Class::StatfsLike, "%%statfs"),
];

/// Other spellings of classes that strace accepts.
const ALIASES: &[(Class, &str)] = &[
    (Class::Network, "%net"),
    (Class::Desc, "desc"),
    (Class::File, "file"),
    (Class::Process, "process"),
    (Class::Network, "network"),
    (Class::Signal, "signal"),
    (Class::Memory, "memory"),
    (Class::Ipc, "ipc"),
];

impl Class {
    /// Returns all classes.
    pub fn all() -> impl Iterator<Item = Class> {
        NAMES.iter().map(|(class, _)| *class)
    }

    /// Returns the class's name with strace's percent sign, e.g. `%file`.
    pub fn name(self) -> &'static str {
        NAMES.iter().find(|(class, _)| *class == self).map_or("%?", |(_, name)| name)
    }

    /// Returns the class with this name. Accepts strace's older spellings without a percent sign
    /// (`file`, `desc` …) too.
    pub fn from_name(name: &str) -> Option<Self> {
        NAMES.iter().chain(ALIASES).find(|(_, n)| *n == name).map(|(class, _)| *class)
    }
}

/// A set of classes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Classes(u32);

impl Classes {
    pub(super) const fn from_bits(bits: u32) -> Self {
        Self(bits)
    }

    /// Returns true if the set contains `class`.
    pub fn contains(self, class: Class) -> bool {
        self.0 & (1 << class as u32) != 0
    }

    /// Returns the classes in the set.
    pub fn iter(self) -> impl Iterator<Item = Class> {
        Class::all().filter(move |class| self.contains(*class))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_go_both_ways() {
        for class in Class::all() {
            assert_eq!(Class::from_name(class.name()), Some(class));
        }
        assert_eq!(Class::from_name("file"), Some(Class::File));
        assert_eq!(Class::from_name("%files"), None);
    }
}
