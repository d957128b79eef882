//! Errands: system calls that a stopped thread of a running program makes for us; afterwards it is stopped as before.
//!
//! The thread makes them by code that returns to the program by itself (`systoll_hooks::assemble::errand`), so the
//! program runs on even if systoll is killed meanwhile.
//!
//! A thread that gets hardly any of the processor (its control group is throttled) may need seconds for that. Its errand
//! is unfinished then: the thread is let go, and the errand's code is cleared once the thread has left it.

use crate::inproc::monitor::attach::frames;
use crate::inproc::monitor::attach::stop_all::{self, Stopped};
use crate::inproc::monitor::shared::maps::{FILE_NAME, Layout, Mapped, Maps};
use crate::inproc::monitor::shared::remote::{self, Mem};
use crate::inproc::monitor::sys;
use crate::tracee::{self, Pause, Stop, Waited};
use std::ops::Range;
use std::time::Duration;
use systoll_binfile::maps::{Line, lines};
use systoll_hooks::assemble::errand::{CALL, CALLS, DONE, Errand, GO, READ, RESULT};
use systoll_hooks::layout::{BLOBS_AT, BLOBS_SIZE, GLOBAL};

/// The two addresses at which the errand's memory may be mapped, below all our other memory, and its size in bytes.
const PAGES: [u64; 2] = [GLOBAL - (1 << 20), GLOBAL - (2 << 20)];
const SIZE: u64 = 1 << 14;
/// Offset in that memory of the bytes that calls point to.
const DATA: u64 = 1 << 13;
/// Time limit for all calls of an errand.
const LIMIT: Duration = Duration::from_millis(1_500);
/// Time in which a thread that runs ends an errand early.
const GIVES_UP: Duration = Duration::from_millis(50);
/// Cycles for which the thread waits for systoll before it continues by itself: half a second at 2 GHz.
const PATIENCE_CYCLES: u64 = 1_000_000_000;
/// Results of calls that the kernel restarts, as the thread's rax has them at a stop (include/linux/errno.h).
const RESTARTS: [i64; 3] = [-512, -513, -514];
const RESTARTS_BLOCK: i64 = -516;

/// The reason why a thread made no calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NotMade {
    /// The calls were not made, or not all in time; the text says why. The thread is stopped as before.
    None(String),
    /// No thread stands where it can be made to make calls; this may pass.
    Later,
    /// The thread runs, or has ended: its process must be left alone now.
    Away,
}

/// An argument of a call, or its number.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Word {
    /// A number that is known when the errand is written.
    Is(u64),
    /// The word at this address, which an earlier call may have written.
    At(u64),
}

/// System calls to be made one after the other, with the memory that they use.
#[derive(Debug)]
pub(crate) struct Errands {
    /// Address of the errand's memory.
    page: u64,
    calls: Vec<[Word; 7]>,
    /// Bytes written into that memory before the calls, with their addresses.
    data: Vec<(u64, Vec<u8>)>,
}

/// Returns the errand memory that is mapped in a process, left by a systoll that was killed.
pub(crate) fn left_pages(maps: &Maps) -> impl Iterator<Item = Range<u64>> {
    // It has no name, so that only its place and its size tell.
    let is_there = |page: &Range<u64>| maps.all.iter().any(|mapped| mapped.range == *page);
    PAGES.map(|page| page..page + SIZE).into_iter().filter(is_there)
}

/// Returns the mappings of our files at their fixed addresses in a process. A mapping of the program's own there is not
/// among them.
pub(crate) fn our_mappings(maps: &Maps) -> impl Iterator<Item = Range<u64>> {
    let fixed = GLOBAL..BLOBS_AT + BLOBS_SIZE;
    let is_ours = move |line: &Line<'_>| line.path.starts_with(FILE_NAME) && fixed.contains(&line.range.start);
    lines(&maps.text).filter(is_ours).map(|line| line.range)
}

impl Errands {
    /// Returns an errand without calls, for a process with these mappings.
    ///
    /// # Errors
    /// If both addresses of the errand's memory are taken.
    pub(crate) fn new(maps: &Maps) -> Result<Self, NotMade> {
        let is_free = |page: &u64| Layout::Known(&maps.all).is_free(&(*page..*page + SIZE));
        let page = PAGES.into_iter().find(is_free);
        let page = page.ok_or_else(|| NotMade::None("there is no room for a page in it".into()))?;
        Ok(Self { page, calls: Vec::new(), data: Vec::new() })
    }

    /// Adds a call. Returns its index.
    pub(crate) fn add(&mut self, number: i64, args: [Word; 6]) -> usize {
        let [a, b, c, d, e, f] = args;
        self.calls.push([Word::Is(number as u64), a, b, c, d, e, f]);
        self.calls.len() - 1
    }

    /// Adds a call whose arguments are plain numbers. Returns its index.
    pub(crate) fn plain(&mut self, number: i64, args: [u64; 6]) -> usize {
        self.add(number, args.map(Word::Is))
    }

    /// Puts bytes into the errand's memory, at this offset from [`DATA`]. Returns their address.
    pub(crate) fn data(&mut self, offset: u64, bytes: Vec<u8>) -> u64 {
        let at = self.page + DATA + offset;
        self.data.push((at, bytes));
        at
    }

    /// Returns the address at which a call's result will be stored.
    fn result_of(&self, call: usize) -> u64 {
        self.page + CALLS + call as u64 * CALL + RESULT
    }

    /// Returns the beginning of the errand's memory: the calls, followed by the constants that they refer to.
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

    /// Makes a stopped thread make the calls. Returns their results; the thread is stopped as before. `meanwhile` is
    /// called repeatedly until the calls are made.
    ///
    /// # Errors
    /// If the calls were not made, or it is not known that they were.
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
        let code = errand.code().map_err(|e| words(&e))?;
        // The code is written through /proc/PID/mem, which can't write shared mappings.
        let own: Vec<Mapped> = maps.all.iter().filter(|m| !m.shared).cloned().collect();
        let at = remote::unused(mem, &own, code.len() + 16)
            .ok_or_else(|| none("no room in it for a few hundred bytes of code"))?;
        mem.write(at, &code).map_err(|e| words(&e))?;
        let away = Sent { tid: thread.tid, page: self.page, regs, mask, mem, code: at..at + code.len() as u64 };
        away.go()?;
        let made = self.made(&away, &contents, meanwhile);
        let back = if made.is_ok() { away.come_back() } else { away.give_up() };
        // A thread that waited too long has returned to the program by itself.
        match back.is_ok() || away.is_out(maps) {
            true => away.clear(),
            false => away.leave_unfinished(),
        }
        back.and(made)
    }

    /// Hands the thread the calls, and waits until it has made them. Returns their results.
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

/// Returns a call's result, or the kernel's text for its error.
pub(crate) fn checked(result: i64) -> Result<u64, String> {
    match result {
        -4095..=-1 => Err(nix::errno::Errno::from_raw(-result as i32).desc().to_owned()),
        result => Ok(result as u64),
    }
}

/// Returns the errand's end: the registers with which the thread returns to the program.
fn coming_back(regs: &crate::tracee::Regs) -> Errand {
    let (mut rip, mut rax) = (regs.rip, regs.rax);
    if regs.orig_rax != u64::MAX {
        // The kernel would restart the call: return to its `syscall` instruction, two bytes before.
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
    regs: crate::tracee::Regs,
    mask: u64,
    mem: &'a Mem,
    code: Range<u64>,
}

impl Sent<'_> {
    /// Makes the thread run the errand's code.
    fn go(&self) -> Result<(), NotMade> {
        // Without this, the kernel would take the thread's call to be restarted for ours.
        let regs = crate::tracee::Regs { rip: self.code.start, orig_rax: u64::MAX, ..self.regs };
        tracee::set_registers(self.tid, &regs).map_err(|_| NotMade::Away)?;
        tracee::resume(self.tid, 0).map_err(|_| NotMade::Away)
    }

    /// Returns the word at an offset of the errand's memory; `None` while that is not mapped.
    fn word(&self, offset: u64) -> Option<u64> {
        let mut bytes = [0; 8];
        self.mem.read(self.page + offset, &mut bytes).ok()?;
        Some(u64::from_le_bytes(bytes))
    }

    /// Waits until `is_so` returns true. Delivers signals that stop the thread meanwhile.
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

    /// Stops the thread and restores its registers, if it is still in the errand's code.
    fn come_back(&self) -> Result<(), NotMade> {
        stop_all::stop_again(self.tid).ok_or(NotMade::Away)?;
        self.put_back().then_some(()).ok_or(NotMade::Away)
    }

    /// Restores the registers of the thread, which is stopped, if it is still in the errand's code. Returns true if it
    /// was.
    fn put_back(&self) -> bool {
        let is_in = tracee::registers(self.tid).is_ok_and(|now| self.code.contains(&now.rip));
        // The mask comes first: no signal is delivered before the thread runs again.
        is_in
            && tracee::set_signal_mask(self.tid, self.mask).is_ok()
            && tracee::set_registers(self.tid, &self.regs).is_ok()
    }

    /// Ends an errand that was not made in time: makes the thread close what it has opened, unmap the page, and come back.
    fn give_up(&self) -> Result<(), NotMade> {
        self.end_early();
        let is_done = self.until(sys::now() + GIVES_UP.as_nanos() as u64, &mut || self.word(GO).is_none());
        if is_done.is_ok() {
            return self.come_back();
        }
        // The other threads must not wait for this one any longer.
        let _ = tracee::interrupt(self.tid);
        stop_all::late::note(self.tid);
        Err(NotMade::Away)
    }

    /// Makes the thread end the errand's waits. Calls that it has not begun to make are not made.
    fn end_early(&self) {
        if self.word(GO) == Some(0) {
            let _ = self.mem.write(self.page + CALLS, &0u64.to_le_bytes());
        }
        for wait in [READ, GO] {
            let _ = self.mem.write(self.page + wait, &1u64.to_le_bytes());
        }
    }

    /// Overwrites the errand's code with the zeroes that were there.
    fn clear(&self) {
        let _ = self.mem.write(self.code.start, &vec![0; (self.code.end - self.code.start) as usize]);
    }
}

impl Sent<'_> {
    /// Returns true if the thread is stopped outside of the errand's code and no signal handler returns there. No other
    /// thread runs that code.
    fn is_out(&self, maps: &Maps) -> bool {
        let Ok(now) = tracee::registers(self.tid) else { return false };
        let frames = frames::interrupted(self.tid, &[now.rsp], &maps.all);
        !self.code.contains(&now.rip) && frames.is_some_and(|frames| frames.iter().all(|rip| !self.code.contains(rip)))
    }
}

/// Errands whose code could not be cleared when they were over: the thread that ran it did not come back in time.
pub(crate) mod unfinished {
    use super::{GO, Sent, stop_all, tracee};
    use crate::inproc::monitor::shared::maps::Maps;
    use crate::inproc::monitor::shared::remote::Mem;
    use crate::inproc::monitor::sys;
    use std::cell::RefCell;
    use std::ops::Range;
    use std::time::Duration;

    /// Time within which a thread of a throttled control group ends its errand: three waits of half a second, and some
    /// periods of the group, each a second at most (Documentation/scheduler/sched-bwc.rst of the kernel).
    const PATIENCE: Duration = Duration::from_secs(8);
    /// Time for which the thread runs between two looks.
    const PAUSE: Duration = Duration::from_millis(100);

    /// An errand that is not over.
    struct Unfinished {
        pid: i32,
        tid: i32,
        page: u64,
        regs: crate::tracee::Regs,
        mask: u64,
        /// The memory in which the code was written, whatever the process executes later.
        mem: Mem,
        code: Range<u64>,
    }

    thread_local! {
        /// One list for each thread: only the thread that attached to a thread can stop it again.
        static ALL: RefCell<Vec<Unfinished>> = const { RefCell::new(Vec::new()) };
    }

    impl Sent<'_> {
        /// Remembers the errand.
        pub(super) fn leave_unfinished(&self) {
            let (Ok(mem), Some(pid)) = (self.mem.again(), crate::procfs::tgid(self.tid)) else { return };
            let Sent { tid, page, regs, mask, ref code, .. } = *self;
            let code = code.clone();
            ALL.with_borrow_mut(|all| all.push(Unfinished { pid, tid, page, regs, mask, mem, code }));
        }
    }

    impl Unfinished {
        /// Clears the code if the thread is not in it any more, or can be put back. Returns true if that was done.
        fn finish(&self) -> bool {
            let Self { tid, page, regs, mask, ref mem, ref code, .. } = *self;
            let sent = Sent { tid, page, regs, mask, mem, code: code.clone() };
            if !sys::exists(tid) {
                sent.clear();
                return true;
            }
            if sent.word(GO).is_some() {
                sent.end_early();
                return false;
            }
            if stop_all::stop(tid).is_none() {
                return false;
            }
            let is_out = sent.put_back() || sent.is_out(&Maps::of(self.pid));
            if is_out {
                sent.clear();
            }
            let _ = tracee::detach(tid, 0);
            is_out
        }
    }

    /// Clears the code of all unfinished errands, as far as their threads leave it in time. Returns the processes in which
    /// code stays.
    pub(crate) fn finish() -> Vec<i32> {
        let deadline = sys::now() + PATIENCE.as_nanos() as u64;
        loop {
            stop_all::late::let_go();
            let left = ALL.with_borrow_mut(|all| {
                all.retain(|one| !one.finish());
                all.iter().map(|one| one.pid).collect::<Vec<_>>()
            });
            if left.is_empty() || sys::now() >= deadline {
                return left;
            }
            std::thread::sleep(PAUSE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inproc::monitor::shared::maps::Mapped;

    #[test]
    fn memory_of_the_programs_own_is_not_taken_for_ours() {
        let text = b"3fffe0040000-3fffe0080000 rw-p 00000000 00:00 0 \n\
            500000000000-501f10000000 rw-s 00000000 00:01 7 /memfd:systoll (deleted)\n\
            501f80000000-501f80040000 rw-p 00000000 00:00 0 \n\
            502000000000-502040000000 r-xs 00000000 00:01 8 /memfd:systoll (deleted)\n\
            7f0000000000-7f0000001000 r-xs 00000000 00:01 8 /memfd:systoll (deleted)\n";
        let found: Vec<_> = our_mappings(&Maps { all: Vec::new(), text: text.to_vec() }).collect();
        assert_eq!(found, [0x5000_0000_0000..0x501f_1000_0000, 0x5020_0000_0000..0x5020_4000_0000]);
        let maps = Maps { all: Vec::new(), text: text.to_vec() };
        let ours = |range: Range<u64>| maps.are_ours(&range);
        assert!(ours(0x7f00_0000_0000..0x7f00_0000_1000) && !ours(0x7f00_0000_0000..0x7f00_0000_2000));
        assert!(!ours(0x501f_8000_0000..0x501f_8000_1000) && !ours(0x1000..0x2000));
        let pages = |range: Range<u64>| {
            let mapped = Mapped { range, writable: true, executable: false, shared: false, anonymous: true };
            left_pages(&Maps { all: vec![mapped], text: Vec::new() }).count()
        };
        assert_eq!((pages(PAGES[1]..PAGES[1] + SIZE), pages(PAGES[1]..PAGES[1] + (1 << 18))), (1, 0));
    }

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
        let mut regs: crate::tracee::Regs = unsafe { std::mem::zeroed() };
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
