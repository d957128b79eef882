//! Windows: a few consecutive calls of a thread looked at whole, before and after each.

use super::engine::Engine;
use super::program::Waiter;
use super::sys;
use crate::procfs;
use crate::sys::{own_cpu, read_memory};
use crate::table::Look;
use crate::windows::{RawCall, RawWindow, Windows, argument_data};
use std::time::Duration;
use systoll_hooks::layout::{IMAGE, image, may_hold_node, node, record, slot};
use systoll_model::{Moment, Sysno};
use systoll_symbols::{PlacedFrame, RawFrame};

/// A window that is open in a thread.
pub(super) struct Open {
    window: RawWindow,
    /// The record of the call under way, and its cycles and waited cycles when the call began.
    under_way: Option<(u64, u64, u64)>,
}

/// A waiting thread's stack, as it was unwound for the question before: a context that is seen for
/// the first time is most often looked at right away.
pub(super) struct LastUnwound {
    pub(super) tid: i32,
    /// Stack pointer at the hook.
    pub(super) sp: u64,
    /// The answer.
    pub(super) node: u64,
    pub(super) frames: Vec<PlacedFrame>,
    pub(super) complete: bool,
}

impl LastUnwound {
    /// Whether it is that of a thread that asks about a call counted at `node`.
    pub(super) fn is_of(&self, waiter: &Waiter, node: u64) -> bool {
        (self.tid, self.sp, self.node) == (waiter.tid, waiter.sp, node)
    }
}

/// Frames and their places, and whether they are all.
pub(super) type Unwound<'a> = (&'a [PlacedFrame], bool);

/// What a thread is about to call, from where.
struct Entered {
    row: u32,
    nth: u64,
    /// Offset of the thread's record.
    record: u64,
    syscall: Sysno,
    /// The root of its tree.
    root: u64,
}

impl Engine {
    /// A call at which a window may open, or that belongs to an open one.
    pub(super) fn on_window_entry(&mut self, id: u32, index: u64, waiter: &Waiter, at: u64) {
        let began = sys::now();
        self.look_for_main(id, index, at);
        let Some(entered) = self.entered(id, index, waiter, at) else { return self.want(id, index, false) };
        let run_ns = self.at(began);
        let is_open = self.open.contains_key(&(id, index));
        let octave = self.open.get(&(id, index)).map_or(entered.nth.max(1).ilog2() as u8, |o| o.window.octave);
        let opens = if is_open {
            self.windows.due(&mut self.table, entered.row, entered.nth);
            false
        } else {
            self.windows.opens(&mut self.table, entered.row, entered.nth, run_ns)
        };
        self.plan_next(id, at, &entered);
        if !is_open && !opens {
            self.want(id, index, false);
            self.spend(octave, began);
            return self.look_at_line(id, waiter, &entered, run_ns);
        }
        if opens {
            let window = RawWindow {
                image: self.table.rows.get(entered.row as usize).map_or(0, |r| r.image),
                thread: self.ordinal(id, index),
                row: entered.row,
                octave,
                calls: Vec::new(),
            };
            self.table.thread_named(window.image, waiter.tid as u32, &procfs::comm(waiter.tid));
            self.open.insert((id, index), Open { window, under_way: None });
        }
        self.note_entry(id, index, waiter, (&entered, octave), run_ns);
        self.want(id, index, true);
        self.spend(octave, began);
    }

    fn note_entry(&mut self, id: u32, index: u64, waiter: &Waiter, (entered, octave): (&Entered, u8), run_ns: u64) {
        let first = self.open.get(&(id, index)).is_none_or(|o| o.window.calls.iter().all(|c| c.row != entered.row));
        let stack = if first { self.whole_stack(id, waiter, entered) } else { None };
        let (args, tid) = (waiter.args(), waiter.tid);
        let signature = entered.syscall.signature();
        let bound = self.windows.bytes();
        let read = |address: u64, buffer: &mut [u8]| read_memory(tid, address, buffer);
        let data = signature.map_or_else(Vec::new, |s| argument_data(s, Moment::Entry, &args, None, bound, &read));
        let fd = signature.and_then(|s| self.windows.descriptor(tid, s, &args));
        let base = image::SLOTS + index * slot::SIZE + entered.record;
        let Some(area) = self.memory.image(id) else { return };
        let (cycles, waited) = (area.get(base + record::CYCLES), area.get(base + record::WAITED));
        // What a loader maps it does not give back, and to ask takes longer than the rest.
        let begins = octave == 0 && self.programs.get(&id).is_some_and(|p| !p.main_seen);
        let counts_faults = signature.filter(|_| !begins);
        let taken_for_us = self.programs.get(&id).filter(|p| p.pid == tid).map_or(0, |p| p.faults);
        let Some(open) = self.open.get_mut(&(id, index)) else { return };
        open.under_way = Some((entered.record, cycles, waited));
        open.window.calls.push(RawCall {
            row: entered.row,
            nth: entered.nth,
            args,
            data,
            fd,
            result: None,
            entry_ns: run_ns,
            elapsed_ns: 0,
            waited_ns: None,
            signals_before: 0,
            faults: counts_faults.and_then(|s| Windows::faults(tid, s)).map(|all| all.saturating_sub(taken_for_us)),
            stack,
        });
    }

    /// The call has returned.
    pub(super) fn on_window_return(&mut self, id: u32, index: u64, waiter: &Waiter) {
        let began = sys::now();
        let clock = self.clock();
        let bound = self.windows.bytes();
        let Some(area) = self.memory.image(id) else { return };
        let base = image::SLOTS + index * slot::SIZE;
        let Some(open) = self.open.get_mut(&(id, index)) else { return self.want(id, index, false) };
        let (Some((at, cycles, waited)), Some(call)) = (open.under_way.take(), open.window.calls.last_mut()) else {
            return;
        };
        let since = |field: u64, before: u64| area.get(base + at + field).saturating_sub(before) as f64;
        call.result = Some(waiter.registers.ax as i64);
        call.elapsed_ns = clock.ns(since(record::CYCLES, cycles));
        let has_rseq = area.get(base + slot::RSEQ) != 0;
        call.waited_ns = has_rseq.then(|| clock.ns(since(record::WAITED, waited)));
        let syscall = self.table.rows.get(call.row as usize).map(|r| r.syscall);
        if let Some(signature) = syscall.and_then(Sysno::signature) {
            let read = |address: u64, buffer: &mut [u8]| read_memory(waiter.tid, address, buffer);
            call.data.extend(argument_data(signature, Moment::Exit, &call.args, call.result, bound, &read));
        }
        let octave = open.window.octave;
        if self.windows.full(open.window.calls.len()) {
            self.close_window(id, index);
            self.want(id, index, false);
        }
        self.spend(octave, began);
    }

    /// Accounts for a window's work since `began`.
    fn spend(&mut self, octave: u8, began: u64) {
        self.windows.spend_at_most(octave, Duration::from_nanos(sys::now().saturating_sub(began)));
    }

    /// Keeps what a thread's open window has.
    pub(super) fn close_window(&mut self, id: u32, index: u64) {
        if let Some(open) = self.open.remove(&(id, index)) {
            self.windows.keep(&mut self.table, open.window);
        }
    }

    /// Keeps what all open windows of a program have.
    pub(super) fn close_windows(&mut self, id: u32) {
        for (_, index) in self.open.keys().copied().filter(|(program, _)| *program == id).collect::<Vec<_>>() {
            self.close_window(id, index);
        }
    }

    /// Whether the thread is to ask at every call.
    fn want(&self, id: u32, index: u64, wanted: bool) {
        if let Some(area) = self.memory.image(id) {
            area.set(image::SLOTS + index * slot::SIZE + slot::WANT, u64::from(wanted));
        }
    }

    /// Lets the next place picked for a row be asked for, by each thread's own count.
    fn plan_next(&self, id: u32, at: u64, entered: &Entered) {
        let picks = self.table.rows.get(entered.row as usize).and_then(|r| r.picks.first().copied());
        let program = self.programs.get(&id);
        let seed = program.and_then(|p| p.seeds.get(&at));
        let octave = entered.nth.max(1).ilog2();
        if let Some(seed) = seed {
            seed.note_asked(octave);
        }
        // Nothing new is to be seen in the thousandth short program of a kind.
        let seed = seed.filter(|_| program.is_some_and(|p| !p.is_looked_at()));
        let later = || seed.map_or_else(|| 1 << (octave + 1).min(63), |seed| seed.octave_to_ask(octave + 1));
        let next = picks.unwrap_or_else(later);
        if let Some(area) = self.memory.image(id) {
            area.set(at.wrapping_sub(IMAGE) + node::WINDOW_AT, next);
        }
    }

    /// What a thread is about to call, by the node at address `at` it is counted at.
    fn entered(&mut self, id: u32, index: u64, waiter: &Waiter, at: u64) -> Option<Entered> {
        let image_id = self.image_of_slot(id, index)?;
        let area = self.memory.image(id)?;
        let offset = at.wrapping_sub(IMAGE);
        may_hold_node(offset).then_some(())?;
        let (record, root) = (area.get(offset + node::RECORD), area.get(offset + node::ROOT));
        (slot::RECORDS..=slot::SIZE - record::SIZE).contains(&record).then_some(())?;
        let nth = area.get(image::SLOTS + index * slot::SIZE + record + record::ENTERED);
        let program = self.programs.get(&id)?;
        let site = program.site_of(root);
        let number = site.and_then(|(f, s)| program.files.get(f)?.code.blob.sites.get(s)?.number);
        let syscall = Sysno::made(number.unwrap_or(waiter.registers.ax as u32));
        let leaf = || site.and_then(|(f, s)| program.leaf(f, s)).into_iter().collect::<Vec<RawFrame>>();
        let frames = program.nodes.get(&at).map_or_else(leaf, |frames| frames.to_vec());
        let (row, _) = self.table.row(image_id, syscall, &frames);
        Some(Entered { row, nth, record, syscall, root })
    }

    fn whole_stack(&mut self, id: u32, waiter: &Waiter, entered: &Entered) -> Option<u32> {
        let program = self.programs.get_mut(&id).filter(|_| self.table.has_room_for_stacks())?;
        let site = program.site_of(entered.root)?;
        let (placed, complete) = match self.unwound.take() {
            Some(last) => (last.frames, last.complete),
            None => program.unwind(&mut self.symbols, waiter, site),
        };
        let frames = program.with_scripts(&mut self.symbols, waiter, &placed);
        let line = self.symbols.script_line(&frames);
        let is_interpreter = |f| self.symbols.is_interpreter(f);
        let look = Look { frames: &frames, complete, line, is_interpreter: &is_interpreter };
        (!frames.is_empty()).then(|| self.table.whole_stack(entered.row, entered.nth, &look))
    }

    /// Where no window is opened at a call it was due at: which line of a script makes it, only
    /// a look tells, and a window would cost more.
    fn look_at_line(&mut self, id: u32, waiter: &Waiter, entered: &Entered, run_ns: u64) {
        let octave = entered.nth.max(1).ilog2() as u8;
        let scripted = self.programs.get(&id).is_some_and(|p| p.space.runs_scripts());
        // Whatever the start-up has spent: some looks at each row that is more than a crumb.
        const SURE: u64 = 8;
        const CRUMB: u8 = 4;
        let row = self.table.rows.get(entered.row as usize);
        let sure = octave >= CRUMB && row.is_some_and(|r| r.lines.iter().map(|l| l.looks).sum::<u64>() < SURE);
        if scripted && (sure || self.windows.look_affordable(octave, run_ns)) {
            let cpu = own_cpu();
            self.whole_stack(id, waiter, entered);
            self.windows.spend_on_look(octave, own_cpu().saturating_sub(cpu));
        }
    }

    /// Notes the script's line at a context's first call, by the stack just unwound.
    pub(super) fn look_at_script(&mut self, id: u32, index: u64, waiter: &Waiter, node: u64, stack: Unwound<'_>) {
        let (placed, complete) = stack;
        let Some(program) = self.programs.get_mut(&id) else { return };
        let frames = program.with_scripts(&mut self.symbols, waiter, placed);
        let Some(line) = self.symbols.script_line(&frames).filter(|_| self.table.has_room_for_stacks()) else {
            return;
        };
        let Some(entered) = self.entered(id, index, waiter, node) else { return };
        let is_interpreter = |f| self.symbols.is_interpreter(f);
        let look = Look { frames: &frames, complete, line: Some(line), is_interpreter: &is_interpreter };
        self.table.whole_stack(entered.row, 1, &look);
    }

    /// A thread's number within the recording.
    fn ordinal(&mut self, id: u32, index: u64) -> u32 {
        let next = &mut self.next_ordinal;
        *self.ordinals.entry((id, index)).or_insert_with(|| {
            *next += 1;
            *next - 1
        })
    }
}
