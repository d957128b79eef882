//! Describes a thread that waits for an answer, by its slot.

use crate::inproc::monitor::handles::SlotRef;
use crate::inproc::monitor::shared::memory::Area;
use systoll_hooks::layout::{Saved, slot};
use systoll_symbols::Registers;

/// A thread that waits for an answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiter {
    /// The slot in which the thread waits.
    pub(crate) slot: SlotRef,
    pub(crate) tid: i32,
    /// Stack pointer at the hook.
    pub(crate) sp: u64,
    pub(crate) registers: Registers,
}

impl Waiter {
    /// Reads a waiting thread from its slot in the image `area`.
    pub(crate) fn read(area: &Area, thread: SlotRef) -> Self {
        let base = thread.offset();
        let saved = |r: Saved| area.get(base + r.offset());
        let registers = Registers {
            ax: saved(Saved::Rax),
            di: saved(Saved::Rdi),
            si: saved(Saved::Rsi),
            dx: saved(Saved::Rdx),
            r10: saved(Saved::R10),
            r8: saved(Saved::R8),
            r9: saved(Saved::R9),
            bx: saved(Saved::Rbx),
            bp: saved(Saved::Rbp),
            r12: saved(Saved::R12),
            r13: saved(Saved::R13),
            r14: saved(Saved::R14),
            r15: saved(Saved::R15),
            ..Registers::default()
        };
        // A thread made where none of our system calls is allowed has not asked for its own number; its maker has noted
        // the number.
        let tid =
            [slot::TID, slot::MADE_AS].map(|at| area.get(base + at) as u32 as i32).into_iter().find(|tid| *tid > 0);
        Self { slot: thread, tid: tid.unwrap_or(0), sp: saved(Saved::Rsp), registers }
    }

    /// Returns the arguments of the thread's call.
    pub(crate) fn args(&self) -> [u64; 6] {
        let r = &self.registers;
        [r.di, r.si, r.dx, r.r10, r.r8, r.r9]
    }
}
