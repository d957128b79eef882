//! Threads that are traced (ptrace(2)), for every backend: what is asked of them, and what they tell.
//!
//! Invariants: never a seccomp filter in a target, never PTRACE_O_EXITKILL; when systoll dies the kernel
//! detaches and every target runs on as without us.

mod injected;
mod requests;
mod stops;

pub(crate) use injected::*;
pub(crate) use requests::*;
pub(crate) use stops::*;
