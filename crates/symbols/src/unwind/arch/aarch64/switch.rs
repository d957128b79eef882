//! Finds the caller of glibc's `swapcontext` and of the `setcontext` that it jumps to.
//!
//! Where the processor keeps no shadow stack, swapcontext of glibc 2.41 and later replaces its return address in x30 by the
//! address of its own last instructions, by which a context will return (sysdeps/unix/sysv/linux/aarch64/swapcontext.S).
//! Call frame information does not say so. The return address is then in the saved context only. setcontext does not
//! know where that lies, so the return address is kept from the call that swapcontext made just before.

use super::{FP, LINK, MCONTEXT, REGISTERS, SP, return_to, strip};

/// The instructions `bti j; mov x30, x1; ret`: those of the first 8 bytes, and the third.
const RETURNS: (u64, u32) = (0xaa01_03fe_d503_249f, 0xd65f_03c0);
/// Offset in bytes of x0 in `struct ucontext`: a signal's frame has a `siginfo` of 128 bytes ahead of it.
const X0: u64 = MCONTEXT - 128;
/// Offset in bytes of the signal mask in `struct ucontext`, to which swapcontext's call has the kernel write.
const MASK: u64 = 40;
/// Number of the register with a call's third argument.
const THIRD: usize = 2;
/// Threads whose last switch is kept, at most. One is read again at the thread's next call, so few threads come between.
const MOST: usize = 64;

/// The return addresses of switches that threads are making, oldest first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Switches(Vec<Switch>);

#[derive(Clone, Copy, Debug)]
struct Switch {
    sp: u64,
    fp: u64,
    returns_to: u64,
}

impl Switches {
    /// Steps from the last instructions of swapcontext, which are its own return address, to its caller. Returns `None` if
    /// the registers are not those of such a thread.
    pub(crate) fn step(&mut self, regs: &mut [u64; REGISTERS], read: &mut dyn FnMut(u64) -> Option<u64>) -> Option<()> {
        let code = regs[LINK];
        if read(code)? != RETURNS.0 || read(code.checked_add(8)?)? as u32 != RETURNS.1 {
            return None;
        }
        let (sp, fp) = (regs[SP], regs[FP]);
        let known = self.0.iter().position(|switch| switch.sp == sp);
        let returns_to = match saved(regs, read) {
            Some(returns_to) => {
                if let Some(known) = known {
                    self.0.remove(known);
                } else if self.0.len() == MOST {
                    self.0.remove(0);
                }
                self.0.push(Switch { sp, fp, returns_to });
                returns_to
            }
            None => self.0.get(known?).filter(|switch| switch.fp == fp)?.returns_to,
        };
        regs[LINK] = returns_to;
        return_to(regs);
        Some(())
    }
}

/// Returns the return address in the context that swapcontext has saved, if the registers lead to one of these registers.
fn saved(regs: &[u64; REGISTERS], read: &mut dyn FnMut(u64) -> Option<u64>) -> Option<u64> {
    let start = regs[THIRD].checked_sub(MASK)?.checked_add(X0)?;
    let mut register = |n: usize| read(start.checked_add(8 * n as u64)?);
    let (pc, sp, fp) = (register(32)?, register(31)?, register(FP)?);
    if pc != regs[LINK] || sp != regs[SP] || fp != regs[FP] {
        return None;
    }
    register(1).map(strip)
}

#[cfg(test)]
mod tests {
    use super::super::RA;
    use super::*;
    use std::collections::HashMap;

    const CODE: u64 = 0x48de0;
    const CONTEXT: u64 = 0x10_0000;

    /// Returns memory with swapcontext's last instructions and a context that was saved for a caller at `returns_to`.
    fn memory(sp: u64, fp: u64, returns_to: u64) -> HashMap<u64, u64> {
        let x = |n: u64| CONTEXT + 184 + 8 * n;
        HashMap::from([
            (CODE, RETURNS.0),
            (CODE + 8, u64::from(RETURNS.1) | 0x1400_0000 << 32),
            (x(1), returns_to | 0xab << 48),
            (x(29), fp),
            (x(31), sp),
            (x(32), CODE),
        ])
    }

    /// Returns the address to which a step leads whose call had this third argument.
    fn after(switches: &mut Switches, memory: &HashMap<u64, u64>, (sp, fp, third): (u64, u64, u64)) -> Option<u64> {
        let mut regs = [0; REGISTERS];
        (regs[SP], regs[FP], regs[LINK], regs[RA], regs[2]) = (sp, fp, CODE, CODE, third);
        let start = regs;
        let went = switches.step(&mut regs, &mut |at| memory.get(&at).copied());
        assert!(went.is_some() || regs == start);
        assert_eq!((regs[SP], regs[FP]), (sp, fp));
        went.map(|()| regs[RA])
    }

    #[test]
    fn a_switch_returns_to_the_address_in_the_saved_context() {
        let mut switches = Switches::default();
        let memory = memory(0x7000, 0x7010, 0x4444);
        assert_eq!(after(&mut switches, &memory, (0x7000, 0x7010, 0)), None, "nothing was saved yet");
        assert_eq!(after(&mut switches, &memory, (0x7000, 0x7010, CONTEXT + 40)), Some(0x4444));
        assert_eq!(after(&mut switches, &memory, (0x7000, 0x7010, 0)), Some(0x4444), "setcontext");
        assert_eq!(after(&mut switches, &memory, (0x7000, 0x7020, 0)), None, "another function");
        assert_eq!(after(&mut switches, &memory, (0x7100, 0x7010, 0)), None);
        assert_eq!(after(&mut switches, &memory, (0x7100, 0x7010, CONTEXT + 40)), None, "another's context");
        let other_code = HashMap::from([(CODE, RETURNS.0), (CODE + 8, 0xd65f_0bff)]);
        assert_eq!(after(&mut switches, &other_code, (0x7000, 0x7010, 0)), None);
    }

    #[test]
    fn switches_of_many_threads_are_kept_within_bounds() {
        let mut switches = Switches::default();
        for n in 0..3 * MOST as u64 {
            let (sp, fp) = (0x7000 + 64 * n, 0x7010 + 64 * n);
            for third in [CONTEXT + 40, 0] {
                assert_eq!(after(&mut switches, &memory(sp, fp, 4 * n), (sp, fp, third)), Some(4 * n));
            }
        }
        assert_eq!(switches.0.len(), MOST);
    }
}
