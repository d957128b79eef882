//! Functions that may jump to distances from a label of their own (`&&here - &&base` of GNU C). Tables of such
//! distances look like any other numbers, so every number in the file's data counts as one.

use super::extents::Extent;
use super::image::{Image, Region};
use iced_x86::{Code, Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind};
use std::collections::BTreeSet;

/// Distances below this count as known: tables hold two or four bytes, and one-byte numbers occur everywhere.
const NEAR: u64 = 128;
/// Distances from this on count as found in a table; functions are not that long.
const FAR: u64 = 1 << 24;
/// Labels of a function that are examined, at most: real functions have some dozens, and a file made of nothing else
/// must not take for ever.
const MOST_LABELS: usize = 1024;
/// Calls of a piece of a function with labels that are examined, at most.
pub(super) const MOST_CALLS: usize = 16;

/// Labels whose addresses a function takes, if the function jumps through a register.
#[derive(Debug)]
pub(super) struct Labels {
    addresses: BTreeSet<u64>,
    /// True if the function takes more labels than were examined.
    more: bool,
}

impl Labels {
    /// Returns the labels of the function at `extent`; `None` if it takes none, or never jumps through a register.
    pub(super) fn of(region: &Region<'_>, extent: &Extent) -> Option<Self> {
        let bytes = region.slice(extent.start, extent.end);
        let (mut jumps, mut found) = (false, Self { addresses: BTreeSet::new(), more: false });
        for i in Decoder::with_ip(64, bytes, extent.start, DecoderOptions::NONE).iter() {
            jumps |= i.flow_control() == FlowControl::IndirectBranch && i.op0_kind() == OpKind::Register;
            let label = || i.ip_rel_memory_address();
            if i.mnemonic() == Mnemonic::Lea
                && i.is_ip_rel_memory_operand()
                && extent.start < label()
                && label() < extent.end
            {
                found.more |= found.addresses.len() >= MOST_LABELS;
                if !found.more {
                    found.addresses.insert(label());
                }
            }
        }
        (jumps && !found.addresses.is_empty()).then_some(found)
    }

    /// Returns true if the distance of `address` from a label may be among `numbers`.
    fn may_lead_to(&self, address: u64, numbers: &Numbers) -> bool {
        let distance = |label: &u64| address.wrapping_sub(*label) as i64;
        self.more || self.addresses.iter().map(distance).any(|n| n.unsigned_abs() < NEAR || numbers.may_hold(n))
    }

    /// Returns true if the call at `code[n]` is only reached from the instruction before it, which loads its number
    /// and is as long as a jump: such a window has no inside to which a jump could lead.
    pub(super) fn leave_alone(&self, code: &[Instruction], n: usize, numbers: &Numbers) -> bool {
        let Some([load, call]) = n.checked_sub(1).and_then(|before| code.get(before..=n)) else { return false };
        load.code() == Code::Mov_r32_imm32
            && load.op0_register() == iced_x86::Register::EAX
            && load.next_ip() == call.ip()
            && !self.may_lead_to(call.ip(), numbers)
    }
}

/// Numbers in a file's data that may be distances: one bit for each below [`FAR`], of either sign.
#[derive(Debug)]
pub(super) struct Numbers {
    bits: Vec<u64>,
    /// True if not all data was read.
    more: bool,
}

impl Numbers {
    /// Collects the aligned numbers of four bytes and of two.
    pub(super) fn of(image: &Image<'_>) -> Self {
        let mut numbers = Self { bits: vec![0; 2 * FAR as usize / 64], more: false };
        // A file may name its data many times.
        let mut left = image.data.len();
        for (at, bytes) in image.constants() {
            let Some(rest) = left.checked_sub(bytes.len()) else {
                numbers.more = true;
                break;
            };
            left = rest;
            let unaligned = at.next_multiple_of(4).saturating_sub(at) as usize;
            let bytes = bytes.get(unaligned..).unwrap_or_default();
            bytes.as_chunks::<4>().0.iter().for_each(|long| numbers.add(i32::from_le_bytes(*long).into()));
            bytes.as_chunks::<2>().0.iter().for_each(|short| numbers.add(i16::from_le_bytes(*short).into()));
        }
        numbers
    }

    fn add(&mut self, number: i64) {
        if let Some((word, bit)) = Self::place(number)
            && let Some(word) = self.bits.get_mut(word)
        {
            *word |= bit;
        }
    }

    fn may_hold(&self, number: i64) -> bool {
        let Some((word, bit)) = Self::place(number) else { return true };
        self.more || self.bits.get(word).is_none_or(|word| word & bit != 0)
    }

    /// Returns the place of a number's bit; `None` if the number is too large.
    fn place(number: i64) -> Option<(usize, u64)> {
        let place = number.checked_add_unsigned(FAR).and_then(|n| u64::try_from(n).ok()).filter(|n| *n < 2 * FAR)?;
        Some(((place / 64) as usize, 1 << (place % 64)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: u64 = 0x1000;

    /// Returns the labels of a function that takes `n` addresses of its own and jumps through rax.
    fn takes(n: usize) -> Option<Labels> {
        let lea = |at: usize| [0x48, 0x8d, 0x15].into_iter().chain((at as u32).to_le_bytes()).collect::<Vec<u8>>();
        let bytes: Vec<u8> = (0..n).rev().flat_map(lea).chain([0xff, 0xe0]).collect();
        let extent = Extent { start: START, end: START + bytes.len() as u64, known: true };
        Labels::of(&Region { start: START, bytes: &bytes }, &extent)
    }

    #[test]
    fn so_many_labels_are_looked_at() {
        assert!(takes(0).is_none());
        let none = Numbers { bits: vec![0; 2 * FAR as usize / 64], more: false };
        let far = START + FAR / 2;
        let (most, more) = (takes(MOST_LABELS).unwrap(), takes(MOST_LABELS + 1).unwrap());
        assert!(!most.may_lead_to(far, &none) && more.may_lead_to(far, &none));
        assert!(most.may_lead_to(START + 2 * FAR, &none), "too far to be known");
    }

    #[test]
    fn numbers_of_both_signs_are_kept() {
        let mut numbers = Numbers { bits: vec![0; 2 * FAR as usize / 64], more: false };
        for n in [0, -1, 5000, FAR as i64 - 1, -(FAR as i64), i64::MAX, i64::MIN] {
            numbers.add(n);
            assert!(numbers.may_hold(n), "{n}");
        }
        assert!(!numbers.may_hold(1) && !numbers.may_hold(4999) && !numbers.may_hold(-5000));
        assert!(numbers.may_hold(FAR as i64) && numbers.may_hold(-(FAR as i64) - 1));
        assert!(Numbers { more: true, ..numbers }.may_hold(1));
    }
}
