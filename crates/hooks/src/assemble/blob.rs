//! A file's trampolines: the code, the jumps into it, and the roots it counts at.

use super::emitter::Origin;
use super::{AssembleError, Options};
use crate::layout::{self, IMAGE, NODE_SIZE, TABLE_LEN, image};
use iced_x86::code_asm::{AsmRegister64, rbp, rsp};
use std::ops::Range;

/// The code for one file at one distance from it. It is the same wherever the file is loaded, so that processes can
/// share it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blob {
    /// Distance of the code from the file's load address, as requested.
    pub delta: i64,
    /// The code, with roots at the first region; see [`Blob::code_for`].
    pub code: Vec<u8>,
    /// Offsets in the code of 8-byte addresses that lie in the file's region of roots.
    pub references: Vec<u32>,
    /// Bytes to write over the file's text, once the code is in place.
    pub patches: Vec<Patch>,
    /// The counted places, in the order of their roots.
    pub sites: Vec<CountedPlace>,
    /// Sites of the plan that are not counted, or only in part.
    pub refused: Vec<Refused>,
    /// For all of the code, where the thread would be without us, by rising offset in the code, without gaps.
    pub origins: Vec<(Range<u32>, Origin)>,
    /// Options by which the code was made.
    pub options: Options,
}

/// Bytes to be written over the file's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Patch {
    /// Address of the bytes (ELF vaddr).
    pub vaddr: u64,
    /// A jump, padded to an instruction's end.
    pub bytes: Vec<u8>,
}

/// A place whose calls are counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CountedPlace {
    /// Address of the `syscall`, or of a vDSO function (ELF vaddr).
    pub address: u64,
    /// The system call; `None` if it is only known when the call is made.
    pub number: Option<u32>,
    /// Distance of the return address from the register `base` at the hook, bytes; `None` if contexts are not told
    /// apart.
    pub offset: Option<u32>,
    /// Register from which return addresses lie at constant distances.
    pub base: Base,
    /// Offset in the region of the table of roots by number, if `number` is unknown.
    pub table: Option<u32>,
    /// True if returns are hooked: for errors and bytes, and for time if calls are timed.
    pub results: bool,
    /// True for the entry of a vDSO function, whose calls are no system calls.
    pub vdso: bool,
}

/// The register from which a call's frame is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Base {
    /// The stack pointer: the usual case.
    Rsp,
    /// The frame pointer, for a function that has aligned its stack.
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
    /// Address of the `syscall`.
    pub address: u64,
    /// The part that is missing.
    pub what: Unhooked,
}

/// The part of a site that is not hooked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unhooked {
    /// The site is not counted at all: nothing before it can be displaced.
    Site,
    /// The call would have to be made in our code, and no window contains it.
    Whole,
    /// Calls are counted, but their returns are not hooked.
    Return,
}

impl Blob {
    /// Returns the bytes of roots and tables in the file's region.
    #[must_use]
    pub fn region_size(&self) -> u64 {
        let tables = self.sites.iter().filter_map(|s| s.table).map(|t| u64::from(t) + TABLE).max();
        tables.unwrap_or_default().max(self.sites.len() as u64 * NODE_SIZE)
    }

    /// Returns the code with its roots in the region at address `region`.
    ///
    /// # Errors
    ///
    /// If no region can lie there.
    pub fn code_for(&self, region: u64) -> Result<Vec<u8>, AssembleError> {
        let mut code = self.code.clone();
        self.settle(&mut code, region)?;
        Ok(code)
    }

    /// Makes `code`, which is this blob's, refer to roots in the region at address `region`.
    ///
    /// # Errors
    ///
    /// The errors of [`Blob::code_for`].
    pub fn settle(&self, code: &mut [u8], region: u64) -> Result<(), AssembleError> {
        let len = code.len();
        if let Some(offset) = self.references.iter().find(|r| (**r as usize).saturating_add(8) > len) {
            return Err(AssembleError::Instruction(format!("a reference at {offset:#x} is outside the code")));
        }
        self.settle_piece(code, 0, region)
    }

    /// Does the same as [`Blob::settle`] for a piece of the code that begins at `start` and ends at a place that
    /// [`Blob::piece`] returned.
    pub fn settle_piece(&self, piece: &mut [u8], start: usize, region: u64) -> Result<(), AssembleError> {
        self.check(region)?;
        let first = self.references.partition_point(|r| (*r as usize) < start);
        for offset in self.references.iter().skip(first) {
            let within =
                (*offset as usize).checked_sub(start).and_then(|at| piece.get_mut(at..)?.first_chunk_mut::<8>());
            let Some(bytes) = within else { break };
            *bytes = u64::from_le_bytes(*bytes).wrapping_sub(FIRST_REGION).wrapping_add(region).to_le_bytes();
        }
        Ok(())
    }

    /// Returns the end of a piece of code that begins at `start` and has at most `most` bytes, in code of `len`
    /// bytes: a multiple of 8, or the code's end, and never inside an address that must be settled.
    #[must_use]
    pub fn piece(&self, start: usize, most: usize, len: usize) -> usize {
        let mut end = start.saturating_add(most) & !7;
        while end < len {
            let before = self.references.partition_point(|r| (*r as usize) < end);
            let last = before.checked_sub(1).and_then(|i| self.references.get(i)).map_or(0, |r| *r as usize);
            if last + 8 <= end || last <= start {
                return end;
            }
            end = last & !7;
        }
        len
    }

    /// Returns the roots for a new image, as (offset in the image, word); their records begin at `first_record`, one a
    /// site. Tables start empty, like fresh memory.
    ///
    /// # Errors
    ///
    /// If no region can lie there, or a slot has no room for so many records.
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

/// Address of the region for which code is assembled until its real region is known.
pub(super) const FIRST_REGION: u64 = IMAGE + image::ROOTS;

/// Size of a table of roots, which is indexed by call number, bytes.
pub(super) const TABLE: u64 = TABLE_LEN * 8;

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the C library that this process has mapped.
    fn c_library() -> Vec<u8> {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let mut paths = maps.lines().filter_map(|line| Some(&line[line.find('/')?..]));
        let of_c = |path: &&str| path.rsplit('/').next().is_some_and(|name| name.starts_with("libc."));
        std::fs::read(paths.find(of_c).expect("tests are linked dynamically")).unwrap()
    }

    #[test]
    fn pieces_are_settled_like_the_whole() {
        let plan = crate::plan::plan(&c_library()).unwrap();
        let options = Options { results: true, time: true, windows: true, ..Options::default() };
        let blob = crate::assemble::assemble(&plan, &options, -(64 << 20)).unwrap();
        assert!(blob.references.len() > 10);
        let region = FIRST_REGION + (1 << 20);
        let whole = blob.code_for(region).unwrap();
        assert_ne!(whole, blob.code);
        for most in [64, 100, 4096, 1 << 16, usize::MAX] {
            let (mut pieces, mut start) = (blob.code.clone(), 0);
            while start < pieces.len() {
                let end = blob.piece(start, most, pieces.len());
                assert!(end > start && end - start <= most, "{start}..{end}");
                blob.settle_piece(&mut pieces[start..end], start, region).unwrap();
                start = end;
            }
            assert_eq!(pieces, whole, "{most}");
        }
    }
}
