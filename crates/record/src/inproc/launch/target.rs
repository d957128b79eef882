//! Looking at, and writing into, a process from outside.

use super::super::assemble::Blob;
use super::super::plan::{Plan, Span};
use crate::procfs;
use std::collections::BTreeMap;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;

const PAGE: u64 = 4096;

/// A process's memory, as opened while it could not be refused.
pub(super) struct Mem(File);

impl Mem {
    pub(super) fn open(pid: i32) -> std::io::Result<Self> {
        File::options().read(true).write(true).open(format!("/proc/{pid}/mem")).map(Self)
    }

    pub(super) fn read(&self, at: u64, buffer: &mut [u8]) -> std::io::Result<()> {
        self.0.read_exact_at(buffer, at)
    }

    /// Writes, whatever the pages' protection says.
    pub(super) fn write(&self, at: u64, bytes: &[u8]) -> std::io::Result<()> {
        self.0.write_all_at(bytes, at)
    }

    /// Writes all of a file's jumps, unless its code is not what the plan was made of.
    pub(super) fn patch(&self, plan: &Plan, blob: &Blob, bias: u64) -> Result<(), String> {
        let original = originals(plan);
        let mut pages: BTreeMap<u64, Page> = BTreeMap::new();
        for patch in &blob.patches {
            let expected = original.get(&patch.vaddr).filter(|o| o.len() >= patch.bytes.len());
            let expected = expected.ok_or("a jump nobody planned")?;
            for (i, (byte, was)) in (0..).zip(patch.bytes.iter().zip(expected.iter())) {
                let at = bias.wrapping_add(patch.vaddr).wrapping_add(i);
                let page = match pages.entry(at & !(PAGE - 1)) {
                    std::collections::btree_map::Entry::Occupied(known) => known.into_mut(),
                    std::collections::btree_map::Entry::Vacant(new) => new.insert(self.page(at & !(PAGE - 1))?),
                };
                page.change((at % PAGE) as usize, *was, *byte)?;
            }
        }
        for (at, page) in &pages {
            let changed = page.bytes.get(page.changed.clone()).unwrap_or_default();
            self.write(at + page.changed.start as u64, changed).map_err(|e| e.to_string())?;
        }
        Ok(())
    }

    fn page(&self, at: u64) -> Result<Page, String> {
        let mut bytes = vec![0; PAGE as usize];
        self.read(at, &mut bytes).map_err(|e| e.to_string())?;
        Ok(Page { bytes, changed: PAGE as usize..0 })
    }
}

struct Page {
    bytes: Vec<u8>,
    changed: Range<usize>,
}

impl Page {
    fn change(&mut self, at: usize, was: u8, byte: u8) -> Result<(), String> {
        let cell = self.bytes.get_mut(at).filter(|b| **b == was).ok_or("its code is not what its file says")?;
        *cell = byte;
        self.changed = self.changed.start.min(at)..self.changed.end.max(at + 1);
        Ok(())
    }
}

fn originals(plan: &Plan) -> BTreeMap<u64, &[u8]> {
    let spans = plan.sites.iter().flat_map(|s| [&s.before, &s.after, &s.whole]).flatten();
    let spans = spans.chain(plan.entries.iter().map(|e| &e.span));
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

/// Everything a process has mapped, by address; empty if it is gone.
pub(super) fn mapped(pid: i32) -> Vec<Mapped> {
    let text = std::fs::read(format!("/proc/{pid}/maps")).unwrap_or_default();
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
    let status = |key| procfs::status_field(pid, key);
    if status("Seccomp:").is_some_and(|mode| mode != "0") {
        return Some("a seccomp filter of its maker's watches over it".into());
    }
    let namespace = |of: &str| std::fs::read_link(format!("/proc/{of}/ns/pid")).ok();
    if namespace(&pid.to_string()) != namespace("self") {
        return Some("it lives in another PID namespace".into());
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_maps_are_read() {
        let line = "7ffff7fc1000-7ffff7fc3000 r-xp 00000000 00:00 0 ";
        assert_eq!(mapped_line(line), Some(Mapped { range: 0x7ffff7fc1000..0x7ffff7fc3000, executable: true }));
        assert_eq!(mapped_line("nonsense"), None);
        let mine = mapped(std::process::id() as i32);
        let here = lines_of_maps_are_read as *const () as u64;
        assert!(mine.iter().any(|m| m.executable && m.range.contains(&here)));
        assert!(mine.windows(2).all(|w| w[0].range.end <= w[1].range.start));
    }
}
