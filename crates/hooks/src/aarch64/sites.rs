//! Finds the `svc` instructions of code, and how each can be hooked.

use super::effects::{Effects, FLAGS, Flow, effects};
use super::words::{MOV_SIGNAL_RETURN, SVC};
use thiserror::Error;

/// Registers that the counting code changes, and the flags. A call's callee may change all of them, by AAPCS64.
const CHANGED: u32 = 0b11_0011_1110_0000_0000 | FLAGS;
/// Instructions before an `svc` among which one sets its number, in x8. Of 1,357 in glibc, musl, BusyBox and
/// Go all are of this kind, but one to which code branches. The five words of gdb that are like an `svc` are of neither: data.
const NUMBER_WITHIN: usize = 64;
/// Instructions that are followed from a site to show that registers are free there, at most.
const MOST_STEPS: usize = 400;

/// An `svc` to be hooked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Site {
    /// Offset of the `svc` in the code, bytes.
    pub at: usize,
    /// True if other code branches to the `svc`: then the call is made in our code.
    pub moved: bool,
    /// True if the counting code keeps the registers that it changes, on the stack: they may be in use.
    pub keeps: bool,
}

/// The reason why some calls of a file could not be counted.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum Declined {
    /// The word at this offset may be an `svc` of an unusual kind, or data.
    #[error("what is at {0:#x} may be a call, or data")]
    Kind(usize),
    /// There is no room for jumps around the `svc` at this offset.
    #[error("no room for a jump at {0:#x}")]
    Room(usize),
}

/// Returns the sites of code, by address. A signal's return is none: unwinders know it by its two instructions.
///
/// # Errors
/// If a call is in a place that can't be hooked.
pub fn sites(code: &[u32]) -> Result<Vec<Site>, Declined> {
    let calls: Vec<usize> = (0..code.len()).filter(|at| code[*at] & 0xffe0_001f == SVC).collect();
    let mut targets = Vec::new();
    if !calls.is_empty() {
        let branch = |(at, word): (usize, &u32)| at.checked_add_signed((super::effects::branch(*word)? / 4) as isize);
        targets = code.iter().enumerate().filter_map(branch).filter(|to| calls.binary_search(to).is_ok()).collect();
    }
    let mut all: Vec<Site> = Vec::new();
    for at in calls {
        let numbered = code[at.saturating_sub(NUMBER_WITHIN)..at].iter().any(|word| sets_number(*word));
        match (code[at] == SVC, numbered || targets.contains(&at)) {
            (true, true) => {}
            // No C library has an `svc` with another number; data among the code may look like one.
            (false, false) => continue,
            _ => return Err(Declined::Kind(4 * at)),
        }
        let before = at.checked_sub(1).map(|before| code[before]);
        if before == Some(MOV_SIGNAL_RETURN) {
            continue;
        }
        // The jump behind the last call may be where this one's would be.
        let taken = all.last().is_some_and(|last| last.at + 4 == 4 * (at - 1));
        let moved = before.is_none() || taken || targets.contains(&at);
        let follows = all.last().is_some_and(|last| last.at + 4 == 4 * at);
        if follows || at + 1 >= code.len() {
            return Err(Declined::Room(4 * at));
        }
        all.push(Site { at: 4 * at, moved, keeps: used(code, at + 1) & CHANGED != 0 });
    }
    Ok(all)
}

/// Returns true if an instruction moves a constant or a register to x8, or loads it.
fn sets_number(w: u32) -> bool {
    w & 0x7fe0_001f == 0x5280_0008 || w & 0x7fe0_ffff == 0x2a00_03e8 || w & 0xbfc0_001f == 0xb940_0008
}

/// Returns the registers, and the flags, that may be read after `start` before they are written.
fn used(code: &[u32], start: usize) -> u32 {
    let mut used = 0;
    let mut steps = 0;
    // Instructions that were reached, each with the registers whose values mattered.
    let mut seen: Vec<(usize, u32)> = Vec::new();
    let mut open = vec![(start, CHANGED)];
    while let Some((mut at, mut mattering)) = open.pop() {
        loop {
            mattering &= !used;
            if mattering == 0 || seen.iter().any(|(known, of)| *known == at && mattering & !of == 0) {
                break;
            }
            seen.push((at, mattering));
            steps += 1;
            let Some(word) = code.get(at).filter(|_| steps < MOST_STEPS) else { return used | mattering };
            let Effects { reads, writes, flow } = effects(*word);
            used |= reads & mattering;
            mattering &= !writes;
            let to = |by: i64| at.checked_add_signed((by / 4) as isize).unwrap_or(usize::MAX);
            match flow {
                Flow::Next => at += 1,
                Flow::Branch { by, conditional } => {
                    if conditional {
                        open.push((at + 1, mattering));
                    }
                    at = to(by);
                }
                Flow::Unknown => return used | mattering,
                Flow::Call | Flow::Return | Flow::Nowhere => break,
            }
        }
    }
    used
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOV: u32 = 0xd280_07e8;
    const RET: u32 = 0xd65f_03c0;
    const NOP: u32 = 0xd503_201f;

    #[test]
    fn registers_are_shown_to_be_free() {
        // cmn x0, #4095; b.cc .+8; neg; ret: as in a wrapper.
        let wrapper = [MOV, SVC, 0xb13f_fc1f, 0x5400_0043, 0xcb00_03e0, RET];
        assert_eq!(sites(&wrapper), Ok(vec![Site { at: 4, moved: false, keeps: false }]));
        // str x9, [x10]: both were set before the call.
        let uses = [MOV, SVC, 0xf900_0149, RET];
        assert_eq!(used(&uses, 2), 1 << 9 | 1 << 10);
        assert_eq!(sites(&uses), Ok(vec![Site { at: 4, moved: false, keeps: true }]));
        // b.eq: flags from before the call. br x2: nobody knows what comes.
        assert_eq!(used(&[0x5400_0040, RET, RET], 0), FLAGS);
        assert_eq!(used(&[0xd61f_0040], 0), CHANGED);
        // An endless loop, and code that ends.
        assert_eq!(used(&[0x1400_0000], 0), 0);
        assert_eq!(used(&[NOP], 0), CHANGED);
    }

    #[test]
    fn sites_are_hooked_where_jumps_fit() {
        let moved = |code: &[u32]| sites(code).map(|all| all.iter().map(|s| (s.at, s.moved)).collect::<Vec<_>>());
        // cbnz x1, svc: the instruction before the call is left out.
        assert_eq!(moved(&[0xb500_0041, MOV, SVC, NOP]), Ok(vec![(8, true)]));
        // b .+4; svc: the file begins with a call.
        assert_eq!(moved(&[SVC, 0x17ff_ffff, RET]), Ok(vec![(0, true)]));
        // Data.
        assert_eq!(moved(&[NOP, SVC, NOP]), Err(Declined::Kind(4)));
        assert_eq!(moved(&[NOP, SVC | 32, NOP]), Ok(vec![]));
        assert_eq!(moved(&[MOV, SVC, MOV, SVC, RET]), Ok(vec![(4, false), (12, true)]));
        assert_eq!(moved(&[MOV_SIGNAL_RETURN, SVC, RET]), Ok(vec![]));
        assert_eq!(moved(&[MOV, SVC, SVC, RET]), Err(Declined::Room(8)));
        assert_eq!(moved(&[MOV, SVC]), Err(Declined::Room(4)));
        assert_eq!(moved(&[MOV, SVC | 32, RET]), Err(Declined::Kind(4)));
        assert_eq!(moved(&[]), Ok(vec![]));
    }
}
