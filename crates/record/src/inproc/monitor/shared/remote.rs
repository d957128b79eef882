//! Reads and writes a process's memory from outside.

use crate::inproc::monitor::shared::maps::Mapped;
use crate::inproc::monitor::sys::read_pieces;
use std::cell::OnceCell;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use systoll_hooks::assemble::{Blob, Patch};
use systoll_hooks::plan::Plan;

const PAGE: u64 = 4096;

/// A process's memory, opened while we were allowed to open it.
pub(crate) struct Mem {
    file: File,
    pid: i32,
}

impl Mem {
    pub(crate) fn open(pid: i32) -> std::io::Result<Self> {
        let file = File::options().read(true).write(true).open(format!("/proc/{pid}/mem"))?;
        Ok(Self { file, pid })
    }

    /// Returns another handle of the same memory.
    pub(crate) fn again(&self) -> std::io::Result<Self> {
        Ok(Self { file: self.file.try_clone()?, pid: self.pid })
    }

    pub(crate) fn read(&self, at: u64, buffer: &mut [u8]) -> std::io::Result<()> {
        self.file.read_exact_at(buffer, at)
    }

    /// Writes bytes, even to pages that are write-protected.
    pub(crate) fn write(&self, at: u64, bytes: &[u8]) -> std::io::Result<()> {
        self.file.write_all_at(bytes, at)
    }

    /// Writes all of a file's jumps, unless its code differs from the plan.
    ///
    /// # Errors
    /// A text. Nothing harmful has been written then: no page is written before all have been checked.
    pub(crate) fn patch(&self, jumps: &Jumps, bias: u64) -> Result<(), String> {
        self.write_pages(jumps, bias, self.ready(jumps, bias)?)
    }

    /// Returns the pieces of code with their jumps.
    ///
    /// # Errors
    /// A text, if the code differs from the plan.
    pub(crate) fn ready<'a>(&self, jumps: &'a Jumps, bias: u64) -> Result<&'a [Vec<u8>], String> {
        if jumps.ready.get().is_none() {
            // Another program with this file may have set this meanwhile, to the same bytes.
            let _ = jumps.ready.set(self.patched_pages(jumps, bias)?);
        }
        Ok(jumps.ready.get().map_or(&[], Vec::as_slice))
    }

    /// Does the same as [`Mem::patch`] for code that this process may have changed besides the jumps.
    pub(crate) fn patch_one(&self, jumps: &Jumps, bias: u64) -> Result<(), String> {
        self.write_pages(jumps, bias, &self.patched_pages(jumps, bias)?)
    }

    fn patched_pages(&self, jumps: &Jumps, bias: u64) -> Result<Vec<Vec<u8>>, String> {
        let mut there: Vec<Vec<u8>> = jumps.pieces.iter().map(|p| vec![0; p.len]).collect();
        let wanted: Vec<(u64, usize)> = jumps.pieces.iter().map(|p| (bias.wrapping_add(p.vaddr), p.len)).collect();
        self.read_all(&wanted, &mut there).map_err(|e| e.to_string())?;
        for (piece, bytes) in jumps.pieces.iter().zip(&mut there) {
            jumps.apply(piece, bytes)?;
        }
        Ok(there)
    }

    fn write_pages(&self, jumps: &Jumps, bias: u64, pages: &[Vec<u8>]) -> Result<(), String> {
        for (piece, bytes) in jumps.pieces.iter().zip(pages) {
            self.write(bias.wrapping_add(piece.vaddr), bytes).map_err(|e| e.to_string())?;
        }
        Ok(())
    }

    /// Removes a file's jumps, as far as they are in place.
    pub(crate) fn restore(&self, jumps: &Jumps, bias: u64) {
        for change in &jumps.changes {
            let at = bias.wrapping_add(change.vaddr);
            let (was, new) = jumps.bytes_of(change);
            let mut there = vec![0; new.len()];
            if self.read(at, &mut there).is_ok() && there == *new {
                // A page that can't be written now can't have been written before, so it has no jumps.
                let _ = self.write(at, was);
            }
        }
    }

    /// Fills each buffer from its address by few calls. Returns false if the kernel did not read all of them.
    pub(crate) fn read_at_once(&self, from: &[(u64, usize)], into: &mut [Vec<u8>]) -> bool {
        read_pieces(self.pid, from, into) == from.iter().map(|(_, len)| len).sum::<usize>()
    }

    /// Fills each buffer from its address, by one call if the kernel allows it.
    fn read_all(&self, from: &[(u64, usize)], into: &mut [Vec<u8>]) -> std::io::Result<()> {
        if self.read_at_once(from, into) {
            return Ok(());
        }
        from.iter().zip(into).try_for_each(|((at, _), bytes)| self.read(*at, bytes))
    }
}

/// A file's jumps by page, in the form in which they are written.
#[derive(Debug, Default)]
pub(crate) struct Jumps {
    pub(crate) pieces: Vec<Piece>,
    /// The changes by rising address; none crosses a page boundary.
    pub(crate) changes: Vec<Change>,
    /// The original bytes and the new bytes of all changes, one behind the other.
    was: Vec<u8>,
    new: Vec<u8>,
    /// The pieces with their jumps, once checked in the file or a process. Bytes found in one process hold in all,
    /// because the file, by its identity, stays the same and no thread has run in a new mapping of it.
    ready: OnceCell<Vec<Vec<u8>>>,
}

/// Site number of changes that belong to no site. If they are missing, the others do harm.
pub(crate) const ESSENTIAL: u64 = u64::MAX;

/// A part of a page that is written, from the first byte that changes to the last.
#[derive(Debug)]
pub(crate) struct Piece {
    pub(crate) vaddr: u64,
    pub(crate) len: usize,
    /// Indexes of the changes in the piece.
    pub(crate) changes: Range<usize>,
}

/// Bytes of code that are replaced by others.
#[derive(Debug)]
pub(crate) struct Change {
    pub(crate) vaddr: u64,
    /// The site that needs the change, or [`ESSENTIAL`].
    pub(crate) site: u64,
    /// Range of the change's bytes among those of all changes.
    bytes: Range<usize>,
}

impl Jumps {
    /// Computes the changes of a file's code.
    ///
    /// # Errors
    /// A text, if `blob` patches bytes that are no span of `plan`: a mistake of ours.
    pub(crate) fn new(plan: &Plan, blob: &Blob) -> Result<Self, String> {
        let original = originals(plan);
        let mut patches: Vec<&Patch> = blob.patches.iter().collect();
        patches.sort_by_key(|p| p.vaddr);
        let mut all = Self::default();
        for patch in patches {
            let known = original.binary_search_by_key(&patch.vaddr, |(start, ..)| *start);
            let known = known.ok().and_then(|i| original.get(i)).ok_or("a jump that was not planned")?;
            let (site, expected) = (known.2, known.1.get(..patch.bytes.len()));
            let mut expected = expected.ok_or("a jump that was not planned")?;
            let (mut at, mut rest) = (patch.vaddr, patch.bytes.as_slice());
            while !rest.is_empty() {
                let here = rest.len().min((PAGE - at % PAGE) as usize);
                let ((new, later), (was, behind)) = (rest.split_at(here), expected.split_at(here));
                all.include(at, was, new, site);
                (at, rest, expected) = (at + here as u64, later, behind);
            }
        }
        Ok(all)
    }

    /// Adds a change within a page, at a higher address than the changes before.
    pub(crate) fn include(&mut self, vaddr: u64, was: &[u8], new: &[u8], site: u64) {
        let first = self.new.len();
        self.was.extend(was);
        self.new.extend(new);
        self.changes.push(Change { vaddr, site, bytes: first..self.new.len() });
        let here = self.changes.len();
        let end = vaddr + new.len() as u64;
        match self.pieces.last_mut().filter(|p| p.vaddr / PAGE == vaddr / PAGE) {
            Some(piece) => {
                piece.len = (end - piece.vaddr).max(piece.len as u64) as usize;
                piece.changes.end = here;
            }
            None => self.pieces.push(Piece { vaddr, len: new.len(), changes: here - 1..here }),
        }
    }

    /// Returns the list of writes for [`WRITE_CODE`].
    pub(crate) fn for_writing(&self) -> Vec<u8> {
        let mut all = Vec::with_capacity(self.new.len() + 32 * self.changes.len() + 8);
        let mut own = self.pages_at_once();
        for (index, change) in self.changes.iter().enumerate() {
            let new = self.bytes_of(change).1;
            let pages = own.next_if(|(first, _)| *first == index).map_or(0, |(_, pages)| pages);
            for word in [new.len() as u64, change.vaddr, pages * PAGE] {
                all.extend(word.to_le_bytes());
            }
            all.extend(new);
            all.resize(all.len().next_multiple_of(8), 0);
        }
        all.extend(0u64.to_le_bytes());
        all
    }

    /// Returns each run of adjacent pages that are written, as its first change and its number of pages.
    fn pages_at_once(&self) -> std::iter::Peekable<impl Iterator<Item = (usize, u64)>> {
        let runs = self.pieces.chunk_by(|a, b| b.vaddr / PAGE == a.vaddr / PAGE + 1);
        runs.filter_map(|run| Some((run.first()?.changes.start, run.len() as u64))).peekable()
    }

    /// Returns the range of the file in which the changes lie, and the number of their pages; `None` if there are none.
    pub(crate) fn extent(&self) -> Option<(Range<u64>, u64)> {
        let (first, last) = (self.pieces.first()?, self.pieces.last()?);
        Some((first.vaddr..last.vaddr + last.len as u64, self.pieces.len() as u64))
    }

    /// Prepares the pieces from the file's own bytes. `read` fills a buffer from an address on and returns the number
    /// of bytes read. Does nothing if the bytes differ from the plan.
    pub(crate) fn read_ahead(&self, read: impl Fn(u64, &mut [u8]) -> usize) {
        let piece = |piece: &Piece| {
            let mut bytes = vec![0; piece.len];
            let whole = read(piece.vaddr, &mut bytes) == piece.len;
            (whole && self.apply(piece, &mut bytes).is_ok()).then_some(bytes)
        };
        if let Some(pieces) = self.pieces.iter().map(piece).collect() {
            let _ = self.ready.set(pieces);
        }
    }

    /// Returns the original and the new bytes of a change.
    pub(crate) fn bytes_of(&self, change: &Change) -> (&[u8], &[u8]) {
        let (was, new) = (self.was.get(change.bytes.clone()), self.new.get(change.bytes.clone()));
        (was.unwrap_or_default(), new.unwrap_or_default())
    }

    /// Applies the changes of a piece to its bytes.
    ///
    /// # Errors
    /// A text, if the bytes differ from the plan.
    fn apply(&self, piece: &Piece, bytes: &mut [u8]) -> Result<(), String> {
        for change in self.changes.get(piece.changes.clone()).unwrap_or_default() {
            let (was, new) = self.bytes_of(change);
            let at = (change.vaddr - piece.vaddr) as usize;
            let there = bytes.get_mut(at..at + new.len()).filter(|there| **there == *was);
            there.ok_or("its code is not what its file says")?.copy_from_slice(new);
        }
        Ok(())
    }
}

/// Returns the file's bytes wherever a jump may be written, by rising address, with their site; the longest span at
/// each address.
fn originals(plan: &Plan) -> Vec<(u64, &[u8], u64)> {
    let spans = plan.sites.iter().flat_map(|site| site.spans().map(|span| (span, site.address)));
    let spans = spans.chain(plan.entries.iter().map(|e| (&e.span, e.address)));
    let spans = spans.chain(plan.unwinder.iter().map(|span| (span, ESSENTIAL)));
    let mut all: Vec<(u64, &[u8], u64)> = spans.map(|(span, site)| (span.start, &*span.bytes, site)).collect();
    all.sort_unstable_by_key(|(start, bytes, _)| (*start, std::cmp::Reverse(bytes.len())));
    all.dedup_by_key(|(start, ..)| *start);
    all
}

/// Returns the address of `len` unused bytes at the end of code that a process has mapped.
pub(crate) fn unused(mem: &Mem, mapped: &[Mapped], len: usize) -> Option<u64> {
    let len = len as u64;
    mapped.iter().filter(|m| m.executable && m.range.end - m.range.start >= PAGE && len < PAGE).find_map(|m| {
        let at = (m.range.end - len) & !15;
        let mut there = vec![0xff; (m.range.end - at) as usize];
        mem.read(at, &mut there).ok()?;
        there.iter().all(|b| *b == 0).then_some(at)
    })
}
