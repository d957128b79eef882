//! Code that comes while a program runs: files that are mapped, and memory that becomes executable.
//!
//! Files are hooked before anybody runs them. What is no file is looked through for calls, which
//! nobody can hook there: where a jump may lead is not known of code that was just made.

use super::super::layout::image;
use super::super::nr::{MMAP, MREMAP};
use super::birth::Taken;
use super::engine::Engine;
use super::maps::{self, Layout, Mapped, Maps};
use super::memory::{Area, BLOBS, BLOBS_AT, BLOBS_SIZE};
use super::program::{Patched, Program, Waiter};
use super::sites::Arrival;
use crate::sys::read_memory;
use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind, Register};
use std::fs::File;
use std::ops::Range;
use std::rc::Rc;
use systoll_model::ProblemKind;
use systoll_symbols::MappedFile;

/// How often a program's new memory is looked at, and how many bytes of it: others than compilers
/// at run time do not come near.
const MOST_LOOKS: u32 = 1000;
const MOST_BYTES: u64 = 64 << 20;
/// Bytes read at a time.
const PIECE: u64 = 1 << 16;
/// Bytes before a call in which its number is looked for.
const REACH: usize = 24;
/// Numbers of calls there are, and some more.
const HIGHEST: u64 = 600;

/// Code of a program that is in no file.
#[derive(Clone, Debug, Default)]
pub(super) struct Generated {
    looks: u32,
    bytes: u64,
    /// Places that look like system calls.
    pub(super) calls: u64,
    /// Memory was to be written and run at once.
    pub(super) written_in_place: bool,
    /// How many of the calls were found in such memory.
    in_place: u64,
    /// It was looked through when the program ended.
    pub(super) seen_at_end: bool,
    /// More came than was looked at.
    pub(super) too_much: bool,
}

impl Generated {
    /// Whether there is any.
    pub(super) fn any(&self) -> bool {
        self.looks > 0
    }
}

impl Engine {
    /// A thread has mapped a file executable, or made memory so, by a call counted at `root`: it is
    /// patched, or looked at, before anybody knows of it.
    pub(super) fn on_mapped(&mut self, id: u32, index: u64, waiter: &Waiter, root: u64) {
        let unhooked = self.unhooked;
        if self.hook_mapped(id, index, waiter, root).is_none() {
            self.unhooked += 1;
        }
        self.allow_elision(id, unhooked);
    }

    /// `None` where nobody knows what came.
    fn hook_mapped(&mut self, id: u32, index: u64, waiter: &Waiter, root: u64) -> Option<()> {
        let r = &waiter.registers;
        let (mapped, at) = if r.ax == 0 { (false, r.di) } else { (true, r.ax) };
        let range = at..at.saturating_add(r.si);
        let now = self.maps_file(id, waiter.tid)?;
        let program = self.programs.get_mut(&id)?;
        // Most often a file has come, and one line says it all: unless the program makes code as it runs,
        // of which nobody tells any more once there is much, and stacks lead through it.
        let alone = mapped && program.generated.looks == 0;
        let line = if alone { maps::line_at(&now, &range) } else { None };
        if let Some(file) = line.and_then(|line| program.space.add_by(&mut self.symbols, waiter.tid, &line)) {
            if self.is_guest(id, root, &file) {
                return None;
            }
            if matches!(self.files.known(&mut self.symbols, file.module), Ok(None)) {
                self.unsown.push(id);
                return Some(());
            }
            return self.hook_file(id, index, waiter, (&file, mapped), Layout::Asked(&now));
        }
        let maps = Maps::of(waiter.tid);
        program.space.update_by(&mut self.symbols, waiter.tid, &maps.text);
        let maps = maps.all;
        let here = |f: &MappedFile| f.start < range.end && range.start < f.end;
        let files: Vec<MappedFile> = program.space.files().filter(here).collect();
        let comes =
            |m: &&Mapped| m.executable && m.range.start < range.end && range.start < m.range.end && !is_file(&files, m);
        let memory: Vec<Mapped> = maps.iter().filter(comes).cloned().collect();
        if files.is_empty() && memory.is_empty() {
            return None;
        }
        if !memory.is_empty() {
            self.on_code_made(id, waiter.tid, root);
        }
        for m in &memory {
            let part = m.range.start.max(range.start)..m.range.end.min(range.end);
            // What is shared may be written where else it is mapped.
            self.look_through(id, waiter.tid, part, (mapped && (r.r8 as i32) < 0, m.writable || m.shared));
        }
        let layout = Layout::Known(&maps);
        files.into_iter().try_for_each(|file| {
            let known = !mapped && self.hooked(id, index, &file).is_some();
            match known || !self.is_guest(id, root, &file) {
                true => self.hook_file(id, index, waiter, (&file, mapped), layout),
                false => None,
            }
        })
    }

    /// The `maps` file of a thread's process, open since it was asked for the last time if that was the last
    /// one asked for: libraries come by the dozen.
    fn maps_file(&mut self, id: u32, tid: i32) -> Option<Rc<File>> {
        if let Some((_, _, file)) = self.maps_file.as_ref().filter(|(of, by, _)| (*of, *by) == (id, tid)) {
            return Some(Rc::clone(file));
        }
        let file = Rc::new(maps::open(tid)?);
        self.maps_file = Some((id, tid, Rc::clone(&file)));
        Some(file)
    }

    /// Hooks a file that has just become executable. One that was before, and is hooked, stays so.
    fn hook_file(
        &mut self,
        id: u32,
        index: u64,
        waiter: &Waiter,
        (file, mapped): (&MappedFile, bool),
        layout: Layout<'_>,
    ) -> Option<()> {
        let arrival = if mapped { Arrival::Mapped } else { Arrival::MadeExecutable };
        if let Some(known) = self.hooked(id, index, file) {
            // A further piece of it, or the same again after its loader has worked on it.
            self.write_around(id, known, arrival, (index, layout));
            return Some(());
        }
        let ready = match self.ready(file, &mut Taken::by(layout)) {
            Ok(Some(ready)) => ready,
            Ok(None) => {
                self.unsown.push(id);
                return Some(());
            }
            Err(why) => {
                self.leave_alone(id, waiter.tid, &format!("has loaded what can't be watched: {why}"));
                return None;
            }
        };
        let quiet = self.memory.image(id).is_none_or(|a| a.get(image::QUIET) as u32 != 0);
        let obstacle = if layout.at(file.start).is_some_and(|m| m.shared) {
            // Jumps in it would be jumps in the file.
            Some("it is mapped shared")
        } else if quiet || !self.map_code(id, index, &ready) {
            Some("no code near it")
        } else if self.waited_long(id, index) {
            Some("it came too fast")
        } else {
            None
        };
        if let Some(why) = obstacle {
            if self.is_waiter_doomed(id, index) {
                return None;
            }
            let path = self.symbols.path(file.module).unwrap_or_default();
            self.problem(ProblemKind::Lost, format!("{path}: its system calls are not counted: {why}"));
            self.sites.note(&ready.patched, None, Arrival::Mapped);
            return None;
        }
        self.patch(id, ready.patched, arrival, (index, layout));
        self.unsown.push(id);
        Some(())
    }

    /// Which of a program's files this one is, if that is hooked in the process whose thread has `slot`.
    fn hooked(&self, id: u32, slot: u64, file: &MappedFile) -> Option<usize> {
        let program = self.programs.get(&id)?;
        let mem = self.memory_of(id, slot).ok()?;
        let is_it = |f: &Patched| f.key == file.module && f.bias == file.bias && f.is_in(&mem);
        program.files.iter().position(is_it)
    }

    /// Looks for calls in memory that has become executable and is no file.
    fn look_through(&mut self, id: u32, tid: i32, range: Range<u64>, (fresh, in_place): (bool, bool)) {
        let Some(program) = self.programs.get_mut(&id) else { return };
        let Some(area) = self.memory.image(id) else { return };
        let generated = &mut program.generated;
        if in_place {
            generated.written_in_place = true;
            area.set(image::WRITES_CODE, 1);
        }
        generated.looks += 1;
        // What was just mapped is all zeroes, and would be there only for having been looked at.
        if !fresh {
            let most = MOST_BYTES.saturating_sub(generated.bytes);
            let end = range.end.min(range.start.saturating_add(most));
            generated.too_much |= end < range.end;
            generated.bytes += end - range.start;
            let calls = calls_in(range.start..end, |at, buffer| read_memory(tid, at, buffer));
            generated.calls += calls;
            generated.in_place += if in_place { calls } else { 0 };
            self.sites.note_generated(calls);
        }
        if generated.looks >= MOST_LOOKS || generated.bytes >= MOST_BYTES {
            generated.too_much = true;
            area.set(image::LOOKED, 1);
        }
    }

    /// A program ends that may have written code at any time: what there is now is what it is known by.
    pub(super) fn on_ending(&mut self, id: u32, tid: i32) {
        let maps = Maps::of(tid);
        let Some(program) = self.programs.get_mut(&id) else { return };
        program.space.update_by(&mut self.symbols, tid, &maps.text);
        let files: Vec<MappedFile> = program.space.files().collect();
        let ours = |m: &Mapped| {
            let code = |f: &Patched| f.bias.wrapping_add_signed(f.code.blob.delta);
            m.range.start >= BLOBS_AT && m.range.start < BLOBS_AT + BLOBS_SIZE
                || program.files.iter().any(|f| (code(f)..code(f) + f.code.size()).contains(&m.range.start))
        };
        let in_place = |m: &&Mapped| m.executable && (m.writable || m.shared) && !is_file(&files, m) && !ours(m);
        let (mut calls, mut budget) = (0, MOST_BYTES);
        for m in maps.all.iter().filter(in_place) {
            let end = m.range.end.min(m.range.start.saturating_add(budget));
            budget -= end - m.range.start;
            calls += calls_in(m.range.start..end, |at, buffer| read_memory(tid, at, buffer));
        }
        let generated = &mut program.generated;
        // Of its forks each ends by itself.
        let is_first = std::fs::exists(format!("/proc/{}/task/{tid}", program.pid)).unwrap_or(false);
        generated.seen_at_end |= is_first && budget > 0 && !maps.all.is_empty();
        let more = calls.saturating_sub(generated.in_place);
        generated.calls += more;
        generated.in_place += more;
        self.sites.note_generated(more);
    }

    /// Has the waiting thread map code: first a reservation, which can't hit what another thread
    /// maps at this moment, then the code over it.
    fn map_code(&mut self, id: u32, index: u64, ready: &super::birth::Ready) -> bool {
        let Patched { code, .. } = &ready.patched;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE | libc::MAP_NORESERVE;
        let (at, size) = (ready.at, code.size());
        // Where there never was a second thread there is nobody to be hit.
        let alone = self.memory.image(id).is_some_and(Area::no_slot_drawn);
        let reserve = [MMAP.into(), at, size, 0, flags as u64, u64::MAX, 0];
        if !alone && self.request(id, index, reserve) != Some(at) {
            return false;
        }
        let from = BLOBS_AT + (code.offset - BLOBS);
        let fixed = (libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED) as u64;
        self.request(id, index, [MREMAP.into(), from, 0, size, fixed, at, 0]) == Some(at)
    }

    /// Says what of a program's generated code was not counted, or not looked at.
    pub(super) fn note_generated(&mut self, program: &Program, exe: &str) {
        let generated = &program.generated;
        let all = [
            (
                generated.calls > 0,
                ProblemKind::Lost,
                "makes code while it runs, with what looks like system calls: they are not counted",
            ),
            (
                generated.written_in_place && !generated.seen_at_end || generated.too_much,
                ProblemKind::Note,
                "makes code while it runs: whether that makes system calls of its own is not looked at",
            ),
        ];
        for (is_so, kind, what) in all {
            if is_so {
                self.problem(kind, format!("{exe} {what}"));
            }
        }
    }
}

/// Whether a mapping is that of a file known by its headers.
fn is_file(files: &[MappedFile], mapped: &Mapped) -> bool {
    files.iter().any(|f| f.start < mapped.range.end && mapped.range.start < f.end)
}

/// How many places in memory look like system calls.
fn calls_in(range: Range<u64>, read: impl Fn(u64, &mut [u8]) -> usize) -> u64 {
    let mut buffer = vec![0; (PIECE as usize) + REACH + 1];
    let (mut at, mut calls) = (range.start, 0);
    while at < range.end {
        // From a little before, so that no call lies across a seam; those before are counted already.
        let from = at.saturating_sub(REACH as u64).max(range.start);
        let end = range.end.min(at.saturating_add(PIECE + 1));
        let Some(bytes) = buffer.get_mut(..(end - from) as usize) else { return calls };
        let got = read(from, bytes);
        let bytes = bytes.get(..got).unwrap_or_default();
        let skip = (at - from) as usize;
        let found =
            bytes.windows(2).enumerate().skip(skip).filter(|(n, pair)| **pair == [0x0f, 0x05] && is_call(bytes, *n));
        calls += found.count() as u64;
        at = at.saturating_add(PIECE);
    }
    calls
}

/// Whether the bytes of a `syscall` at `n` are one: shortly before, the number of a call is put into
/// eax, and from there on instruction follows instruction up to it.
fn is_call(bytes: &[u8], n: usize) -> bool {
    (n.saturating_sub(REACH)..n).any(|start| {
        let Some(before) = bytes.get(start..n) else { return false };
        let mut decoder = Decoder::with_ip(64, before, 0, DecoderOptions::NONE);
        let mut instruction = Instruction::default();
        let mut first = true;
        while decoder.can_decode() {
            decoder.decode_out(&mut instruction);
            let good = instruction.flow_control() == FlowControl::Next && !instruction.is_invalid();
            if !good || first && !puts_number(&instruction) {
                return false;
            }
            first = false;
        }
        !first
    })
}

fn puts_number(i: &Instruction) -> bool {
    let whole = matches!(i.op0_register(), Register::EAX | Register::RAX);
    let constant = matches!(i.try_op_kind(1), Ok(OpKind::Immediate32 | OpKind::Immediate32to64 | OpKind::Immediate64));
    match i.mnemonic() {
        Mnemonic::Mov => whole && constant && i.immediate(1) < HIGHEST,
        Mnemonic::Xor => whole && i.op0_register() == i.op1_register(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calls(bytes: &[u8]) -> u64 {
        let read = |at: u64, buffer: &mut [u8]| {
            let from = bytes.get(at as usize..).unwrap_or_default();
            let len = buffer.len().min(from.len());
            buffer[..len].copy_from_slice(&from[..len]);
            len
        };
        calls_in(0..bytes.len() as u64, read)
    }

    const MOV_39: [u8; 5] = [0xb8, 39, 0, 0, 0];
    const SYSCALL: [u8; 2] = [0x0f, 0x05];

    #[test]
    fn a_call_has_a_number() {
        assert_eq!(calls(&[&MOV_39[..], &SYSCALL].concat()), 1);
        let with_arguments = [&MOV_39[..], &[0x48, 0x89, 0xf7, 0x31, 0xf6], &SYSCALL].concat();
        assert_eq!(calls(&with_arguments), 1);
        assert_eq!(calls(&[&[0x31, 0xc0][..], &SYSCALL].concat()), 1);
        // A number in the code's own constants, no call's number, a way that does not lead there.
        assert_eq!(calls(&[&[0x90; 30][..], &SYSCALL].concat()), 0);
        assert_eq!(calls(&[&[0xb8, 39, 0, 0, 1][..], &SYSCALL].concat()), 0);
        assert_eq!(calls(&[&MOV_39[..], &[0xc3], &SYSCALL].concat()), 0);
        assert_eq!(calls(&[]), 0);
    }

    #[test]
    fn none_is_missed_or_counted_twice_at_a_seam() {
        let call = [&MOV_39[..], &SYSCALL].concat();
        for shift in 0..40 {
            let mut bytes = vec![0x90; 3 * PIECE as usize];
            for seam in [PIECE as usize, 2 * PIECE as usize] {
                bytes[seam - 20 + shift..][..7].copy_from_slice(&call);
            }
            assert_eq!(calls(&bytes), 2, "{shift}");
        }
    }

    #[test]
    fn chance_seldom_makes_a_call() {
        let mut state = 1u64;
        let bytes: Vec<u8> = (0..4 << 20)
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (state >> 56) as u8
            })
            .collect();
        assert_eq!(calls(&bytes), 0);
    }
}
