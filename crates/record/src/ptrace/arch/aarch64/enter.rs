//! Writes the counting code into a process that has stopped at a call's return.

use super::calls::pointer;
use super::state::{CodeId, Inside, Mapped, Shared, Slot, slot_at};
use crate::ptrace::engine::Engine;
use crate::tracee::{self, Regs, arch};
use crate::{procfs, sys};
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::rc::Rc;
use std::sync::atomic::Ordering;
use systoll_binfile::maps::{Line, lines};
use systoll_hooks::aarch64::layout::{self, MULTIPLIER, slot};
use systoll_hooks::aarch64::{self, Site};
use systoll_model::ProblemKind;

/// Numbers of calls on aarch64 (asm-generic/unistd.h).
const CLOSE: i64 = 57;
const GETPID: i64 = 172;
const MMAP: i64 = 222;
const MEMFD_CREATE: i64 = 279;

/// Bytes that a jump may lead away, with room for the code.
const REACH: u64 = 120 << 20;
/// Bytes left free beside other mappings.
const APART: u64 = 64 << 10;
/// Address below which processes may map nothing (vm.mmap_min_addr).
const LOWEST: u64 = 64 << 10;
/// Name of the kernel's code in processes.
const VDSO: &[u8] = b"[vdso]";
/// Bytes of a file's code that are read, at most.
const MOST_CODE: u64 = 256 << 20;
/// Bytes below a first thread's sp that can be its stack, at most. Linux leaves 128 MB free below a stack.
const MOST_STACK: u64 = 64 << 20;

/// Bytes of a frame record.
const RECORD: u64 = 16;
/// Frame records that distinguish contexts at first.
const FIRST_LEVELS: u64 = 2;

/// Code of a file in a process, with calls.
struct Text {
    range: Range<u64>,
    words: Vec<u32>,
    sites: Rc<[Site]>,
    /// Address of the counting code.
    at: u64,
}

/// Opens a process's memory, to write even where the process may not.
pub(super) fn memory(pid: i32) -> std::io::Result<File> {
    File::options().read(true).write(true).open(format!("/proc/{pid}/mem"))
}

impl Engine {
    /// Writes the counting code into a process, whose only thread has stopped, and gives it a slot. A process in which that
    /// can't be done goes on to stop at its calls.
    pub(super) fn go_inside(&mut self, tid: i32, pid: i32) {
        let entered = self.entered(tid, pid);
        let Some(process) = self.processes.get_mut(&pid) else { return };
        process.inside.declined |= entered.is_none();
        process.inside.inside = entered;
        self.give_slot(tid, pid);
    }

    fn entered(&mut self, tid: i32, pid: i32) -> Option<Inside> {
        let field = |key| procfs::status_field(pid, key);
        let mask = |key| u64::from_str_radix(&field(key)?, 16).ok();
        // A filter may end a process that makes calls of ours. The signal by which threads ask must be nobody else's.
        let is_free =
            field("Seccomp:")? == "0" && (mask("SigCgt:")? | mask("SigIgn:")?) >> (libc::SIGTRAP - 1) & 1 == 0;
        let mut word = [0; 8];
        let unused = sys::read_memory(tid, pointer(tid)?, &mut word) == word.len() && word == [0; 8];
        if !is_free || !unused {
            return None;
        }
        let maps = procfs::read(format!("/proc/{pid}/maps"))?;
        let memory = memory(pid).ok()?;
        let mut known = Vec::new();
        let mut texts = self.texts(&memory, &maps, &mut known)?;
        place(&mut texts, &maps)?;
        let first = texts.first()?;
        let (at, svc) = (first.at, first.range.start + first.sites.first()?.at as u64);
        let remote = Remote::begin(tid, svc)?;
        let made = remote.map_code(&texts, &mut known).and_then(|()| remote.share(pid, &memory, at));
        remote.end();
        let (shared, base) = made?;
        self.inside.keep(&shared);
        let mut inside =
            Inside { shared, base, svc, jumps: Vec::new(), moved: Vec::new(), levels: FIRST_LEVELS, known };
        write_all(&memory, &texts, &mut inside)?;
        Some(inside)
    }

    /// Returns the code with calls among what is mapped, except what is known, and adds it to that. Returns nothing if some
    /// of it can't be hooked.
    fn texts(&mut self, memory: &File, maps: &[u8], known: &mut Vec<Mapped>) -> Option<Vec<Text>> {
        let mut texts = Vec::new();
        for line in lines(maps).filter(|line| line.executable) {
            let Line { range, inode, writable, device, offset, .. } = line;
            let len = range.end - range.start;
            let id: CodeId = (device, inode, offset, len);
            if known.contains(&(range.start, id)) {
                continue;
            }
            // Code that is in no file: nobody knows what calls it makes, now or later. The kernel's makes some: for the time of a
            // thread, and random bytes.
            let is_known = inode != 0 || line.path == VDSO;
            if !is_known || writable || len > MOST_CODE {
                return None;
            }
            known.push((range.start, id));
            let mut bytes = vec![0; len as usize];
            memory.read_exact_at(&mut bytes, range.start).ok()?;
            let words: Vec<u32> = bytes.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word)).collect();
            let remembered = self.inside.sites.get(&id).cloned();
            let sites = remembered.unwrap_or_else(|| aarch64::sites(&words).map(Rc::from));
            self.inside.remember(id, sites.clone());
            let sites = sites.ok()?;
            if !sites.is_empty() {
                texts.push(Text { range, words, sites, at: 0 });
            }
        }
        Some(texts)
    }

    /// Hooks code that has been mapped since. If that can't be done, the thread stops at its calls again.
    pub(super) fn add_code(&mut self, tid: i32, pid: i32) {
        let Some(mut inside) = self.processes.get_mut(&pid).and_then(|process| process.inside.inside.take()) else {
            return;
        };
        let added = self.added(tid, pid, &mut inside);
        let others = self.threads.iter().any(|(other, thread)| *other != tid && thread.pid == pid && thread.inside.on);
        if let Some(process) = self.processes.get_mut(&pid) {
            process.inside.inside = Some(inside);
            process.inside.declined |= added.is_none();
        }
        if added.is_none() && others {
            let text = "calls of code that was mapped while threads counted by themselves are missing";
            self.problems.note(ProblemKind::Lost, text);
        }
    }

    fn added(&mut self, tid: i32, pid: i32, inside: &mut Inside) -> Option<()> {
        let maps = procfs::read(format!("/proc/{pid}/maps"))?;
        let memory = memory(pid).ok()?;
        let mut texts = self.texts(&memory, &maps, &mut inside.known)?;
        if texts.is_empty() {
            return Some(());
        }
        place(&mut texts, &maps)?;
        let remote = Remote::begin(tid, inside.svc)?;
        let mapped = remote.map_code(&texts, &mut inside.known);
        remote.end();
        mapped?;
        write_all(&memory, &texts, inside)
    }

    /// Gives a thread a slot, if it has none and there is one.
    pub(super) fn give_slot(&mut self, tid: i32, pid: i32) {
        let Some(inside) = self.processes.get(&pid).and_then(|process| process.inside.inside.as_ref()) else { return };
        let Some(thread) = self.threads.get_mut(&tid).filter(|thread| thread.inside.slot.is_none()) else { return };
        let Some(pointer) = pointer(tid) else { return };
        let Some(index) = inside.shared.take() else { return };
        let (low, high) = stack(tid, pid, pointer).unwrap_or_default();
        let number = |key| procfs::status_field(tid, key)?.split_whitespace().last()?.parse().ok();
        let head = [
            // The numbers in the thread's own namespace; without them it asks by a trap.
            (slot::PID, number("NStgid:").unwrap_or(0)),
            (slot::TID, number("NSpid:").unwrap_or(0)),
            (slot::STACK_LOW, low),
            (slot::STACK_HIGH, high),
            (slot::LEVELS, inside.levels),
            (slot::MULTIPLIER, MULTIPLIER),
            (slot::HEAD, inside.base),
        ];
        for (offset, word) in head {
            inside.shared.word(slot_at(index) + offset).store(word, Ordering::Relaxed);
        }
        thread.inside.slot = Some(Slot { index, pointer, rows: Vec::new() });
    }
}

/// Returns the bounds of a stopped thread's stack within which frame records can be read as long as sp lies there as well.
fn stack(tid: i32, pid: i32, pointer: u64) -> Option<(u64, u64)> {
    let sp = arch::sp(&tracee::registers(tid).ok()?);
    let maps = procfs::read(format!("/proc/{pid}/maps"))?;
    let line = lines(&maps).find(|line| line.range.contains(&sp))?;
    let Range { start, end } = line.range;
    if line.path == b"[stack]" {
        return Some((end.saturating_sub(MOST_STACK), end - RECORD));
    }
    // Of a thread's own mapping, the C library's data lies at the top.
    let end = if (sp..end).contains(&pointer) { pointer } else { end };
    Some((start, end - RECORD))
}

/// Finds a place for the code of each text.
fn place(texts: &mut [Text], maps: &[u8]) -> Option<()> {
    let mut taken: Vec<(Range<u64>, bool)> = lines(maps).map(|line| (line.range, line.path == b"[stack]")).collect();
    taken.push((0..LOWEST, false));
    for text in texts {
        let need = aarch64::size(text.sites.len()).next_multiple_of(1 << 16);
        taken.sort_by_key(|(range, _)| range.start);
        let holes = taken.windows(2).filter_map(|pair| {
            let (low, high) = (pair[0].0.end + APART, pair[1].0.start.checked_sub(APART)?);
            let room = high.checked_sub(low).filter(|room| *room >= need)?;
            // A stack grows downwards; memory from brk(2), upwards.
            let at = if pair[1].1 || room < 2 * need { low } else { high - need };
            Some(at & !0xffff).filter(|at| *at >= pair[0].0.end)
        });
        let reached = |at: &u64| {
            let all = text.range.start.min(*at)..text.range.end.max(at + need);
            all.end - all.start < REACH
        };
        let at = holes.filter(reached).min_by_key(|at| at.abs_diff(text.range.start))?;
        taken.push((at..at + need, false));
        text.at = at;
    }
    Some(())
}

/// Writes the code, and then the jumps to it.
fn write_all(memory: &File, texts: &[Text], inside: &mut Inside) -> Option<()> {
    let mut all = Vec::new();
    for text in texts {
        let written = aarch64::write(&text.words, &text.sites, text.range.start, text.at).ok()?;
        let bytes: Vec<u8> = written.words.iter().flat_map(|word| word.to_le_bytes()).collect();
        memory.write_all_at(&bytes, text.at).ok()?;
        inside.moved.extend(&written.moved);
        all.push(written.jumps);
    }
    for jump in all.into_iter().flatten() {
        memory.write_all_at(&jump.word.to_le_bytes(), jump.at).ok()?;
        inside.jumps.push(jump);
    }
    Some(())
}

/// A stopped thread that makes calls for us.
struct Remote {
    tid: i32,
    svc: u64,
    regs: Regs,
    mask: u64,
}

impl Remote {
    fn begin(tid: i32, svc: u64) -> Option<Self> {
        let mask = tracee::signal_mask(tid).ok()?;
        let mut remote = Self { tid, svc, regs: tracee::registers(tid).ok()?, mask };
        tracee::set_signal_mask(tid, u64::MAX).ok()?;
        // At a call's return, the kernel shows another value in x7, and restores it when the thread goes on.
        remote.call(GETPID, [0; 6]);
        if let Ok(now) = tracee::registers(tid) {
            remote.regs.regs[7] = now.regs[7];
        }
        Some(remote)
    }

    /// Makes a call. Returns nothing if it fails.
    fn call(&self, number: i64, args: [u64; 6]) -> Option<u64> {
        tracee::make_call(self.tid, self.svc, &self.regs, (number, args)).ok().filter(|result| (*result as i64) >= 0)
    }

    /// Maps memory for the code of each text.
    fn map_code(&self, texts: &[Text], known: &mut Vec<Mapped>) -> Option<()> {
        let rights = (libc::PROT_READ | libc::PROT_EXEC) as u64;
        let kind = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE) as u64;
        for text in texts {
            let len = aarch64::size(text.sites.len()).next_multiple_of(1 << 16);
            let at = self.call(MMAP, [text.at, len, rights, kind, u64::MAX, 0])?;
            known.push((at, ((0, 0), 0, 0, len)));
            (at == text.at).then_some(())?;
        }
        Some(())
    }

    /// Makes the memory in which the process counts. `scratch` is memory for its name.
    fn share(&self, pid: i32, memory: &File, scratch: u64) -> Option<(Rc<Shared>, u64)> {
        memory.write_all_at(b"systoll\0", scratch).ok()?;
        let flags = u64::from(libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING);
        let fd = self.call(MEMFD_CREATE, [scratch, flags, 0, 0, 0, 0])?;
        let file = File::options().read(true).write(true).open(format!("/proc/{pid}/fd/{fd}"));
        let shared = file.and_then(|file| Shared::map(&file));
        let rights = (libc::PROT_READ | libc::PROT_WRITE) as u64;
        let base = self.call(MMAP, [0, layout::SIZE, rights, libc::MAP_SHARED as u64, fd, 0]);
        self.call(CLOSE, [fd, 0, 0, 0, 0, 0]);
        Some((Rc::new(shared.ok()?), base?))
    }

    fn end(self) {
        // A thread that was killed meanwhile has neither.
        let _ = tracee::set_registers(self.tid, &self.regs);
        let _ = tracee::set_signal_mask(self.tid, self.mask);
    }
}
