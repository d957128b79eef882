//! The observer's own share in a call: a tiny loop of calls with the counting code and without,
//! in turns, in this process.
//!
//! The code measured is what targets run, with one context and a window that never comes due.
//! What is found is taken off what targets pay.

use super::super::assemble::{Options, Room, Step, assemble, grow};
use super::super::layout::{GLOBAL, IMAGE, NUMBERS, global, image, node, record, slot, slot_address};
use super::super::plan::{CfaOffset, Plan, Site, Span};
use super::own::{Code, Mapping, gs_base, set_gs_base};
use super::sys;
use iced_x86::BlockEncoderOptions;
use iced_x86::code_asm::*;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};

/// A call that does next to nothing: getppid.
const NUMBER: u32 = 110;
/// Calls in a batch: some ten microseconds, short beside what else wants the processor.
const CALLS: u64 = 48;
/// Batches with the counting code, and as many without: half a millisecond in all.
const BATCHES: usize = 24;
/// Where the functions start, and where the counting code, from the start of the mapping.
const TEXT: u64 = 0x1000;
const CODE: u64 = 0x2000;
const SIZE: u64 = 0x10000;
const REGION: u64 = IMAGE + image::ROOTS;

/// What counting adds to a call, in cycles of the time stamp counter.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Share {
    /// To what the thread pays for the call.
    pub(super) added: f64,
    /// To the time between the two readings of the clock; below zero where what the readings
    /// enclose is less than what the call costs.
    pub(super) inside: f64,
    /// What a call takes without any of it.
    pub(super) plain: f64,
}

/// Only one thread can use the areas' addresses.
static AREAS: Mutex<()> = Mutex::new(());

/// Measures, unless this process is itself watched or may not map code.
pub(super) fn measure(options: &Options) -> Option<Share> {
    let _one = AREAS.lock().unwrap_or_else(PoisonError::into_inner);
    if gs_base() != Some(0) {
        return None;
    }
    let bench = Bench::new(options)?;
    set_gs_base(slot_address(0))?;
    let share = bench.measure();
    set_gs_base(0)?;
    share
}

/// The functions, and the memory the counting code wants.
struct Bench {
    areas: Mapping,
    code: Code,
    functions: Functions,
    /// Where what is counted of the loop's context lies in a slot.
    record: u64,
}

/// Each calls its callee as often as it is told.
#[derive(Clone, Copy)]
struct Functions {
    hooked: u64,
    plain: u64,
    /// Without the call itself.
    empty: u64,
    /// Where the first one's callee returns to.
    context: u64,
}

impl Bench {
    fn new(options: &Options) -> Option<Self> {
        let (text, functions, plan) = text()?;
        let blob = assemble(&plan, options, CODE as i64).ok()?;
        let (code_at, size) = (CODE, blob.code.len() as u64);
        if !blob.refused.is_empty() || code_at + size > SIZE {
            return None;
        }
        let areas = Mapping::at(GLOBAL, global::SIZE + image::SIZE)?;
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
        // An rseq area that the kernel knows nothing of costs what one does that it leaves alone.
        set(image::SLOTS + slot::RSEQ, IMAGE + image::TICKETS)?;
        // Nobody answers here.
        words.get((global::DEAD / 8) as usize)?.store(1, Ordering::Relaxed);
        let image_words = words.get((global::SIZE / 8) as usize..)?;
        let mut room = Room { nodes: 0, records: NUMBERS + 1 };
        let step = Step { word: code.address() + functions.context, next: 0 };
        let context = grow(image_words, &mut room, REGION, &[step]).ok()?;
        let record = image_words.get(((context - IMAGE + node::RECORD) / 8) as usize)?.load(Ordering::Relaxed);
        Some(Self { areas, code, functions, record })
    }

    /// Calls `function` for a batch; cycles a call.
    fn batch(&self, function: u64) -> f64 {
        let before = sys::tsc();
        // SAFETY: one of the functions of `text`; the areas are mapped, and gs says where.
        unsafe { self.code.call(function, CALLS) };
        sys::tsc().saturating_sub(before) as f64 / CALLS as f64
    }

    /// A figure of what has been counted of the loop so far.
    fn counted(&self, field: u64) -> u64 {
        let offset = global::SIZE + image::SLOTS + self.record + field;
        let word = self.areas.words().get((offset / 8) as usize);
        word.map_or(0, |w| w.load(Ordering::Relaxed))
    }

    fn measure(&self) -> Option<Share> {
        let f = self.functions;
        let mut least = [f64::INFINITY; 4];
        let [hooked, plain, empty, inside] = &mut least;
        // Twice unmeasured, for caches and pages.
        for round in 0..BATCHES + 2 {
            let cycles = self.counted(record::CYCLES);
            let one = [self.batch(f.hooked), self.batch(f.plain), self.batch(f.empty)];
            let within = self.counted(record::CYCLES).saturating_sub(cycles) as f64 / CALLS as f64;
            if round >= 2 {
                *hooked = hooked.min(one[0]);
                *plain = plain.min(one[1]);
                *empty = empty.min(one[2]);
                *inside = inside.min(within);
            }
        }
        let all_counted = self.counted(record::RETURNED) == (BATCHES as u64 + 2) * CALLS;
        let timed = self.counted(record::CYCLES) > 0;
        all_counted.then(|| Share {
            plain: *plain - *empty,
            added: (*hooked - *plain).max(0.0),
            inside: if timed { *inside - (*plain - *empty) } else { 0.0 },
        })
    }
}

/// The functions' code, where they start in it from the mapping's start, and what can be hooked.
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
        before: span(&head, &call),
        after: span(&behind, &end),
        cfa: Some(CfaOffset(8)),
        hook_cfa: Some(CfaOffset(8)),
        ..Site::new(at(&call)?, Some(NUMBER))
    };
    let functions = Functions { hooked: at(&hooked)?, plain: at(&plain)?, empty: at(&empty)?, context: at(&context)? };
    let plan = Plan { sites: vec![site], ..Plan::default() };
    Some((bytes, functions, plan))
}

type Labels = (CodeLabel, CodeLabel, [CodeLabel; 4]);

/// `f(n)`: calls its callee n times. The callee looks as the C library's wrappers do.
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
        let options = Options { results: true, time: true, waited: true, windows: true, elide: false };
        let share = measure(&options).expect("this process is not watched and may map code");
        // Some twenty to sixty cycles; what a busy box adds to every batch is far from these bounds.
        assert!(share.added >= 0.0 && share.added < 10_000.0, "{share:?}");
        assert!(share.inside.abs() < 10_000.0, "{share:?}");
        assert_eq!(gs_base(), Some(0));
    }

    #[test]
    fn it_can_be_measured_again_and_again_and_by_many() {
        let measured = || (0..3).all(|_| measure(&Options { results: true, ..Options::default() }).is_some());
        let threads: Vec<_> = (0..2).map(|_| std::thread::spawn(measured)).collect();
        assert!(threads.into_iter().all(|t| t.join().unwrap()));
    }
}
