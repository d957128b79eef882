//! Makes a stopped thread execute system calls for us.

use super::{Regs, Stop, Waited, arch, registers, set_registers, step, wait_for_stop};
use nix::errno::Errno;

/// Makes thread `tid`, stopped with registers `regs`, execute a call by the `syscall` instruction at `at`. Returns
/// the kernel's result. The caller must block the thread's signals before and restore its registers after.
///
/// # Errors
/// A text, if the thread makes no call.
pub(crate) fn make_call(tid: i32, at: u64, regs: &Regs, call: (i64, [u64; 6])) -> Result<u64, String> {
    /// Single steps that a call may take: the end of an `execve` is a step as well.
    const STEPS: usize = 4;
    let words = |e: Errno| e.desc().to_owned();
    let regs = arch::with_call(regs, at, call);
    for _ in 0..STEPS {
        // Set the registers before each step: an `execve` that ends writes its result into rax.
        set_registers(tid, &regs).map_err(words)?;
        step(tid).map_err(words)?;
        match wait_for_stop(tid, true) {
            Waited::Stop(Stop::Exited { .. } | Stop::Killed { .. }) | Waited::NoChildren => {
                return Err("it has ended".into());
            }
            Waited::Stop(_) | Waited::NothingYet | Waited::Interrupted => {}
        }
        let now = registers(tid).map_err(words)?;
        if arch::pc(&now) != at {
            return Ok(arch::result(&now));
        }
    }
    Err("it makes no calls for us".into())
}
