//! Walks from frame to frame up a stopped thread's stack.

use super::search::Read;
use super::space::AddressSpace;
use crate::symbols::facts::FrameFacts;
use crate::unwind::{FP, FRAME_RECORD, RA, REGISTERS, Rule, SP, Step, step_by_frame_pointer, step_signal_frame};
use crate::{FramePointer, MAX_FRAMES, ModuleKey, PlacedFrame, RawFrame, Registers, Symbols, Until};
use systoll_model::FrameClass;

impl AddressSpace {
    /// Appends the frames of a stopped thread to `out`, leaf first: the address of the current instruction (at a
    /// system call, that of its `syscall`), then return addresses. `read` reads an 8-byte word of the thread's
    /// memory. Returns true if the stack's root was reached; with [`Until::UserFrame`], this happens only if there is
    /// no user's frame.
    pub fn unwind(
        &mut self,
        symbols: &mut Symbols,
        regs: &Registers,
        read: &mut dyn FnMut(u64) -> Option<u64>,
        until: Until,
        out: &mut Vec<RawFrame>,
    ) -> bool {
        self.walk(symbols, regs, read, until, &mut |placed| out.push(placed.frame))
    }

    /// Does the same as [`AddressSpace::unwind`], with each frame's position on the stack.
    pub fn unwind_placed(
        &mut self,
        symbols: &mut Symbols,
        regs: &Registers,
        read: &mut dyn FnMut(u64) -> Option<u64>,
        until: Until,
        out: &mut Vec<PlacedFrame>,
    ) -> bool {
        self.walk(symbols, regs, read, until, &mut |placed| out.push(placed))
    }

    fn walk(
        &mut self,
        symbols: &mut Symbols,
        regs: &Registers,
        read: &mut Read<'_>,
        until: Until,
        found: &mut dyn FnMut(PlacedFrame),
    ) -> bool {
        let mut regs = regs.in_dwarf_order();
        let mut is_return = false;
        let mut place = StackPlace { constant: true, pointer: None, rbp: Whereabouts::InRbp };
        let mut is_below_vdso = false;
        self.ended_outside = false;
        for _ in 0..MAX_FRAMES {
            let (ip, sp) = (regs[RA], regs[SP]);
            let (module, at) = self.locate(ip.wrapping_sub(u64::from(is_return)));
            let Some(key) = module else {
                let frame = RawFrame { module: None, address: ip, is_return };
                found(place.frame(frame, ip, sp));
                let go_on = until == Until::Root && self.guess(symbols, &mut regs, read, is_return).is_some();
                if !go_on {
                    return false;
                }
                (is_return, place) = (true, StackPlace::UNKNOWN);
                continue;
            };
            let known = symbols.facts_at(key, at, is_return);
            let frame = RawFrame { module, address: known.address, is_return };
            found(place.frame(frame, ip, sp));
            if until == Until::UserFrame && known.class == FrameClass::User {
                return false;
            }
            let switched = std::mem::replace(&mut is_below_vdso, known.class == FrameClass::Vdso)
                && switches_stack(symbols, (key, &known), &regs);
            let stepped = if switched {
                place = StackPlace::UNKNOWN;
                Some(step_by_frame_pointer(&mut regs, read).is_some())
            } else {
                self.step(symbols, (key, &known), &mut regs, read, is_return, &mut place)
            };
            let Some(went) = stepped else { return true };
            if regs[RA] == 0 && went {
                return true;
            }
            self.ended_outside = went && !self.maps_executable(regs[RA]);
            if !went || self.ended_outside {
                return false;
            }
            is_return = known.step != Step::SignalFrame;
        }
        false
    }

    /// Steps from a frame in the file `key` to its caller. Returns false if the caller can't be found, `None` if there is
    /// no caller.
    fn step(
        &mut self,
        symbols: &mut Symbols,
        (key, known): (ModuleKey, &FrameFacts),
        regs: &mut [u64; REGISTERS],
        read: &mut Read<'_>,
        is_return: bool,
        place: &mut StackPlace,
    ) -> Option<bool> {
        let by = match known.step {
            // Contexts end with the user's frame, so the position of the frame above it is not needed.
            _ if known.class == FrameClass::User => None,
            Step::Rule(rule) | Step::Epilogue(rule) => Some(usize::from(rule.base)),
            _ => None,
        };
        let was = place.rbp;
        let constant = by == Some(SP) || by == Some(FP) && symbols.is_fixed(key, known.lookup);
        let pointer = if by == Some(FP) && !constant { was.pointer(regs[FP]) } else { None };
        *place = StackPlace { constant, pointer, rbp: Whereabouts::Unknown };
        let went = match known.step {
            Step::End => return None,
            Step::Rule(rule) => {
                let went = rule.step(regs, read);
                if went.is_some() {
                    place.rbp = was.behind(&rule, regs[SP]);
                    went
                } else {
                    *place = StackPlace::UNKNOWN;
                    self.switches.step(regs, read)
                }
            }
            Step::Epilogue(rule) => {
                let start = *regs;
                let sound = rule.step(regs, read).filter(|()| regs[RA] == 0 || self.returns_to(regs[RA], read));
                if sound.is_some() {
                    place.rbp = was.behind(&rule, regs[SP]);
                    sound
                } else {
                    (*place, *regs) = (StackPlace::UNKNOWN, start);
                    self.guess(symbols, regs, read, is_return)
                }
            }
            Step::NoReturn => Some(self.scan(symbols, regs, read, is_return, true)?),
            Step::Expression => symbols.evaluate(key, known.lookup, regs, read),
            Step::SignalFrame => step_signal_frame(regs, read),
            Step::Guess => self.guess(symbols, regs, read, is_return),
        };
        Some(went.is_some())
    }
}

/// Returns true if a frame, which has called the vDSO, has its return address on another stack than rsp points to. Go's
/// functions that ask for the time set rsp to their thread's own stack for the call, which no call frame information
/// tells; but they keep their frame pointer, which the vDSO has restored.
fn switches_stack(symbols: &Symbols, (key, known): (ModuleKey, &FrameFacts), regs: &[u64; REGISTERS]) -> bool {
    let Step::Rule(rule) = known.step else { return false };
    let cfa = regs[SP].wrapping_add_signed(i64::from(rule.offset));
    // A function without a frame has its caller's frame pointer.
    let has_frame = usize::from(rule.base) == SP && i64::from(rule.offset) >= FRAME_RECORD as i64;
    has_frame && regs[FP].wrapping_add(FRAME_RECORD) != cfa && symbols.is_go(key)
}

/// Place of a frame on the stack, found from the frames that it called.
#[derive(Clone, Copy)]
struct StackPlace {
    constant: bool,
    pointer: Option<FramePointer>,
    rbp: Whereabouts,
}

impl StackPlace {
    /// The place of a frame that was found by guessing.
    const UNKNOWN: Self = Self { constant: false, pointer: None, rbp: Whereabouts::Unknown };

    fn frame(&self, frame: RawFrame, ip: u64, sp: u64) -> PlacedFrame {
        PlacedFrame { frame, ip, sp, constant: self.constant, pointer: self.pointer }
    }
}

/// Place of a frame's own rbp while the function that it called runs.
#[derive(Clone, Copy)]
enum Whereabouts {
    InRbp,
    At(u64),
    Unknown,
}

impl Whereabouts {
    /// Returns the place of rbp for the next frame, whose stack pointer is `cfa`.
    fn behind(self, rule: &Rule, cfa: u64) -> Self {
        let saved = rule.saved().iter().find(|(register, _)| usize::from(*register) == FP);
        saved.map_or(self, |(_, offset)| Self::At(cfa.wrapping_add_signed(i64::from(*offset))))
    }

    fn pointer(self, value: u64) -> Option<FramePointer> {
        match self {
            Self::InRbp => Some(FramePointer { saved_at: None, value }),
            Self::At(at) => Some(FramePointer { saved_at: Some(at), value }),
            Self::Unknown => None,
        }
    }
}
