//! Functions that may jump to distances from a label of their own (`&&here - &&base` of GNU C): tables
//! of such distances look like any numbers, so every number of the file's data is taken for one.

use super::extents::Extent;
use super::image::{Image, Region};
use iced_x86::{Code, Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind};

/// Distances in tables have two bytes or four; those that one byte holds are anywhere.
const NEAR: u64 = 128;

/// Labels whose addresses a function takes that jumps through a register.
#[derive(Debug, Default)]
pub(super) struct Labels(Vec<u64>);

impl Labels {
    /// Of the function at `extent`; `None` where it takes none, or jumps nowhere by a register.
    pub(super) fn of(region: &Region<'_>, extent: &Extent) -> Option<Self> {
        let bytes = region.slice(extent.start, extent.end);
        let (mut jumps, mut labels) = (false, Vec::new());
        for i in Decoder::with_ip(64, bytes, extent.start, DecoderOptions::NONE).iter() {
            jumps |= i.flow_control() == FlowControl::IndirectBranch && i.op0_kind() == OpKind::Register;
            let label = || i.ip_rel_memory_address();
            if i.mnemonic() == Mnemonic::Lea
                && i.is_ip_rel_memory_operand()
                && extent.start < label()
                && label() < extent.end
            {
                labels.push(label());
            }
        }
        (jumps && !labels.is_empty()).then_some(Self(labels))
    }

    /// Whether some number in the file's data is the distance of `address` from a label.
    fn may_lead_to(&self, address: u64, image: &Image<'_>) -> bool {
        self.0.iter().any(|label| {
            let distance = address.wrapping_sub(*label) as i64;
            distance.unsigned_abs() < NEAR || is_among_data(image, distance)
        })
    }

    /// Whether the call at `code[n]` is made by nothing but what falls into it from the instruction that loads
    /// its number, which a jump fits over: then no window has an inside that a jump could lead to.
    pub(super) fn leave_alone(&self, code: &[Instruction], n: usize, image: &Image<'_>) -> bool {
        let Some([load, call]) = n.checked_sub(1).and_then(|before| code.get(before..=n)) else { return false };
        load.code() == Code::Mov_r32_imm32
            && load.op0_register() == iced_x86::Register::EAX
            && load.next_ip() == call.ip()
            && !self.may_lead_to(call.ip(), image)
    }
}

fn is_among_data(image: &Image<'_>, distance: i64) -> bool {
    let (long, short) = (i32::try_from(distance), i16::try_from(distance));
    image.constants().any(|(at, bytes)| {
        let unaligned = at.next_multiple_of(4).saturating_sub(at) as usize;
        let bytes = bytes.get(unaligned..).unwrap_or_default();
        long.is_ok_and(|n| bytes.as_chunks::<4>().0.contains(&n.to_le_bytes()))
            || short.is_ok_and(|n| bytes.as_chunks::<2>().0.contains(&n.to_le_bytes()))
    })
}
