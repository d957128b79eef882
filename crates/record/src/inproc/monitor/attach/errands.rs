//! System calls that a stopped thread of a running program makes for us, and is as it was.
//!
//! It makes them by code that comes back by itself (`systoll_hooks::assemble::errand`), so that the program runs on were
//! systoll killed meanwhile.

use crate::inproc::monitor::attach::frames;
use crate::inproc::monitor::attach::stop_all::{self, Stopped};
use crate::inproc::monitor::shared::maps::{Layout, Mapped, Maps};
use crate::inproc::monitor::shared::remote::{self, Mem};
use crate::inproc::monitor::sys;
use crate::tracee::{self, Pause, Stop, Waited};
use std::ops::Range;
use std::time::Duration;
use systoll_hooks::assemble::errand::{CALL, CALLS, DONE, Errand, GO, READ, RESULT};
use systoll_hooks::layout::GLOBAL;

/// Where the page lies that the code uses, one place or the other: below all that is ours. And its bytes.
const PAGES: [u64; 2] = [GLOBAL - (1 << 20), GLOBAL - (2 << 20)];
const SIZE: u64 = 1 << 14;
/// Offset in it of what calls point to.
const DATA: u64 = 1 << 13;
/// Time limit for all calls of an errand.
const LIMIT: Duration = Duration::from_millis(1_500);
/// Cycles for which the thread waits for systoll before it continues by itself: half a second at 2 GHz.
const PATIENCE_CYCLES: u64 = 1_000_000_000;
/// Results inside the kernel of a call that is to be restarted (include/linux/errno.h).
const RESTARTS: [i64; 3] = [-512, -513, -514];
const RESTARTS_BLOCK: i64 = -516;

/// Why a thread made no calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NotMade {
    /// It is stopped where it was, and has made none.
    None(String),
    /// No thread is where it can be had make calls: perhaps later.
    Later,
    /// It runs, or has ended: nothing may be done to its process now.
    Away,
}

/// An argument, or the number, of a call.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Word {
    /// A number.
    Is(u64),
    /// The word at this address, which another call may have written.
    At(u64),
}

/// Calls to be made one after the other, with the memory that they use.
#[derive(Debug)]
pub(crate) struct Errands {
    /// Address of the page.
    page: u64,
    calls: Vec<[Word; 7]>,
    /// Bytes written into the page before the calls, by address.
    data: Vec<(u64, Vec<u8>)>,
}

/// Pages that were left in a process.
pub(crate) fn left_pages(maps: &Maps) -> impl Iterator<Item = Range<u64>> {
    let is_there = |page: &Range<u64>| !Layout::Known(&maps.all).is_free(page);
    PAGES.map(|page| page..page + SIZE).into_iter().filter(is_there)
}

impl Errands {
    /// None yet, for a process that has this mapped.
    ///
    /// # Errors
    /// Where there is no room for a page.
    pub(crate) fn new(maps: &Maps) -> Result<Self, NotMade> {
        let is_free = |page: &u64| Layout::Known(&maps.all).is_free(&(*page..*page + SIZE));
        let page = PAGES.into_iter().find(is_free);
        let page = page.ok_or_else(|| NotMade::None("there is no room for a page in it".into()))?;
        Ok(Self { page, calls: Vec::new(), data: Vec::new() })
    }

    /// Adds a call. Returns which one it is.
    pub(crate) fn add(&mut self, number: i64, args: [Word; 6]) -> usize {
        let [a, b, c, d, e, f] = args;
        self.calls.push([Word::Is(number as u64), a, b, c, d, e, f]);
        self.calls.len() - 1
    }

    /// Adds a call whose arguments are plain numbers. Returns which one it is.
    pub(crate) fn plain(&mut self, number: i64, args: [u64; 6]) -> usize {
        self.add(number, args.map(Word::Is))
    }

    /// Has bytes stand in the page, so many behind where data begins. Returns their address.
    pub(crate) fn data(&mut self, offset: u64, bytes: Vec<u8>) -> u64 {
        let at = self.page + DATA + offset;
        self.data.push((at, bytes));
        at
    }

    /// Where the result of a call will stand.
    fn result_of(&self, call: usize) -> u64 {
        self.page + CALLS + call as u64 * CALL + RESULT
    }

    /// The page's beginning: the calls, and the constants that they use behind them.
    fn contents(&self) -> Vec<u8> {
        let ends = CALLS + (self.calls.len() as u64 + 1) * CALL;
        let mut constants: Vec<u64> = Vec::new();
        let mut words = vec![0u64; (CALLS / 8) as usize];
        for call in &self.calls {
            for word in call {
                words.push(match word {
                    Word::At(address) => *address,
                    Word::Is(number) => {
                        constants.push(*number);
                        self.page + ends + 8 * (constants.len() as u64 - 1)
                    }
                });
            }
            words.push(0);
        }
        words.extend([0; (CALL / 8) as usize]);
        words.into_iter().chain(constants).flat_map(u64::to_le_bytes).collect()
    }

    /// Has a stopped thread of process make them. Returns what each came to, and leaves the thread stopped as it was.
    /// `meanwhile` is called again and again while they are made.
    ///
    /// # Errors
    /// Where they were not made, or it is not known whether.
    pub(crate) fn run(
        &self,
        thread: &Stopped,
        (mem, maps): (&Mem, &Maps),
        meanwhile: &mut dyn FnMut(),
    ) -> Result<Vec<i64>, NotMade> {
        let none = |why: &str| NotMade::None(why.to_owned());
        let contents = self.contents();
        if contents.len() as u64 > DATA {
            return Err(none("too many calls"));
        }
        let regs = tracee::registers(thread.tid).map_err(|_| NotMade::Away)?;
        let mask = tracee::signal_mask(thread.tid).map_err(|_| NotMade::Away)?;
        let errand = Errand { page: self.page, size: SIZE, patience: PATIENCE_CYCLES, mask, ..coming_back(&regs) };
        let words = |e: &dyn std::fmt::Display| NotMade::None(e.to_string());
        let len = errand.code(0).map_err(|e| words(&e))?.len();
        // What is shared can't be written.
        let own: Vec<Mapped> = maps.all.iter().filter(|m| !m.shared).cloned().collect();
        let at =
            remote::unused(mem, &own, len + 16).ok_or_else(|| none("no room in it for a few hundred bytes of code"))?;
        let code = errand.code(at).map_err(|e| words(&e))?;
        mem.write(at, &code).map_err(|e| words(&e))?;
        let away = Sent { tid: thread.tid, page: self.page, regs, mask, mem, code: at..at + code.len() as u64 };
        away.go()?;
        let made = self.made(&away, &contents, meanwhile);
        let back = away.come_back();
        // Nothing of it is left, also where the thread has lost patience and gone on by itself.
        if back.is_ok() || away.is_out(maps) {
            let _ = mem.write(at, &vec![0; code.len()]);
        }
        back.and(made)
    }

    /// Tells the thread what to do, and waits until it has been done.
    fn made(&self, sent: &Sent<'_>, contents: &[u8], meanwhile: &mut dyn FnMut()) -> Result<Vec<i64>, NotMade> {
        let deadline = sys::now() + LIMIT.as_nanos() as u64;
        let mem = sent.mem;
        sent.until(deadline, &mut || sent.word(GO).is_some())?;
        let failed = |e: std::io::Error| NotMade::None(e.to_string());
        for (at, bytes) in &self.data {
            mem.write(*at, bytes).map_err(failed)?;
        }
        let behind = contents.get(CALLS as usize..).unwrap_or_default();
        mem.write(self.page + CALLS, behind).map_err(failed)?;
        mem.write(self.page + GO, &1u64.to_le_bytes()).map_err(failed)?;
        sent.until(deadline, &mut || {
            meanwhile();
            sent.word(DONE).is_some_and(|done| done != 0)
        })?;
        let results = (0..self.calls.len()).map(|n| sent.word(self.result_of(n) - self.page).map(|word| word as i64));
        let results = results.collect::<Option<Vec<_>>>().ok_or(NotMade::Away)?;
        mem.write(self.page + READ, &1u64.to_le_bytes()).map_err(failed)?;
        sent.until(deadline, &mut || sent.word(READ).is_none())?;
        Ok(results)
    }
}

/// A call's result: the kernel's own words where it failed.
pub(crate) fn checked(result: i64) -> Result<u64, String> {
    match result {
        -4095..=-1 => Err(nix::errno::Errno::from_raw(-result as i32).desc().to_owned()),
        result => Ok(result as u64),
    }
}

/// Returns how a thread with these registers would continue by itself.
fn coming_back(regs: &libc::user_regs_struct) -> Errand {
    let (mut rip, mut rax) = (regs.rip, regs.rax);
    if regs.orig_rax != u64::MAX {
        // The kernel would have it make its call again: by the instruction right before.
        let again = match rax as i64 {
            RESTARTS_BLOCK => Some(libc::SYS_restart_syscall as u64),
            restart if RESTARTS.contains(&restart) => Some(regs.orig_rax),
            _ => None,
        };
        (rip, rax) = again.map_or((rip, rax), |number| (rip - 2, number));
    }
    let r = regs;
    let registers =
        [rax, r.rbx, r.rcx, r.rdx, r.rsi, r.rdi, r.r8, r.r9, r.r10, r.r11, r.r12, r.r13, r.r14, r.r15, r.rbp];
    Errand { page: 0, size: 0, patience: 0, mask: 0, rip, flags: regs.eflags, registers }
}

/// A thread that runs code of ours.
struct Sent<'a> {
    tid: i32,
    page: u64,
    regs: libc::user_regs_struct,
    mask: u64,
    mem: &'a Mem,
    code: Range<u64>,
}

impl Sent<'_> {
    /// Has it begin.
    fn go(&self) -> Result<(), NotMade> {
        // Not a call to be restarted.
        let regs = libc::user_regs_struct { rip: self.code.start, orig_rax: u64::MAX, ..self.regs };
        tracee::set_registers(self.tid, &regs).map_err(|_| NotMade::Away)?;
        tracee::resume(self.tid, 0).map_err(|_| NotMade::Away)
    }

    /// The word at an offset of its page; `None` while that is not mapped.
    fn word(&self, offset: u64) -> Option<u64> {
        let mut bytes = [0; 8];
        self.mem.read(self.page + offset, &mut bytes).ok()?;
        Some(u64::from_le_bytes(bytes))
    }

    /// Waits until something is so. Signals that stop the thread meanwhile are delivered.
    fn until(&self, deadline: u64, is_so: &mut dyn FnMut() -> bool) -> Result<(), NotMade> {
        let mut pause = Pause::default();
        while !is_so() {
            match tracee::wait_for_stop(self.tid, false) {
                Waited::Stop(Stop::Signal { signal, .. }) => drop(tracee::resume(self.tid, signal)),
                Waited::Stop(Stop::Exited { .. } | Stop::Killed { .. }) | Waited::NoChildren => {
                    return Err(NotMade::Away);
                }
                Waited::Stop(_) => drop(tracee::resume(self.tid, 0)),
                Waited::NothingYet | Waited::Interrupted => pause.wait(),
            }
            if sys::now() >= deadline {
                return Err(NotMade::None("it took too long".into()));
            }
        }
        Ok(())
    }

    /// Stops the thread and gives it its registers back, if it is still in code of ours.
    fn come_back(&self) -> Result<(), NotMade> {
        stop_all::stop_again(self.tid).ok_or(NotMade::Away)?;
        let now = tracee::registers(self.tid).map_err(|_| NotMade::Away)?;
        if !self.code.contains(&now.rip) {
            return Err(NotMade::Away);
        }
        // First: a signal comes only when it runs.
        tracee::set_signal_mask(self.tid, self.mask).map_err(|_| NotMade::Away)?;
        tracee::set_registers(self.tid, &self.regs).map_err(|_| NotMade::Away)
    }
}

impl Sent<'_> {
    /// Returns true if the thread, which no other thread follows there, is stopped outside of the code and comes back
    /// there from no handler.
    fn is_out(&self, maps: &Maps) -> bool {
        let Ok(now) = tracee::registers(self.tid) else { return false };
        let frames = frames::interrupted(self.tid, now.rsp, &maps.all);
        !self.code.contains(&now.rip) && frames.is_some_and(|frames| frames.iter().all(|rip| !self.code.contains(rip)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_point_to_what_they_are_made_with() {
        let mut errands = Errands::new(&Maps::default()).unwrap();
        let first = errands.plain(libc::SYS_getpid, [1, 2, 3, 4, 5, 6]);
        errands.add(libc::SYS_close, [Word::At(errands.result_of(first)); 6]);
        let page = errands.contents();
        let word = |at: u64| u64::from_le_bytes(page[at as usize..][..8].try_into().unwrap());
        let target = |at: u64| word(word(at) - PAGES[0]);
        assert_eq!(target(CALLS), libc::SYS_getpid as u64);
        assert_eq!((0..6).map(|n| target(CALLS + 8 + 8 * n)).collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6]);
        assert_eq!(word(CALLS + CALL + 8), PAGES[0] + CALLS + RESULT);
        assert_eq!(word(CALLS + 2 * CALL), 0);
    }

    #[test]
    fn a_call_that_was_interrupted_is_made_again() {
        // SAFETY: plain numbers, for which zeroes are valid.
        let mut regs: libc::user_regs_struct = unsafe { std::mem::zeroed() };
        (regs.rip, regs.orig_rax, regs.rax) = (0x1002, 35, -516i64 as u64);
        let back = coming_back(&regs);
        assert_eq!((back.rip, back.registers[0]), (0x1000, libc::SYS_restart_syscall as u64));
        regs.rax = -512i64 as u64;
        assert_eq!(coming_back(&regs).registers[0], 35);
        (regs.rax, regs.orig_rax) = (3, u64::MAX);
        assert_eq!((coming_back(&regs).rip, coming_back(&regs).registers[0]), (0x1002, 3));
    }

    #[test]
    fn failures_are_told_in_words() {
        assert!(checked(-12).is_err() && checked(3) == Ok(3) && checked(-4096).is_ok());
    }
}
