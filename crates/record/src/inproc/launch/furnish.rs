//! A program's image: made before its exec, filled while it maps our memory and when it maps files.

use super::super::assemble::AssembleError;
use super::super::layout::{WRITE_CODE, image, own_words, slot};
use super::code::Code;
use super::engine::Engine;
use super::maps::{Layout, Mapped};
use super::memory::{BLOBS, BLOBS_AT, Memory, Runs};
use super::program::{Patched, Program};
use super::sites::Arrival;
use super::target::Mem;
use crate::procfs;
use std::rc::Rc;
use systoll_model::ProblemKind;
use systoll_symbols::ModuleKey;

/// Files remembered that programs of one file map.
const MOST_USUAL: usize = 16;

/// What is known of programs of one file.
#[derive(Default)]
pub(super) struct Alike {
    /// How many have begun.
    pub(super) begun: u32,
    /// Code of files that they have mapped, one for each region.
    mapped: Vec<Rc<Code>>,
}

/// A process's memory.
pub(super) enum MemOf<'a> {
    /// Of the process that executed the program.
    First(&'a Mem),
    /// Of a fork child.
    Fork(Mem),
}

impl std::ops::Deref for MemOf<'_> {
    type Target = Mem;

    fn deref(&self) -> &Mem {
        match self {
            Self::First(mem) => mem,
            Self::Fork(mem) => mem,
        }
    }
}

impl Engine {
    /// A new image, as every program begins with.
    pub(super) fn blank_image(&mut self) -> Option<u32> {
        let id = self.memory.new_image()?;
        self.memory.write(id, self.files.blank());
        self.memory.write(id, &Runs::new(own_words(id)));
        Some(id)
    }

    /// Makes the image of the next program while an exec is under way: that takes long enough.
    pub(super) fn make_ahead(&mut self) {
        if self.spare.is_none() && self.seized.len() > self.lingering.len() {
            self.spare = self.blank_image();
        }
    }

    /// Takes process `pid` into its first slot.
    pub(super) fn enter(&self, id: u32, pid: i32) {
        let pid = pid as u64;
        let first = [(image::SLOTS + slot::TID, pid), (image::SLOTS + slot::PID, pid)];
        self.memory.write(id, &Runs::new(first));
    }

    /// What of a new program can be done while it maps our memory.
    pub(super) fn furnish(&mut self, id: u32) {
        let Some(program) = self.programs.get(&id) else { return };
        let argv = procfs::argv(program.pid);
        if let Some(image) = self.table.images.get_mut(program.image as usize) {
            image.argv = argv;
        }
        let newborn = self.programs.get_mut(&id).and_then(|p| p.newborn.take()).unwrap_or_default();
        let unhooked = self.unhooked;
        for file in newborn {
            self.take_in(id, file);
        }
        if let Some(program) = self.programs.get_mut(&id) {
            program.born = program.files.len();
            self.files.expect_roots(program.room.roots);
            program.seen_whole &= self.unhooked == unhooked;
            program.newborn = Some(Vec::new());
        }
        // First, so that their records are the same in all: roots are kept by that.
        self.lay_usual(id);
        self.sow(id);
    }

    /// Lays the roots of files that programs of the same file have mapped so far.
    fn lay_usual(&mut self, id: u32) {
        let Some(program) = self.programs.get_mut(&id) else { return };
        let exe = self.table.images.get(program.image as usize).map(|i| &i.exe);
        let Some(alike) = exe.and_then(|exe| self.alike.get(exe)) else { return };
        for code in &alike.mapped {
            // Of what there is no room for is told where the program maps it.
            let _ = lay(program, &self.memory, code);
        }
    }

    /// Remembers that a program has mapped a file.
    fn note_usual(&mut self, id: u32, code: Rc<Code>) {
        let image = self.programs.get(&id).and_then(|p| self.table.images.get(p.image as usize));
        if let Some(alike) = image.and_then(|i| self.alike.get_mut(&i.exe))
            && alike.mapped.len() < MOST_USUAL
            && alike.mapped.iter().all(|known| known.region != code.region)
        {
            alike.mapped.push(code);
        }
    }

    /// Writes the roots and jumps of a file that a program has mapped, as the thread of `slot` says, which has
    /// `maps` mapped; its code is mapped already.
    pub(super) fn patch(&mut self, id: u32, file: Patched, arrival: Arrival, (slot, maps): (u64, Layout<'_>)) {
        let usual = Rc::clone(&file.code);
        if let Some(index) = self.take_in(id, file) {
            self.write_jumps(id, index, arrival, (slot, maps));
            self.note_usual(id, usual);
        }
    }

    /// Takes a file in among a program's, with its roots; its place there, unless there is no room.
    fn take_in(&mut self, id: u32, file: Patched) -> Option<usize> {
        let program = self.programs.get_mut(&id)?;
        let area = self.memory.image(id)?;
        if let Err(e) = lay(program, &self.memory, &file.code) {
            self.lost(file.key, &e.to_string());
            return None;
        }
        file.code.announce(area, file.bias.wrapping_add_signed(file.code.blob.delta));
        program.files.push(file);
        Some(program.files.len() - 1)
    }

    /// Writes the jumps of the program's file at `index`; its roots are there and its code is mapped.
    pub(super) fn write_jumps(&mut self, id: u32, index: usize, arrival: Arrival, by: (u64, Layout<'_>)) {
        let slot = by.0;
        let written = arrival != Arrival::MadeExecutable && self.has_jumps_written(id, index, by);
        let Some(program) = self.programs.get(&id) else { return };
        let Some(file) = program.files.get(index) else { return };
        let patched = self.memory_of(id, slot).and_then(|mem| match arrival {
            _ if written => Ok(()),
            Arrival::MadeExecutable => mem.patch_one(&file.code.jumps, file.bias),
            Arrival::Born | Arrival::Mapped => mem.patch(&file.code.jumps, file.bias),
        });
        match patched {
            Ok(()) => self.sites.note(file, Some(0), arrival),
            Err(_) => self.write_around(id, index, arrival, by),
        }
    }

    /// Writes those jumps of the program's file at `index` that are missing where it has its code mapped, but
    /// for sites where other bytes lie.
    pub(super) fn write_around(&mut self, id: u32, index: usize, arrival: Arrival, (slot, maps): (u64, Layout<'_>)) {
        let Some(program) = self.programs.get(&id) else { return };
        let Some(file) = program.files.get(index) else { return };
        let is_code = |at| maps.at(at).is_some_and(|m| m.executable && !m.shared);
        let left = self.memory_of(id, slot).and_then(|mem| mem.patch_around(&file.code.jumps, file.bias, &is_code));
        let whole = left.as_ref().is_ok_and(|left| left.sites.is_empty());
        if !whole && self.is_waiter_doomed(id, slot) {
            return;
        }
        self.sites.note(file, left.as_ref().ok().map(|left| left.sites.len() as u64), arrival);
        let (key, all) = (file.key, file.known.plan.sites.len());
        match left {
            Ok(left) if left.sites.is_empty() => {}
            Ok(left) => {
                let path = self.symbols.path(key).unwrap_or_default();
                let (places, shown) = (left.sites.len(), left.shown());
                self.problem(
                    ProblemKind::Lost,
                    format!(
                        "{path}: {places} of {all} places that make system calls are not counted, where something \
                         has changed the code: {shown}"
                    ),
                );
            }
            Err(why) => self.lost(key, &why),
        }
    }

    /// The memory of the process whose thread has `slot`: that of a fork child is not its maker's.
    ///
    /// # Errors
    /// In words, where it can't be opened.
    pub(super) fn memory_of(&self, id: u32, slot: u64) -> Result<MemOf<'_>, String> {
        let program = self.programs.get(&id).ok_or("it is gone")?;
        let pid = self.memory.head(id, slot).pid as i32;
        if pid == program.pid {
            return Ok(MemOf::First(&program.mem));
        }
        Mem::open(pid).map(MemOf::Fork).map_err(|e| e.to_string())
    }

    /// Has the waiting thread of `slot` write the jumps of a file that nobody runs yet, which it does in a third
    /// of the time that it takes from outside: the kernel finds each page for us, and copies it twice. Whether
    /// it did; where it did not, some of them may be there.
    fn has_jumps_written(&mut self, id: u32, index: usize, (slot, maps): (u64, Layout<'_>)) -> bool {
        // Another thread might make a process meanwhile, whose code would stay writable.
        let alone = self.memory.image(id).is_some_and(|a| a.no_slot_drawn() && a.get(image::QUIET) as u32 == 0);
        if !alone || !self.writes_code {
            return false;
        }
        let Some(program) = self.programs.get(&id) else { return false };
        let Some(file) = program.files.get(index) else { return false };
        let Some((extent, pages)) = file.code.jumps.extent() else { return false };
        let bias = file.bias;
        let (start, end) = (bias.wrapping_add(extent.start), bias.wrapping_add(extent.end));
        // All of a mapping: a part of it would stay one of its own.
        let plain = |m: &Mapped| end <= m.range.end && m.executable && !m.writable && !m.shared;
        let Some(text) = maps.at(start).filter(plain).map(|m| m.range) else { return false };
        if program.mem.ready(&file.code.jumps, bias).is_err() {
            return false;
        }
        let from = BLOBS_AT + (file.code.writing - BLOBS);
        let (code, open) = (libc::PROT_READ | libc::PROT_EXEC, libc::PROT_WRITE);
        let call = [WRITE_CODE, text.start, text.end - text.start, (code | open) as u64, code as u64, from, bias];
        let reply = self.request(id, slot, call);
        if let Some(program) = self.programs.get_mut(&id) {
            program.faults += pages;
        }
        // Who forbids it once will again, and may put it down each time.
        self.writes_code = reply == Some(0) || reply.is_none() && self.is_waiter_doomed(id, slot);
        reply == Some(0)
    }

    fn lost(&mut self, key: ModuleKey, why: &str) {
        let path = self.symbols.path(key).unwrap_or_default();
        self.problem(ProblemKind::Lost, format!("{path}: its system calls are not counted: {why}"));
    }
}

/// Writes a file's roots into a program's image, unless they are there.
///
/// # Errors
/// Those of [`Code::roots`]; nothing is written then.
fn lay(program: &mut Program, memory: &Memory, code: &Code) -> Result<(), AssembleError> {
    if program.regions.contains(&code.region) {
        return Ok(());
    }
    memory.write(program.id, &*code.roots(&program.room)?);
    program.room.roots += code.blob.sites.len() as u64;
    program.regions.insert(code.region);
    Ok(())
}
