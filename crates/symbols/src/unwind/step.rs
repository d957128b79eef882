//! What one step of unwinding does, in a form that is executed in nanoseconds.

/// DWARF numbers of registers (System V ABI, AMD64 supplement, figure 3.36).
pub(crate) const RBP: usize = 6;
pub(crate) const RSP: usize = 7;
/// The return address' column.
pub(crate) const RA: usize = 16;
pub(crate) const REGISTERS: usize = 17;

/// Most registers a rule restores; the ABI preserves six, and there is the return address.
const MAX_SAVED: usize = 8;

/// Where the caller's registers are, seen from one address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rule {
    /// The canonical frame address, i.e. the caller's stack pointer: this register …
    pub(crate) base: u8,
    /// … plus this.
    pub(crate) offset: i32,
    saved: [(u8, i32); MAX_SAVED],
    count: u8,
}

impl Rule {
    pub(crate) fn new(base: u8, offset: i32) -> Self {
        Self { base, offset, saved: [(0, 0); MAX_SAVED], count: 0 }
    }

    /// The rule where a function has so many bytes on the stack below its return address; `None` where they are more
    /// than any stack has.
    pub(crate) fn of_frame(bytes: u32) -> Option<Self> {
        let mut rule = Self::new(RSP as u8, i32::try_from(bytes).ok()?.checked_add(8)?);
        rule.save(RA as u8, -8).then_some(rule)
    }

    /// Register `register` was saved at CFA + `offset`. False if that's too many.
    pub(crate) fn save(&mut self, register: u8, offset: i32) -> bool {
        let Some(slot) = self.saved.get_mut(usize::from(self.count)) else { return false };
        *slot = (register, offset);
        self.count += 1;
        true
    }

    pub(crate) fn saved(&self) -> &[(u8, i32)] {
        self.saved.get(..usize::from(self.count)).unwrap_or(&[])
    }

    /// Steps from `regs` to the caller. `None` if memory can't be read or the stack would not shrink.
    pub(crate) fn step(&self, regs: &mut [u64; REGISTERS], read: &mut dyn FnMut(u64) -> Option<u64>) -> Option<()> {
        let base = *regs.get(usize::from(self.base))?;
        let cfa = base.wrapping_add_signed(i64::from(self.offset));
        let mut next = *regs;
        next[RSP] = cfa;
        for (register, offset) in self.saved() {
            *next.get_mut(usize::from(*register))? = read(cfa.wrapping_add_signed(i64::from(*offset)))?;
        }
        // A frame takes at least its return address.
        if cfa <= regs[RSP] {
            return None;
        }
        *regs = next;
        Some(())
    }
}

/// How to go from a frame to its caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// By CFI.
    Rule(Rule),
    /// By what the code up to its return does: right only if calls return and end balanced.
    Epilogue(Rule),
    /// By CFI that takes evaluating each time.
    Expression,
    /// A signal frame lies at the stack pointer.
    SignalFrame,
    /// There is no caller.
    End,
    /// The function never returns, so its code tells nothing of its caller.
    NoReturn,
    /// Nothing is known of the code.
    Guess,
}

/// Steps by the number that they are kept as; of the first two the rule follows.
const BY_RULE: u8 = 0;
const BY_EPILOGUE: u8 = 1;
const WITHOUT_RULE: [Step; 5] = [Step::Expression, Step::SignalFrame, Step::End, Step::NoReturn, Step::Guess];

impl Step {
    /// Appends the step to `bytes`, for [`Step::read`].
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

    /// The step that `bytes` are; `None` where they are none.
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

/// Offset of the saved registers from the stack pointer after a handler returned: `uc_mcontext`
/// in `struct ucontext` (arch/x86/include/uapi/asm/ucontext.h, sigcontext.h).
const MCONTEXT: u64 = 40;
/// DWARF numbers in the order of `struct sigcontext`: r8–r15, di, si, bp, bx, dx, ax, cx, sp, ip.
const SIGCONTEXT: [usize; REGISTERS] = [8, 9, 10, 11, 12, 13, 14, 15, 5, 4, RBP, 3, 1, 0, 2, RSP, RA];

/// Steps over a signal frame to the code that was interrupted.
pub(crate) fn step_signal_frame(regs: &mut [u64; REGISTERS], read: &mut dyn FnMut(u64) -> Option<u64>) -> Option<()> {
    let mut next = *regs;
    let start = regs[RSP].wrapping_add(MCONTEXT);
    for (at, register) in (0..).zip(SIGCONTEXT) {
        next[register] = read(start.wrapping_add(8 * at))?;
    }
    // No check of direction: the interrupted code may run on another stack.
    *regs = next;
    Some(())
}
