//! One step of unwinding, in a form that is executed in nanoseconds.

/// DWARF number of rbp (System V ABI, AMD64 supplement, figure 3.36).
pub(crate) const RBP: usize = 6;
/// DWARF number of rsp.
pub(crate) const RSP: usize = 7;
/// Column of the return address in a row.
pub(crate) const RA: usize = 16;
/// Number of registers in a row, with the return address.
pub(crate) const REGISTERS: usize = 17;

/// Registers that a rule restores, at most: the ABI preserves six, and there is the return address.
const MAX_SAVED: usize = 8;

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

    /// Returns the rule for a function that has `bytes` on the stack below its return address; `None` if that is more
    /// than any stack has.
    pub(crate) fn of_frame(bytes: u32) -> Option<Self> {
        let mut rule = Self::new(RSP as u8, i32::try_from(bytes).ok()?.checked_add(8)?);
        rule.save(RA as u8, -8).then_some(rule)
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
        next[RSP] = cfa;
        for (register, offset) in self.saved() {
            *next.get_mut(usize::from(*register))? = read(cfa.wrapping_add_signed(i64::from(*offset)))?;
        }
        // A frame takes at least the word of its return address.
        if cfa <= regs[RSP] {
            return None;
        }
        *regs = next;
        Some(())
    }
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
    let at = regs[RBP];
    (regs[RBP], regs[RA], regs[RSP]) = (read(at)?, read(at.wrapping_add(8))?, at.wrapping_add(FRAME_RECORD));
    Some(())
}

/// Offset in bytes of the saved registers from the stack pointer after a handler returned: `uc_mcontext` in `struct
/// ucontext` (arch/x86/include/uapi/asm/ucontext.h, sigcontext.h).
const MCONTEXT: u64 = 40;
/// DWARF numbers in the order of `struct sigcontext`: r8–r15, di, si, bp, bx, dx, ax, cx, sp, ip.
const SIGCONTEXT: [usize; REGISTERS] = [8, 9, 10, 11, 12, 13, 14, 15, 5, 4, RBP, 3, 1, 0, 2, RSP, RA];

/// Steps over a signal frame to the interrupted code.
pub(crate) fn step_signal_frame(regs: &mut [u64; REGISTERS], read: &mut dyn FnMut(u64) -> Option<u64>) -> Option<()> {
    let mut next = *regs;
    let start = regs[RSP].wrapping_add(MCONTEXT);
    for (at, register) in (0..).zip(SIGCONTEXT) {
        next[register] = read(start.wrapping_add(8 * at))?;
    }
    // The direction is not checked, because the interrupted code may run on another stack.
    *regs = next;
    Some(())
}
