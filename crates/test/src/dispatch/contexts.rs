//! Counts of one block, by system call and by calling context, in tables of constant size.
//!
//! Invariant: nothing here allocates, locks or makes a call: the handler may interrupt the program
//! anywhere, also during an allocation.

/// Number of call numbers with a counter each; x86-64 has some 470.
pub(crate) const NUMBERS: usize = 512;
/// Largest number of return addresses kept of a call's stack.
pub(crate) const FRAMES: usize = 16;
/// Largest number of a script's frames kept beside them, innermost first.
pub(crate) const SCRIPT_FRAMES: usize = 6;
/// Largest number of contexts of a block, each with a counter.
const CONTEXTS: usize = 1024;
/// Number of neighbouring slots that are searched for a context.
const PROBES: usize = 32;

/// A frame of a Python program: addresses of its code object and its current instruction. They are
/// not dereferenced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ScriptFrame {
    /// Address of the code object.
    pub code: u64,
    /// Address of the frame's current instruction.
    pub instruction: u64,
}

/// The registers from which a call was made: they find its context again without unwinding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Site {
    pub(super) number: u32,
    pub(super) ip: u64,
    pub(super) sp: u64,
    pub(super) bp: u64,
}

/// A stack's return addresses, innermost first, and their places on the stack.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Stack {
    pub(super) length: usize,
    pub(super) addresses: [u64; FRAMES],
    /// Stack addresses of the return addresses; 0 if one is not known: such a stack is unwound each
    /// time.
    pub(super) places: [u64; FRAMES],
}

/// One calling context with its count.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Context {
    pub(super) site: Site,
    pub(super) stack: Stack,
    pub(super) script: [ScriptFrame; SCRIPT_FRAMES],
    pub(super) calls: u64,
}

/// The tables of one block.
pub(super) struct Tables {
    by_number: [u64; NUMBERS],
    /// Number of calls with numbers beyond the table.
    pub(super) beyond: u64,
    /// Number of calls whose context found no room; they are counted by number only.
    pub(super) without_context: u64,
    contexts: [Context; CONTEXTS],
    /// Indices of the used slots of `contexts`.
    used: [u16; CONTEXTS],
    used_length: usize,
}

impl Tables {
    /// Allocates empty tables on the heap: they are too large for a stack.
    pub(super) fn boxed() -> Box<Self> {
        let empty = Box::<Self>::new_zeroed();
        // SAFETY: all fields are integers, for which zeros are valid.
        unsafe { empty.assume_init() }
    }

    pub(super) fn clear(&mut self) {
        self.by_number = [0; NUMBERS];
        (self.beyond, self.without_context) = (0, 0);
        for at in self.used.iter().take(self.used_length) {
            if let Some(context) = self.contexts.get_mut(usize::from(*at)) {
                context.calls = 0;
            }
        }
        self.used_length = 0;
    }

    pub(super) fn count(&mut self, number: u32) {
        match self.by_number.get_mut(number as usize) {
            Some(count) => *count += 1,
            None => self.beyond += 1,
        }
    }

    /// Adds `calls` calls to the context that `same` accepts; if there is none, `new` makes one.
    pub(super) fn at_context(
        &mut self,
        site: Site,
        calls: u64,
        same: impl Fn(&Context) -> bool,
        new: impl FnOnce() -> Context,
    ) {
        let mixed = (site.ip ^ site.sp.rotate_left(32) ^ u64::from(site.number)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let first = (mixed >> 54) as usize;
        for step in 0..PROBES {
            let at = (first + step) % CONTEXTS;
            let Some(context) = self.contexts.get_mut(at) else { break };
            if context.calls == 0 {
                *context = Context { site, calls, ..new() };
                if let Some(place) = self.used.get_mut(self.used_length) {
                    *place = at as u16;
                    self.used_length += 1;
                }
                return;
            }
            if context.site == site && same(context) {
                context.calls += calls;
                return;
            }
        }
        self.without_context += calls;
    }

    /// Returns the numbers of the calls that were made, with their counts.
    pub(super) fn numbers(&self) -> impl Iterator<Item = (u32, u64)> + '_ {
        self.by_number
            .iter()
            .enumerate()
            .filter(|(_, count)| **count != 0)
            .map(|(number, count)| (number as u32, *count))
    }

    /// Returns the contexts in the order of their first calls.
    pub(super) fn contexts(&self) -> impl Iterator<Item = &Context> {
        self.used.iter().take(self.used_length).filter_map(|at| self.contexts.get(usize::from(*at)))
    }

    /// Adds the counts of a nested block.
    pub(super) fn add(&mut self, inner: &Self) {
        for (all, one) in self.by_number.iter_mut().zip(&inner.by_number) {
            *all += one;
        }
        self.beyond += inner.beyond;
        self.without_context += inner.without_context;
        for context in inner.contexts() {
            let same = |c: &Context| c.stack.addresses == context.stack.addresses && c.script == context.script;
            self.at_context(context.site, context.calls, same, || *context);
        }
    }
}
