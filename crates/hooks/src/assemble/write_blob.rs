//! Turns a plan into a blob: the code of each site follows that of the previous ones.

use super::blob::{Blob, FIRST_REGION, Patch, TABLE};
use super::emitter::Emitter;
use super::handshake::stub;
use super::hook::{Hook, SiteCode};
use super::relocate::BASE;
use super::site::{SiteAddresses, write_entry, write_site};
use super::{AssembleError, Options};
use crate::layout::{IMAGE, NODE_SIZE, image};
use crate::plan::Plan;
use iced_x86::{BlockEncoderOptions, Instruction, OpKind};

/// Writes the code for `plan`, to be mapped `delta` bytes from the file's load address.
///
/// # Errors
///
/// If `delta` is too large for jumps, or an instruction can't be written.
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
    // The hand-shake comes first, so that all other code knows its address.
    let mut e = Emitter::new(start)?;
    stub(&mut e)?;
    blob.append(e, &[])?;
    let mut table = (plan.sites.len() + plan.entries.len()) as u64 * NODE_SIZE;
    for site in &plan.sites {
        let place = SiteAddresses { root: blob.next_root(), region: FIRST_REGION, table };
        let mut e = Emitter::new(start)?;
        let written = write_site(&mut e, &options, site, place)?;
        table += if written.counted.as_ref().is_some_and(|c| c.table.is_some()) { TABLE } else { 0 };
        blob.take(e, written)?;
    }
    for entry in plan.entries.iter().filter(|_| !options.totals) {
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

impl Blob {
    fn next_root(&self) -> u64 {
        FIRST_REGION + self.sites.len() as u64 * NODE_SIZE
    }

    fn take(&mut self, e: Emitter, written: SiteCode) -> Result<(), AssembleError> {
        self.refused.extend(written.refused);
        if written.counted.is_some() {
            self.append(e, &written.hooks)?;
        }
        self.sites.extend(written.counted);
        Ok(())
    }

    /// Appends instructions as bytes, with everything that depends on their addresses.
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
        // iced reports no offset (u32::MAX) for a branch that it had to write as several instructions. A plan contains
        // none, but one that was damaged on disk may.
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

/// Returns true if an instruction holds an address in the file's region.
fn refers(instruction: &Instruction) -> bool {
    instruction.op_count() == 2
        && instruction.op1_kind() == OpKind::Immediate64
        && (FIRST_REGION..IMAGE + image::SLOTS).contains(&instruction.immediate64())
}

/// Returns a jump to `target` over `hook.bytes` bytes. The filling behind it, which never runs, ends with the jump's
/// page, so that a single write puts the jump there.
fn patch(hook: &Hook, target: u64, delta: i64) -> Result<Patch, AssembleError> {
    let next = BASE.wrapping_add(hook.start).wrapping_add(JUMP);
    let distance = i32::try_from(target.wrapping_sub(next) as i64).map_err(|_| AssembleError::TooFar(delta))?;
    let mut bytes = vec![0xe9];
    bytes.extend(distance.to_le_bytes());
    let in_page = (PAGE - hook.start % PAGE) as usize;
    let filled = if in_page >= bytes.len() { hook.bytes.min(in_page) } else { hook.bytes };
    bytes.resize(filled.max(bytes.len()), 0x90);
    Ok(Patch { vaddr: hook.start, bytes })
}

/// Bytes of a jump with a 32-bit distance.
const JUMP: u64 = 5;
/// Bytes of a page.
const PAGE: u64 = 4096;
