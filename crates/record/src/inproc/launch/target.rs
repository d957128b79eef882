//! Looking at, and writing into, a process from outside.

use super::super::assemble::Blob;
use super::super::plan::{Plan, Span};
use super::sys::read_pieces;
use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::OnceLock;

const PAGE: u64 = 4096;

/// A process's memory, as opened while it could not be refused.
pub(super) struct Mem {
    file: File,
    pid: i32,
}

impl Mem {
    pub(super) fn open(pid: i32) -> std::io::Result<Self> {
        let file = File::options().read(true).write(true).open(format!("/proc/{pid}/mem"))?;
        Ok(Self { file, pid })
    }

    pub(super) fn read(&self, at: u64, buffer: &mut [u8]) -> std::io::Result<()> {
        self.file.read_exact_at(buffer, at)
    }

    /// Writes, whatever the pages' protection says.
    pub(super) fn write(&self, at: u64, bytes: &[u8]) -> std::io::Result<()> {
        self.file.write_all_at(bytes, at)
    }

    /// Writes all of a file's jumps, unless its code is not what the plan was made of.
    ///
    /// # Errors
    /// In words; whatever was written then is as good as nothing, for no page is written before
    /// all have been looked at.
    pub(super) fn patch(&self, jumps: &Jumps, bias: u64) -> Result<(), String> {
        let at = |piece: &Piece| bias.wrapping_add(piece.vaddr);
        if jumps.ready.get().is_none() {
            let mut there: Vec<Vec<u8>> = jumps.pieces.iter().map(|p| vec![0; p.len]).collect();
            let wanted: Vec<(u64, usize)> = jumps.pieces.iter().map(|p| (at(p), p.len)).collect();
            self.read_all(&wanted, &mut there).map_err(|e| e.to_string())?;
            for (piece, bytes) in jumps.pieces.iter().zip(&mut there) {
                piece.apply(bytes)?;
            }
            let _ = jumps.ready.set(there);
        }
        for (piece, bytes) in jumps.pieces.iter().zip(jumps.ready.get().into_iter().flatten()) {
            self.write(at(piece), bytes).map_err(|e| e.to_string())?;
        }
        Ok(())
    }

    /// Takes a file's jumps back, as far as they are there.
    pub(super) fn restore(&self, jumps: &Jumps, bias: u64) {
        for piece in &jumps.pieces {
            for (offset, was, new) in &piece.changes {
                let at = bias.wrapping_add(piece.vaddr).wrapping_add(*offset as u64);
                let mut there = vec![0; new.len()];
                if self.read(at, &mut there).is_ok() && there == *new {
                    // What can't be written now could not have been written before.
                    let _ = self.write(at, was);
                }
            }
        }
    }

    /// Fills each buffer from its address: in one go where the kernel lets us.
    fn read_all(&self, from: &[(u64, usize)], into: &mut [Vec<u8>]) -> std::io::Result<()> {
        let all: usize = from.iter().map(|(_, len)| len).sum();
        if read_pieces(self.pid, from, into) == all {
            return Ok(());
        }
        from.iter().zip(into).try_for_each(|((at, _), bytes)| self.read(*at, bytes))
    }
}

/// A file's jumps by page, as they are to be written.
#[derive(Debug)]
pub(super) struct Jumps {
    pieces: Vec<Piece>,
    /// The pieces with their jumps, once they have been looked at in a process. The file stays the
    /// same, by its identity, and nobody has run in a new mapping of it: what was there in one
    /// process is there in all.
    ready: OnceCell<Vec<Vec<u8>>>,
}

/// What is to be written of a page, from the first byte that changes to the last.
#[derive(Debug)]
struct Piece {
    vaddr: u64,
    len: usize,
    /// Offset in the piece, what must be there, and what comes there.
    changes: Vec<(usize, Vec<u8>, Vec<u8>)>,
}

impl Jumps {
    /// # Errors
    /// In words, if code has a jump where the plan has no window: a mistake of ours.
    pub(super) fn new(plan: &Plan, blob: &Blob) -> Result<Self, String> {
        let original = originals(plan);
        let mut pages: BTreeMap<u64, Piece> = BTreeMap::new();
        for patch in &blob.patches {
            let expected = original.get(&patch.vaddr).filter(|o| o.len() >= patch.bytes.len());
            let mut expected = *expected.ok_or("a jump nobody planned")?;
            let (mut at, mut rest) = (patch.vaddr, patch.bytes.as_slice());
            while !rest.is_empty() {
                let here = rest.len().min((PAGE - at % PAGE) as usize);
                let ((new, later), (was, behind)) = (rest.split_at(here), expected.split_at(here));
                let piece = pages.entry(at & !(PAGE - 1)).or_insert(Piece { vaddr: at, len: 0, changes: Vec::new() });
                piece.include(at, was, new);
                (at, rest, expected) = (at + here as u64, later, behind);
            }
        }
        Ok(Self { pieces: pages.into_values().collect(), ready: OnceCell::new() })
    }
}

impl Piece {
    fn include(&mut self, at: u64, was: &[u8], new: &[u8]) {
        let end = (self.vaddr + self.len as u64).max(at + new.len() as u64);
        if at < self.vaddr {
            let more = (self.vaddr - at) as usize;
            self.changes.iter_mut().for_each(|c| c.0 += more);
            self.vaddr = at;
        }
        self.len = (end - self.vaddr) as usize;
        self.changes.push(((at - self.vaddr) as usize, was.to_vec(), new.to_vec()));
    }

    fn apply(&self, bytes: &mut [u8]) -> Result<(), String> {
        for (at, was, new) in &self.changes {
            let there = bytes.get_mut(*at..at + new.len()).filter(|there| **there == **was);
            there.ok_or("its code is not what its file says")?.copy_from_slice(new);
        }
        Ok(())
    }
}

fn originals(plan: &Plan) -> BTreeMap<u64, &[u8]> {
    let spans = plan.sites.iter().flat_map(|s| [&s.before, &s.after, &s.whole, &s.returned]).flatten();
    let spans = spans.chain(plan.entries.iter().map(|e| &e.span)).chain(&plan.unwinder);
    let mut all: BTreeMap<u64, &[u8]> = BTreeMap::new();
    for Span { start, bytes, .. } in spans {
        let known = all.entry(*start).or_insert(bytes);
        if known.len() < bytes.len() {
            *known = bytes;
        }
    }
    all
}

/// A mapping of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mapped {
    pub(super) range: Range<u64>,
    pub(super) executable: bool,
}

/// The text of a process's `maps` file; empty if it is gone.
pub(super) fn maps(pid: i32) -> Vec<u8> {
    let mut text = Vec::with_capacity(8192);
    let file = File::open(format!("/proc/{pid}/maps"));
    if let Ok(mut file) = file {
        // What was read before an error is of no use: it is not all.
        let _ = std::io::Read::read_to_end(&mut file, &mut text).inspect_err(|_| text.clear());
    }
    text
}

/// Everything in the text of a `maps` file, by address.
pub(super) fn mapped(text: &[u8]) -> Vec<Mapped> {
    text.split(|b| *b == b'\n')
        .filter_map(|line| mapped_line(std::str::from_utf8(line.get(..line.len().min(48))?).ok()?))
        .collect()
}

fn mapped_line(line: &str) -> Option<Mapped> {
    let (range, rest) = line.split_once(' ')?;
    let (start, end) = range.split_once('-')?;
    let hex = |s| u64::from_str_radix(s, 16).ok();
    Some(Mapped { range: hex(start)?..hex(end)?, executable: rest.as_bytes().get(2) == Some(&b'x') })
}

/// Where `len` unused bytes lie at the end of code that a process has mapped.
pub(super) fn unused(mem: &Mem, mapped: &[Mapped], len: usize) -> Option<u64> {
    let len = len as u64;
    mapped.iter().filter(|m| m.executable && m.range.end - m.range.start >= PAGE && len < PAGE).find_map(|m| {
        let at = (m.range.end - len) & !15;
        let mut there = vec![0xff; (m.range.end - at) as usize];
        mem.read(at, &mut there).ok()?;
        there.iter().all(|b| *b == 0).then_some(at)
    })
}

/// Why a process can't be watched from inside, by what /proc tells.
pub(super) fn obstacle(pid: i32) -> Option<String> {
    static OWN: OnceLock<usize> = OnceLock::new();
    let status = status(&pid.to_string());
    if field(&status, "Seccomp:").is_some_and(|mode| mode != "0") {
        return Some("a seccomp filter of its maker's watches over it".into());
    }
    if levels(&status) > *OWN.get_or_init(|| levels(&self::status("self"))) {
        return Some("it lives in another PID namespace".into());
    }
    None
}

fn status(of: &str) -> String {
    // A program's name is bytes.
    let bytes = std::fs::read(format!("/proc/{of}/status")).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

fn field<'s>(status: &'s str, key: &str) -> Option<&'s str> {
    status.lines().find_map(|line| line.strip_prefix(key)).map(str::trim)
}

/// PID namespaces from that of /proc down to the process's own.
fn levels(status: &str) -> usize {
    field(status, "NSpid:").map_or(0, |ids| ids.split_ascii_whitespace().count())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_maps_are_read() {
        let line = "7ffff7fc1000-7ffff7fc3000 r-xp 00000000 00:00 0 ";
        assert_eq!(mapped_line(line), Some(Mapped { range: 0x7ffff7fc1000..0x7ffff7fc3000, executable: true }));
        assert_eq!(mapped_line("nonsense"), None);
        let mine = mapped(&maps(std::process::id() as i32));
        let here = lines_of_maps_are_read as *const () as u64;
        assert!(mine.iter().any(|m| m.executable && m.range.contains(&here)));
        assert!(mine.windows(2).all(|w| w[0].range.end <= w[1].range.start));
    }
}
