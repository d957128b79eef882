//! Addresses that something may jump to.
//!
//! Invariant: too many rather than too few. A target too many costs a hook; one too few would
//! let a program jump into the middle of ours.

use super::cfi::Cfi;
use super::extents::Extent;
use super::image::{Image, Region};
use super::types::PlanError;
use iced_x86::{Code, Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind, Register};

/// Most entries believed of one jump table; gcc's largest have some thousands.
const MAX_TABLE: usize = 1 << 16;

/// A set of addresses in code.
pub(super) struct Targets {
    /// Start of a region, its length in bytes, one bit a byte.
    regions: Vec<(u64, u64, Vec<u64>)>,
}

impl Targets {
    fn new(code: &[Region<'_>]) -> Self {
        let region = |r: &Region<'_>| (r.start, r.bytes.len() as u64, vec![0; r.bytes.len().div_ceil(64)]);
        Self { regions: code.iter().map(region).collect() }
    }

    fn find(&self, address: u64) -> Option<(usize, usize, u64)> {
        // Nearly everything lies in one region; there are seldom more than six.
        let n = self.regions.partition_point(|r| r.0 <= address).checked_sub(1)?;
        let (start, len, _) = self.regions.get(n)?;
        let bit = address - start;
        (bit < *len).then_some((n, (bit / 64) as usize, 1 << (bit % 64)))
    }

    /// Adds `address` and returns whether it lies in code at all.
    pub(super) fn mark(&mut self, address: u64) -> bool {
        let Some((n, word, bit)) = self.find(address) else { return false };
        if let Some(word) = self.regions.get_mut(n).and_then(|r| r.2.get_mut(word)) {
            *word |= bit;
        }
        true
    }

    /// Whether something may jump to `address`.
    pub(super) fn contains(&self, address: u64) -> bool {
        let word = |(n, word, bit): (usize, usize, u64)| Some(self.regions.get(n)?.2.get(word)? & bit != 0);
        self.find(address).and_then(word).unwrap_or(false)
    }

    /// The first target strictly between `start` and `end`.
    pub(super) fn inside(&self, start: u64, end: u64) -> Option<u64> {
        (start.saturating_add(1)..end).find(|address| self.contains(*address))
    }
}

/// What one look at all code tells.
pub(super) struct Survey {
    pub(super) targets: Targets,
    pub(super) uses_gs: bool,
}

/// Decodes everything once, keeping only where it may jump and whether it uses gs.
pub(super) fn survey(image: &Image<'_>, cfi: &Cfi<'_>, extents: &[Extent]) -> Result<Survey, PlanError> {
    let mut targets = Targets::new(&image.code);
    targets.mark(image.entry);
    for (address, _) in &image.symbols {
        targets.mark(*address);
    }
    for function in &cfi.functions {
        targets.mark(function.start);
    }
    cfi.landing_pads(image, |pad| {
        targets.mark(pad);
    })
    .ok_or(PlanError::Malformed)?;
    let mut walk = Walk { targets, taken: Vec::new(), uses_gs: false, is_fixed: image.is_fixed };
    // What lies between functions may be data: it must not accuse anybody of using gs.
    let any_known = extents.iter().any(|e| e.known);
    for extent in extents {
        if extent.known {
            walk.targets.mark(extent.start);
        }
        walk.code(image, extent, extent.known || !any_known);
    }
    let Walk { mut targets, mut taken, uses_gs, .. } = walk;
    taken.sort_unstable();
    taken.dedup();
    jump_tables(image, &taken, &mut targets);
    addresses_in_data(image, &mut targets);
    Ok(Survey { targets, uses_gs })
}

/// A walk over all instructions.
struct Walk {
    targets: Targets,
    /// Addresses that code computes: of functions, labels, and jump tables.
    taken: Vec<u64>,
    uses_gs: bool,
    is_fixed: bool,
}

impl Walk {
    fn code(&mut self, image: &Image<'_>, extent: &Extent, believe: bool) {
        let Some(region) = image.region(extent.start) else { return };
        let bytes = region.slice(extent.start, extent.end);
        let mut decoder = Decoder::with_ip(64, bytes, extent.start, DecoderOptions::NONE);
        let mut instruction = Instruction::default();
        while decoder.can_decode() {
            decoder.decode_out(&mut instruction);
            self.instruction(&instruction);
            if believe && !self.uses_gs {
                self.uses_gs = uses_gs(&instruction);
            }
        }
    }

    fn instruction(&mut self, i: &Instruction) {
        match i.flow_control() {
            FlowControl::Next => self.address(i),
            FlowControl::ConditionalBranch
            | FlowControl::UnconditionalBranch
            | FlowControl::Call
            | FlowControl::XbeginXabortXend
                if i.op0_kind() == OpKind::NearBranch64 =>
            {
                self.targets.mark(i.near_branch64());
            }
            _ => {}
        }
    }

    /// Notes an address that `i` computes.
    fn address(&mut self, i: &Instruction) {
        let address = match i.mnemonic() {
            Mnemonic::Lea if i.is_ip_rel_memory_operand() => i.ip_rel_memory_address(),
            // Code that can't be moved has addresses as plain numbers.
            Mnemonic::Lea if self.is_fixed && i.memory_base() == Register::None => i.memory_displacement64(),
            Mnemonic::Mov if self.is_fixed && immediate(i, 1) => i.immediate(1) & 0xffff_ffff,
            Mnemonic::Push if self.is_fixed && immediate(i, 0) => i.immediate(0),
            _ => return,
        };
        self.targets.mark(address);
        self.taken.push(address);
    }
}

fn immediate(i: &Instruction, operand: u32) -> bool {
    matches!(i.try_op_kind(operand), Ok(OpKind::Immediate32 | OpKind::Immediate32to64 | OpKind::Immediate64))
}

fn uses_gs(i: &Instruction) -> bool {
    match i.code() {
        Code::Wrgsbase_r32 | Code::Wrgsbase_r64 | Code::Rdgsbase_r32 | Code::Rdgsbase_r64 => true,
        _ if i.mnemonic() == Mnemonic::Mov && i.op0_register() == Register::GS => true,
        _ if i.segment_prefix() != Register::GS || matches!(i.mnemonic(), Mnemonic::Nop | Mnemonic::INVALID) => false,
        _ => i.op_kinds().any(|kind| kind == OpKind::Memory),
    }
}

/// Tables of 32-bit offsets from their own start, as compilers make of a `switch` in code that
/// can be moved. Any address that code computes may be one; a table ends where the next thing
/// begins or where an entry leads out of the code.
fn jump_tables(image: &Image<'_>, taken: &[u64], targets: &mut Targets) {
    for (n, table) in taken.iter().enumerate() {
        let Some(bytes) = image.from(*table) else { continue };
        let room = taken.get(n + 1).map_or(u64::MAX, |next| next - table);
        let entries = usize::try_from(room / 4).unwrap_or(MAX_TABLE).min(MAX_TABLE);
        for entry in bytes.as_chunks::<4>().0.iter().take(entries) {
            let offset = i64::from(i32::from_le_bytes(*entry));
            if !targets.mark(table.wrapping_add_signed(offset)) {
                break;
            }
        }
    }
}

/// Words of data that are addresses of code: tables of absolute addresses, pointers to
/// functions, and what relocations put there (their addends are words of a mapped table too).
fn addresses_in_data(image: &Image<'_>, targets: &mut Targets) {
    let lowest = image.code.first().map_or(u64::MAX, |r| r.start);
    let highest = image.code.last().map_or(0, Region::end);
    for (start, bytes) in image.mapped() {
        let unaligned = (start.next_multiple_of(8) - start) as usize;
        let Some(words) = bytes.get(unaligned..) else { continue };
        for word in words.as_chunks::<8>().0 {
            let address = u64::from_le_bytes(*word);
            if (lowest..highest).contains(&address) {
                targets.mark(address);
            }
        }
    }
}
