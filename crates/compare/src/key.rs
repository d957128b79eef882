//! What rows are matched by.

use std::sync::Arc;
use systoll_model::Sysno;

/// What changes are told by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum By {
    /// The system call; beneath each, who makes it.
    #[default]
    Syscall,
    /// The system call, the public function and the caller.
    Row,
    /// The public function.
    Api,
    /// The caller's function.
    Caller,
    /// The caller's line.
    Line,
    /// The file the caller lies in.
    Library,
    /// The program.
    Process,
}

impl By {
    /// All of them.
    pub const ALL: [Self; 7] =
        [Self::Syscall, Self::Row, Self::Api, Self::Caller, Self::Line, Self::Library, Self::Process];

    /// The one with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|by| by.name() == name)
    }

    /// Its name on the command line and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Syscall => "syscall",
            Self::Row => "row",
            Self::Api => "api",
            Self::Caller => "caller",
            Self::Line => "line",
            Self::Library => "library",
            Self::Process => "process",
        }
    }
}

/// What calls that are counted together have in common, in words that mean the same in another recording. Only
/// what they are told by is there.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// The system call.
    pub syscall: Option<Sysno>,
    /// The public function.
    pub api: Option<Arc<str>>,
    /// The caller's function.
    pub function: Option<Arc<str>>,
    /// The file the caller lies in: its last component, without a library's version.
    pub library: Option<Arc<str>>,
    /// The source file the caller's line is in: its last component.
    pub file: Option<Arc<str>>,
    /// That line.
    pub line: Option<u32>,
    /// The program.
    pub program: Option<Arc<str>>,
}
