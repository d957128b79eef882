//! The distance of the return address from rsp where call frame information does not tell it: computed by following a
//! function's instructions that change rsp.
//!
//! Invariant: a distance that does not follow on every known path to an address is unknown there.

use super::effects::Effects;
use super::image::Region;
use super::types::CfaOffset;
use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind, Register};
use std::collections::HashMap;
use std::ops::Range;

/// Bytes of a function that is followed, at most.
const LONGEST: u64 = 1 << 18;

/// The distances of the frame from rsp, and from rbp while rbp points to the frame.
#[derive(Clone, Copy, PartialEq, Eq)]
struct State {
    /// Distance from rsp (CFA − rsp), bytes.
    rsp: Option<i64>,
    /// Distance from rbp (CFA − rbp), bytes.
    rbp: Option<i64>,
}

/// Distances of the frame at each instruction of one function, by the instruction's address.
pub(super) struct Depths(HashMap<u64, State>);

impl Depths {
    /// Follows the function at `extent` of `region` along its direct branches; CFA − rsp is `entry` at its start.
    pub(super) fn of(region: &Region<'_>, extent: Range<u64>, entry: i64, effects: &mut Effects) -> Self {
        let mut depths = Self(HashMap::new());
        if extent.end.saturating_sub(extent.start) > LONGEST {
            return depths;
        }
        let mut open = vec![(extent.start, State { rsp: Some(entry), rbp: None })];
        while let Some((at, state)) = open.pop() {
            depths.follow(region, at..extent.end, state, effects, &mut open);
            open.retain(|(to, _)| extent.contains(to));
        }
        depths
    }

    /// Returns CFA − rsp at `address`.
    pub(super) fn at(&self, address: u64) -> Option<CfaOffset> {
        let depth = self.0.get(&address)?.rsp?;
        u32::try_from(depth).ok().filter(|d| *d >= 8).map(CfaOffset)
    }

    /// Returns CFA − rbp at `address`.
    pub(super) fn above_rbp(&self, address: u64) -> Option<CfaOffset> {
        let distance = self.0.get(&address)?.rbp?;
        u32::try_from(distance).ok().filter(|d| *d >= 8).map(CfaOffset)
    }

    /// Notes `state` at `at`. Returns the joined state if that is new. If paths disagree, the distance becomes
    /// unknown.
    fn note(&mut self, at: u64, state: State) -> Option<State> {
        let Some(known) = self.0.get_mut(&at) else {
            self.0.insert(at, state);
            return Some(state);
        };
        let both = |a: Option<i64>, b: Option<i64>| a.filter(|_| a == b);
        let joined = State { rsp: both(known.rsp, state.rsp), rbp: both(known.rbp, state.rbp) };
        let news = joined != *known;
        *known = joined;
        news.then_some(joined)
    }

    fn follow(
        &mut self,
        region: &Region<'_>,
        within: Range<u64>,
        mut state: State,
        effects: &mut Effects,
        open: &mut Vec<(u64, State)>,
    ) {
        let bytes = region.slice(within.start, within.end);
        for i in Decoder::with_ip(64, bytes, within.start, DecoderOptions::NONE).iter() {
            match self.note(i.ip(), state) {
                Some(joined) => state = joined,
                None => return,
            }
            state = step(&i, state, effects);
            match i.flow_control() {
                FlowControl::Next | FlowControl::Call | FlowControl::IndirectCall => {}
                FlowControl::ConditionalBranch => open.push((i.near_branch_target(), state)),
                FlowControl::UnconditionalBranch => return open.push((i.near_branch_target(), state)),
                // iced classifies a system call as a call; after any other instruction, execution does not continue
                // here.
                _ => return,
            }
        }
    }
}

/// Returns the distances after `i`.
fn step(i: &Instruction, state: State, effects: &mut Effects) -> State {
    let moved = |by: i64| State { rsp: state.rsp.and_then(|d| d.checked_add(by)), ..state };
    let immediate = || matches!(i.op1_kind(), OpKind::Immediate8to64 | OpKind::Immediate32to64);
    let is = |n: u32, register| i.op_kind(n) == OpKind::Register && i.op_register(n) == register;
    match i.mnemonic() {
        Mnemonic::Push | Mnemonic::Pushfq => moved(i64::from(-i.stack_pointer_increment())),
        Mnemonic::Popfq => moved(-8),
        Mnemonic::Pop if is(0, Register::RBP) => State { rbp: None, ..moved(-8) },
        Mnemonic::Pop if !is(0, Register::RSP) => moved(i64::from(-i.stack_pointer_increment())),
        Mnemonic::Sub if is(0, Register::RSP) && immediate() => moved(i.immediate(1) as i64),
        Mnemonic::Add if is(0, Register::RSP) && immediate() => moved((i.immediate(1) as i64).wrapping_neg()),
        Mnemonic::Mov if is(0, Register::RBP) && is(1, Register::RSP) => State { rbp: state.rsp, ..state },
        Mnemonic::Mov if is(0, Register::RSP) && is(1, Register::RBP) => State { rsp: state.rbp, ..state },
        Mnemonic::Leave => State { rsp: state.rbp.and_then(|d| d.checked_sub(8)), rbp: None },
        Mnemonic::Lea if is(0, Register::RSP) && plain_base(i) => {
            let base = if i.memory_base() == Register::RSP { state.rsp } else { state.rbp };
            let by = i.memory_displacement64() as i64;
            State { rsp: base.and_then(|d| d.checked_sub(by)), ..state }
        }
        // The callee removes its return address.
        Mnemonic::Call => state,
        _ => State {
            rsp: state.rsp.filter(|_| !effects.writes(i, Register::RSP)),
            rbp: state.rbp.filter(|_| !effects.writes(i, Register::RBP)),
        },
    }
}

/// Returns true if a memory operand is rsp or rbp plus a constant.
fn plain_base(i: &Instruction) -> bool {
    matches!(i.memory_base(), Register::RSP | Register::RBP) && i.memory_index() == Register::None
}

#[cfg(test)]
mod tests {
    use super::{Depths, Effects, Region};

    fn depths(code: &[u8]) -> Depths {
        let region = Region { start: 0x1000, bytes: code };
        Depths::of(&region, 0x1000..0x1000 + code.len() as u64, 8, &mut Effects::new())
    }

    fn depth(code: &[u8], at: u64) -> Option<u32> {
        depths(code).at(0x1000 + at).map(|d| d.0)
    }

    #[test]
    fn pushes_and_subtractions_add_up() {
        // The code is: push rbp; mov rbp,rsp; push rbx; sub rsp,0x18; syscall; lea rsp,[rbp-8]; pop rbx; leave; ret
        let code = [
            0x55, 0x48, 0x89, 0xe5, 0x53, 0x48, 0x83, 0xec, 0x18, 0x0f, 0x05, 0x48, 0x8d, 0x65, 0xf8, 0x5b, 0xc9, 0xc3,
        ];
        assert_eq!(depth(&code, 9), Some(8 + 8 + 8 + 0x18));
        assert_eq!(depth(&code, 15), Some(24));
        assert_eq!(depth(&code, 17), Some(8));
    }

    #[test]
    fn an_aligned_stack_is_known_only_relative_to_rbp() {
        // The code is: push rbp; mov rbp,rsp; and rsp,-32; syscall; leave; ret
        let code = [0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xe4, 0xe0, 0x0f, 0x05, 0xc9, 0xc3];
        assert_eq!(depth(&code, 8), None);
        assert_eq!(depths(&code).above_rbp(0x1008).map(|d| d.0), Some(16));
        assert_eq!(depth(&code, 11), Some(8));
    }

    #[test]
    fn a_depth_that_differs_by_path_is_unknown() {
        // The code is: test edi,edi; je +1; push rbx; syscall; ret
        let code = [0x85, 0xff, 0x74, 0x01, 0x53, 0x0f, 0x05, 0xc3];
        assert_eq!(depth(&code, 4), Some(8));
        assert_eq!(depth(&code, 5), None);
    }
}
