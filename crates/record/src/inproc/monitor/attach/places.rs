//! Finds the jumps of a file that can't be written while the threads stand where they stand.

use crate::inproc::monitor::program::Patched;
use crate::inproc::monitor::shared::remote::{ESSENTIAL, Jumps};
use std::collections::BTreeSet;
use std::ops::Range;

/// Bytes of a page. A jump across its end takes two writes.
const PAGE: u64 = 4096;

/// Bytes written over a file's code in one place, at addresses of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Jump {
    pub(crate) range: Range<u64>,
    pub(crate) site: u64,
}

/// Returns the jumps of a file, each as one range.
pub(crate) fn jumps(jumps: &Jumps) -> Vec<Jump> {
    let mut all: Vec<Jump> = Vec::with_capacity(jumps.changes.len());
    for change in &jumps.changes {
        let (start, len) = (change.vaddr, jumps.bytes_of(change).1.len() as u64);
        // A jump across a page's end is written in two pieces.
        match all.last_mut() {
            Some(last) if last.site == change.site && last.range.end == start && start.is_multiple_of(PAGE) => {
                last.range.end = start + len;
            }
            _ => all.push(Jump { range: start..start + len, site: change.site }),
        }
    }
    all
}

/// Sites of a file that can't be hooked now.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Left {
    /// Sites where a thread is in the middle of the jump, or returns there.
    pub(crate) stood_in: BTreeSet<u64>,
    /// Sites whose jump lies across a page's end: if we were killed between the two writes, half a jump would remain.
    pub(crate) across: BTreeSet<u64>,
}

impl Left {
    /// Returns the sites whose jumps can't be written while threads stand at `addresses` or return there. `None` means
    /// that they may return anywhere.
    pub(crate) fn of(file: &Patched, addresses: Option<&[u64]>) -> Self {
        let jumps = jumps(&file.code.jumps);
        let mut left = Self::default();
        left.across.extend(jumps.iter().filter(|jump| crosses(&jump.range)).map(|jump| jump.site));
        match addresses {
            Some(addresses) => {
                let addresses: BTreeSet<u64> = addresses.iter().map(|at| at.wrapping_sub(file.bias)).collect();
                left.stood_in
                    .extend(jumps.iter().filter(|jump| has_one_inside(&jump.range, &addresses)).map(|j| j.site));
            }
            None => left.stood_in.extend(jumps.iter().filter(|jump| has_inside(file, jump)).map(|jump| jump.site)),
        }
        left
    }

    /// Returns true if `site` can't be hooked now.
    pub(crate) fn has(&self, site: u64) -> bool {
        self.stood_in.contains(&site) || self.across.contains(&site)
    }

    /// Returns true if the other sites can be hooked although these are not: none of these is [`ESSENTIAL`].
    pub(crate) fn is_harmless(&self) -> bool {
        !self.has(ESSENTIAL)
    }
}

fn crosses(range: &Range<u64>) -> bool {
    range.start / PAGE != range.end.saturating_sub(1) / PAGE
}

/// Returns true if a thread at one of these addresses would be in the middle of a jump. At its beginning the thread
/// takes the jump.
fn has_one_inside(jump: &Range<u64>, addresses: &BTreeSet<u64>) -> bool {
    addresses.range(jump.start + 1..).next().is_some_and(|at| *at < jump.end)
}

/// Returns true if the jump replaces more than one instruction, so that a thread may be between two of them. True as
/// well if the plan does not know its span.
fn has_inside(file: &Patched, jump: &Jump) -> bool {
    let plan = &file.known.plan;
    let mut spans = plan.sites.iter().flat_map(|site| site.spans()).chain(plan.entries.iter().map(|e| &e.span));
    spans.find(|span| span.start == jump.range.start).is_none_or(|span| span.instructions != 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_jump_across_a_pages_end_is_one() {
        let mut all = Jumps::default();
        all.include(0x1ffe, &[1, 2], &[5, 6], 7);
        all.include(0x2000, &[3, 4, 5], &[7, 8, 9], 7);
        all.include(0x2003, &[3, 4, 5, 6, 7], &[7, 8, 9, 1, 1], 7);
        let jumps = jumps(&all);
        let ranges: Vec<_> = jumps.iter().map(|jump| jump.range.clone()).collect();
        assert_eq!(ranges, [0x1ffe..0x2003, 0x2003..0x2008]);
        assert_eq!(ranges.iter().map(crosses).collect::<Vec<_>>(), [true, false]);
    }

    #[test]
    fn a_jumps_beginning_is_no_inside() {
        let has = |addresses: &[u64]| has_one_inside(&(10..15), &addresses.iter().copied().collect());
        assert!(!has(&[9, 10, 15]) && has(&[10, 11]) && has(&[3, 14, 20]) && !has(&[]));
    }
}
