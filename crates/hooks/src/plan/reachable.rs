//! Finds the instructions that control flow reaches from the known starts of code.
//!
//! Some compilers keep data among the code (GHC a table before each function, and all tables of a module under one
//! symbol). Decoded from a function's start to its end, such data may look like anything. In a function that looks
//! like that, only the code that control flow reaches counts.

use super::addresses::Set;
use super::effects::{computed_address, direct_target, ends, goes_on, is_plausible};
use super::extents::Extent;
use super::gs::is_doubtful;
use super::image::Image;
use super::quick::{Step, Steps, led_to};
use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic, Register};

/// Rounds in which tables of reached code are searched.
const ROUNDS: usize = 8;
/// Entries of one jump table, at most; gcc's largest have some thousands.
const MAX_TABLE: usize = 1 << 16;
/// Bytes before a call in which the instruction that sets its number is searched.
const NUMBER: usize = 24;

/// Returns true if the bytes of a `syscall` behind `before`, to which nothing is known to lead, may be a call: a call
/// needs a number, so rax must be set on some path to it.
pub(super) fn gets_number(before: &[u8]) -> bool {
    let last = before.get(before.len().saturating_sub(NUMBER)..).unwrap_or_default();
    (0..last.len()).any(|start| {
        let mut decoder = Decoder::with_ip(64, last.get(start..).unwrap_or_default(), 0, DecoderOptions::NONE);
        let mut first = true;
        for i in decoder.iter() {
            if !goes_on(&i) || is_doubtful(&i) || first && !puts_number(&i) {
                return false;
            }
            first = false;
        }
        !first
    })
}

/// Returns true if `i` puts a value into all of rax.
fn puts_number(i: &Instruction) -> bool {
    let whole = matches!(i.op0_register(), Register::EAX | Register::RAX);
    let moves =
        matches!(i.mnemonic(), Mnemonic::Mov | Mnemonic::Movsxd | Mnemonic::Movzx | Mnemonic::Lea | Mnemonic::Pop);
    let clears = matches!(i.mnemonic(), Mnemonic::Xor | Mnemonic::Sub) && i.op0_register() == i.op1_register();
    whole && (moves || clears)
}

/// Returns true if the byte at `address` lies inside an instruction that control flow reaches.
pub(super) fn is_inside(image: &Image<'_>, reached: &Set, address: u64) -> bool {
    /// Bytes of the longest instruction.
    const LONGEST: u64 = 15;
    let Some(region) = image.region(address) else { return false };
    (address.saturating_sub(LONGEST - 1)..address).filter(|start| reached.contains(*start)).any(|start| {
        let bytes = region.slice(start, start.saturating_add(LONGEST));
        let mut decoder = Decoder::with_ip(64, bytes, start, DecoderOptions::NONE);
        decoder.can_decode() && decoder.decode().next_ip() > address
    })
}

/// Returns the starts of all instructions that control flow reaches from `starts`.
pub(super) fn followed(image: &Image<'_>, extents: &[Extent], starts: Vec<u64>) -> Set {
    let mut reach = ReachSearch { image, extents, reached: Set::new(&image.code), open: starts, computed: Vec::new() };
    for _ in 0..ROUNDS {
        if !reach.follow() {
            break;
        }
        reach.look_for_tables();
    }
    reach.reached
}

struct ReachSearch<'a> {
    image: &'a Image<'a>,
    extents: &'a [Extent],
    /// Starts of instructions that may be run.
    reached: Set,
    /// Addresses from which code is still to be followed.
    open: Vec<u64>,
    /// Addresses that code computes, which may be tables.
    computed: Vec<u64>,
}

impl ReachSearch<'_> {
    /// Follows code from the open addresses. Returns true if any was new.
    fn follow(&mut self) -> bool {
        let mut any = false;
        while let Some(address) = self.open.pop() {
            // Most addresses have been reached already: many paths lead to the same code.
            if self.reached.contains(address) {
                continue;
            }
            let next = self.extents.partition_point(|e| e.start <= address);
            let extent = next.checked_sub(1).and_then(|n| self.extents.get(n));
            let Some(region) = self.image.region(address) else { continue };
            // Data according to symbols is in no extent. Code continues from one extent into the next.
            if extent.is_none_or(|e| address >= e.end) {
                continue;
            }
            let is_fixed = self.image.is_fixed;
            let mut steps = Steps::of(region, (address, region.end()), is_fixed);
            while let Some((ip, step)) = steps.next() {
                let asked = (step == Step::Ask).then(|| steps.asked());
                if asked.is_some_and(|i| !is_plausible(i)) || !self.reached.add_new(ip) {
                    break;
                }
                any = true;
                let (target, computed, is_end) = match step {
                    Step::Plain { .. } => continue,
                    Step::Ends { .. } => break,
                    Step::Branch { len, distance, ends } => (Some(led_to(ip, len, distance)), None, ends),
                    Step::Address { len, distance } => (None, Some(led_to(ip, len, distance)), false),
                    Step::Ask => {
                        let i = steps.asked();
                        (direct_target(i), computed_address(i, is_fixed), ends(i))
                    }
                };
                self.open.extend(target);
                self.computed.extend(computed);
                self.open.extend(computed);
                if is_end {
                    break;
                }
            }
        }
        any
    }

    /// Adds the targets in tables of distances from their own start to the open addresses.
    fn look_for_tables(&mut self) {
        self.computed.sort_unstable();
        self.computed.dedup();
        for (n, table) in self.computed.iter().enumerate() {
            // A place in code holds no table, because compilers keep tables apart from code; and code read as
            // distances would lead anywhere.
            if self.image.text != 0 && self.image.region(*table).is_some() {
                continue;
            }
            let Some(bytes) = self.image.from(*table) else { continue };
            let room = self.computed.get(n + 1).map_or(u64::MAX, |next| next - table);
            let entries = usize::try_from(room / 4).unwrap_or(MAX_TABLE).min(MAX_TABLE);
            for entry in bytes.as_chunks::<4>().0.iter().take(entries) {
                let target = table.wrapping_add_signed(i64::from(i32::from_le_bytes(*entry)));
                if self.image.region(target).is_none() {
                    break;
                }
                self.open.push(target);
            }
        }
    }
}
