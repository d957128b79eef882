//! Makes keys by which rows of two recordings are matched.

use std::sync::Arc;
use systoll_model::Sysno;

/// The granularity of a comparison.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum By {
    /// By system call; each system call lists the callers below it.
    #[default]
    Syscall,
    /// By system call, public function and caller.
    Row,
    /// By public function.
    Api,
    /// By the caller's function.
    Caller,
    /// By the caller's line.
    Line,
    /// By the file that contains the caller.
    Library,
    /// By program.
    Process,
}

impl By {
    /// All granularities.
    pub const ALL: [Self; 7] =
        [Self::Syscall, Self::Row, Self::Api, Self::Caller, Self::Line, Self::Library, Self::Process];

    /// Returns the granularity with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|by| by.name() == name)
    }

    /// Returns the granularity's name on the command line and in JSON.
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

/// The common properties of calls that are counted together, as names that mean the same in another
/// recording. Properties that the granularity ignores are `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// The system call.
    pub syscall: Option<Sysno>,
    /// The public function.
    pub api: Option<Arc<str>>,
    /// The caller's function.
    pub function: Option<Arc<str>>,
    /// The file that contains the caller: its last component, without a library's version.
    pub library: Option<Arc<str>>,
    /// The source file of the caller's line: its last component.
    pub file: Option<Arc<str>>,
    /// The caller's line.
    pub line: Option<u32>,
    /// The program.
    pub program: Option<Arc<str>>,
}
