//! A file's trampolines: the code, the jumps into it, and the roots it counts at.

use super::emitter::{Emitter, Origin};
use super::handshake::stub;
use super::relocate::BASE;
use super::site::{Hook, Place, write_entry, write_site};
use super::{AssembleError, Options};
use crate::layout::{self, IMAGE, NODE_SIZE, TABLE_LEN, image};
use crate::plan::Plan;
use iced_x86::code_asm::{AsmRegister64, rbp, rsp};
use iced_x86::{BlockEncoderOptions, Instruction, OpKind};
use std::ops::Range;

/// The code for one file at one distance from it. The same wherever the file is loaded, so that
/// processes can share it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blob {
    /// Address of the code, from the file's load address: what was asked for.
    pub delta: i64,
    /// The code, with roots at the first region; see [`Blob::code_for`].
    pub code: Vec<u8>,
    /// Offsets in the code of addresses (8 bytes) into the file's region of roots.
    pub references: Vec<u32>,
    /// What to write over the file's text, once the code is in place.
    pub patches: Vec<Patch>,
    /// What is counted where, in the order of the roots.
    pub sites: Vec<Counted>,
    /// Sites of the plan that are not counted, or only in part.
    pub refused: Vec<Refused>,
    /// For all of the code, what it stands for: where the thread would be without us. By rising
    /// offset in the code, without gaps.
    pub origins: Vec<(Range<u32>, Origin)>,
    /// What the code does.
    pub options: Options,
}

/// Bytes to be written over the file's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Patch {
    /// Where (ELF vaddr).
    pub vaddr: u64,
    /// A jump, and filling up to an instruction's end.
    pub bytes: Vec<u8>,
}

/// A place that counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counted {
    /// Of the `syscall`, or of a vDSO function (ELF vaddr).
    pub address: u64,
    /// The system call, `None` if only known when it is made.
    pub number: Option<u32>,
    /// Where the return address lies, from `base` at the hook, if contexts are told apart.
    pub offset: Option<u32>,
    /// What return addresses lie at constant distances from.
    pub base: Base,
    /// Offset in the region of the table of roots by number, where `number` is not known.
    pub table: Option<u32>,
    /// Whether returns are seen to: errors, bytes, and time if timed.
    pub results: bool,
    /// Whether it is the entry of a vDSO function: counts what are no system calls.
    pub vdso: bool,
}

/// A register that a call's frame is found from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Base {
    /// The stack pointer: nearly always.
    Rsp,
    /// The frame pointer, where the function has aligned its stack.
    Rbp,
}

impl Base {
    pub(super) fn register(self) -> AsmRegister64 {
        match self {
            Self::Rsp => rsp,
            Self::Rbp => rbp,
        }
    }
}

/// A site, or a part of one, that is not hooked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Of the `syscall`.
    pub address: u64,
    /// What is missing.
    pub what: Unhooked,
}

/// What of a site is not hooked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unhooked {
    /// It is not counted at all: nothing before it can be displaced.
    Site,
    /// It would have to be made in our code, and no window holds it whole.
    Whole,
    /// Calls are counted; their returns are not seen to.
    Return,
}

impl Blob {
    /// Bytes of roots and tables in the file's region.
    #[must_use]
    pub fn region_size(&self) -> u64 {
        let tables = self.sites.iter().filter_map(|s| s.table).map(|t| u64::from(t) + TABLE).max();
        tables.unwrap_or_default().max(self.sites.len() as u64 * NODE_SIZE)
    }

    /// The code with its roots in the region at address `region`.
    ///
    /// # Errors
    ///
    /// When no region can lie there.
    pub fn code_for(&self, region: u64) -> Result<Vec<u8>, AssembleError> {
        let mut code = self.code.clone();
        self.settle(&mut code, region)?;
        Ok(code)
    }

    /// Has `code`, which is this blob's, refer to roots in the region at address `region`.
    ///
    /// # Errors
    ///
    /// Those of [`Blob::code_for`].
    pub fn settle(&self, code: &mut [u8], region: u64) -> Result<(), AssembleError> {
        self.check(region)?;
        for offset in &self.references {
            let Some(bytes) = code.get_mut(*offset as usize..).and_then(<[u8]>::first_chunk_mut::<8>) else {
                return Err(AssembleError::Instruction(format!("a reference at {offset:#x} is outside the code")));
            };
            *bytes = u64::from_le_bytes(*bytes).wrapping_sub(FIRST_REGION).wrapping_add(region).to_le_bytes();
        }
        Ok(())
    }

    /// The roots for a new image, as (offset in the image, word), with roots' records from
    /// `first_record` on, one a site. Tables start empty, as fresh memory is.
    ///
    /// # Errors
    ///
    /// When no region can lie there, or a slot has no room for so many records.
    pub fn roots(&self, region: u64, first_record: u64) -> Result<Vec<(u64, u64)>, AssembleError> {
        self.check(region)?;
        let mut words = Vec::with_capacity(8 * self.sites.len());
        for (i, site) in (0u64..).zip(&self.sites) {
            let record = layout::root_record_offset(first_record.saturating_add(i))
                .ok_or(AssembleError::Records(self.sites.len() as u64))?;
            let root = region + i * NODE_SIZE;
            let transfers = site.number.is_some_and(layout::transfers) && !site.vdso;
            let node = layout::root_words(root, record, u64::from(site.offset.unwrap_or(0)), transfers);
            words.extend(node.into_iter().map(|(offset, word)| (root - IMAGE + offset, word)));
        }
        Ok(words)
    }

    fn check(&self, region: u64) -> Result<(), AssembleError> {
        let within = region >= FIRST_REGION && region.saturating_add(self.region_size()) <= IMAGE + image::SLOTS;
        (within && region.is_multiple_of(NODE_SIZE)).then_some(()).ok_or(AssembleError::Region(region))
    }
}

/// Where code refers to until it is told.
const FIRST_REGION: u64 = IMAGE + image::ROOTS;

/// Bytes of a table of roots by number.
const TABLE: u64 = TABLE_LEN * 8;

/// Writes the code for `plan`, to be mapped `delta` bytes from where the file is loaded.
///
/// # Errors
///
/// When `delta` is too far for jumps, or an instruction can't be written.
pub fn assemble(plan: &Plan, options: &Options, delta: i64) -> Result<Blob, AssembleError> {
    let options = options.completed();
    let start = BASE.wrapping_add_signed(delta);
    let mut blob = Blob {
        delta,
        code: Vec::new(),
        references: Vec::new(),
        patches: Vec::new(),
        sites: Vec::new(),
        refused: Vec::new(),
        origins: Vec::new(),
        options,
    };
    // The hand-shake comes first, so that all else knows where it is.
    let mut e = Emitter::new(start)?;
    stub(&mut e)?;
    blob.append(e, &[])?;
    let mut table = (plan.sites.len() + plan.entries.len()) as u64 * NODE_SIZE;
    for site in &plan.sites {
        let place = Place { root: blob.next_root(), region: FIRST_REGION, table };
        let mut e = Emitter::new(start)?;
        let written = write_site(&mut e, &options, site, place)?;
        table += if written.counted.as_ref().is_some_and(|c| c.table.is_some()) { TABLE } else { 0 };
        blob.take(e, written)?;
    }
    for entry in &plan.entries {
        let mut e = Emitter::new(start)?;
        let written = write_entry(&mut e, entry, blob.next_root())?;
        blob.take(e, written)?;
    }
    if let Some(span) = &plan.unwinder {
        let mut e = Emitter::new(start)?;
        let hooks = super::find_fde::write(&mut e, span)?;
        blob.append(e, &hooks)?;
    }
    Ok(blob)
}

/// What one site came to.
#[derive(Default)]
pub(super) struct Written {
    pub(super) hooks: Vec<Hook>,
    pub(super) counted: Option<Counted>,
    pub(super) refused: Option<Refused>,
}

impl Blob {
    fn next_root(&self) -> u64 {
        FIRST_REGION + self.sites.len() as u64 * NODE_SIZE
    }

    fn take(&mut self, e: Emitter, written: Written) -> Result<(), AssembleError> {
        self.refused.extend(written.refused);
        if written.counted.is_some() {
            self.append(e, &written.hooks)?;
        }
        self.sites.extend(written.counted);
        Ok(())
    }

    /// Turns instructions into bytes behind those there are, with all that depends on where they
    /// come to lie.
    fn append(&mut self, mut e: Emitter, hooks: &[Hook]) -> Result<(), AssembleError> {
        e.flush()?;
        let too_far = |_| AssembleError::TooFar(self.delta);
        let base = u32::try_from(self.code.len()).map_err(too_far)?;
        let start = BASE.wrapping_add_signed(self.delta).wrapping_add(u64::from(base));
        let instructions = e.a.instructions().to_vec();
        let wanted = BlockEncoderOptions::RETURN_NEW_INSTRUCTION_OFFSETS | BlockEncoderOptions::RETURN_CONSTANT_OFFSETS;
        let done = e.a.assemble_options(start, wanted)?;
        let size = u32::try_from(done.inner.code_buffer.len()).map_err(too_far)?;
        let end = base.checked_add(size).ok_or(AssembleError::TooFar(self.delta))?;
        // A branch that had to be written as several instructions has no offset, says iced: u32::MAX. A plan
        // holds none of that kind, but one that was damaged on disk may.
        let offset_of = |index: usize| {
            let offset = done.inner.new_instruction_offsets.get(index).copied().unwrap_or(size);
            base.checked_add(offset).filter(|at| *at <= end).ok_or(AssembleError::TooFar(self.delta))
        };
        for (index, _) in instructions.iter().enumerate().filter(|(_, i)| refers(i)) {
            let within = done.inner.constant_offsets.get(index).map_or(0, |c| c.immediate_offset());
            self.references.push(offset_of(index)? + within as u32);
        }
        for hook in hooks {
            self.patches.push(patch(hook, done.label_ip(&hook.label)?, self.delta)?);
        }
        let starts = e.origins().iter().map(|(index, _)| offset_of(*index)).collect::<Result<Vec<u32>, _>>()?;
        let ends = starts.iter().skip(1).copied().chain([end]);
        let origins =
            starts.iter().copied().zip(ends).zip(e.origins()).map(|((from, to), (_, origin))| (from..to, *origin));
        for (range, origin) in origins.filter(|(range, _)| !range.is_empty()) {
            match self.origins.last_mut() {
                Some((last, same)) if *same == origin && last.end == range.start => last.end = range.end,
                _ => self.origins.push((range, origin)),
            }
        }
        self.code.extend(done.inner.code_buffer);
        Ok(())
    }
}

/// Whether an instruction holds an address in the file's region.
fn refers(instruction: &Instruction) -> bool {
    instruction.op_count() == 2
        && instruction.op1_kind() == OpKind::Immediate64
        && (FIRST_REGION..IMAGE + image::SLOTS).contains(&instruction.immediate64())
}

/// A jump over `hook.bytes` bytes to `target`.
fn patch(hook: &Hook, target: u64, delta: i64) -> Result<Patch, AssembleError> {
    let next = BASE.wrapping_add(hook.start).wrapping_add(JUMP);
    let distance = i32::try_from(target.wrapping_sub(next) as i64).map_err(|_| AssembleError::TooFar(delta))?;
    let mut bytes = vec![0xe9];
    bytes.extend(distance.to_le_bytes());
    bytes.resize(hook.bytes.max(bytes.len()), 0x90);
    Ok(Patch { vaddr: hook.start, bytes })
}

/// Bytes of a jump with a 32-bit distance.
const JUMP: u64 = 5;
