//! Places of calls: what the kernel counts by return addresses becomes a context of frames.
//!
//! The kernel finds the return addresses of a call by rules: the distance from the stack pointer to the return address, at
//! an address of code. We learn them by unwinding the stacks of sampled calls, up to the user's own function, as far as
//! frames lie at constant distances. A place with a missing rule may have several contexts; its calls are divided
//! among these as its samples are.

use super::counter::Counter;
use super::layout::{DEEPEST, LAST, OPEN, RuleKey};
use super::mappings::Mapped;
use super::sample::{IS_UNKNOWN, Sample};
use crate::table::Table;
use crate::tracee::{Regs, arch};
use crate::{procfs, sys};
use foldhash::HashMap;
use std::collections::hash_map::Entry;
use systoll_model::FrameClass;
use systoll_symbols::{AddressSpace, PlacedFrame, RawFrame, Symbols, Until};

/// Address spaces with a state of their own, at most; the calls of further ones have no context.
const MOST_SPACES: usize = 1_024;

/// Distance from a stack pointer below which memory is taken to be the thread's stack, bytes. It may have changed since the
/// sample.
const STACK: u64 = 8 << 20;

/// An address space, with what is known of places in it.
struct Space {
    space: AddressSpace,
    /// What was mapped when that was last read, if `space` does not have it yet.
    latest: Option<Mapped>,
    /// Addresses that have a rule.
    rules: Vec<u64>,
    /// By place: the contexts of its samples, as numbers of the table's stacks, each with the number of calls for which its
    /// samples stand.
    places: HashMap<u64, Vec<(u32, u64)>>,
}

/// A stack that was sampled.
#[derive(Debug)]
pub(super) struct SampledStack {
    pub(super) place: u64,
    pub(super) frames: Vec<RawFrame>,
    /// True if the stack was unwound up to its root.
    pub(super) is_complete: bool,
    pub(super) reaches_main: bool,
}

/// All places.
#[derive(Default)]
pub(super) struct Places {
    spaces: HashMap<u64, Space>,
    /// True if there was no room for a rule.
    pub(super) is_full: bool,
}

impl Places {
    /// Adds the address space of a process that runs already. What it has mapped is read with its first stack.
    pub(super) fn add_running(&mut self, number: u64) {
        if let Some(space) = self.space(number) {
            space.space = AddressSpace::of_running();
        }
    }

    /// Notes what is mapped in an address space.
    pub(super) fn note_mapped(&mut self, mapped: Mapped) {
        if let Some(space) = self.space(mapped.space) {
            space.latest = Some(mapped);
        }
    }

    fn space(&mut self, number: u64) -> Option<&mut Space> {
        let room = self.spaces.len() < MOST_SPACES;
        match self.spaces.entry(number) {
            Entry::Occupied(known) => Some(known.into_mut()),
            Entry::Vacant(_) if !room => None,
            Entry::Vacant(new) => Some(new.insert(Space {
                space: AddressSpace::new(),
                latest: None,
                rules: Vec::new(),
                places: HashMap::default(),
            })),
        }
    }

    /// Unwinds a stack that was sampled, and learns the rules and the context of its place.
    pub(super) fn take_stack(
        &mut self,
        symbols: &mut Symbols,
        table: &mut Table,
        counter: &Counter,
        sample: &Sample<'_>,
    ) -> Option<SampledStack> {
        let (registers, stack) = sample.stack();
        let regs = registers_of(registers)?;
        let space = self.space(sample.space)?;
        space.update(symbols);
        if !space.space.maps_executable(arch::pc(&regs)) {
            space.space.update(symbols, sample.process);
        }
        if !space.space.maps_executable(arch::pc(&regs)) {
            return None;
        }
        let mut placed = Vec::new();
        let mut is_complete = unwind(&mut space.space, symbols, (&regs, stack, sample.process), &mut placed);
        if space.space.ended_outside() {
            space.space.update(symbols, sample.process);
            is_complete = unwind(&mut space.space, symbols, (&regs, stack, sample.process), &mut placed);
        }
        let ends = |p: &PlacedFrame, symbols: &mut Symbols| {
            matches!(symbols.class(p.frame), FrameClass::User | FrameClass::Unknown)
        };
        let user = placed.iter().position(|p| ends(p, symbols)).map_or(placed.len(), |at| at + 1);
        let (rules, length) = rules_of(&placed[..user]);
        let unknown = sample.is(IS_UNKNOWN);
        let mut is_full = false;
        for (address, rule) in rules.into_iter().filter(|_| unknown) {
            let key = RuleKey { space: sample.space, address };
            is_full |= !counter.set_rule(key, rule);
            space.rules.push(address);
        }
        let length = if unknown { length } else { length.min(sample.depth) };
        let frames: Vec<RawFrame> = placed.iter().map(|p| p.frame).collect();
        let context = table.stack(&frames[..length], false);
        let contexts = space.places.entry(sample.place).or_default();
        match contexts.iter_mut().find(|(known, _)| *known == context) {
            Some((_, calls)) => *calls += stands_for(sample.nth),
            None => contexts.push((context, stands_for(sample.nth))),
        }
        self.is_full |= is_full;
        let reaches_main = symbols.reaches_main(&frames);
        Some(SampledStack { place: sample.place, frames, is_complete, reaches_main })
    }

    /// Returns the contexts of a place, as numbers of the table's stacks, each with the number of calls for which its
    /// samples stand. Returns none if the place is not known.
    pub(super) fn contexts(&self, space: u64, place: u64) -> &[(u32, u64)] {
        self.spaces.get(&space).and_then(|space| space.places.get(&place)).map_or(&[], Vec::as_slice)
    }

    /// Returns the context that most samples of a place have; no frames if the place is not known.
    pub(super) fn context(&self, table: &Table, space: u64, place: u64) -> Vec<RawFrame> {
        let most = self.contexts(space, place).iter().max_by_key(|(_, samples)| *samples);
        let stack = most.and_then(|(stack, _)| table.stacks.get(*stack as usize));
        stack.map(|stack| stack.frames.to_vec()).unwrap_or_default()
    }

    /// Forgets address spaces in which nothing runs any more.
    pub(super) fn retain(&mut self, counter: &Counter, runs: impl Fn(u64) -> bool) {
        let mut gone = Vec::new();
        self.spaces.retain(|number, space| {
            let stays = runs(*number);
            if !stays {
                gone.extend(space.rules.iter().map(|address| RuleKey { space: *number, address: *address }));
            }
            stays
        });
        counter.remove_rules(&gone);
    }
}

impl Space {
    /// Takes in what was mapped when that was last read. The files of a process that has ended are opened by their paths,
    /// if these are still the same files here.
    fn update(&mut self, symbols: &mut Symbols) {
        let Some(mapped) = self.latest.take() else { return };
        let lives = procfs::tgid(mapped.tid).is_some();
        let pid = if lives { mapped.tid } else { std::process::id() as i32 };
        self.space.update_by(symbols, pid, &mapped.maps);
    }
}

/// Returns the number of calls for which the sample of a row's `nth` call stands, while the row's place is not known: the
/// first calls are all sampled, and later ones once or twice in each doubling of their number.
fn stands_for(nth: u64) -> u64 {
    match nth {
        ..16 => 1,
        16..32 => 16,
        _ => 1 << (nth.ilog2() - 1),
    }
}

/// Returns the rules of the addresses of a context, and the number of its frames that a place has.
fn rules_of(context: &[PlacedFrame]) -> (Vec<(u64, u32)>, usize) {
    let mut rules = Vec::new();
    for (at, frame) in context.iter().enumerate().take(DEEPEST) {
        let next =
            context.get(at + 1).filter(|next| next.constant && next.frame.is_return && next.frame.module.is_some());
        let distance = next.and_then(|next| next.sp.checked_sub(8)?.checked_sub(frame.sp));
        match distance.and_then(|d| u32::try_from(d).ok()).filter(|d| *d < OPEN && frame.frame.module.is_some()) {
            Some(distance) => rules.push((frame.ip, distance)),
            None => {
                let is_open = at + 1 < context.len();
                rules.push((frame.ip, if is_open { LAST | OPEN } else { LAST }));
                break;
            }
        }
    }
    let length = rules.len();
    (rules, length)
}

/// Unwinds a stack, given by its bytes, up to its root. Returns true if that was reached.
fn unwind(
    space: &mut AddressSpace,
    symbols: &mut Symbols,
    (regs, stack, pid): (&Regs, &[u8], i32),
    placed: &mut Vec<PlacedFrame>,
) -> bool {
    let start = arch::sp(regs);
    let mut word = |address: u64| {
        let at = address.wrapping_sub(start);
        if at < STACK || at > STACK.wrapping_neg() {
            let at = usize::try_from(at).ok()?;
            return stack.get(at..at.checked_add(8)?)?.try_into().ok().map(u64::from_ne_bytes);
        }
        // Code, which is the same later.
        let mut word = [0; 8];
        (sys::read_memory(pid, address, &mut word) == word.len()).then(|| u64::from_ne_bytes(word))
    };
    placed.clear();
    space.unwind_placed(symbols, &arch::for_unwinding(regs), &mut word, Until::Root, placed)
}

/// Returns a thread's registers as ptrace(2) has them: the kernel's struct begins in the same way.
fn registers_of(bytes: &[u8]) -> Option<Regs> {
    const BYTES: usize = size_of::<Regs>();
    let mut all = [0u64; BYTES.div_ceil(8)];
    let (words, _) = bytes.as_chunks::<8>();
    for (to, word) in all.iter_mut().zip(words) {
        *to = u64::from_ne_bytes(*word);
    }
    // SAFETY: a struct of 64-bit numbers, of which any bits are a value, and `all` has as many bytes.
    (!words.is_empty()).then(|| unsafe { std::ptr::read_unaligned(all.as_ptr().cast::<Regs>()) })
}
