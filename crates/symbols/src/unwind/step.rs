//! One step of unwinding, in a form that is executed in nanoseconds.

use super::arch::{CONTEXT, FP, LINKS, MAX_SAVED, MCONTEXT, RA, REGISTERS, SP, return_to, strip};

/// The places of the caller's registers, seen from one address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rule {
    /// DWARF number of the register from which the canonical frame address is counted; that address is the caller's
    /// stack pointer.
    pub(crate) base: u8,
    /// Distance of the canonical frame address from the register's value, bytes.
    pub(crate) offset: i32,
    saved: [(u8, i32); MAX_SAVED],
    count: u8,
}

impl Rule {
    pub(crate) fn new(base: u8, offset: i32) -> Self {
        Self { base, offset, saved: [(0, 0); MAX_SAVED], count: 0 }
    }

    /// Records that `register` was saved at CFA + `offset`. Returns false if the rule has no room left.
    pub(crate) fn save(&mut self, register: u8, offset: i32) -> bool {
        let Some(slot) = self.saved.get_mut(usize::from(self.count)) else { return false };
        *slot = (register, offset);
        self.count += 1;
        true
    }

    pub(crate) fn saved(&self) -> &[(u8, i32)] {
        self.saved.get(..usize::from(self.count)).unwrap_or(&[])
    }

    /// Changes `regs` to the caller's registers. Returns `None` if memory cannot be read or the stack would not
    /// shrink.
    pub(crate) fn step(&self, regs: &mut [u64; REGISTERS], read: &mut dyn FnMut(u64) -> Option<u64>) -> Option<()> {
        let base = *regs.get(usize::from(self.base))?;
        let cfa = base.wrapping_add_signed(i64::from(self.offset));
        let mut next = *regs;
        next[SP] = cfa;
        for (register, offset) in self.saved() {
            *next.get_mut(usize::from(*register))? = read(cfa.wrapping_add_signed(i64::from(*offset)))?;
        }
        return_to(&mut next);
        // A frame takes at least the word of its return address, unless that is in a register.
        if cfa < regs[SP] || cfa == regs[SP] && (!LINKS || next[RA] == regs[RA]) {
            return None;
        }
        *regs = next;
        Some(())
    }
}

/// Result of interpreting the code ahead of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Epilogue {
    /// The code returns, by this rule.
    Return(Rule),
    /// Every path ends in a trap or a loop: the function never returns.
    NoReturn,
    /// The result is unknown.
    Unknown,
}

/// The way from a frame to its caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// A rule of the call frame information.
    Rule(Rule),
    /// A rule from interpreting the code up to its return: right only if calls return and end balanced.
    Epilogue(Rule),
    /// Call frame information that must be evaluated each time.
    Expression,
    /// The caller's registers are in a signal frame at the stack pointer.
    SignalFrame,
    /// Nothing: there is no caller.
    End,
    /// The function never returns, so its code determines no caller.
    NoReturn,
    /// Nothing is known of the code.
    Guess,
}

/// Number under which [`Step::Rule`] is stored; the rule follows it.
const BY_RULE: u8 = 0;
/// Number under which [`Step::Epilogue`] is stored; the rule follows it.
const BY_EPILOGUE: u8 = 1;
/// Steps without a rule; each is stored under 2 plus its index here.
const WITHOUT_RULE: [Step; 5] = [Step::Expression, Step::SignalFrame, Step::End, Step::NoReturn, Step::Guess];

impl Step {
    /// Appends the step to `bytes`, in the form that [`Step::read`] reads.
    pub(crate) fn write(&self, bytes: &mut Vec<u8>) {
        let (number, rule) = match self {
            Self::Rule(rule) => (BY_RULE, Some(rule)),
            Self::Epilogue(rule) => (BY_EPILOGUE, Some(rule)),
            other => (2 + WITHOUT_RULE.iter().position(|step| step == other).unwrap_or(0) as u8, None),
        };
        bytes.push(number);
        if let Some(rule) = rule {
            bytes.push(rule.base);
            bytes.extend(rule.offset.to_le_bytes());
            bytes.push(rule.count);
            for (register, offset) in rule.saved() {
                bytes.push(*register);
                bytes.extend(offset.to_le_bytes());
            }
        }
    }

    /// Returns the step that `bytes` encode; `None` if they encode none.
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let (&number, rest) = bytes.split_first()?;
        let by_rule = match number {
            BY_RULE => Self::Rule,
            BY_EPILOGUE => Self::Epilogue,
            other => {
                let step = WITHOUT_RULE.get(usize::from(other.checked_sub(2)?))?;
                return rest.is_empty().then_some(*step);
            }
        };
        let (&base, rest) = rest.split_first().filter(|(base, _)| usize::from(**base) < REGISTERS)?;
        let (offset, rest) = rest.split_first_chunk()?;
        let mut rule = Rule::new(base, i32::from_le_bytes(*offset));
        let (&count, rest) = rest.split_first()?;
        let (saved, left) = rest.as_chunks::<5>();
        let read = saved.iter().all(|[register, offset @ ..]| {
            usize::from(*register) < REGISTERS && rule.save(*register, i32::from_le_bytes(*offset))
        });
        (read && left.is_empty() && count == rule.count).then(|| by_rule(rule))
    }
}

/// Bytes of the caller's rbp and the return address, to which a function's rbp points.
pub(crate) const FRAME_RECORD: u64 = 16;

/// Steps over a frame whose rbp is its frame pointer, and whose rsp may point to another stack.
pub(crate) fn step_by_frame_pointer(
    regs: &mut [u64; REGISTERS],
    read: &mut dyn FnMut(u64) -> Option<u64>,
) -> Option<()> {
    let at = regs[FP];
    (regs[FP], regs[RA], regs[SP]) = (read(at)?, strip(read(at.wrapping_add(8))?), at.wrapping_add(FRAME_RECORD));
    Some(())
}

/// Steps over a signal frame to the interrupted code.
pub(crate) fn step_signal_frame(regs: &mut [u64; REGISTERS], read: &mut dyn FnMut(u64) -> Option<u64>) -> Option<()> {
    let mut next = *regs;
    let start = regs[SP].wrapping_add(MCONTEXT);
    for (at, register) in (0..).zip(CONTEXT) {
        next[register] = read(start.wrapping_add(8 * at))?;
    }
    // The direction is not checked, because the interrupted code may run on another stack.
    *regs = next;
    Some(())
}
