//! Decides which threads run free, answers those that ask, and takes slots away where a call would be counted twice.

use super::state::{OfProcess, Unknown, slot_at};
use crate::ptrace::engine::Engine;
use crate::ptrace::state::Pending;
use crate::request_windows::is_receive;
use crate::tracee::{self, Regs, arch};
use crate::{procfs, sys};
use std::sync::atomic::Ordering;
use systoll_hooks::aarch64::layout::{POINTER, entry, slot};
use systoll_hooks::aarch64::{Ask, Asked, key};
use systoll_model::{BackendKind, Sysno};
use systoll_symbols::RawFrame;

const RT_SIGRETURN: Sysno = Sysno::named("rt_sigreturn");
const RT_SIGPROCMASK: Sysno = Sysno::named("rt_sigprocmask");
const RT_SIGACTION: Sysno = Sysno::named("rt_sigaction");
const CLONE: Sysno = Sysno::named("clone");
const CLONE3: Sysno = Sysno::named("clone3");
const MMAP: Sysno = Sysno::named("mmap");
const MPROTECT: Sysno = Sysno::named("mprotect");

/// Calls that the tracer always handles: they make or end threads and programs, change what it has to know of a thread, or
/// are about children whose calls it compares with the kernel's count.
const ALWAYS: [Sysno; 17] = [
    CLONE,
    CLONE3,
    RT_SIGPROCMASK,
    RT_SIGACTION,
    RT_SIGRETURN,
    Sysno::named("execve"),
    Sysno::named("execveat"),
    Sysno::named("exit"),
    Sysno::named("exit_group"),
    Sysno::named("ptrace"),
    Sysno::named("wait4"),
    Sysno::named("waitid"),
    Sysno::named("pkey_mprotect"),
    Sysno::named("prctl"),
    Sysno::named("seccomp"),
    Sysno::named("userfaultfd"),
    Sysno::named("restart_syscall"),
];

/// Calls in `main` after which a process counts by itself. Writing the code takes as long as some hundred calls with stops.
const FIRST: u32 = 100;
/// Calls after which a forked process does so: the code is there already.
const AGAIN: u32 = 16;
/// Frame records whose return addresses distinguish contexts, at most.
const MOST_LEVELS: u64 = 32;
/// Calls of a row after which the tracer handles one, at most.
const LONGEST_TURN: u64 = 1 << 40;

/// Results by which the kernel makes a call again after a signal, unless a handler without SA_RESTART runs (ERESTARTSYS to
/// ERESTART_RESTARTBLOCK of include/linux/errno.h).
const RESTARTS: std::ops::RangeInclusive<i64> = -516..=-512;

impl Engine {
    /// Makes processes count themselves, if that is what the backend of this kind does. A run in which each long call is
    /// listed has a stop at each call.
    pub(crate) fn count_as(&mut self, kind: BackendKind) {
        self.inside.wanted = kind == BackendKind::Inproc;
        self.inside.declines = self.table.lists_longer();
    }

    /// Returns true if a thread runs to its next question, and does not stop at calls.
    pub(crate) fn counts_itself(&self, tid: i32) -> bool {
        self.threads.get(&tid).is_some_and(|thread| thread.inside.on && !thread.inside.asked)
    }

    /// Returns true if a thread that has a signal asks us: then it goes on to its call, at whose entry it stops.
    pub(crate) fn is_asked(&mut self, tid: i32, signal: i32) -> bool {
        let Some(thread) = self.threads.get_mut(&tid) else { return false };
        let is_inside = self.processes.get(&thread.pid).is_some_and(|process| process.inside.inside.is_some());
        if !is_inside || signal != libc::SIGTRAP && signal != libc::SIGURG {
            return false;
        }
        let Ok(mut regs) = tracee::registers(tid) else { return false };
        let Some((ask, by)) = question(tid, regs.pc) else {
            // The signal of a question that the thread has asked by a trap, as it blocked the signal.
            return signal == libc::SIGURG && std::mem::take(&mut thread.inside.stray);
        };
        thread.inside.stray |= signal == libc::SIGTRAP;
        self.take_in(tid);
        let unknown = if ask == Ask::Unknown { self.unknown(tid, &regs) } else { None };
        regs.pc += by;
        // A thread that was killed meanwhile has no registers.
        let _ = tracee::set_registers(tid, &regs);
        let Some(thread) = self.threads.get_mut(&tid) else { return true };
        (thread.inside.asked, thread.inside.unknown) = (true, unknown);
        if signal == libc::SIGTRAP
            && thread.inside.blocks_traps
            && let Ok(mask) = tracee::signal_mask(tid)
        {
            // The kernel delivers the signal even if it is blocked, and unblocks it.
            let _ = tracee::set_signal_mask(tid, mask | 1 << (libc::SIGTRAP - 1));
        }
        true
    }

    /// Returns the context of the call about which a thread asks, if its key can be computed.
    fn unknown(&mut self, tid: i32, regs: &Regs) -> Option<Unknown> {
        let thread = self.threads.get_mut(&tid)?;
        let inside = self.processes.get(&thread.pid)?.inside.inside.as_ref()?;
        let slot = thread.inside.slot.as_mut()?;
        let word = |offset| inside.shared.word(slot_at(slot.index) + offset).load(Ordering::Relaxed);
        let (low, high, levels) = (word(slot::STACK_LOW), word(slot::STACK_HIGH), word(slot::LEVELS));
        if levels != inside.levels {
            // Contexts have other keys from now on.
            inside.shared.clear(slot.index, &slot.rows);
            slot.rows.clear();
            inside.shared.word(slot_at(slot.index) + slot::LEVELS).store(inside.levels, Ordering::Relaxed);
            return None;
        }
        let mut callers = vec![regs.regs[30] & ADDRESS];
        let mut at = if regs.sp >= low && regs.regs[29] >= regs.sp { regs.regs[29] } else { high };
        while callers.len() as u64 <= MOST_LEVELS && at < high {
            let mut record = [0; 16];
            if sys::read_memory(tid, at, &mut record) < record.len() {
                break;
            }
            let [next, caller] = [0, 8].map(|from| record[from..].first_chunk().map_or(0, |w| u64::from_le_bytes(*w)));
            callers.push(caller & ADDRESS);
            if next <= at {
                break;
            }
            at = next;
        }
        let asked = Asked::of(&regs.regs);
        let expected = key(&asked, callers.get(..callers.len().min(levels as usize + 1))?);
        (expected == asked.key).then_some(Unknown { key: expected, callers })
    }

    /// Returns the registers of a stopped thread as if a call that was made in our code had been made in the file.
    pub(crate) fn in_file(&self, pid: i32, mut regs: Regs) -> Regs {
        let inside = self.processes.get(&pid).and_then(|process| process.inside.inside.as_ref());
        let moved = inside.and_then(|inside| inside.moved.iter().find(|(ours, _)| *ours == regs.pc));
        regs.pc = moved.map_or(regs.pc, |(_, in_file)| *in_file);
        regs
    }

    /// Handles a signal that is about to be delivered: while its handler runs, the thread stops at its calls.
    pub(crate) fn before_handler(&mut self, tid: i32, signal: i32) {
        let Some(pid) = self.threads.get(&tid).map(|thread| thread.pid).filter(|_| self.inside.wanted) else { return };
        let caught = procfs::status_field(pid, "SigCgt:").and_then(|mask| u64::from_str_radix(&mask, 16).ok());
        let Some(bit) = u32::try_from(signal - 1).ok().filter(|bit| *bit < 64) else { return };
        if caught.unwrap_or(u64::MAX) >> bit & 1 == 0 {
            return;
        }
        self.put_aside(tid);
        if let Some(thread) = self.threads.get_mut(&tid) {
            thread.inside.handlers += 1;
        }
    }

    /// Handles the entry of a call at which a thread has stopped.
    pub(crate) fn call_entered(&mut self, tid: i32, call: &Pending) {
        if !self.inside.wanted {
            return;
        }
        self.learn(tid, call);
        if call.syscall == CLONE || call.syscall == CLONE3 {
            self.before_clone(tid, call);
        }
    }

    /// Takes the slot away while a child is made, which has its maker's memory, or a copy: it begins without a slot.
    fn before_clone(&mut self, tid: i32, call: &Pending) {
        self.put_aside(tid);
        let flags = flags_of(tid, call.syscall, &call.args);
        let has = |flag: i32| flags & flag as u64 != 0;
        let shares = has(libc::CLONE_VM) && !(has(libc::CLONE_THREAD) && has(libc::CLONE_SETTLS));
        let Some(thread) = self.threads.get_mut(&tid) else { return };
        // A vfork's maker waits until the child has memory of its own.
        thread.inside.shares_with_child = shares;
        if shares
            && !has(libc::CLONE_VFORK)
            && let Some(process) = self.processes.get_mut(&thread.pid)
        {
            process.inside.declined = true;
        }
    }

    /// Handles the return of a call at which a thread has stopped.
    pub(crate) fn call_left(&mut self, tid: i32, call: &Pending, result: i64) {
        if !self.inside.wanted {
            return;
        }
        let Some(thread) = self.threads.get_mut(&tid) else { return };
        let (pid, inside) = (thread.pid, &mut thread.inside);
        inside.shares_with_child = false;
        if call.syscall == RT_SIGRETURN {
            inside.handlers = inside.handlers.saturating_sub(1);
        } else if inside.handlers == 0 {
            (inside.asked, inside.restarts) = (false, RESTARTS.contains(&result));
        }
        if call.syscall == RT_SIGPROCMASK || inside.slot.is_none() {
            inside.blocks_traps = tracee::signal_mask(tid).is_ok_and(|mask| mask >> (libc::SIGTRAP - 1) & 1 == 1);
        }
        let waits = inside.handlers > 0 || inside.restarts;
        let Some(process) = self.processes.get_mut(&pid) else { return };
        process.inside.calls = process.inside.calls.saturating_add(1);
        // The program would not see the signal by which threads ask.
        let traps = call.syscall == RT_SIGACTION && call.args[0] as i32 == libc::SIGTRAP && call.args[1] != 0;
        process.inside.declined |= traps;
        let executable = makes_executable(call) && !(-4095..0).contains(&result);
        if executable && process.inside.inside.is_some() {
            self.add_code(tid, pid);
        }
        if waits {
            self.put_aside(tid);
            return;
        }
        self.go_on(tid, pid);
    }

    /// Lets a thread count by itself, if it may.
    fn go_on(&mut self, tid: i32, pid: i32) {
        let Some(process) = self.processes.get_mut(&pid) else { return };
        if process.inside.declined || self.inside.declines || !process.main_seen {
            self.put_aside(tid);
            return;
        }
        match &process.inside.inside {
            None if process.inside.calls >= FIRST && process.threads == 1 => self.go_inside(tid, pid),
            Some(_) if process.inside.calls >= AGAIN => self.give_slot(tid, pid),
            _ => return,
        }
        self.set_turns(tid, pid);
        self.put_on(tid);
    }

    /// Puts off a call that makes a process's second thread: the process goes inside before, while it has one thread.
    pub(crate) fn is_put_off(&mut self, tid: i32, call: Sysno, args: &[u64; 6]) -> bool {
        if !self.inside.wanted || self.inside.declines || call != CLONE && call != CLONE3 {
            return false;
        }
        let Some(thread) = self.threads.get_mut(&tid).filter(|thread| !thread.inside.on) else { return false };
        let Some(process) = self.processes.get(&thread.pid) else { return false };
        let is_first = process.threads == 1 && process.main_seen && process.inside.inside.is_none();
        if !is_first || process.inside.declined || thread.inside.handlers > 0 || thread.inside.restarts {
            return false;
        }
        let makes_thread = flags_of(tid, call, args) & libc::CLONE_THREAD as u64 != 0;
        thread.inside.puts_off = makes_thread && arch::leave_call_out(tid).is_ok();
        thread.inside.puts_off
    }

    /// Takes a process inside whose thread has left a call out, and has it make the call.
    pub(crate) fn was_put_off(&mut self, tid: i32) -> bool {
        let Some(thread) = self.threads.get_mut(&tid).filter(|thread| thread.inside.puts_off) else { return false };
        thread.inside.puts_off = false;
        let pid = thread.pid;
        self.go_inside(tid, pid);
        if let Ok(mut regs) = tracee::registers(tid) {
            regs.pc -= 4;
            // A thread that was killed meanwhile has no registers.
            let _ = tracee::set_registers(tid, &regs);
        }
        true
    }

    /// Returns what a process has that was just made by another one.
    pub(crate) fn inherited(&self, parent: i32) -> OfProcess {
        let Some(process) = self.processes.get(&parent) else { return OfProcess::default() };
        let shares = self.threads.values().any(|thread| thread.pid == parent && thread.inside.shares_with_child);
        OfProcess { calls: 0, declined: process.inside.declined || shares, ..process.inside.clone() }
    }

    /// Handles the first stop of a new thread.
    pub(crate) fn begins(&mut self, tid: i32) {
        let Some(thread) = self.threads.get_mut(&tid).filter(|thread| self.inside.wanted && !thread.inside.begun)
        else {
            return;
        };
        thread.inside.begun = true;
        let pid = thread.pid;
        thread.inside.blocks_traps = tracee::signal_mask(tid).is_ok_and(|mask| mask >> (libc::SIGTRAP - 1) & 1 == 1);
        let Some(process) = self.processes.get(&pid).filter(|_| tid != pid) else { return };
        if process.inside.inside.is_none() {
            return;
        }
        // C libraries use the memory of threads that have ended again, with their pointer to a slot.
        if let Some(pointer) = pointer(tid) {
            self.write(tid, pointer, &0u64.to_le_bytes());
        }
        self.give_slot(tid, pid);
        self.put_on(tid);
    }

    /// Makes the thread's memory point to its slot, if it has one.
    fn put_on(&mut self, tid: i32) {
        let Some(thread) = self.threads.get(&tid).filter(|thread| !thread.inside.on) else { return };
        let Some(slot) = thread.inside.slot.as_ref() else { return };
        let process = self.processes.get(&thread.pid).filter(|process| !process.inside.declined);
        let Some(inside) = process.and_then(|process| process.inside.inside.as_ref()) else { return };
        let (pointer, address) = (slot.pointer, inside.base + slot_at(slot.index));
        let on = self.write(tid, pointer, &address.to_le_bytes());
        if let Some(thread) = self.threads.get_mut(&tid) {
            thread.inside.on = on;
        }
    }

    /// Makes the thread's memory point to no slot, so that the thread stops at its calls.
    pub(super) fn put_aside(&mut self, tid: i32) {
        let Some(thread) = self.threads.get(&tid).filter(|thread| thread.inside.on) else { return };
        if let Some(pointer) = thread.inside.slot.as_ref().map(|slot| slot.pointer) {
            self.write(tid, pointer, &0u64.to_le_bytes());
        }
        if let Some(thread) = self.threads.get_mut(&tid) {
            thread.inside.on = false;
        }
    }

    /// Adds an entry for the context of a call about which a thread has asked.
    fn learn(&mut self, tid: i32, call: &Pending) {
        let Some(thread) = self.threads.get_mut(&tid) else { return };
        let (Some(unknown), pid) = (thread.inside.unknown.take(), thread.pid) else { return };
        let Some(process) = self.processes.get_mut(&pid) else { return };
        let asks =
            |signature| self.awaited.asks_at(signature) || self.windows.tells_requests() && is_receive(signature);
        if ALWAYS.contains(&call.syscall) || makes_executable(call) || call.signature.is_none_or(asks) {
            return;
        }
        let Some(row) = self.table.rows.get(call.row as usize) else { return };
        let Some(context) = self.table.stacks.get(row.context as usize) else { return };
        let callers: Vec<RawFrame> = unknown.callers.iter().map(|at| process.space.frame(*at, true)).collect();
        let Some(levels) = levels_of(&context.frames, &callers) else { return };
        let Some(inside) = process.inside.inside.as_mut() else { return };
        if levels > inside.levels {
            // Contexts get other keys, and their entries are learnt again.
            inside.levels = levels;
            return;
        }
        let Some(slot) = thread.inside.slot.as_mut() else { return };
        let first = unknown.key >> (64 - slot::INDEX_BITS);
        let start = |at| slot_at(slot.index) + slot::TABLE + at * entry::SIZE;
        let is_free = |at: &u64| inside.shared.word(start(*at) + entry::KEY).load(Ordering::Relaxed) == 0;
        let Some(at) = (first..first + slot::PROBES).find(is_free) else { return };
        let set = |offset, value| inside.shared.word(start(at) + offset).store(value, Ordering::Relaxed);
        set(entry::MOVES, if call.signature.is_some_and(|s| s.transfers) { u64::MAX } else { 0 });
        set(entry::KEY, unknown.key);
        slot.rows.push((at, call.row));
    }

    /// Tells a thread's entries when to ask: where a window may open, or all the time while one is open.
    fn set_turns(&mut self, tid: i32, pid: i32) {
        let Some(thread) = self.threads.get(&tid) else { return };
        let Some(slot) = thread.inside.slot.as_ref() else { return };
        let Some(inside) = self.processes.get(&pid).and_then(|process| process.inside.inside.as_ref()) else { return };
        let start = slot_at(slot.index);
        inside.shared.word(start + slot::WANT).store(thread.window.is_some().into(), Ordering::Relaxed);
        for (at, row) in &slot.rows {
            let Some(row) = self.table.rows.get(*row as usize) else { continue };
            let octave = 2u64 << row.entered.max(1).ilog2();
            let next = row.picks.first().copied().unwrap_or(octave).min(octave);
            let turn = next.saturating_sub(row.entered).clamp(1, LONGEST_TURN) - 1;
            let at = start + slot::TABLE + at * entry::SIZE + entry::ASK_AT;
            inside.shared.word(at).store(turn, Ordering::Relaxed);
        }
    }
}

/// Returns the question at an address of a process's code, and the distance to where the thread goes on.
pub(super) fn question(tid: i32, at: u64) -> Option<(Ask, u64)> {
    let mut word = [0; 4];
    (sys::read_memory(tid, at, &mut word) == word.len()).then(|| Ask::of(u32::from_le_bytes(word)))?
}

/// Bits of an address that are no authentication code.
const ADDRESS: u64 = (1 << 48) - 1;

/// Returns the address of a thread's pointer to its slot.
pub(super) fn pointer(tid: i32) -> Option<u64> {
    let regs = tracee::registers(tid).ok()?;
    Some(arch::thread_pointer(tid, &regs).filter(|pointer| *pointer != 0)?.wrapping_add(POINTER))
}

/// Returns the flags of a call that makes a child.
fn flags_of(tid: i32, call: Sysno, args: &[u64; 6]) -> u64 {
    let mut flags = args[0].to_le_bytes();
    if call == CLONE3 {
        sys::read_memory(tid, args[0], &mut flags);
    }
    u64::from_le_bytes(flags)
}

/// Returns true if a call makes memory executable.
fn makes_executable(call: &Pending) -> bool {
    let maps = call.syscall == MMAP || call.syscall == MPROTECT || call.syscall == Sysno::named("pkey_mprotect");
    maps && call.args[2] & libc::PROT_EXEC as u64 != 0
}

/// Returns the number of frame records by which a context is distinguished, if all its callers are among `callers`, in their order:
/// that of the return register, and those of frame records.
fn levels_of(context: &[RawFrame], callers: &[RawFrame]) -> Option<u64> {
    let mut last = 0;
    let mut left = callers.iter().enumerate();
    for frame in context.get(1..)? {
        (last, _) = left.find(|(_, caller)| *caller == frame)?;
    }
    Some(last as u64)
}
