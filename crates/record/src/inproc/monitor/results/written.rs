//! Takes windows that threads have written from their slots.

use crate::inproc::monitor::handles::{NodeAddr, SlotRef};
use crate::inproc::monitor::program::Program;
use crate::inproc::monitor::results::images::{image_of, note_maker};
use crate::inproc::monitor::session::Session;
use crate::inproc::monitor::sys;
use crate::procfs;
use crate::sys::own_cpu;
use crate::table::{ImageId, Table};
use crate::windows::{RawCall, RawWindow};
use crate::written::{Names, Times, raw_call};
use foldhash::HashMap;
use std::time::Duration;
use systoll_hooks::assemble::{WrittenCall, written_calls};
use systoll_hooks::layout::{IMAGE, image, may_hold_node, node, ring, slot};
use systoll_model::Sysno;

/// What a thread takes to write a call: measured, with what it points to.
const EACH: Duration = Duration::from_nanos(250);

/// Bytes of all headers of a ring.
const HEADERS: u64 = ring::COUNT * ring::HEADER;
/// Words of one.
const HEADER_WORDS: usize = (ring::HEADER / 8) as usize;

/// Buffers that a thread may have filled before the launcher, asked by it, takes them first.
const FULL: usize = 12;

/// Which windows are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Take {
    /// Those that are written to the end: their thread lives.
    Written,
    /// Those that are not as well.
    All,
}

/// Takes what the living have written since this was last done.
pub(crate) fn take_new(session: &mut Session) {
    let written = |p: &Program| session.memory.image(p.id).map_or(0, |area| area.get(image::WRITTEN));
    let news = session.programs.values().filter(|p| written(p) != p.threads.written);
    let ids: Vec<_> = news.map(|p| (p.id, written(p))).collect();
    for (id, written) in ids {
        let Some(mut program) = session.programs.remove(&id) else { continue };
        program.threads.written = written;
        let slots: Vec<u64> = (0..session.memory.slots_drawn(id)).collect();
        take(session, &mut program, &slots, Take::Written);
        session.programs.insert(id, program);
    }
}

/// Takes what a thread has written that waits for an answer, where little room is left: what it is about to do for the
/// first time is to be seen.
pub(crate) fn make_room(session: &mut Session, thread: SlotRef) {
    let headers = session.memory.words(thread.offset() + slot::RING_HEADERS, thread.program, HEADERS);
    let written = headers.chunks_exact(HEADER_WORDS).filter(|header| header.first() == Some(&ring::state::WRITTEN));
    if written.count() < FULL {
        return;
    }
    let Some(mut program) = session.programs.remove(&thread.program) else { return };
    take(session, &mut program, &[thread.index], Take::Written);
    session.programs.insert(thread.program, program);
}

/// Takes windows from some slots of a program.
pub(crate) fn take(session: &mut Session, program: &mut Program, slots: &[u64], which: Take) {
    for index in slots {
        let thread = program.id.slot(*index);
        let headers = session.memory.words(thread.offset() + slot::RING_HEADERS, program.id, HEADERS);
        let mut found: Vec<Vec<WrittenCall>> = Vec::new();
        for (n, header) in (0u64..).zip(headers.chunks_exact(HEADER_WORDS)) {
            let [state, len] = *header else { continue };
            let whole = state == ring::state::WRITTEN;
            if !whole && (state != ring::state::WRITING || which == Take::Written) {
                continue;
            }
            let at = thread.offset() + slot::RINGS + n * ring::BUFFER;
            found.push(written_calls(&session.memory.bytes(at, program.id, ring::BUFFER), n, len));
            if let Some(area) = session.memory.image(program.id).filter(|_| whole) {
                area.set(thread.offset() + slot::RING_HEADERS + n * ring::HEADER + ring::STATE, ring::state::FREE);
            }
        }
        found.sort_by_key(|calls| calls.first().map(|call| call.time));
        if !found.is_empty() {
            note_maker(&session.memory, program, &mut session.table, thread, session.clock.at(sys::now()));
        }
        for calls in found {
            if calls.first().is_some_and(|call| call.alone) {
                note_looks(session, program, thread, &calls);
            } else {
                keep(session, program, thread, &calls);
            }
        }
    }
}

/// Notes calls in the ledger that a thread has looked at one by one.
fn note_looks(session: &mut Session, program: &mut Program, thread: SlotRef, calls: &[WrittenCall]) {
    let began = own_cpu();
    let (of, raw) = raw_calls(session, program, thread, calls);
    for call in &raw {
        session.windows.budget.ledger.note(&session.table, of, call.looked_at());
        program.looked = program.looked.saturating_add(call.stands_for);
    }
    let ours = own_cpu().saturating_sub(began);
    session.windows.looks.spend(EACH * calls.len() as u32, ours);
}

/// Keeps a written window.
fn keep(session: &mut Session, program: &mut Program, thread: SlotRef, calls: &[WrittenCall]) {
    let began = sys::now();
    let Some(window) = raw_window(session, program, thread, calls) else { return };
    let (octave, n) = (window.octave, window.calls.len() as u32);
    // A thread that opens one asks nobody; later programs of the file have less to show all the same.
    if let Some(known) = calls.first().and_then(|call| program.contexts.known.get(&NodeAddr(call.node))) {
        known.note_asked(octave.into());
    }
    let first = window.calls.first().map(|call| (call.row, call.nth));
    // What was looked at may be the first call of a window that is still being written.
    let asked = session.windows.looked.get(&thread).copied().filter(|looked| first == Some((looked.row, looked.nth)));
    if asked.is_some() {
        session.windows.looked.remove(&thread);
    }
    let mut window = window;
    if let (Some(call), Some(looked)) = (window.calls.first_mut(), asked) {
        call.stack = looked.stack;
    }
    session.windows.budget.keep(&mut session.table, window);
    if !asked.is_some_and(|l| l.opened) {
        session.windows.budget.note_opened(octave);
    }
    session.windows.budget.spend(octave, EACH * n);
    session.windows.budget.spend_at_most(octave, Duration::from_nanos(sys::now().saturating_sub(began)));
}

fn raw_window(
    session: &mut Session,
    program: &mut Program,
    thread: SlotRef,
    calls: &[WrittenCall],
) -> Option<RawWindow> {
    let (of, raw) = raw_calls(session, program, thread, calls);
    let (row, nth) = raw.first().map(|call| (call.row, call.nth))?;
    let tid = tid_of(session, thread);
    if !session.windows.ordinals.contains_key(&thread) {
        let name = procfs::comm(tid);
        if !name.is_empty() {
            session.table.thread_named(of, tid as u32, &name);
        }
    }
    let thread = session.windows.ordinal(thread);
    Some(RawWindow { image: of, thread, row, octave: nth.max(1).ilog2() as u8, calls: raw })
}

fn word(session: &Session, thread: SlotRef, offset: u64) -> u64 {
    session.memory.word(offset, thread.program)
}

fn tid_of(session: &Session, thread: SlotRef) -> i32 {
    word(session, thread, thread.offset() + slot::TID) as i32
}

/// What a thread has written, by the rows of the image it is of: consecutive calls up to the first that can't be
/// told, or all single ones that can.
fn raw_calls(
    session: &mut Session,
    program: &mut Program,
    thread: SlotRef,
    calls: &[WrittenCall],
) -> (ImageId, Vec<RawCall>) {
    let now = session.clock.at(sys::now());
    let (pid, tid) = (word(session, thread, thread.offset() + slot::PID) as i32, tid_of(session, thread));
    let shared = word(session, thread, image::THREADS) as u32 != 0;
    let taken_for_us = if tid == program.pid { program.hooks.faults } else { 0 };
    let of = image_of(program, &mut session.table, pid, now);
    let clock = session.clock.reading(session.stats.around.own_cycles);
    let bound = session.windows.budget.bytes();
    let (mut names, mut rows) = (Names::new(shared), HashMap::default());
    let mut raw = Vec::new();
    for call in calls {
        // What is missing may have changed what those after it find.
        if !call.alone && (call.after_gap && !raw.is_empty() || session.windows.budget.full(raw.len())) {
            break;
        }
        if call.alone {
            names = Names::new(shared);
        }
        // Where the launcher has put a node there is memory, and it is mapped here. Any other place is read: to look at a
        // hole in what is mapped would fill it, and the program names any place.
        let roots = |node: NodeAddr| {
            let at = node.offset() + node::ROOT;
            let area = session.memory.image(program.id).filter(|_| program.contexts.nodes.contains_key(&node));
            let root = area.map_or_else(|| session.memory.word(at, program.id), |area| area.get(at));
            (root != 0).then_some(NodeAddr(root))
        };
        let key = (call.node, call.number);
        let row = *rows.entry(key).or_insert_with(|| row_of(&mut session.table, program, (of, call), roots));
        let (row, syscall) = match row {
            Some(known) => known,
            None if call.alone => continue,
            None => break,
        };
        let signature = syscall.signature();
        let fd = signature.and_then(|s| {
            let name = names.of(call, s)?;
            session.windows.budget.seen(pid, s, &name);
            Some(name)
        });
        let times = Times {
            entry_ns: clock.ns(call.time.saturating_sub(session.clock.start_cycles) as f64),
            elapsed_ns: clock.ns(call.cycles as f64),
            waited_ns: call.waited.map(|cycles| clock.ns(cycles as f64)),
        };
        let mut call = raw_call(row, call, signature, (times, fd, bound));
        call.faults = call.faults.map(|all| all.saturating_sub(taken_for_us));
        raw.push(call);
    }
    (of, raw)
}

/// The row of a written call, and which system call it is. `roots` tells a node's root.
fn row_of(
    table: &mut Table,
    program: &Program,
    (of, call): (ImageId, &WrittenCall),
    roots: impl Fn(NodeAddr) -> Option<NodeAddr>,
) -> Option<(u32, Sysno)> {
    let node = NodeAddr(call.node);
    may_hold_node(call.node.wrapping_sub(IMAGE)).then_some(())?;
    let (syscall, frames) = program.call_at(node, roots(node)?, call.number)?;
    let (row, _) = table.row(of, syscall, &frames);
    Some((row, syscall))
}
