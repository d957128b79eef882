//! The time that a seccomp filter adds to every call. For a child only: a filter can't be removed.

use crate::child::{Outcome, Refused};
use crate::measure::Meter;
use crate::price::getppid;
use crate::sys;
use libc::{BPF_ABS, BPF_K, BPF_LD, BPF_RET, BPF_W, sock_filter, sock_fprog};
use systoll_model::{Errno, Spread};

/// Offset of the first argument's low half in the kernel's `struct seccomp_data`.
const FIRST_ARGUMENT: u32 = 16;

/// A filter that allows everything.
#[derive(Clone, Copy)]
pub(super) enum Filter {
    /// A filter with a constant result, which the kernel caches by call number since Linux 5.11.
    Constant,
    /// A filter that reads an argument, so that it runs at every call.
    Argument,
}

impl Filter {
    fn program(self) -> ([sock_filter; 2], u16) {
        let load = sock_filter { code: (BPF_LD | BPF_W | BPF_ABS) as u16, jt: 0, jf: 0, k: FIRST_ARGUMENT };
        let allow = sock_filter { code: (BPF_RET | BPF_K) as u16, jt: 0, jf: 0, k: libc::SECCOMP_RET_ALLOW };
        match self {
            Self::Constant => ([allow, allow], 1),
            Self::Argument => ([load, allow], 2),
        }
    }
}

/// Installs `filter` in the calling process and measures what it adds to a getppid, in ns.
pub(super) fn adds(meter: &Meter, filter: Filter) -> Outcome {
    let without = meter.spread(getppid);
    install(filter)?;
    let with = meter.spread(getppid);
    let over = |ns: f64| (ns - without.min).max(0.0);
    if over(with.min) <= 0.0 {
        return Err(Refused::Because("lost in the noise"));
    }
    Ok(Spread { min: over(with.min), median: over(with.median), high: over(with.high) })
}

fn install(filter: Filter) -> Result<(), Refused> {
    let (mut program, len) = filter.program();
    let program = sock_fprog { len, filter: program.as_mut_ptr() };
    let no_new_privileges = [libc::PR_SET_NO_NEW_PRIVS as usize, 1, 0, 0, 0, 0];
    // SAFETY: takes no pointers.
    let result = unsafe { sys::call(libc::SYS_prctl, no_new_privileges) };
    if let Some(errno) = sys::errno(result) {
        return Err(Refused::Call("prctl", Errno(errno)));
    }
    let args = [libc::SECCOMP_SET_MODE_FILTER as usize, 0, &raw const program as usize, 0, 0, 0];
    // SAFETY: the kernel copies the program, which is live and as long as it says.
    let result = unsafe { sys::call(libc::SYS_seccomp, args) };
    sys::errno(result).map_or(Ok(()), |errno| Err(Refused::Call("seccomp", Errno(errno))))
}
