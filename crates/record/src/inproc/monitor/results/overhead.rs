//! Measures the observer's own share in a call: a tiny loop of calls runs with and without the counting code, in turns,
//! in this process.
//!
//! The code is the one that targets run, with one context and a window that never comes due. The result is subtracted
//! from the time that targets take.

use crate::inproc::cache::{Cache, Kind};
use crate::inproc::monitor::results::clock;
use crate::inproc::monitor::results::local_memory::{Code, Mapping, gs_base, set_gs_base};
use crate::inproc::monitor::sys;
use iced_x86::BlockEncoderOptions;
use iced_x86::code_asm::*;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use systoll_hooks::assemble::{Blob, Options, Room, Step, assemble, grow};
use systoll_hooks::layout::{GLOBAL, IMAGE, NUMBERS, global, image, node, record, slot, slot_address, timing};
use systoll_hooks::plan::{CfaOffset, Plan, Site, Span};
use systoll_model::Spread;

/// Number of a call that does next to nothing: getppid.
const NUMBER: u32 = 110;
/// Calls in a batch. It takes some ten microseconds, less than a turn of another program.
const CALLS: u64 = 48;
/// Time for measuring the crossing before and after a run. The figure only characterises the machine: it prices
/// nothing, since calls are timed here.
pub(crate) const CROSSING: Duration = Duration::from_micros(300);
/// Time for measuring the cost of a call where nothing else is to be done (`systoll doctor`, `systoll box`).
const COST: Duration = Duration::from_millis(100);
/// Batches with the counting code, and the same number without, at most: half a millisecond in all.
const BATCHES: usize = 24;
/// Number of batches that are run in any case.
const FEWEST: usize = 6;
/// Number of batches near the minimum that suffice: the minimum will hardly fall further.
const AGREEING: usize = 4;
/// Factor up to which a batch agrees with the minimum, less than a timer interrupt adds to a batch; and a tolerance in
/// cycles a call, for batches shorter than the counter's resolution.
const NEXT_TO: f64 = 1.02;
const APART: f64 = 1.0;
/// Number of batches that measure a plain call again after the run.
const BATCHES_AGAIN: usize = 5;
/// Offsets of the functions and of the counting code in the mapping.
const TEXT: u64 = 0x1000;
const CODE: u64 = 0x2000;
const SIZE: u64 = 0x10000;
const REGION: u64 = IMAGE + image::ROOTS;

/// Cycles that counting adds to a call.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Share {
    /// Cycles added to the time that the thread takes for the call.
    pub(crate) added: f64,
    /// Cycles added to the time between the two readings of the clock; negative if the readings enclose less than the
    /// whole call.
    pub(crate) inside: f64,
}

/// Returns a guess for machines where the share can't be measured: two readings of the clock, and half of one for
/// counting and finding the context.
pub(crate) fn guess() -> Share {
    let reading = clock::reading_cycles() as f64;
    Share { added: 2.5 * reading, inside: reading }
}

/// Returns the cost of a crossing, ns: by the loop that measured the share, if there is one; otherwise by a measurement
/// of its own.
pub(crate) fn crossing(again: Option<&RepeatCode>, ratio: &clock::Ratio) -> Spread {
    again.map_or_else(|| systoll_price::crossing(CROSSING), |again| in_ns(again.plain(), ratio.so_far()))
}

/// Measures the cycles that counting adds to a call for [`COST`], longer than before a run: where other programs take
/// the processor now and then, half a millisecond may fall into no quiet moment.
pub(crate) fn added_for_long(options: &Options, cache: &Cache) -> Spread {
    let (began, mut added) = (Instant::now(), Vec::new());
    // Of each kind the fastest counts, not the smallest difference: in that, a slow plain call would hide the cost.
    let (mut plain, mut hooked) = (f64::INFINITY, f64::INFINITY);
    while let Some(one) = measure(options, cache) {
        added.push(one.share.added);
        plain = plain.min(one.plain.min);
        hooked = hooked.min(one.plain.min + one.share.added);
        if began.elapsed() >= COST {
            break;
        }
    }
    added.sort_by(f64::total_cmp);
    let at = |i: usize| added.get(i).copied().unwrap_or_else(|| guess().added);
    let (median, high) = (at(added.len() / 2), at(added.len() * 9 / 10));
    let min = if plain.is_finite() { (hooked - plain).max(0.0) } else { median };
    Spread { min: min.min(median), median, high }
}

pub(crate) fn in_ns(cycles: Spread, per_ns: f64) -> Spread {
    let Spread { min, median, high } = cycles;
    Spread { min: min / per_ns, median: median / per_ns, high: high / per_ns }
}

/// A measured share, and the code for measuring plain calls again.
pub(crate) struct Measurement {
    pub(crate) share: Share,
    /// Cycles of a call without the counting code.
    pub(crate) plain: Spread,
    pub(crate) again: RepeatCode,
}

/// The code for measuring plain calls again.
pub(crate) struct RepeatCode {
    code: Code,
    functions: Functions,
}

impl RepeatCode {
    /// Measures the cycles that a plain call takes now.
    pub(crate) fn plain(&self) -> Spread {
        let mut plain = Vec::with_capacity(BATCHES_AGAIN);
        let mut empty = f64::INFINITY;
        for round in 0..BATCHES_AGAIN + 2 {
            let (one, none) = (self.batch(self.functions.plain), self.batch(self.functions.empty));
            if round >= 2 {
                plain.push(one);
                empty = empty.min(none);
            }
        }
        spread(plain, empty)
    }

    /// Calls `function` for a batch of calls. Returns the cycles a call.
    fn batch(&self, function: u64) -> f64 {
        let before = sys::tsc();
        // SAFETY: one of the functions of `text`; for the one with the counting code, the areas are mapped and gs
        // points to them.
        unsafe { self.code.call(function, CALLS) };
        sys::tsc().saturating_sub(before) as f64 / CALLS as f64
    }
}

fn least(batches: &[f64]) -> f64 {
    batches.iter().copied().fold(f64::INFINITY, f64::min)
}

/// Returns true if further batches will hardly be faster than these. A few batches are enough on an idle machine.
fn is_settled(batches: &[f64]) -> bool {
    let near = least(batches) * NEXT_TO + APART;
    batches.len() >= FEWEST && batches.iter().filter(|cycles| **cycles <= near).count() >= AGREEING
}

/// Returns the spread of the batches without the slowest tenth, after subtracting `around`, the cost of the loop.
fn spread(mut batches: Vec<f64>, around: f64) -> Spread {
    batches.sort_unstable_by(f64::total_cmp);
    let at = |i: usize| batches.get(i).map_or(0.0, |cycles| (cycles - around).max(0.0));
    Spread { min: at(0), median: at(batches.len() / 2), high: at(batches.len() * 9 / 10) }
}

/// Only one thread at a time can use the areas' addresses.
static AREAS: Mutex<()> = Mutex::new(());

/// Measures the share, unless this process is itself watched or may not map code.
pub(crate) fn measure(options: &Options, cache: &Cache) -> Option<Measurement> {
    let _one = AREAS.lock().unwrap_or_else(PoisonError::into_inner);
    if gs_base() != Some(0) {
        return None;
    }
    let bench = Bench::new(options, cache)?;
    set_gs_base(slot_address(0))?;
    let measured = bench.measure();
    set_gs_base(0)?;
    let (share, plain) = measured?;
    Some(Measurement { share, plain, again: bench.again })
}

/// The code to measure, and the memory that the counting code needs.
struct Bench {
    areas: Mapping,
    again: RepeatCode,
    /// Offset in the slot of the record for the loop's context.
    record: u64,
}

/// Offsets of functions that each call their callee as often as their argument says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Functions {
    hooked: u64,
    plain: u64,
    /// Offset of the same loop without the call.
    empty: u64,
    /// Return address of the hooked function's callee.
    context: u64,
}

impl Bench {
    fn new(options: &Options, cache: &Cache) -> Option<Self> {
        let Parts { text, functions, blob } = Parts::get(options, cache)?;
        let (code_at, size) = (CODE, blob.code.len() as u64);
        if !blob.refused.is_empty() || code_at + size > SIZE {
            return None;
        }
        let areas = Mapping::at(GLOBAL, global::SIZE + image::SLOTS + slot::SIZE)?;
        let mut code = Mapping::anywhere(SIZE)?;
        let mut patched = text;
        for patch in &blob.patches {
            let at = usize::try_from(patch.vaddr.checked_sub(TEXT)?).ok()?;
            patched.get_mut(at..at + patch.bytes.len())?.copy_from_slice(&patch.bytes);
        }
        code.write(TEXT, &patched)?;
        code.write(code_at, &blob.code_for(REGION).ok()?)?;
        let code = code.into_code()?;
        let words = areas.words();
        let set = |offset: u64, value: u64| {
            let word = words.get(((global::SIZE + offset) / 8) as usize)?;
            word.store(value, Ordering::Relaxed);
            Some(())
        };
        for (offset, word) in blob.roots(REGION, NUMBERS).ok()? {
            set(offset, word)?;
        }
        set(image::SLOTS + slot::SELF, slot_address(0))?;
        set(image::SLOTS + slot::TAG, 1)?;
        // The kernel does not know this rseq area. Using it costs as much as using one that the kernel leaves
        // unchanged.
        set(image::SLOTS + slot::RSEQ, IMAGE + image::TICKETS)?;
        // No launcher will answer here, so no code may wait for one.
        words.get((global::DEAD / 8) as usize)?.store(1, Ordering::Relaxed);
        let image_words = words.get((global::SIZE / 8) as usize..)?;
        let mut room = Room::default();
        room.give_roots(REGION, 1);
        let step = Step { word: code.address() + functions.context, ..Step::default() };
        // Code that counts by system call alone counts at the root.
        let counts_at = match options.totals {
            true => REGION,
            false => grow(image_words, &mut room, REGION, &[step]).ok()?,
        };
        let record = image_words.get(((counts_at - IMAGE + node::RECORD) / 8) as usize)?.load(Ordering::Relaxed);
        Some(Self { areas, again: RepeatCode { code, functions }, record })
    }

    /// Returns a figure counted for the loop so far.
    fn counted(&self, field: u64) -> u64 {
        let offset = global::SIZE + image::SLOTS + self.record + field;
        let word = self.areas.words().get((offset / 8) as usize);
        word.map_or(0, |w| w.load(Ordering::Relaxed))
    }

    /// Makes the next call timed, as it is after `calm` calls: see [`timing`].
    fn settled(&self, calm: u64) -> Option<()> {
        let set = |field: u64, value: u64| {
            let offset = global::SIZE + image::SLOTS + self.record + field;
            self.areas.words().get((offset / 8) as usize)?.store(value, Ordering::Relaxed);
            Some(())
        };
        set(record::TIME_LEFT, 0)?;
        set(record::CALM, calm)
    }

    fn measure(&self) -> Option<(Share, Spread)> {
        let f = self.again.functions;
        let [mut hooked, mut plain, mut empty] = [(); 3].map(|()| Vec::with_capacity(BATCHES));
        let (mut inside, mut made) = (f64::INFINITY, 0);
        // Two rounds come first, unmeasured, to fill caches and touch pages.
        for round in 0..BATCHES + 2 {
            // In this batch all calls are timed; in the next, the usual share of them.
            self.settled(0)?;
            let cycles = self.counted(record::CYCLES);
            self.again.batch(f.hooked);
            let within = self.counted(record::CYCLES).saturating_sub(cycles) as f64 / CALLS as f64;
            self.settled(timing::SETTLED)?;
            let one = [f.hooked, f.plain, f.empty].map(|function| self.again.batch(function));
            made += 2 * CALLS;
            if round >= 2 {
                [&mut hooked, &mut plain, &mut empty].into_iter().zip(one).for_each(|(all, one)| all.push(one));
                inside = inside.min(within);
            }
            // Some processors run the plain calls slowly for a while, so make more batches then.
            let told_apart = least(&hooked) > NEXT_TO * least(&plain);
            if told_apart && [&hooked, &plain, &empty].into_iter().all(|all| is_settled(all)) {
                break;
            }
        }
        // Code that only counts does not see the calls return.
        let all_counted = self.counted(record::ENTERED) == made && [0, made].contains(&self.counted(record::RETURNED));
        let timed = self.counted(record::CYCLES) > 0;
        let (call, around) = (least(&plain), least(&empty));
        let share = Share {
            added: (least(&hooked) - call).max(0.0),
            inside: if timed { inside - (call - around) } else { 0.0 },
        };
        all_counted.then(|| (share, spread(plain, around)))
    }
}

/// The code to measure; it is the same in every run of this program.
struct Parts {
    /// Machine code of the functions.
    text: Vec<u8>,
    functions: Functions,
    /// Counting code for the functions.
    blob: Blob,
}

impl Parts {
    /// Returns the parts that an earlier run has kept, or new ones: assembling takes longer than the measurement.
    fn get(options: &Options, cache: &Cache) -> Option<Self> {
        let key = Cache::key_named(&format!("{:x}", options.bits()));
        if let Some(kept) = cache.get(Kind::Own, &key).and_then(Self::from_bytes) {
            return Some(kept);
        }
        let (text, functions, plan) = text()?;
        let parts = Self { text, functions, blob: assemble(&plan, options, CODE as i64).ok()? };
        cache.put(Kind::Own, &key, &parts.to_bytes());
        Some(parts)
    }

    fn to_bytes(&self) -> Vec<u8> {
        let Functions { hooked, plain, empty, context } = self.functions;
        let numbers = [hooked, plain, empty, context, self.text.len() as u64].map(u64::to_le_bytes);
        [self.blob.to_bytes(), self.text.clone(), numbers.concat()].concat()
    }

    fn from_bytes(mut bytes: Vec<u8>) -> Option<Self> {
        let (rest, numbers) = bytes.split_last_chunk::<40>()?;
        let mut numbers = numbers.as_chunks::<8>().0.iter().map(|n| u64::from_le_bytes(*n));
        let mut next = || numbers.next();
        let functions = Functions { hooked: next()?, plain: next()?, empty: next()?, context: next()? };
        let blob = rest.len().checked_sub(usize::try_from(next()?).ok()?)?;
        let text = rest.get(blob..)?.to_vec();
        bytes.truncate(blob);
        let starts = [functions.hooked, functions.plain, functions.empty, functions.context];
        let within = TEXT..TEXT + text.len() as u64;
        let blob = Blob::from_bytes(bytes)?;
        starts.iter().all(|at| within.contains(at)).then_some(Self { text, functions, blob })
    }
}

/// Returns the functions' code, their offsets from the mapping's start, and the plan for hooking.
fn text() -> Option<(Vec<u8>, Functions, Plan)> {
    let mut a = CodeAssembler::new(64).ok()?;
    let (hooked, context, [head, call, behind, end]) = function(&mut a, true).ok()?;
    let (plain, ..) = function(&mut a, true).ok()?;
    let (empty, ..) = function(&mut a, false).ok()?;
    let done = a.assemble_options(TEXT, BlockEncoderOptions::RETURN_NEW_INSTRUCTION_OFFSETS).ok()?;
    let at = |label: &CodeLabel| done.label_ip(label).ok();
    let bytes = done.inner.code_buffer.clone();
    let span = |from: &CodeLabel, to: &CodeLabel| {
        let (start, end) = (at(from)?, at(to)?);
        let bytes = bytes.get((start - TEXT) as usize..(end - TEXT) as usize)?.to_vec();
        Some(Span { start, bytes, instructions: 1, padding: 0 })
    };
    let site = Site {
        entry_span: span(&head, &call),
        return_span: span(&behind, &end),
        cfa: Some(CfaOffset(8)),
        hook_cfa: Some(CfaOffset(8)),
        ..Site::new(at(&call)?, Some(NUMBER))
    };
    let functions = Functions { hooked: at(&hooked)?, plain: at(&plain)?, empty: at(&empty)?, context: at(&context)? };
    let plan = Plan { sites: vec![site], ..Plan::default() };
    Some((bytes, functions, plan))
}

type Labels = (CodeLabel, CodeLabel, [CodeLabel; 4]);

/// Assembles `f(n)`, which calls its callee n times. The callee looks like the C library's wrappers.
fn function(a: &mut CodeAssembler, calls: bool) -> Result<Labels, iced_x86::IcedError> {
    let (mut start, mut again, mut context, mut callee) =
        (a.create_label(), a.create_label(), a.create_label(), a.create_label());
    a.set_label(&mut start)?;
    a.push(rbx)?;
    a.mov(rbx, rdi)?;
    a.set_label(&mut again)?;
    a.call(callee)?;
    a.set_label(&mut context)?;
    a.dec(rbx)?;
    a.jne(again)?;
    a.pop(rbx)?;
    a.ret()?;
    let mut parts = [0; 4].map(|_| a.create_label());
    a.set_label(&mut callee)?;
    a.zero_bytes()?;
    a.set_label(&mut parts[0])?;
    a.mov(eax, NUMBER)?;
    a.set_label(&mut parts[1])?;
    if calls {
        a.syscall()?;
    } else {
        a.zero_bytes()?;
    }
    a.set_label(&mut parts[2])?;
    a.cmp(rax, -4095)?;
    a.set_label(&mut parts[3])?;
    a.ret()?;
    Ok((start, context, parts))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counting_costs_something_and_less_than_a_microsecond() {
        let options = Options { results: true, time: true, waited: true, windows: true, ..Options::COUNT };
        let Measurement { share, plain, again } =
            measure(&options, &Cache::none()).expect("this process is not watched and may map code");
        // Counting costs some twenty to sixty cycles; even on a busy machine it costs far less than these bounds.
        assert!(share.added >= 0.0 && share.added < 10_000.0, "{share:?}");
        assert!(share.inside.abs() < 10_000.0, "{share:?}");
        assert_eq!(gs_base(), Some(0));
        for spread in [plain, again.plain()] {
            assert!(spread.min > 0.0 && spread.min <= spread.median && spread.median <= spread.high, "{spread:?}");
        }
    }

    #[test]
    fn few_batches_suffice_if_they_agree() {
        let same = [100.0; FEWEST];
        assert!(is_settled(&same) && !is_settled(&same[1..]));
        let busy = [100.0, 120.0, 100.5, 140.0, 100.9, 130.0, 110.0, 105.0];
        assert!(!is_settled(&busy));
        assert!(is_settled(&[&busy[..], &[100.2]].concat()));
        assert_eq!(least(&busy), 100.0);
    }

    #[test]
    fn parts_come_back_as_they_were() {
        let options = Options { results: true, time: true, ..Options::default() };
        let parts = Parts::get(&options, &Cache::none()).unwrap();
        let bytes = parts.to_bytes();
        let same = Parts::from_bytes(bytes.clone()).unwrap();
        assert_eq!((&same.text, same.functions, &same.blob), (&parts.text, parts.functions, &parts.blob));
        for cut in 0..bytes.len().min(64) {
            assert!(Parts::from_bytes(bytes[..cut].to_vec()).is_none(), "{cut}");
        }
    }

    #[test]
    fn it_can_be_measured_again_and_again_and_by_many() {
        let measured = || {
            let by = |results| measure(&Options { results, ..Options::default() }, &Cache::none());
            [true, false, true].into_iter().all(|results| by(results).is_some())
        };
        let threads: Vec<_> = (0..2).map(|_| std::thread::spawn(measured)).collect();
        assert!(threads.into_iter().all(|t| t.join().unwrap()));
    }
}
