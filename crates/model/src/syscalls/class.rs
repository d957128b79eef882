//! strace's classes of system calls, as in `-e trace=%file`.

/// One of strace's classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Class {
    /// Takes or gives a file descriptor.
    Desc,
    /// Takes a path.
    File,
    /// Makes, ends, awaits or signals processes.
    Process,
    /// Sockets.
    Network,
    /// Signals.
    Signal,
    /// The address space.
    Memory,
    /// System V inter-process communication.
    Ipc,
    /// User and group ids, capabilities.
    Creds,
    /// Reads or sets the system's clocks.
    Clock,
    /// Takes nothing and can't fail, such as `getpid`.
    Pure,
    /// `stat` and its like.
    Stat,
    /// `lstat` and its like.
    Lstat,
    /// `fstat` and its like.
    Fstat,
    /// All of the stat family.
    StatLike,
    /// `statfs`.
    Statfs,
    /// `fstatfs`.
    Fstatfs,
    /// All of the statfs family.
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

/// Other spellings that strace takes.
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
    /// All classes.
    pub fn all() -> impl Iterator<Item = Class> {
        NAMES.iter().map(|(class, _)| *class)
    }

    /// Its name with strace's percent sign, e.g. `%file`.
    pub fn name(self) -> &'static str {
        NAMES.iter().find(|(class, _)| *class == self).map_or("%?", |(_, name)| name)
    }

    /// The class with this name. The older spellings without a percent sign that strace still
    /// takes (`file`, `desc` …) are taken too.
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

    /// Whether `class` is among them.
    pub fn contains(self, class: Class) -> bool {
        self.0 & (1 << class as u32) != 0
    }

    /// The classes in the set.
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
