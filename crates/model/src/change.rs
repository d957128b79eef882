//! What may be changed about a run.

use std::ffi::OsString;

/// A change to the environment a program starts with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EnvChange {
    /// Sets a variable.
    Set(OsString, OsString),
    /// Removes a variable.
    Remove(OsString),
}

/// A family of calls answered without entering the kernel, to see what their absence wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Elision {
    /// getpid, getppid, gettid, getuid and their like.
    Identity,
    /// rt_sigprocmask that changes nothing.
    SameSignalMask,
}
