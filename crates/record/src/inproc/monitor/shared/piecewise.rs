//! Writes a file's jumps although not all of its code is as planned: a loader may map it piece by piece, and other
//! tools change code too. If code differs, the whole site it belongs to is left alone; all other sites are hooked.

use crate::inproc::monitor::shared::remote::{ESSENTIAL, Jumps, Mem};
use std::collections::BTreeSet;

/// The jumps that were not written, because the code differs from the file's.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Differences {
    /// Sites whose code differs, by rising address.
    pub(crate) sites: Vec<u64>,
    /// First difference: its address in the file, the bytes found, and the file's bytes.
    pub(crate) evidence: Option<(u64, Vec<u8>, Vec<u8>)>,
}

impl Differences {
    /// Describes the difference for a person.
    pub(crate) fn shown(&self) -> String {
        let hex = |bytes: &[u8]| bytes.iter().map(|b| format!("{b:02x}")).collect::<Vec<_>>().join(" ");
        let (at, there, was) = self.evidence.clone().unwrap_or_default();
        format!("{} lies where the file has {} (at {at:#x})", hex(&there), hex(&was))
    }
}

/// State of a change of code in a process.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// The code is not mapped yet.
    Absent,
    /// The code is the file's own.
    Planned,
    /// The jump is in place.
    Written,
    /// The code is neither the file's nor the jump.
    Differs,
}

impl Mem {
    /// Writes the jumps of a file that are missing, in mappings that are executable according to `is_code`, except for
    /// sites whose code differs.
    ///
    /// # Errors
    /// A text, if the file can't be hooked at all. Nothing has been written then.
    pub(crate) fn patch_around(
        &self,
        jumps: &Jumps,
        bias: u64,
        is_code: &dyn Fn(u64) -> bool,
    ) -> Result<Differences, String> {
        self.patch_but(jumps, bias, (is_code, BTreeSet::new()))
    }

    /// Does the same as [`Mem::patch_around`], but leaves these sites as they are too.
    ///
    /// # Errors
    /// The errors of [`Mem::patch_around`].
    pub(crate) fn patch_but(
        &self,
        jumps: &Jumps,
        bias: u64,
        (is_code, left): (&dyn Fn(u64) -> bool, BTreeSet<u64>),
    ) -> Result<Differences, String> {
        let mut pieces = self.read_each(jumps, bias, is_code);
        if pieces.iter().all(Option::is_none) {
            return Err("its code can't be read".into());
        }
        let before = pieces.clone();
        let left = decide(jumps, &mut pieces, left)?;
        for ((piece, old), new) in jumps.pieces.iter().zip(before).zip(pieces) {
            if let Some(bytes) = new.filter(|new| Some(new) != old.as_ref()) {
                self.write(bias.wrapping_add(piece.vaddr), &bytes).map_err(|e| e.to_string())?;
            }
        }
        Ok(left)
    }

    /// Returns the bytes of each piece, `None` for a piece that does not lie in code or can't be read.
    fn read_each(&self, jumps: &Jumps, bias: u64, is_code: &dyn Fn(u64) -> bool) -> Vec<Option<Vec<u8>>> {
        let places: Vec<(u64, usize)> = jumps.pieces.iter().map(|p| (bias.wrapping_add(p.vaddr), p.len)).collect();
        let mut all: Vec<Vec<u8>> = places.iter().map(|(_, len)| vec![0; *len]).collect();
        if places.iter().all(|(at, _)| is_code(*at)) && self.read_at_once(&places, &mut all) {
            return all.into_iter().map(Some).collect();
        }
        let one = |((at, _), mut bytes): (&(u64, usize), Vec<u8>)| {
            (is_code(*at) && self.read(*at, &mut bytes).is_ok()).then_some(bytes)
        };
        places.iter().zip(all).map(one).collect()
    }

    /// Returns true if any of a file's jumps is in place.
    pub(crate) fn has_any(&self, jumps: &Jumps, bias: u64) -> bool {
        jumps.changes.iter().any(|change| {
            let new = jumps.bytes_of(change).1;
            let mut there = vec![0; new.len()];
            self.read(bias.wrapping_add(change.vaddr), &mut there).is_ok() && there == *new
        })
    }
}

/// Applies the changes to the pieces that are mapped, site by site; sites that are `spoiled` already are left out.
fn decide(jumps: &Jumps, pieces: &mut [Option<Vec<u8>>], mut spoiled: BTreeSet<u64>) -> Result<Differences, String> {
    let (mut left, mut absent) = (Differences::default(), BTreeSet::new());
    for (piece, bytes) in jumps.pieces.iter().zip(pieces.iter()) {
        for change in jumps.changes.get(piece.changes.clone()).unwrap_or_default() {
            let (was, new) = jumps.bytes_of(change);
            match state(bytes.as_deref(), (change.vaddr - piece.vaddr) as usize, was, new) {
                (State::Absent, _) => _ = absent.insert(change.site),
                (State::Differs, there) => {
                    spoiled.insert(change.site);
                    left.evidence.get_or_insert_with(|| (change.vaddr, there.to_vec(), was.to_vec()));
                }
                _ => {}
            }
        }
    }
    if spoiled.contains(&ESSENTIAL) {
        return Err(format!("its code is not what its file says: {}", left.shown()));
    }
    for (piece, bytes) in jumps.pieces.iter().zip(pieces) {
        let Some(bytes) = bytes else { continue };
        for change in jumps.changes.get(piece.changes.clone()).unwrap_or_default() {
            let (was, new) = jumps.bytes_of(change);
            let at = (change.vaddr - piece.vaddr) as usize;
            let state = state(Some(bytes), at, was, new).0;
            // A site is hooked as a whole or not at all. A site with a piece that is still missing keeps the jumps it
            // has.
            let wanted = match (state, spoiled.contains(&change.site), absent.contains(&change.site)) {
                (State::Planned, false, false) => new,
                (State::Written, true, _) => was,
                _ => continue,
            };
            if let Some(there) = bytes.get_mut(at..at + new.len()) {
                there.copy_from_slice(wanted);
            }
        }
    }
    left.sites = spoiled.into_iter().collect();
    Ok(left)
}

fn state<'b>(bytes: Option<&'b [u8]>, at: usize, was: &[u8], new: &[u8]) -> (State, &'b [u8]) {
    match bytes.and_then(|b| b.get(at..at + new.len())) {
        None => (State::Absent, &[]),
        Some(there) if there == new => (State::Written, there),
        Some(there) if there == was => (State::Planned, there),
        Some(there) => (State::Differs, there),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inproc::monitor::shared::remote::Change;

    /// Returns the jumps of two pages, two in each: sites 1 and 2 in the first, 2 and 3 in the second.
    fn jumps() -> Jumps {
        let mut jumps = Jumps::default();
        for (vaddr, site) in [(0x1000, 1), (0x1010, 2), (0x2000, 2), (0x2010, 3)] {
            jumps.include(vaddr, &[0x90; 5], &[0xe9, 1, 2, 3, 4], site);
        }
        jumps
    }

    fn page() -> Vec<u8> {
        vec![0x90; 0x15]
    }

    fn has(page: &Option<Vec<u8>>, at: usize) -> bool {
        page.as_ref().is_some_and(|p| p[at] == 0xe9)
    }

    #[test]
    fn planned_jumps_are_written_and_stay() {
        let mut pages = [Some(page()), Some(page())];
        for _ in 0..2 {
            assert_eq!(decide(&jumps(), &mut pages, BTreeSet::new()), Ok(Differences::default()));
            assert!([0, 0x10].into_iter().all(|at| has(&pages[0], at) && has(&pages[1], at)));
        }
    }

    #[test]
    fn a_site_with_other_bytes_gets_none_of_its_jumps() {
        let mut pages = [Some(page()), Some(page())];
        pages[0].as_mut().unwrap()[0x12] = 0xcc;
        let left = decide(&jumps(), &mut pages, BTreeSet::new()).unwrap();
        assert_eq!(left.sites, [2]);
        assert_eq!(left.shown(), "90 90 cc 90 90 lies where the file has 90 90 90 90 90 (at 0x1010)");
        assert!(has(&pages[0], 0) && has(&pages[1], 0x10));
        assert_eq!(pages[1].as_ref().unwrap()[..5], [0x90; 5]);
    }

    #[test]
    fn a_jump_is_removed_if_another_of_its_site_was_changed() {
        let mut pages = [Some(page()), Some(page())];
        decide(&jumps(), &mut pages, BTreeSet::new()).unwrap();
        pages[1].as_mut().unwrap()[0] = 0xcc;
        assert_eq!(decide(&jumps(), &mut pages, BTreeSet::new()).unwrap().sites, [2]);
        assert!(has(&pages[0], 0) && !has(&pages[0], 0x10) && has(&pages[1], 0x10));
        assert_eq!(pages[1].as_ref().unwrap()[0], 0xcc);
    }

    #[test]
    fn a_later_piece_completes_sites_that_wait_for_it() {
        let mut pages = [Some(page()), None];
        assert_eq!(decide(&jumps(), &mut pages, BTreeSet::new()), Ok(Differences::default()));
        assert!(has(&pages[0], 0) && !has(&pages[0], 0x10));
        pages[1] = Some(page());
        assert_eq!(decide(&jumps(), &mut pages, BTreeSet::new()), Ok(Differences::default()));
        assert!([0, 0x10].into_iter().all(|at| has(&pages[0], at) && has(&pages[1], at)));
    }

    #[test]
    fn required_code_must_be_as_planned() {
        let mut jumps = jumps();
        jumps.include(0x2010 + 0x10, &[0x90; 5], &[0xe9, 1, 2, 3, 4], ESSENTIAL);
        let mut pages = [Some(page()), Some(vec![0x90; 0x25])];
        pages[1].as_mut().unwrap()[0x20] = 0xcc;
        let before = pages.clone();
        assert!(decide(&jumps, &mut pages, BTreeSet::new()).is_err());
        assert_eq!(pages, before);
    }

    #[test]
    fn a_skipped_site_gets_none_of_its_jumps() {
        let mut pages = [Some(page()), Some(page())];
        assert_eq!(decide(&jumps(), &mut pages, BTreeSet::from([2])).unwrap().sites, [2]);
        assert!(has(&pages[0], 0) && !has(&pages[0], 0x10) && !has(&pages[1], 0) && has(&pages[1], 0x10));
    }

    #[test]
    fn changes_know_their_sites() {
        let sites: Vec<u64> = jumps().changes.iter().map(|c: &Change| c.site).collect();
        assert_eq!(sites, [1, 2, 2, 3]);
    }
}
