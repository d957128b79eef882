//! Finds the addresses to which something may jump.
//!
//! Invariant: too many rather than too few. A target too many costs a hook; a missing one would let a program jump
//! into the middle of a hook.

use super::addresses::{Set, Targets};
use super::cfi::Cfi;
use super::effects::{computed_address, direct_target, ends, is_plausible};
use super::extents::Extent;
use super::gs::{self, is_doubtful, sets_gs_base, uses_gs};
use super::image::{Image, Region};
use super::quick::{Step, Steps, led_to};
use super::reachable;
use super::types::{Evidence, PlanError};
use iced_x86::{FlowControl, Instruction};
use std::collections::HashSet;
use std::num::NonZero;

/// Rounds in which code between functions is followed through its own tables.
const ROUNDS: usize = 8;
/// Entries of one jump table, at most; gcc's largest have some thousands.
const MAX_TABLE: usize = 1 << 16;

/// Threads that decode one file, at most: each takes a quarter of the code's size in memory.
const MOST_THREADS: usize = 8;

/// Results of one pass over all code.
pub(super) struct Survey {
    pub(super) targets: Targets,
    pub(super) uses_gs: Option<Evidence>,
    /// Starts of functions that may contain data.
    pub(super) doubtful: HashSet<u64>,
    /// Starts of instructions that control flow reaches, if some functions may contain data.
    pub(super) reached: Option<Set>,
}

/// Decodes everything once. Returns the targets of jumps, and an instruction that uses gs.
pub(super) fn survey(
    image: &Image<'_>,
    cfi: &Cfi<'_>,
    (extents, with_calls): (&[Extent], &[Extent]),
) -> Result<Survey, PlanError> {
    let mut targets = Targets::new(&image.code);
    targets.mark(image.entry, true);
    for (address, _) in image.symbols.iter().chain(&image.objects) {
        targets.mark(*address, true);
    }
    for function in cfi.functions.all() {
        targets.mark(function.start, true);
    }
    cfi.landing_pads(image, |pad| {
        targets.mark(pad, true);
    })
    .ok_or(PlanError::Malformed)?;
    let any_known = extents.iter().any(|e| e.known);
    let mut walk = Walk::new(image, targets);
    walk.everything(image, extents, any_known);
    let doubtful = |e: &Extent| walk.doubtful.contains(&e.start);
    let looked_for = any_known && (!walk.uses_gs.is_empty() || with_calls.iter().any(doubtful));
    let reached = looked_for.then(|| reachable::followed(image, extents, starts(image, cfi, extents)));
    // If no function is known, everything counts as code.
    let is_code = |address: &&u64| reached.as_ref().is_none_or(|r| r.contains(**address));
    let by = walk.certain.as_ref().or_else(|| walk.uses_gs.iter().find(is_code));
    let uses_gs = by.and_then(|address| gs::evidence(image, *address));
    addresses_in_data(image, |address, sure| walk.targets.mark(address, sure));
    walk.jump_tables(image);
    for _ in 0..ROUNDS {
        if !any_known || !walk.descend(image, extents) {
            break;
        }
        walk.jump_tables(image);
    }
    Ok(Survey { targets: walk.targets, uses_gs, doubtful: walk.doubtful, reached })
}

/// A pass over all instructions.
struct Walk {
    targets: Targets,
    /// Addresses of functions, labels and jump tables that code computes, with true if that code is certain.
    taken: Vec<(u64, bool)>,
    /// Instructions that have been followed.
    visited: Set,
    /// Addresses from which code was followed.
    opened: Set,
    /// Instructions that use gs, if they are really code, ascending.
    uses_gs: Vec<u64>,
    /// Address of an instruction that certainly uses gs.
    certain: Option<u64>,
    /// Starts of functions that may contain data.
    doubtful: HashSet<u64>,
    is_fixed: bool,
    /// True while the code being decoded is certain to be code.
    sure: bool,
}

impl Walk {
    fn new(image: &Image<'_>, targets: Targets) -> Self {
        Self {
            targets,
            taken: Vec::new(),
            visited: Set::new(&image.code),
            opened: Set::new(&image.code),
            uses_gs: Vec::new(),
            certain: None,
            doubtful: HashSet::new(),
            is_fixed: image.is_fixed,
            sure: true,
        }
    }

    /// Decodes all extents once, a large file in as many threads as there are processors.
    fn everything(&mut self, image: &Image<'_>, extents: &[Extent], any_known: bool) {
        let processors = || std::thread::available_parallelism().map_or(1, NonZero::get).min(MOST_THREADS);
        let parts = if image.is_small() { 1 } else { processors() };
        let (first, others) = shares(extents, parts);
        std::thread::scope(|scope| {
            let walk_of = |share| {
                let mut walk = Self::new(image, Targets::new(&image.code));
                walk.share(image, share, any_known);
                walk
            };
            let begin =
                |share| std::thread::Builder::new().spawn_scoped(scope, move || walk_of(share)).map_err(|_| share);
            let begun: Vec<_> = others.into_iter().map(begin).collect();
            self.share(image, first, any_known);
            for walk in begun {
                match walk.map(std::thread::ScopedJoinHandle::join) {
                    Ok(Ok(walk)) => self.add(walk),
                    Ok(Err(panic)) => std::panic::resume_unwind(panic),
                    // The thread could not be started, so its share is decoded here.
                    Err(share) => self.add(walk_of(share)),
                }
            }
        });
    }

    /// Decodes some extents. Bytes between functions may be data, so they are no evidence that code uses gs, nor that
    /// other data is code.
    fn share(&mut self, image: &Image<'_>, extents: &[Extent], any_known: bool) {
        for extent in extents {
            if extent.known {
                self.targets.mark(extent.start, true);
            }
            self.sure = extent.known || !any_known;
            self.code(image, extent);
        }
    }

    /// Adds the results of a pass over later extents.
    fn add(&mut self, behind: Self) {
        self.targets.add(&behind.targets);
        self.taken.extend(behind.taken);
        self.doubtful.extend(behind.doubtful);
        if self.certain.is_none() {
            self.uses_gs.extend(behind.uses_gs);
            self.certain = behind.certain;
        }
    }

    fn code(&mut self, image: &Image<'_>, extent: &Extent) {
        let Some(region) = image.region(extent.start) else { return };
        let mut steps = Steps::of(region, (extent.start, extent.end), self.is_fixed);
        let mut doubtful = false;
        while let Some((ip, step)) = steps.next_of_note() {
            if step != Step::Ask {
                self.step(ip, step);
                continue;
            }
            let instruction = steps.asked();
            self.instruction(instruction);
            if extent.known && !doubtful && is_doubtful(instruction) {
                doubtful = self.doubtful.insert(extent.start);
            }
            if self.sure && self.certain.is_none() && uses_gs(instruction) {
                self.uses_gs.push(instruction.ip());
                self.certain = sets_gs_base(instruction).then(|| instruction.ip());
            }
        }
    }

    /// Notes the targets of a step that was not decoded.
    fn step(&mut self, ip: u64, step: Step) {
        match step {
            Step::Branch { len, distance, .. } => {
                self.targets.mark(led_to(ip, len, distance), self.sure);
            }
            Step::Address { len, distance } => self.computed(led_to(ip, len, distance)),
            Step::Plain { .. } | Step::Ends { .. } | Step::Ask => {}
        }
    }

    fn instruction(&mut self, i: &Instruction) {
        match direct_target(i) {
            Some(target) => {
                self.targets.mark(target, self.sure);
            }
            None if i.flow_control() == FlowControl::Next => self.address(i),
            None => {}
        }
    }

    /// Notes an address that `i` computes.
    fn address(&mut self, i: &Instruction) {
        if let Some(address) = computed_address(i, self.is_fixed) {
            self.computed(address);
        }
    }

    fn computed(&mut self, address: u64) {
        self.targets.mark(address, self.sure);
        self.taken.push((address, self.sure));
    }

    /// Follows tables of 32-bit offsets from their own start, which compilers make for a `switch` in
    /// position-independent code. Any address that code computes may be such a table; it ends where the next computed
    /// address begins, or where an entry leads out of the code.
    fn jump_tables(&mut self, image: &Image<'_>) {
        // Most addresses were sorted in the last round, which makes this sort fast.
        self.taken.sort_by_key(|(address, sure)| (*address, !sure));
        self.taken.dedup_by_key(|(address, _)| *address);
        for (n, (table, sure)) in self.taken.iter().enumerate() {
            let Some(bytes) = image.from(*table) else { continue };
            let room = self.taken.get(n + 1).map_or(u64::MAX, |next| next.0 - table);
            let entries = usize::try_from(room / 4).unwrap_or(MAX_TABLE).min(MAX_TABLE);
            for entry in bytes.as_chunks::<4>().0.iter().take(entries) {
                let offset = i64::from(i32::from_le_bytes(*entry));
                if !self.targets.mark(table.wrapping_add_signed(offset), *sure) {
                    break;
                }
            }
        }
    }

    /// Follows code between functions from certain targets, so that its own targets become certain. Returns true if
    /// anything was new.
    fn descend(&mut self, image: &Image<'_>, extents: &[Extent]) -> bool {
        let gaps = extents.iter().filter(|e| !e.known);
        let mut open: Vec<u64> = gaps.clone().flat_map(|gap| self.targets.sure_within(gap.start, gap.end)).collect();
        let mut any = false;
        self.sure = true;
        while let Some(address) = open.pop() {
            // Most addresses have been followed already: many paths lead to the same code.
            if !self.opened.add_new(address) {
                continue;
            }
            let next = extents.partition_point(|e| e.start <= address);
            let Some(gap) = next.checked_sub(1).and_then(|n| extents.get(n)).filter(|e| !e.known) else { continue };
            let Some(region) = image.region(gap.start) else { continue };
            let mut steps = Steps::of(region, (address, gap.end), self.is_fixed);
            while let Some((ip, step)) = steps.next() {
                let asked = (step == Step::Ask).then(|| steps.asked());
                if !self.visited.add_new(ip) || asked.is_some_and(|i| !is_plausible(i)) {
                    break;
                }
                any = true;
                let from = self.taken.len();
                match asked {
                    Some(i) => {
                        self.instruction(i);
                        open.extend(direct_target(i));
                    }
                    None => self.step(ip, step),
                }
                open.extend(self.taken.iter().skip(from).map(|t| t.0));
                let is_end = match step {
                    Step::Branch { len, distance, ends } => {
                        open.push(led_to(ip, len, distance));
                        ends
                    }
                    Step::Ends { .. } => true,
                    Step::Plain { .. } | Step::Address { .. } => false,
                    Step::Ask => ends(steps.asked()),
                };
                if is_end {
                    break;
                }
            }
        }
        any
    }
}

/// Divides extents into parts of about equal size. Returns the first part, and the others.
fn shares(extents: &[Extent], parts: usize) -> (&[Extent], Vec<&[Extent]>) {
    let len = |e: &Extent| e.end.saturating_sub(e.start);
    let each = extents.iter().map(len).sum::<u64>() / parts as u64 + 1;
    let mut before = 0u64;
    let mut all = extents.chunk_by(|one, _| {
        let part = before / each;
        before = before.saturating_add(len(one));
        before / each == part
    });
    (all.next().unwrap_or_default(), all.collect())
}

/// Returns the starts of code that the file's tables and data give: the entry point, functions, landing pads,
/// addresses in data, targets of relocations.
fn starts(image: &Image<'_>, cfi: &Cfi<'_>, extents: &[Extent]) -> Vec<u64> {
    let mut all = vec![image.entry];
    all.extend(extents.iter().filter(|e| e.known).map(|e| e.start));
    // An error can be ignored here: damaged tables were refused before.
    let _ = cfi.landing_pads(image, |pad| all.push(pad));
    addresses_in_data(image, |address, sure| {
        all.extend(sure.then_some(address));
        sure
    });
    all.extend(image.relocated().into_iter().map(|(_, to)| to));
    all
}

/// Finds words of data that are addresses of code: tables of absolute addresses, pointers to functions, and the results
/// of relocations (their addends are words of a mapped table too).
fn addresses_in_data(image: &Image<'_>, mut found: impl FnMut(u64, bool) -> bool) {
    let lowest = image.code.first().map_or(u64::MAX, |r| r.start);
    let highest = image.code.last().map_or(0, Region::end);
    for (start, bytes, executable) in image.mapped() {
        let unaligned = (start.next_multiple_of(8) - start) as usize;
        let Some(words) = bytes.get(unaligned..) else { continue };
        for word in words.as_chunks::<8>().0 {
            let address = u64::from_le_bytes(*word);
            if (lowest..highest).contains(&address) {
                found(address, !executable);
            }
        }
    }
}
