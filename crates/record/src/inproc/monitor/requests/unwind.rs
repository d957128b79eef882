//! Unwinds the stack of a waiting thread.

use crate::inproc::monitor::exec::no_calls;
use crate::inproc::monitor::handles::SiteRef;
use crate::inproc::monitor::program::Program;
use crate::inproc::monitor::requests::waiter::Waiter;
use crate::inproc::monitor::session::{FileKnowledge, Targets};
use crate::sys::{self, read_memory, read_pieces};
use systoll_hooks::assemble::Base;
use systoll_symbols::{Idle, PlacedFrame, RawFrame, Registers, Symbols, Thread, Until};

/// Unwinds a thread that waits at a site's hook, with the current mappings. Returns the frames from the site on, with
/// their places, and true if they are complete.
pub(crate) fn unwind_now(
    targets: &mut Targets,
    knowledge: &mut FileKnowledge,
    waiter: &Waiter,
    at: SiteRef,
) -> Option<(Vec<PlacedFrame>, bool)> {
    let id = waiter.slot.program;
    let (frames, complete) = unwind(targets.programs.get_mut(&id)?, &mut knowledge.symbols, waiter, at);
    if !no_calls::may_lie_in(targets, &mut knowledge.provisioning, id, waiter.tid, (&frames, complete)) {
        return Some((frames, complete));
    }
    no_calls::read_mappings(targets, &mut knowledge.symbols, id, waiter.tid);
    Some(unwind(targets.programs.get_mut(&id)?, &mut knowledge.symbols, waiter, at))
}

/// Unwinds with the mappings we know. Reads `maps` again only if a frame lies outside them.
fn unwind(program: &mut Program, symbols: &mut Symbols, thread: &Waiter, at: SiteRef) -> (Vec<PlacedFrame>, bool) {
    let mut frames = Vec::new();
    let Some(file) = program.hooks.files.get(at.file) else { return (frames, false) };
    let Some(site) = file.code.blob.sites.get(at.site) else { return (frames, false) };
    let planned = file.known.plan.sites.iter().find(|s| s.address == site.address);
    let cfa = if site.vdso { Some(8) } else { planned.and_then(|s| s.cfa).map(|c| u64::from(c.0)) };
    let sp = match (cfa, site.offset) {
        // Compute rsp at the call from rsp at the hook.
        (Some(cfa), Some(offset)) if site.base == Base::Rsp => {
            thread.sp.wrapping_add(u64::from(offset) + 8).wrapping_sub(cfa)
        }
        _ => thread.sp,
    };
    let ip = file.bias.wrapping_add(site.address).wrapping_add(if site.vdso { 0 } else { 2 });
    let regs = Registers { ip, sp, ..thread.registers };
    if !program.space.maps_executable(ip) {
        program.space.update(symbols, thread.tid);
    }
    let mut stack = Stack::expecting(thread.tid, sp, program.threads.stack_read);
    let mut complete = program.space.unwind_placed(symbols, &regs, &mut |a| stack.word(a), Until::Root, &mut frames);
    // Code that a program has compiled is in no file, so reading `maps` again would not help.
    let known = |f: &PlacedFrame| {
        f.frame.module.is_some() || program.space.maps_executable(f.ip.wrapping_sub(u64::from(f.frame.is_return)))
    };
    if !frames.iter().all(known) || program.space.ended_outside() && may_have_mapped(program) {
        // New code was mapped; try again with the current mappings.
        frames.clear();
        program.space.update(symbols, thread.tid);
        complete = program.space.unwind_placed(symbols, &regs, &mut |a| stack.word(a), Until::Root, &mut frames);
    }
    program.threads.stack_read = stack.needed;
    (frames, complete)
}

/// Returns true if code may have been mapped without our seeing it: a compiler at run time makes the memory of its code
/// executable piece by piece. A stack may end outside of all code for another reason, again and again.
fn may_have_mapped(program: &mut Program) -> bool {
    const AGAIN_NS: u64 = 20_000_000;
    let now = sys::now();
    let threads = &mut program.threads;
    let may = threads.read_maps_ns.is_none_or(|last| now >= last.saturating_add(AGAIN_NS));
    if may {
        threads.read_maps_ns = Some(now);
    }
    may
}

/// Returns the frames of a waiting thread with the lines of scripts between them.
pub(crate) fn with_scripts(
    program: &mut Program,
    symbols: &mut Symbols,
    thread: &Waiter,
    placed: &[PlacedFrame],
) -> Vec<RawFrame> {
    let tid = thread.tid;
    let mut read = |addresses: &[u64], buffer: &mut [u8]| read_pieces(tid, addresses, buffer);
    program.space.with_scripts(symbols, placed, Thread { tid, fs_base: None }, &mut read)
}

/// Returns what a waiting thread waits for, if it is idle in Go's scheduler.
pub(crate) fn idle(
    program: &mut Program,
    symbols: &mut Symbols,
    thread: &Waiter,
    placed: &[PlacedFrame],
) -> Option<Idle> {
    let tid = thread.tid;
    program.space.idle(symbols, placed, &mut |addresses, buffer| read_pieces(tid, addresses, buffer))
}

/// A target's stack, read in growing pieces from its top on.
struct Stack {
    tid: i32,
    start: u64,
    bytes: Vec<u8>,
    /// Bytes that this unwinding will probably need.
    expected: usize,
    /// Bytes that this unwinding has needed.
    needed: usize,
}

impl Stack {
    const PIECE: usize = 2048;
    const MOST: usize = 1 << 20;
    /// Bytes that are read at once because another unwinding needed them, at most.
    const EXPECTED: usize = 64 << 10;

    fn expecting(tid: i32, start: u64, expected: usize) -> Self {
        Self { tid, start, bytes: Vec::new(), expected: expected.min(Self::EXPECTED), needed: 0 }
    }

    fn word(&mut self, address: u64) -> Option<u64> {
        let offset = address.checked_sub(self.start).and_then(|o| usize::try_from(o).ok());
        let Some(offset) = offset.filter(|o| *o < Self::MOST) else { return self.elsewhere(address) };
        let end = offset.checked_add(8)?;
        self.needed = self.needed.max(end);
        if end > self.bytes.len() {
            let have = self.bytes.len();
            let want = end.max(self.expected).next_multiple_of(Self::PIECE).max(have * 2).min(Self::MOST);
            self.bytes.resize(want, 0);
            let got = read_memory(self.tid, self.start.wrapping_add(have as u64), self.bytes.get_mut(have..)?);
            self.bytes.truncate(have + got);
        }
        match self.bytes.get(offset..end) {
            Some(word) => Some(u64::from_ne_bytes(word.try_into().ok()?)),
            None => self.elsewhere(address),
        }
    }

    fn elsewhere(&self, address: u64) -> Option<u64> {
        let mut word = [0; 8];
        (read_memory(self.tid, address, &mut word) == 8).then(|| u64::from_ne_bytes(word))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_much_is_read_at_once_as_is_expected_and_more_when_it_is_needed() {
        let words: Vec<u64> = (0..16_384).collect();
        let (tid, start) = (std::process::id() as i32, words.as_ptr() as u64);
        for (expected, at_once) in [(0, Stack::PIECE), (5000, 6144), (usize::MAX, Stack::EXPECTED)] {
            let mut stack = Stack::expecting(tid, start, expected);
            assert_eq!((stack.word(start + 8 * 9), stack.bytes.len()), (Some(9), at_once));
            assert_eq!(stack.word(start + 8 * 12_000), Some(12_000));
            // Memory below the stack pointer does not belong to the stack.
            assert_eq!((stack.word(start + 8 * 8), stack.word(8), stack.needed), (Some(8), None, 8 * 12_001));
        }
    }
}
