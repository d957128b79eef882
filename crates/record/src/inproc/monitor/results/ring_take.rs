//! Takes windows that threads have written from their slots.

use crate::inproc::monitor::handles::{NodeAddr, SlotRef};
use crate::inproc::monitor::program::Program;
use crate::inproc::monitor::requests::open_windows::OpenWindows;
use crate::inproc::monitor::results::clock::Clock;
use crate::inproc::monitor::results::images::{image_of, note_maker, process_number};
use crate::inproc::monitor::session::{DraftRecording, Targets};
use crate::inproc::monitor::shared::memory::Memory;
use crate::inproc::monitor::sys;
use crate::procfs;
use crate::raw_window::{RawCall, RawWindow};
use crate::request_windows::{is_receive, is_socket_name};
use crate::ring_windows::{Names, Times, descriptor_name, question, raw_call, receive};
use crate::sys::own_cpu;
use crate::table::{ImageId, Table};
use foldhash::HashMap;
use std::ops::Range;
use std::time::Duration;
use systoll_hooks::layout::{IMAGE, image, may_hold_node, node, ring, slot};
use systoll_hooks::ring_reader::{WrittenCall, read_used, written_calls};
use systoll_model::{Looked, Sysno};

/// Time that a thread takes to write a call and the data that its arguments point to, as measured.
const EACH: Duration = Duration::from_nanos(250);
/// Most that is believed of a thread's own measurement of that time: the program may write anything there. Where several
/// threads share memory the kernel copies it, which takes 1.4 µs a call in a Go server.
const EACH_AT_MOST: Duration = Duration::from_micros(10);

/// Time that a thread takes to write a receive and its descriptor's name, in units of [`EACH`], less one.
const RECEIVE_COSTS: u32 = 5;

/// Bytes of all headers of a ring.
const HEADERS: u64 = ring::COUNT * ring::HEADER;
/// Number of words in a ring's header.
const HEADER_WORDS: usize = (ring::HEADER / 8) as usize;

/// Number of filled buffers from which on the launcher empties them before it answers their thread.
const FULL: usize = 12;

/// Choice of windows to take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Take {
    /// Windows that are complete; the thread lives.
    Written,
    /// All windows, including incomplete ones.
    All,
}

/// Takes the windows that living threads have written since the last call.
pub(crate) fn take_new(targets: &mut Targets, draft: &mut DraftRecording) {
    let written = |p: &Program| targets.memory.image(p.id).map_or(0, |area| area.get(image::WRITTEN));
    let news = targets.programs.values().filter(|p| written(p) != p.threads.written);
    let ids: Vec<_> = news.map(|p| (p.id, written(p))).collect();
    for (id, written) in ids {
        let Some(mut program) = targets.programs.remove(&id) else { continue };
        program.threads.written = written;
        let slots: Vec<u64> = (0..targets.memory.slots_drawn(id)).collect();
        take(&targets.memory, draft, &mut program, &slots, Take::Written);
        targets.programs.insert(id, program);
    }
}

/// Empties the buffers of a thread that waits for an answer, if little room is left: its next call, made for the first
/// time, should be recorded.
pub(crate) fn make_room(targets: &mut Targets, draft: &mut DraftRecording, thread: SlotRef) {
    if due(&targets.memory, thread, Take::Written).len() < FULL {
        return;
    }
    let Some(mut program) = targets.programs.remove(&thread.program) else { return };
    take(&targets.memory, draft, &mut program, &[thread.index], Take::Written);
    targets.programs.insert(thread.program, program);
}

/// Takes windows from some slots of a program.
pub(crate) fn take(memory: &Memory, draft: &mut DraftRecording, program: &mut Program, slots: &[u64], which: Take) {
    let mut room = std::mem::take(&mut draft.windows.room);
    for index in slots {
        take_of(memory, draft, program, program.id.slot(*index), (which, &mut room));
    }
    draft.windows.room = room;
}

/// Takes windows from one slot.
fn take_of(
    memory: &Memory,
    draft: &mut DraftRecording,
    program: &mut Program,
    thread: SlotRef,
    (which, room): (Take, &mut Vec<u8>),
) {
    let due = due(memory, thread, which);
    if due.is_empty() {
        return;
    }
    let mut since = own_cpu();
    let tells = program.processes.tells(memory.head(thread).pid as i32);
    let copies = copy(memory, thread, &due, room);
    if !tells {
        return;
    }
    let buffers = copies.iter().zip(&due).map(|(copy, buffer)| {
        let calls = written_calls(room.get(copy.clone()).unwrap_or_default(), buffer.index, buffer.len);
        let first = calls.clone().next();
        (first.as_ref().map(|call| call.time), first.is_some_and(|call| call.alone), calls)
    });
    let mut buffers: Vec<_> = buffers.collect();
    buffers.sort_by_key(|(time, ..)| *time);
    note_maker(memory, program, &mut draft.table, thread, draft.clock.at(sys::now()));
    let mut writer = Writer::of(memory, draft, program, thread);
    for (_, alone, calls) in buffers {
        if alone {
            let looks = note_looks(memory, draft, program, &mut writer, calls);
            let now = own_cpu();
            draft.windows.looks.spend(each(memory, draft, thread) * looks, now.saturating_sub(since));
            since = now;
        } else {
            keep(memory, draft, program, &mut writer, calls);
            since = own_cpu();
        }
    }
}

/// Returns the time that a thread has taken to write a call, by its own clock.
fn each(memory: &Memory, draft: &DraftRecording, thread: SlotRef) -> Duration {
    let word = |offset: u64| memory.word(thread.offset() + offset, thread.program);
    // It measures a call's entry and its return.
    let pairs = (word(slot::RING_CALLS) / 2).max(1) as f64;
    let ns = word(slot::RING_CYCLES) as f64 / draft.clock.ratio.cycles_per_ns() / pairs;
    Duration::from_nanos(ns as u64).clamp(EACH, EACH_AT_MOST)
}

/// A buffer of a slot's rings that is to be taken.
struct Buffer {
    index: u64,
    /// Bytes of calls in the buffer, according to its header.
    len: u64,
    /// True if the buffer is complete, and may be given back to its thread.
    whole: bool,
}

/// Returns the buffers of a slot that are to be taken.
fn due(memory: &Memory, thread: SlotRef, which: Take) -> Vec<Buffer> {
    let mut headers = [0; HEADERS as usize];
    if !memory.read(thread.offset() + slot::RING_HEADERS, thread.program, &mut headers) {
        return Vec::new();
    }
    let (words, _) = headers.as_chunks::<8>();
    let all = (0u64..).zip(words.chunks_exact(HEADER_WORDS)).filter_map(|(index, header)| {
        let [state, len] = [*header.first()?, *header.get(1)?].map(u64::from_le_bytes);
        let whole = state == ring::state::WRITTEN;
        (whole || state == ring::state::WRITING && which == Take::All).then_some(Buffer { index, len, whole })
    });
    all.collect()
}

/// Copies the used parts of buffers into `room` and gives the buffers back to their thread. Returns the range of each
/// in `room`.
fn copy(memory: &Memory, thread: SlotRef, due: &[Buffer], room: &mut Vec<u8>) -> Vec<Range<usize>> {
    let mut start = 0;
    let copied = due.iter().map(|Buffer { index, len, whole }| {
        let least = start + ring::BUFFER as usize;
        if room.len() < least {
            room.resize(least, 0);
        }
        let at = thread.offset() + slot::RINGS + index * ring::BUFFER;
        let into = room.get_mut(start..least).unwrap_or_default();
        let used = read_used(*index, *len, into, |offset, to| memory.read(at + offset, thread.program, to));
        if let Some(area) = memory.image(thread.program).filter(|_| *whole) {
            area.set(thread.offset() + slot::RING_HEADERS + index * ring::HEADER + ring::STATE, ring::state::FREE);
        }
        let copy = start..start + used;
        start = copy.end;
        copy
    });
    copied.collect()
}

/// A thread that has written windows, in the state in which they were read.
struct Writer {
    thread: SlotRef,
    pid: i32,
    tid: i32,
    /// True if the thread's process has several threads.
    shared: bool,
    /// Image of the thread's process.
    image: ImageId,
    clock: Clock,
    /// Rows found so far, and their system calls, by node and number.
    rows: HashMap<(u64, u32), Option<(u32, Sysno)>>,
}

impl Writer {
    fn of(memory: &Memory, draft: &mut DraftRecording, program: &mut Program, thread: SlotRef) -> Self {
        let word = |offset: u64| memory.word(offset, thread.program);
        let [tid, pid] = [slot::TID, slot::PID].map(|field| word(thread.offset() + field) as i32);
        let shared = word(image::THREADS) as u32 != 0;
        let image = image_of(program, &mut draft.table, pid, draft.clock.at(sys::now()));
        let clock = draft.clock.reading(draft.stats.around.own_cycles);
        Self { thread, pid, tid, shared, image, clock, rows: HashMap::default() }
    }

    /// Returns the number of the thread's process in the ledger.
    fn process(&self, table: &Table) -> u32 {
        table.process(self.image, process_number(self.thread.program, self.pid))
    }

    /// Returns the row and the system call of a written call, if they are known.
    fn row(
        &mut self,
        memory: &Memory,
        table: &mut Table,
        program: &Program,
        call: &WrittenCall<'_>,
    ) -> Option<(u32, Sysno)> {
        let row = || row_of(table, memory, program, (self.image, call));
        *self.rows.entry((call.node, call.number)).or_insert_with(row)
    }

    /// Returns the time at which a call was made, ns since the run's start.
    fn entry_ns(&self, call: &WrittenCall<'_>) -> u64 {
        self.clock.ns(call.time.saturating_sub(self.clock.start_cycles) as f64)
    }

    fn times(&self, call: &WrittenCall<'_>) -> Times {
        let ns = |cycles: u64| self.clock.ns(cycles as f64);
        Times { entry_ns: self.entry_ns(call), elapsed_ns: ns(call.cycles), waited_ns: call.waited.map(ns) }
    }
}

/// Notes calls in the ledger that a thread has sampled one by one, if their row is known. Returns the number of calls,
/// known or not.
fn note_looks<'b>(
    memory: &Memory,
    draft: &mut DraftRecording,
    program: &mut Program,
    writer: &mut Writer,
    calls: impl Iterator<Item = WrittenCall<'b>>,
) -> u32 {
    let (process, bound) = (writer.process(&draft.table), draft.windows.budget.bytes());
    let mut all = 0;
    for call in calls {
        all += 1;
        let Some((row, syscall)) = writer.row(memory, &mut draft.table, program, &call) else { continue };
        let fd = syscall.signature().and_then(|signature| descriptor_name(&call, signature));
        if count_receive(&mut draft.windows, (row, syscall), &call, fd.as_deref()) {
            all += RECEIVE_COSTS;
            continue;
        }
        let Some(question) = syscall.signature().and_then(|s| question(&call, s, bound)) else { continue };
        let (at_ns, stands_for) = (writer.entry_ns(&call), call.stands_for);
        program.looked = program.looked.saturating_add(stands_for);
        let look = Looked { process, row, syscall, question: &question, at_ns, stands_for };
        draft.windows.budget.ledger.note_look(look);
    }
    all
}

/// Counts what a sampled call has received, if requests are to be reported and it may receive from a socket. `fd` is
/// the name of its descriptor, if that is known. Returns true if so.
fn count_receive(
    windows: &mut OpenWindows,
    (row, syscall): (u32, Sysno),
    call: &WrittenCall<'_>,
    fd: Option<&str>,
) -> bool {
    if !windows.budget.tells_requests() {
        return false;
    }
    let Some(signature) = syscall.signature().filter(|signature| is_receive(signature)) else { return false };
    let is_socket = || match signature.name {
        "recvfrom" | "recvmsg" => Some(true),
        _ => fd.map(is_socket_name),
    };
    if let Some(receive) = receive(call, signature, &is_socket)
        && let Some(requests) = &mut windows.budget.requests
    {
        requests.count((row, call.stands_for), &receive, &|_, _| 0);
    }
    true
}

/// Keeps a window that a thread has written.
fn keep<'b>(
    memory: &Memory,
    draft: &mut DraftRecording,
    program: &mut Program,
    writer: &mut Writer,
    calls: impl Iterator<Item = WrittenCall<'b>> + Clone,
) {
    let began = sys::now();
    let node = calls.clone().next().map(|call| NodeAddr(call.node));
    let Some(window) = raw_window(memory, draft, program, writer, calls.clone()) else { return };
    for (raw, call) in window.calls.iter().zip(calls.clone()).filter(|(_, call)| call.stands_for > 0) {
        let syscall = draft.table.rows.get(raw.row as usize).map(|row| row.syscall);
        if let Some(syscall) = syscall {
            count_receive(&mut draft.windows, (raw.row, syscall), &call, raw.fd.as_deref());
        }
    }
    let looked = window.calls.iter().fold(0u64, |all, call| all.saturating_add(call.stands_for));
    program.looked = program.looked.saturating_add(looked);
    let thread = writer.thread;
    let n = window.calls.len() as u32;
    // A thread that opens a window by itself does not ask, but its window counts as a question: later programs of the
    // file then take fewer samples at the context.
    if let Some(known) = node.and_then(|node| program.contexts.known.get(&node)) {
        known.note_asked(window.octave.into());
    }
    let first = window.calls.first().map(|call| (call.row, call.nth));
    // The call sampled by the launcher may be the first call of a window that is still being written.
    let asked = draft.windows.looked.get(&thread).copied().filter(|looked| first == Some((looked.row, looked.nth)));
    if asked.is_some() {
        draft.windows.looked.remove(&thread);
    }
    let mut window = window;
    if let (Some(call), Some(looked)) = (window.calls.first_mut(), asked) {
        call.stack = looked.stack;
    }
    number_in_rows(memory, &draft.table, program, thread, &mut window, calls);
    let octave = window.octave;
    draft.windows.budget.keep(&mut draft.table, window);
    if !asked.is_some_and(|l| l.opened) {
        draft.windows.budget.note_opened(octave);
    }
    draft.windows.budget.spend(octave, EACH * n);
    draft.windows.budget.spend_at_most(octave, Duration::from_nanos(sys::now().saturating_sub(began)));
}

/// Numbers the calls of a window by their rows instead of by what its thread has counted, where threads come and go:
/// each of them counts from one. `written` are the window's calls as they were read.
fn number_in_rows<'b>(
    memory: &Memory,
    table: &Table,
    program: &Program,
    thread: SlotRef,
    window: &mut RawWindow,
    written: impl Iterator<Item = WrittenCall<'b>>,
) {
    let Some(area) = memory.image(program.id).filter(|_| program.threads.come_and_go) else { return };
    let mut others: HashMap<u64, u64> = HashMap::default();
    for (call, written) in window.calls.iter_mut().zip(written) {
        let ended = || table.rows.get(call.row as usize).map_or(0, |row| row.counts.calls);
        let node = NodeAddr(written.node);
        let others = others.entry(written.node);
        let others = others.or_insert_with(|| program.calls_of_others(area, node, thread.index, ended()));
        call.nth = call.nth.saturating_add(*others);
    }
    window.octave = window.calls.first().map_or(0, |call| call.nth.max(1).ilog2() as u8);
}

fn raw_window<'b>(
    memory: &Memory,
    draft: &mut DraftRecording,
    program: &Program,
    writer: &mut Writer,
    calls: impl Iterator<Item = WrittenCall<'b>>,
) -> Option<RawWindow> {
    let calls = raw_calls(memory, draft, program, writer, calls);
    let (row, nth) = calls.first().map(|call| (call.row, call.nth))?;
    if !draft.windows.ordinals.contains_key(&writer.thread) {
        let name = procfs::comm(writer.tid);
        if !name.is_empty() {
            draft.table.name_thread(writer.image, writer.tid as u32, &name);
        }
    }
    let thread = draft.windows.ordinal(writer.thread);
    let (image, process) = (writer.image, writer.process(&draft.table));
    Some(RawWindow { image, process, thread, row, octave: nth.max(1).ilog2() as u8, tells_requests: false, calls })
}

/// Returns the calls of a window that a thread has written, by the rows of its image, up to the first call whose row is
/// unknown.
fn raw_calls<'b>(
    memory: &Memory,
    draft: &mut DraftRecording,
    program: &Program,
    writer: &mut Writer,
    calls: impl Iterator<Item = WrittenCall<'b>>,
) -> Vec<RawCall> {
    let taken_for_us = if writer.tid == program.pid { program.hooks.faults } else { 0 };
    let bound = draft.windows.budget.bytes();
    let mut names = Names::new(writer.shared);
    let mut raw = Vec::new();
    for call in calls {
        // A call that is missing in between may have changed the state that later calls meet.
        if call.after_gap && !raw.is_empty() || draft.windows.budget.full(raw.len()) {
            break;
        }
        let Some((row, syscall)) = writer.row(memory, &mut draft.table, program, &call) else { break };
        let signature = syscall.signature();
        let fd = signature.and_then(|s| {
            let name = names.name_of(&call, s)?;
            draft.windows.budget.seen(writer.pid, s, &name);
            Some(name)
        });
        let mut call = raw_call(row, &call, signature, (writer.times(&call), fd, bound));
        call.faults = call.faults.map(|all| all.saturating_sub(taken_for_us));
        raw.push(call);
    }
    raw
}

/// Returns the row of a written call and its system call.
fn row_of(
    table: &mut Table,
    memory: &Memory,
    program: &Program,
    (of, call): (ImageId, &WrittenCall<'_>),
) -> Option<(u32, Sysno)> {
    let node = NodeAddr(call.node);
    may_hold_node(call.node.wrapping_sub(IMAGE)).then_some(())?;
    let (syscall, frames) = program.call_at(node, root_of(memory, program, node)?, call.number)?;
    let (row, _) = table.row(of, syscall, &frames);
    Some((row, syscall))
}

/// Returns a node's root. Where the launcher has put a node there is memory, and it is mapped here. The program may
/// name any other place, which is read from the file: reading a hole in the mapping would fill it.
fn root_of(memory: &Memory, program: &Program, node: NodeAddr) -> Option<NodeAddr> {
    let at = node.offset() + node::ROOT;
    let area = memory.image(program.id).filter(|_| program.contexts.nodes.contains_key(&node));
    let root = area.map_or_else(|| memory.word(at, program.id), |area| area.get(at));
    (root != 0).then_some(NodeAddr(root))
}
