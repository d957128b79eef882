//! Threads traced by ptrace(2), for every backend: the requests to them and the stops they report.
//!
//! Invariants: we never set a seccomp filter in a target and never set PTRACE_O_EXITKILL; when systoll dies the
//! kernel detaches every target, and it runs on.

pub(crate) mod arch;
mod cut_off;
mod remote_call;
mod requests;
mod stops;

pub(crate) use arch::{Regs, Waits, registers, set_registers, set_result};
#[cfg(target_arch = "x86_64")]
pub(crate) use arch::{set_gs_base, undisturbed};
pub(crate) use cut_off::*;
pub(crate) use remote_call::*;
pub(crate) use requests::*;
pub(crate) use stops::*;
