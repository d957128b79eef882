//! Errors that keep a program from being started or watched.

use std::path::PathBuf;
use systoll_model::BackendKind;

/// The architecture whose programs are watched.
const HERE: &str = if cfg!(target_arch = "x86_64") { "x86-64" } else { "aarch64" };

/// The reason why nothing was recorded. Each has a documented exit code.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The path names no file, or no folder in PATH has a program of that name.
    #[error("{}: no such program", if .0.as_os_str().is_empty() { "''".into() } else { .0.to_string_lossy() })]
    NotFound(PathBuf),
    /// The path names a directory.
    #[error("{}: is a directory", .0.display())]
    Directory(PathBuf),
    /// The program may not be executed, or the kernel refuses to execute it.
    #[error("{}: not executable: {reason}", .program.display())]
    NotExecutable {
        /// The program's file.
        program: PathBuf,
        /// The reason, by the kernel.
        reason: String,
    },
    /// A set-id program would lose its privilege.
    #[error("{}: {what}; watched by an ordinary user it would run without that privilege", .program.display())]
    SetId {
        /// The set-id program's file.
        program: PathBuf,
        /// The privilege that the program would lose.
        what: String,
    },
    /// A program of another architecture.
    #[error("{}: {what}; systoll watches {HERE} programs only", .program.display())]
    Architecture {
        /// The foreign program's file.
        program: PathBuf,
        /// The architecture that the file is for.
        what: String,
    },
    /// The backend can't watch on this machine, or can't watch this program.
    #[error("can't watch with {}: {reason}", backend.name())]
    Refused {
        /// The backend that refuses.
        backend: BackendKind,
        /// The attempt, and the reason for its failure.
        reason: String,
    },
    /// A running process can't be entered; nothing was done to it.
    #[error("can't watch process {pid}{}: {reason}", if .name.is_empty() { String::new() } else { format!(" ({})", .name) })]
    NotEntered {
        /// Id of the process.
        pid: i32,
        /// Name of the process, if known.
        name: String,
        /// The obstacle to entering the process.
        reason: String,
        /// The command or setting that would help, if there is one.
        advice: Option<String>,
    },
    /// This backend can't answer calls in place.
    #[error("{} can't answer calls in place of the kernel", .0.name())]
    NoElision(BackendKind),
    /// This build lacks the backend that was asked for.
    #[error("no way to watch a program")]
    NoBackend,
    /// The command has no words.
    #[error("no command to run")]
    NoCommand,
    /// A signal ended the command before its first instruction; it was blocked until just before the exec.
    #[error("{}: ended by signal {signal} before it had begun", .program.display())]
    Ended {
        /// The program that was to be started.
        program: PathBuf,
        /// The signal that ended the child.
        signal: i32,
    },
    /// An operation of systoll itself failed.
    #[error("{what}")]
    Own {
        /// The operation that failed, in words.
        what: String,
        #[source]
        /// The error of the failed operation.
        source: std::io::Error,
    },
}

impl Error {
    /// Creates the error of a `backend` that can't watch; `reason` is shown to the user.
    pub(crate) fn refused(backend: BackendKind, reason: String) -> Self {
        Self::Refused { backend, reason }
    }

    /// Returns 127 if the program was not found, 126 if it is not executable, 128 plus the signal that ended it early,
    /// else 125.
    pub fn exit_code(&self) -> i32 {
        match self {
            Self::NotFound(_) => 127,
            Self::Directory(_) | Self::NotExecutable { .. } => 126,
            Self::Ended { signal, .. } => 128 + signal,
            _ => 125,
        }
    }

    /// Returns one line of advice, if anything would help.
    pub fn advice(&self) -> Option<String> {
        match self {
            Self::SetId { program, .. } => {
                Some(format!("as root it can be watched: sudo systoll run -- {}", program.display()))
            }
            Self::Refused { backend: BackendKind::Inproc, reason } if !reason.contains("it answers") => {
                Some("--backend ptrace watches whatever may be debugged, slowly".into())
            }
            Self::Refused { .. } => Some("systoll doctor says what can be watched here".into()),
            Self::NotEntered { advice, .. } => advice.clone(),
            Self::Directory(_) | Self::NotFound(_) => None,
            Self::NotExecutable { program, reason } if reason.contains("format") => {
                Some(format!("a script without #! needs its interpreter: systoll run -- sh {}", program.display()))
            }
            _ => None,
        }
    }

    pub(crate) fn own(what: impl Into<String>, source: impl Into<std::io::Error>) -> Self {
        Self::Own { what: what.into(), source: source.into() }
    }
}

/// Returns the system's text for an error, without Rust's "(os error N)".
pub(crate) fn reason(error: &std::io::Error) -> String {
    match error.raw_os_error() {
        Some(errno) => nix::errno::Errno::from_raw(errno).desc().to_owned(),
        None => error.to_string(),
    }
}
