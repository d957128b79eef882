//! Records windows for threads that do not write them: a few consecutive calls of a thread, with the facts seen before
//! and after each.

use crate::arguments::argument_data;
use crate::inproc::monitor::handles::{NodeAddr, ProgramId, SlotRef};
use crate::inproc::monitor::program::Program;
use crate::inproc::monitor::requests::open_windows::{Looked, Open, OpenWindows};
use crate::inproc::monitor::requests::trunk;
use crate::inproc::monitor::requests::unwind::{idle, unwind_now, with_scripts};
use crate::inproc::monitor::requests::waiter::Waiter;
use crate::inproc::monitor::results::images::{self, process_number};
use crate::inproc::monitor::results::ring_take;
use crate::inproc::monitor::session::{DraftRecording, FileKnowledge, Provisioning, Targets};
use crate::inproc::monitor::shared::memory::Memory;
use crate::inproc::monitor::sys;
use crate::raw_window::{EnteredCall, Opener, RawCall, RawWindow};
use crate::request_windows::is_receive;
use crate::sys::{own_cpu, read_memory};
use crate::table::Look;
use crate::windows::Windows;
use std::time::Duration;
use systoll_hooks::layout::{image, may_hold_node, node, record, slot, want, windows};
use systoll_model::{Moment, Sysno};
use systoll_symbols::{Idle, PlacedFrame, Symbols};

/// Frames and their places, and true if the stack was unwound to its end.
pub(crate) type Unwound<'a> = (&'a [PlacedFrame], bool);

/// Factor by which the budget for samples of single calls is larger if requests are to be reported: a user who asks for
/// their number wants it exact.
const FOR_REQUESTS: u32 = 5;

/// A call that a thread is about to make, and its context.
pub(crate) struct Entered {
    pub(crate) row: u32,
    /// Number of the call at its node, by the thread's own count.
    pub(crate) nth: u64,
    /// Mean time of the thread's calls at the node before, cycles.
    mean_cycles: f64,
    /// Number of the call in its row. Other than `nth` only where threads come and go.
    nth_of_row: u64,
    /// Offset of the thread's record at the node.
    pub(crate) record: u64,
    pub(crate) syscall: Sysno,
    /// Address of the node at which the call is counted.
    node: NodeAddr,
    /// Root of the tree in which the node lies.
    root: NodeAddr,
}

/// Handles a call at which a window may open, or that belongs to an open one; the launcher has worked on it since
/// `began`.
pub(crate) fn on_entry(
    targets: &mut Targets,
    knowledge: &mut FileKnowledge,
    draft: &mut DraftRecording,
    waiter: &Waiter,
    at: NodeAddr,
    began: u64,
) {
    let begun = draft.windows.open.contains_key(&waiter.slot);
    if !begun && opened_by(&targets.memory, waiter.slot.program) != windows::ASKED {
        return on_place(targets, knowledge, draft, waiter, at, began);
    }
    let Some(entered) = entered(targets, draft, waiter, at) else { return want(&targets.memory, waiter.slot, false) };
    let run_ns = draft.clock.at(began);
    let is_open = draft.windows.open.contains_key(&waiter.slot);
    let octave = draft.windows.open.get(&waiter.slot).map_or(octave_of(&entered), |o| o.window.octave);
    let due = comes_due(targets, draft, waiter.slot.program, at, &entered, run_ns);
    // No window opens within another, which contains the call.
    let may_open = due == Due::Part && Windows::is_for_window(entered.nth);
    let opens =
        may_open && !is_open && draft.windows.budget.opens_one(&draft.table, entered.row, entered.nth_of_row, run_ns);
    if !is_open && !opens {
        want(&targets.memory, waiter.slot, false);
        spend(&mut draft.windows, octave, began);
        return look_at_line(targets, knowledge, draft, waiter, (&entered, due), run_ns);
    }
    if opens {
        let window = opened(&targets.memory, draft, waiter, &entered);
        draft.windows.open.insert(waiter.slot, Open { window, under_way: None });
    }
    record(targets, knowledge, draft, waiter, &entered, run_ns);
    spend(&mut draft.windows, octave, began);
}

/// Returns a new window of the waiting thread.
pub(crate) fn opened(memory: &Memory, draft: &mut DraftRecording, waiter: &Waiter, entered: &Entered) -> RawWindow {
    let process = process_number(waiter.slot.program, memory.head(waiter.slot).pid as i32);
    let by = Opener { thread: draft.windows.ordinal(waiter.slot), tid: waiter.tid, process };
    Windows::open(&mut draft.table, entered.row, entered.nth.max(1).ilog2() as u8, by)
}

/// Adds a call that is about to be made to the window of its thread, which asks at each of its calls.
pub(crate) fn record(
    targets: &mut Targets,
    knowledge: &mut FileKnowledge,
    draft: &mut DraftRecording,
    waiter: &Waiter,
    entered: &Entered,
    run_ns: u64,
) {
    let octave = draft.windows.open.get(&waiter.slot).map_or(0, |open| open.window.octave);
    note_entry(targets, knowledge, draft, waiter, (entered, octave), run_ns);
    want(&targets.memory, waiter.slot, true);
}

/// Handles a call at which a window is due, in a program whose threads write their windows: the launcher decides if it
/// opens, and samples the stack.
fn on_place(
    targets: &mut Targets,
    knowledge: &mut FileKnowledge,
    draft: &mut DraftRecording,
    waiter: &Waiter,
    at: NodeAddr,
    began: u64,
) {
    let Some(entered) = entered(targets, draft, waiter, at) else { return };
    let run_ns = draft.clock.at(began);
    let octave = octave_of(&entered);
    let writes = wanted(&targets.memory, waiter.slot) == want::WRITING;
    if !writes {
        ring_take::make_room(targets, draft, waiter.slot);
    }
    let due = comes_due(targets, draft, waiter.slot.program, at, &entered, run_ns);
    let may_open = due == Due::Part && Windows::is_for_window(entered.nth);
    let opens =
        may_open && !writes && draft.windows.budget.opens_one(&draft.table, entered.row, entered.nth_of_row, run_ns);
    if opens {
        let stack = whole_stack(targets, knowledge, draft, waiter, (&entered, Due::Part));
        let (row, nth) = (entered.row, entered.nth);
        draft.windows.looked.insert(waiter.slot, Looked { row, nth, stack, opened: true });
        set_wanted(&targets.memory, waiter.slot, want::RING);
    }
    spend(&mut draft.windows, octave, began);
    if opens {
        return;
    }
    match opened_by(&targets.memory, waiter.slot.program) {
        // The thread's stack differs from the one that was known.
        windows::OWN | windows::NONE => look_at_trunk(targets, knowledge, draft, waiter, &entered),
        _ => look_at_line(targets, knowledge, draft, waiter, (&entered, due), run_ns),
    }
}

/// Returns the octave of a call in its row.
fn octave_of(entered: &Entered) -> u8 {
    entered.nth_of_row.max(1).ilog2() as u8
}

/// Samples the whole stack of a thread that opens windows by itself, and asks only since its outer frames (its trunk)
/// differ from the ones known.
fn look_at_trunk(
    targets: &mut Targets,
    knowledge: &mut FileKnowledge,
    draft: &mut DraftRecording,
    waiter: &Waiter,
    entered: &Entered,
) {
    // Time that the budget is charged for a sample at least, since the thread waits about that long. A short run then has
    // some hundred samples.
    const WAITS: Duration = Duration::from_micros(50);
    let (octave, cpu) = (octave_of(entered), own_cpu());
    whole_stack(targets, knowledge, draft, waiter, (entered, Due::Part));
    draft.windows.budget.spend_on_look(octave, own_cpu().saturating_sub(cpu).max(WAITS));
    // A thread that finds the known trunk does not ask, and nobody would know which objects its calls are about.
    let row = draft.table.rows.get(entered.row as usize);
    if row.is_some_and(|row| row.trunks.differ()) {
        ask_at(targets, waiter.slot.program, entered.node);
    }
}

/// Makes the threads of a program ask at the calls by which its scheduler waits until it is known whether these take long: they
/// would write windows by themselves, and nobody would know what the program waits for.
fn expect_waits(targets: &Targets, draft: &mut DraftRecording, waiter: &Waiter, entered: &Entered) {
    draft.table.sampled_calls.expect_lines(entered.row);
    ask_at(targets, waiter.slot.program, entered.node);
}

/// Makes the threads of a program that open windows by themselves ask where one is due at a node.
fn ask_at(targets: &Targets, id: ProgramId, at: NodeAddr) {
    if let Some(area) = targets.memory.image(id).filter(|_| may_hold_node(at.offset())) {
        let transfers = area.get(at.offset() + node::TRANSFERS);
        area.set(at.offset() + node::TRANSFERS, transfers | node::ASKS);
    }
}

/// Handles a call whose context is seen for the first time, in a program whose threads write their windows: makes the
/// thread write it, and samples the stack that was just unwound.
pub(crate) fn on_first(
    targets: &mut Targets,
    knowledge: &mut FileKnowledge,
    draft: &mut DraftRecording,
    waiter: &Waiter,
    at: NodeAddr,
) {
    let Some(entered) = entered(targets, draft, waiter, at) else { return };
    let stack = whole_stack(targets, knowledge, draft, waiter, (&entered, Due::Part));
    let Some(area) = targets.memory.image(waiter.slot.program) else { return };
    // The call is counted only after the answer, hence the next number.
    let (row, nth) = (entered.row, entered.nth.saturating_add(1));
    let writes = wanted(&targets.memory, waiter.slot) == want::WRITING;
    area.set(at.offset() + node::WINDOW_AT, if writes { nth.saturating_add(1) } else { nth });
    if !writes {
        draft.windows.looked.insert(waiter.slot, Looked { row, nth, stack, opened: false });
        set_wanted(&targets.memory, waiter.slot, want::RING);
    }
}

/// Returns the party that opens a program's windows, one of [`windows`].
pub(crate) fn opened_by(memory: &Memory, id: ProgramId) -> u32 {
    memory.image(id).map_or(windows::ASKED, |area| area.get(image::WINDOWS) as u32)
}

/// Decides for each program if its threads or the launcher open windows from now on.
pub(crate) fn settle_who_opens(targets: &mut Targets, provisioning: &Provisioning, draft: &DraftRecording) {
    let run_ns = draft.clock.at(sys::now());
    let affordable = draft.windows.budget.has_room(run_ns);
    let more = if draft.windows.budget.tells_requests() { FOR_REQUESTS } else { 1 };
    let rarer = draft.windows.looks.shift(draft.windows.budget.budget(run_ns) * more).into();
    let looked_enough = u32::from(!draft.windows.budget.look_affordable(u8::MAX, run_ns));
    for program in targets.programs.values_mut() {
        let Some(area) = targets.memory.image(program.id) else { continue };
        // A thread that may make no system call can't copy what arguments point to.
        let quiet = area.get(image::QUIET) as u32 != 0;
        let who = if !provisioning.writes_windows || quiet {
            windows::ASKED
        } else if names_scripts(program, run_ns) {
            windows::ASKED_ONCE
        } else if affordable {
            windows::OWN
        } else {
            windows::NONE
        };
        if area.get(image::LOOKED_ENOUGH) as u32 != looked_enough {
            area.set(image::LOOKED_ENOUGH, looked_enough.into());
        }
        if area.get(image::LOOK_SHIFT) != rarer {
            area.set(image::LOOK_SHIFT, rarer);
        }
        if area.get(image::WINDOWS) as u32 != who {
            area.set(image::WINDOWS, who.into());
        }
    }
}

fn note_entry(
    targets: &mut Targets,
    knowledge: &mut FileKnowledge,
    draft: &mut DraftRecording,
    waiter: &Waiter,
    (entered, octave): (&Entered, u8),
    run_ns: u64,
) {
    let first =
        draft.windows.open.get(&waiter.slot).is_none_or(|o| o.window.calls.iter().all(|c| c.row != entered.row));
    let stack = if first { whole_stack(targets, knowledge, draft, waiter, (entered, Due::Part)) } else { None };
    let (signature, tid) = (entered.syscall.signature(), waiter.tid);
    let call = EnteredCall { tid, row: entered.row, nth: entered.nth_of_row, signature, args: waiter.args(), run_ns };
    let call = draft.windows.budget.entered(&call, stack);
    let base = waiter.slot.offset() + entered.record;
    let Some(area) = targets.memory.image(waiter.slot.program) else { return };
    let (cycles, waited) = (area.get(base + record::CYCLES), area.get(base + record::WAITED));
    // A loader does not give back the memory that it maps, and reading the faults would take longer than the rest.
    let begins = octave == 0 && targets.programs.get(&waiter.slot.program).is_some_and(|p| !p.contexts.main_seen);
    let counts_faults = signature.filter(|_| !begins);
    let taken_for_us =
        targets.programs.get(&waiter.slot.program).filter(|p| p.pid == tid).map_or(0, |p| p.hooks.faults);
    let Some(open) = draft.windows.open.get_mut(&waiter.slot) else { return };
    open.under_way = Some((entered.record, cycles, waited));
    let faults = counts_faults.and_then(|s| Windows::faults(tid, s)).map(|all| all.saturating_sub(taken_for_us));
    open.window.calls.push(RawCall { faults, ..call });
}

/// Handles the return of a window's call.
pub(crate) fn on_return(memory: &Memory, draft: &mut DraftRecording, waiter: &Waiter) {
    let began = sys::now();
    let clock = draft.clock.reading(draft.stats.around.own_cycles);
    let bound = draft.windows.budget.bytes();
    let Some(area) = memory.image(waiter.slot.program) else { return };
    let base = waiter.slot.offset();
    let Some(open) = draft.windows.open.get_mut(&waiter.slot) else {
        // A thread that is to ask until it receives was in a call when that was decided.
        let goes_on = draft.windows.armed.contains_key(&waiter.slot);
        return want(memory, waiter.slot, goes_on);
    };
    let (Some((at, cycles, waited)), Some(call)) = (open.under_way.take(), open.window.calls.last_mut()) else {
        return;
    };
    let since = |field: u64, before: u64| area.get(base + at + field).saturating_sub(before) as f64;
    call.result = Some(waiter.registers.ax as i64);
    call.elapsed_ns = clock.ns(since(record::CYCLES, cycles));
    let has_rseq = area.get(base + slot::RSEQ) != 0;
    call.waited_ns = has_rseq.then(|| clock.ns(since(record::WAITED, waited)));
    let syscall = draft.table.rows.get(call.row as usize).map(|r| r.syscall);
    if let Some(signature) = syscall.and_then(Sysno::signature) {
        let read = |address: u64, buffer: &mut [u8]| read_memory(waiter.tid, address, buffer);
        call.data.extend(argument_data(signature, Moment::Exit, &call.args, call.result, bound, &read));
        draft.windows.budget.received(&mut open.window, signature, &read);
    }
    let (octave, tells_requests) = (open.window.octave, open.window.tells_requests);
    if draft.windows.budget.is_over(&open.window) {
        draft.windows.close(&mut draft.table, waiter.slot);
        want(memory, waiter.slot, false);
    }
    if !tells_requests {
        spend(&mut draft.windows, octave, began);
    }
}

/// Accounts for a window's work since `began`.
fn spend(windows: &mut OpenWindows, octave: u8, began: u64) {
    windows.budget.spend_at_most(octave, Duration::from_nanos(sys::now().saturating_sub(began)));
}

/// Makes the thread ask at every call, or stops that.
fn want(memory: &Memory, thread: SlotRef, wanted: bool) {
    set_wanted(memory, thread, if wanted { want::HAND_SHAKE } else { want::NOTHING });
}

/// Sets the slot's word that tells the waiting thread how to treat each call, one of [`want`].
pub(crate) fn set_wanted(memory: &Memory, thread: SlotRef, wanted: u64) {
    if let Some(area) = memory.image(thread.program) {
        area.set(thread.offset() + slot::WANT, wanted);
    }
}

pub(crate) fn wanted(memory: &Memory, thread: SlotRef) -> u64 {
    memory.image(thread.program).map_or(want::NOTHING, |area| area.get(thread.offset() + slot::WANT))
}

/// Decides if the node at `at` is due to be sampled at this call; if so, draws the next place. The run has lasted
/// `run_ns`.
pub(crate) fn comes_due(
    targets: &mut Targets,
    draft: &mut DraftRecording,
    id: ProgramId,
    at: NodeAddr,
    entered: &Entered,
    run_ns: u64,
) -> Due {
    let windows = &mut draft.windows;
    let Some(area) = targets.memory.image(id) else { return Due::Not };
    let planned = area.get(at.offset() + node::WINDOW_AT);
    // If requests are reported, threads that receive ask at their first calls only.
    if windows.budget.tells_requests() && entered.syscall.signature().is_some_and(is_receive) {
        return Due::Not;
    }
    // Zero means that no call is sampled.
    if planned == 0 || entered.nth < planned {
        return Due::Not;
    }
    let octave = entered.nth.max(1).ilog2();
    if let Some(program) = targets.programs.get_mut(&id) {
        let last = program.contexts.asked_at.insert(at, entered.nth).unwrap_or(0);
        windows.budget.note_calls_between(entered.nth.saturating_sub(last));
    }
    let program = targets.programs.get(&id);
    let seed = program.and_then(|p| p.contexts.known.get(&at));
    if let Some(seed) = seed {
        seed.note_asked(octave);
    }
    // In the thousandth short program of a kind, calls bring nothing new.
    let seed = seed.filter(|_| program.is_some_and(|p| !p.is_looked_at()));
    let row = draft.table.rows.get_mut(entered.row as usize);
    let is_shared = row.as_ref().is_some_and(|row| row.samples.has_several_lines());
    let mean_ns = || entered.mean_cycles / draft.clock.ratio.so_far();
    let waits = draft.table.sampled_calls.ask_for_next(entered.row, is_shared, mean_ns);
    let next = match seed {
        _ if waits => entered.nth.saturating_add(1),
        _ if is_shared && windows.budget.look_affordable(octave as u8, run_ns) => {
            windows.budget.place_of_shared(entered.nth)
        }
        Some(seed) => seed.octave_to_ask(octave + 1),
        None => windows.budget.place_after(entered.nth),
    };
    area.set(at.offset() + node::WINDOW_AT, next);
    let begins_part = row.is_none_or(|row| Windows::begins_part(row, entered.nth_of_row));
    match begins_part {
        false if waits => Due::Wait,
        false if is_shared => Due::Within,
        _ => Due::Part,
    }
}

/// Kinds of samples that a call of a node may be due for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Due {
    /// No sample.
    Not,
    /// The first sample in a part of an octave: a window, or the whole stack.
    Part,
    /// A further sample of a row that serves several lines: the stack, unless those of the call's object are known.
    Within,
    /// A further sample of a row whose calls wait: the stack, which tells the line if this call waits for long.
    Wait,
}

/// Returns true if the calls of a thread's process are reported.
fn is_told(targets: &Targets, thread: SlotRef) -> bool {
    let pid = targets.memory.head(thread).pid as i32;
    targets.programs.get(&thread.program).is_none_or(|program| program.processes.tells(pid))
}

/// Returns the call that a thread is about to make, by the node at address `at`, which counts it.
pub(crate) fn entered(
    targets: &mut Targets,
    draft: &mut DraftRecording,
    waiter: &Waiter,
    at: NodeAddr,
) -> Option<Entered> {
    is_told(targets, waiter.slot).then_some(())?;
    let image_id = images::image_of_slot(targets, draft, waiter.slot)?;
    let area = targets.memory.image(waiter.slot.program)?;
    let (record, root) = (area.record_of(at)?, NodeAddr(area.get(at.offset() + node::ROOT)));
    let nth = area.get(waiter.slot.offset() + record + record::ENTERED);
    let program = targets.programs.get(&waiter.slot.program)?;
    let (syscall, frames) = program.call_at(at, root, waiter.registers.ax as u32)?;
    let (row, _) = draft.table.row(image_id, syscall, &frames);
    let ended = draft.table.rows.get(row as usize).map_or(0, |row| row.counts.calls);
    let nth_of_row = nth.saturating_add(program.calls_of_others(area, at, waiter.slot.index, ended));
    let counted = |word: u64| area.get(waiter.slot.offset() + record + word);
    let mean_cycles = counted(record::CYCLES) as f64 / counted(record::RETURNED).max(1) as f64;
    Some(Entered { row, nth, nth_of_row, record, mean_cycles, syscall, node: at, root })
}

fn whole_stack(
    targets: &mut Targets,
    knowledge: &mut FileKnowledge,
    draft: &mut DraftRecording,
    waiter: &Waiter,
    (entered, due): (&Entered, Due),
) -> Option<u32> {
    let program = targets.programs.get(&waiter.slot.program).filter(|_| draft.table.has_room_for_stacks())?;
    let site = program.site_of(entered.root)?;
    let (placed, complete) = match draft.windows.unwound.take() {
        Some(last) => (last.frames, last.complete),
        None => {
            let (placed, complete) = unwind_now(targets, knowledge, waiter, site)?;
            if entered.nth == 1 {
                trunk::renew(targets, waiter, entered.node, site, (&placed, complete));
            }
            (placed, complete)
        }
    };
    let program = targets.programs.get_mut(&waiter.slot.program)?;
    let frames = with_scripts(program, &mut knowledge.symbols, waiter, &placed);
    let line = knowledge.symbols.script_line(&frames);
    let idle = idle_in(program, &mut knowledge.symbols, waiter, (entered, &placed));
    let is_interpreter = |f| knowledge.symbols.is_interpreter(f);
    // A context's first call is one of hundreds when a program starts, and its object says little of the row.
    let object = (entered.nth_of_row > 1).then(|| object_of(&mut draft.windows, waiter, entered)).flatten();
    let look = Look {
        object: object.as_deref(),
        of_object: matches!(due, Due::Within | Due::Wait),
        frames: &frames,
        complete,
        line,
        is_interpreter: &is_interpreter,
    };
    if let Some(line) = line.or(idle.and_then(|idle| idle.line)) {
        draft.table.sampled_calls.note(entered.row, waiter.tid as u32, entered.nth, line);
    }
    if idle.is_some() {
        expect_waits(targets, draft, waiter, entered);
    }
    (!frames.is_empty()).then(|| draft.table.whole_stack(entered.row, entered.nth_of_row, &look))
}

/// Returns what a thread waits for if this call can wait, and the thread is idle in Go's scheduler. Other calls of a service
/// are many, and their frames need no names yet.
fn idle_in(
    program: &mut Program,
    symbols: &mut Symbols,
    waiter: &Waiter,
    (entered, placed): (&Entered, &[PlacedFrame]),
) -> Option<Idle> {
    entered.syscall.signature().filter(|call| call.waits || call.may_block)?;
    idle(program, symbols, waiter, placed)
}

/// Returns the name of the object that a waiting thread's call is about.
fn object_of(windows: &mut OpenWindows, waiter: &Waiter, entered: &Entered) -> Option<String> {
    windows.budget.object(waiter.tid, entered.syscall.signature()?, &waiter.args())
}

/// Samples the script line of a call at which a window was due but does not open: only the stack tells the line, and a
/// window would cost more.
fn look_at_line(
    targets: &mut Targets,
    knowledge: &mut FileKnowledge,
    draft: &mut DraftRecording,
    waiter: &Waiter,
    (entered, due): (&Entered, Due),
    run_ns: u64,
) {
    let octave = octave_of(entered);
    if due == Due::Within && is_object_known(draft, waiter, entered) {
        return;
    }
    // Number of samples that each row with enough calls gets in any case, even if start-up has spent the budget.
    const SURE: u64 = 8;
    const CRUMB: u8 = 4;
    let row = draft.table.rows.get(entered.row as usize);
    // Every row gets one sample, so that each has a caller.
    let few = if octave >= CRUMB || due == Due::Wait { SURE } else { 1 };
    let known = match due {
        Due::Wait => draft.table.sampled_calls.asked_of(entered.row),
        _ => row.map_or(u64::MAX, |r| r.lines.iter().map(|l| l.looks).sum()),
    };
    let sure = known < few;
    if !sure && !draft.windows.budget.look_affordable(octave, run_ns) {
        return;
    }
    let is_first = draft.table.rows.get(entered.row as usize).is_some_and(|r| r.lines.is_empty());
    if is_first || targets.programs.get_mut(&waiter.slot.program).is_some_and(|p| tells_lines(p, waiter.tid, run_ns)) {
        let cpu = own_cpu();
        whole_stack(targets, knowledge, draft, waiter, (entered, due));
        draft.windows.budget.spend_on_look(octave, own_cpu().saturating_sub(cpu));
    }
}

/// Returns true if a call is about an object with enough samples that have a stack. If so, counts the call as one more
/// sample about it: that shows how many of the row's calls are about it, and takes a tenth of the time of a stack.
fn is_object_known(draft: &mut DraftRecording, waiter: &Waiter, entered: &Entered) -> bool {
    const ENOUGH: u64 = 8;
    let cpu = own_cpu();
    let object = object_of(&mut draft.windows, waiter, entered);
    let Some(row) = draft.table.rows.get_mut(entered.row as usize) else { return false };
    let is_known = row.samples.looks(object.as_deref()) >= ENOUGH;
    let octave = octave_of(entered);
    if is_known {
        row.samples.note(octave.into(), object.as_deref(), None);
    }
    draft.windows.budget.spend_on_look(octave, own_cpu().saturating_sub(cpu));
    is_known
}

/// Returns true if samples of a program's stacks tell lines or functions of scripts, or soon may. Samples of a compiler
/// that keeps no map of its functions tell nothing. A map that is begun late is found by a later search.
fn names_scripts(program: &mut Program, run_ns: u64) -> bool {
    if !program.contexts.names_compiled && program.space.may_run_scripts() {
        program.contexts.names_compiled = tells_lines(program, program.pid, run_ns);
    }
    program.contexts.names_compiled && program.space.may_run_scripts()
}

/// Returns true if the stack of `tid` may tell a script's line or function. It is not enough to check if an earlier
/// stack had one: a program that spent the budget before its first scripted call would get none.
fn tells_lines(program: &mut Program, tid: i32, run_ns: u64) -> bool {
    // Searching for a map that does not exist at each of a program's many calls would cost more than everything else.
    const AGAIN_NS: u64 = 5_000_000;
    if program.space.runs_scripts() {
        return true;
    }
    if !program.space.may_run_scripts() {
        return false;
    }
    if program.contexts.looked_for_map_ns.is_some_and(|last| run_ns < last.saturating_add(AGAIN_NS)) {
        return false;
    }
    program.contexts.looked_for_map_ns = Some(run_ns);
    program.space.has_names_on_stack(tid)
}

/// Samples the stack of a context's first call, which was just unwound, if no window opens there.
pub(crate) fn look_at_first(
    targets: &mut Targets,
    symbols: &mut Symbols,
    draft: &mut DraftRecording,
    waiter: &Waiter,
    node: NodeAddr,
    stack: Unwound<'_>,
) {
    if !draft.table.has_room_for_stacks() {
        return;
    }
    let (placed, complete) = stack;
    let Some(program) = targets.programs.get_mut(&waiter.slot.program) else { return };
    let frames = with_scripts(program, symbols, waiter, placed);
    let line = symbols.script_line(&frames);
    let Some(entered) = entered(targets, draft, waiter, node) else { return };
    let Some(program) = targets.programs.get_mut(&waiter.slot.program) else { return };
    let idle = idle_in(program, symbols, waiter, (&entered, placed));
    if idle.is_some() && may_hold_node(node.offset()) {
        expect_waits(targets, draft, waiter, &entered);
        // This call is counted only after the answer, and nothing is planned yet.
        if let Some(area) = targets.memory.image(waiter.slot.program) {
            area.set(node.offset() + node::WINDOW_AT, entered.nth.saturating_add(2));
        }
    }
    let is_interpreter = |f| symbols.is_interpreter(f);
    let look =
        Look { object: None, of_object: false, frames: &frames, complete, line, is_interpreter: &is_interpreter };
    draft.table.whole_stack(entered.row, entered.nth_of_row.max(1), &look);
}
