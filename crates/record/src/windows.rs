//! Decides when windows open and which are kept, and reads the data to which arguments point.

use crate::arguments::{argument_data, string};
use crate::backend::WindowPolicy;
use crate::ledger::Ledger;
use crate::procfs;
use crate::raw_window::{EnteredCall, Opener, RawCall, RawWindow};
use crate::request_windows::{RequestWindows, forget_contents};
use crate::sockets::Sockets;
use crate::spent::Spent;
use crate::sys::{own_cpu, read_memory};
use crate::table::{ImageId, RawRow, Table};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use systoll_model::{ArgKind, Moment, Random, Signature, object_of};
use systoll_price::FaultAndSwitch;

/// First octave that gets two windows, since a row's newest octave has half of its calls.
const TWO_FROM: u32 = 5;
/// First octave that gets windows even if the budget is spent, and the number that each octave gets. On a busy machine,
/// other programs' time slices had used up a short program's budget, and a call made 8,000 times was never sampled.
const IN_ANY_CASE: (u8, u8) = (8, 4);
/// First octave in which a row with few windows gets one even if the budget is spent and its octave has had all of
/// [`IN_ANY_CASE`]; the number of windows that are few; and the most such windows of a run. A Node program's 6,000 stats of
/// one file, made by libuv's pool, were never sampled in 4 of 16 runs: the start-up had used up the budget, and calls of
/// futex had the octaves' windows. With one window a row, its test failed twice in six attempts beside other tests.
const FEW_IN_ANY_CASE: (u8, usize, u64) = (11, 8, 64);
/// Time that samples of script lines outside windows may take, as a multiple of the windows' budget: an interpreter's
/// start-up has hundreds of contexts, and the program's most frequent calls come after it.
const LOOKS_SHARE: f64 = 2.0;
/// Duration of work on a window above which it may have been interrupted.
const SUSPICIOUS: Duration = Duration::from_micros(50);
/// Number of short questions after which the processor time is read, so that they are not charged to a window.
const SHORT_QUESTIONS: u32 = 16;
/// Calls that give memory back; the next constant has calls that map it.
const GIVES_BACK: [&str; 3] = ["brk", "munmap", "madvise"];
const MAPS: [&str; 2] = ["mmap", "mremap"];
/// Number of a row's calls from which on its page faults, or its waits, are worth a price.
const HABIT: u64 = 100;
/// Number of calls of a steady program that allows one question. A Ruby program with threads and fibers asks 800
/// questions in its first two seconds, most about new contexts; 43 places at which calls are then sampled three times in
/// each octave asked 90 for each million calls. With 50,000 it still asked 30: questions about rare places come on top.
const CALLS_PER_QUESTION: u64 = 100_000;
/// First octave of calls that a steady program may leave out: a place has had some 24 samples by then.
const MAY_BE_LEFT_OUT: u32 = 10;
/// Number of octaves left out at once where threads ask too often. With one, the Ruby program asked 60 questions for each
/// million calls.
const LEFT_OUT: u32 = 2;
/// Windows kept of each row if requests are to be reported, at most.
const KEPT_FOR_REQUESTS: usize = 256;
/// Number of sampled calls that must have waited for a context switch to be priced; fewer are no basis for an estimate.
const WAITS: usize = 8;

/// Bytes of the largest address of a socket that is read, that of IPv6.
const SOCKET_ADDRESS: usize = 28;

/// All windows of a run, and their budget.
pub(crate) struct Windows {
    policy: WindowPolicy,
    random: Random,
    kept: Vec<Option<RawWindow>>,
    free: Vec<u32>,
    spent: Spent,
    /// Time spent on samples of script lines outside windows.
    looked: Spent,
    /// Processor time of this thread when it was last read.
    cpu: Duration,
    /// Number of questions answered since the processor time was last read.
    answered: u32,
    /// Number of questions answered since the program counts as steady; `None` before.
    steady_questions: Option<u64>,
    /// Number of calls that are known to have been made since: those between two questions of one thread at one place.
    calls_between: u64,
    pub(crate) opened: u64,
    /// Number of windows opened, by octave.
    of_octave: [u8; 64],
    pub(crate) refused: u64,
    /// Number of windows opened over budget as some of the first of their rows.
    over_budget: u64,
    /// True while watching has used more than its share of processor time.
    is_overspent: bool,
    sockets: Sockets,
    /// Questions that expensive calls asked about objects, over the whole run.
    pub(crate) ledger: Ledger,
    /// Windows by which requests are recognised; `None` if requests are not to be reported.
    pub(crate) requests: Option<RequestWindows>,
}

impl Windows {
    pub(crate) fn new(policy: WindowPolicy, seed: u64) -> Self {
        Self {
            requests: policy.tells_requests.then(RequestWindows::default),
            policy,
            random: Random::new(seed),
            kept: Vec::new(),
            free: Vec::new(),
            spent: Spent::default(),
            looked: Spent::default(),
            cpu: own_cpu(),
            answered: 0,
            steady_questions: None,
            calls_between: 0,
            opened: 0,
            of_octave: [0; 64],
            refused: 0,
            over_budget: 0,
            is_overspent: false,
            sockets: Sockets::default(),
            ledger: Ledger::default(),
        }
    }

    /// Returns true if a window opens at the `nth` call of `row`, whose thread has none open; the run has lasted
    /// `run_ns`.
    pub(crate) fn opens(&mut self, table: &mut Table, row: u32, nth: u64, run_ns: u64) -> bool {
        self.due(table, row, nth) && self.opens_one(table, row, nth, run_ns)
    }

    /// Decides if a window opens at the `nth` call of a row, which was drawn for one. Returns true if the budget allows
    /// it.
    pub(crate) fn opens_one(&mut self, table: &Table, row: u32, nth: u64, run_ns: u64) -> bool {
        let octave = nth.max(1).ilog2() as u8;
        if !self.affordable(octave, run_ns) {
            let (from, few, most) = FEW_IN_ANY_CASE;
            let has_few = || table.rows.get(row as usize).is_some_and(|row| row.windows.len() < few);
            if octave < from || self.over_budget >= most || self.budget(run_ns).is_zero() || !has_few() {
                self.refused += 1;
                return false;
            }
            self.over_budget += 1;
        }
        self.note_opened(octave);
        self.used();
        true
    }

    /// Returns true if the budget of a run that has lasted `run_ns` allows for another window of `octave`.
    pub(crate) fn affordable(&self, octave: u8, run_ns: u64) -> bool {
        let budget = self.budget(run_ns);
        let few = self.of_octave.get(usize::from(octave)).is_some_and(|opened| *opened < IN_ANY_CASE.1);
        few && octave >= IN_ANY_CASE.0 && !budget.is_zero() || !self.is_overspent && self.spent.allows(octave, budget)
    }

    /// Returns true if the budget allows for another sample of a script's line outside windows.
    pub(crate) fn look_affordable(&self, octave: u8, run_ns: u64) -> bool {
        !self.is_overspent && self.looked.allows(octave, self.budget(run_ns).mul_f64(LOOKS_SHARE))
    }

    /// Stops sampling while watching has used more than its share of processor time, or lets it go on.
    pub(crate) fn set_overspent(&mut self, is_overspent: bool) {
        self.is_overspent = is_overspent;
    }

    /// Returns true while watching has used more than its share of processor time.
    pub(crate) fn is_overspent(&self) -> bool {
        self.is_overspent
    }

    /// Returns the time that a run of `run_ns` may spend on sampling.
    pub(crate) fn budget(&self, run_ns: u64) -> Duration {
        self.policy.allowance + Duration::from_nanos(run_ns).mul_f64(self.policy.share)
    }

    /// Draws the number of the call after the `nth` at which a row is sampled again: one in each part of an octave. It
    /// is drawn in advance, so that no thread has to ask at the beginning of an octave.
    pub(crate) fn place_after(&mut self, nth: u64) -> u64 {
        self.place_in(nth, parts_of)
    }

    /// Draws the number of the call after the `nth` at which a row that serves several lines is sampled again. It has
    /// more samples, so that objects that few of its calls are about have some too.
    pub(crate) fn place_of_shared(&mut self, nth: u64) -> u64 {
        if self.asks_too_often() { self.place_after(nth) } else { self.place_in(nth, parts_of_shared) }
    }

    fn place_in(&mut self, nth: u64, parts_of: fn(u32) -> u64) -> u64 {
        let octave = nth.max(1).ilog2();
        if octave >= MAY_BE_LEFT_OUT && self.asks_too_often() {
            return 1u64.checked_shl(octave + 1 + LEFT_OUT).map_or(u64::MAX, |start| start + self.random.below(start));
        }
        let (octave, part) = match part_of(nth, parts_of(octave)) + 1 {
            part if part < parts_of(octave) => (octave, part),
            _ => (octave + 1, 0),
        };
        let Some(start) = 1u64.checked_shl(octave) else { return u64::MAX };
        // After the first call, the second tells most, so it is always drawn.
        let places = if octave == 1 { 1 } else { start / parts_of(octave) };
        start + part * places + self.random.below(places)
    }

    /// Notes that a thread asks at a place, so many calls after it last did.
    pub(crate) fn note_calls_between(&mut self, calls: u64) {
        self.calls_between = self.calls_between.saturating_add(calls);
    }

    /// Notes that the program counts as steady from now on: its threads' questions depend on their number of calls.
    pub(crate) fn be_steady(&mut self) {
        if self.steady_questions.is_none() {
            (self.steady_questions, self.calls_between) = (Some(0), 0);
        }
    }

    /// Returns true if the threads of a steady program have asked more questions than their calls allow.
    fn asks_too_often(&self) -> bool {
        self.steady_questions.is_some_and(|questions| questions > self.calls_between / CALLS_PER_QUESTION)
    }

    /// Draws a number below `bound`.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.random.below(bound)
    }

    /// Returns true if a window may open at a drawn place; in the middle part of an octave only the stack is sampled.
    pub(crate) fn is_for_window(nth: u64) -> bool {
        part_of(nth, parts_of(nth.max(1).ilog2())) != 1
    }

    /// Returns true if a row's `nth` call is the first to be sampled in its part of an octave, and notes that. The
    /// further ones are of rows that serve several lines.
    pub(crate) fn begins_part(row: &mut RawRow, nth: u64) -> bool {
        let part = |nth: u64| nth.checked_ilog2().map(|octave| (octave, part_of(nth, parts_of(octave))));
        let begins = part(row.part_begun) != part(nth);
        if begins {
            row.part_begun = nth;
        }
        begins
    }

    /// Returns the name of the object that a call is about, which thread `tid` is about to make.
    pub(crate) fn object(&mut self, tid: i32, signature: &Signature, args: &[u64; 6]) -> Option<String> {
        let read = |address: u64, buffer: &mut [u8]| read_memory(tid, address, buffer);
        let bytes = |arg, kind| {
            let at = *args.get(usize::from(arg))?;
            if kind == ArgKind::Path {
                return Some(string(at, &read).0.into());
            }
            let mut bytes = vec![0; SOCKET_ADDRESS];
            let got = read(at, &mut bytes);
            bytes.truncate(got);
            Some(bytes.into())
        };
        object_of(signature, args, bytes, || self.descriptor(tid, signature, args))
    }

    /// Returns true if a window is due at the `nth` call of `row`. Draws the next octave's places when it begins.
    pub(crate) fn due(&mut self, table: &mut Table, row: u32, nth: u64) -> bool {
        let octave = nth.max(1).ilog2();
        let start = 1u64 << octave;
        let picks = &mut table.rows[row as usize].picks;
        if nth == start {
            let windows = if octave >= TWO_FROM { 2 } else { 1 };
            *picks = (0..windows).map(|_| start + self.random.below(start)).collect();
            picks.sort_unstable();
            picks.dedup();
        }
        // A call that was drawn while the thread had another window open is replaced by the next one.
        let due = picks.first().is_some_and(|at| *at <= nth);
        if due {
            picks.remove(0);
        }
        due
    }

    /// Accounts for work on a window of `octave` that took `elapsed`. On a busy machine much of that may be other
    /// programs' time, and would leave a program without windows; but reading this thread's processor time takes a good
    /// part of the time of the work. Therefore that time is read only if `elapsed` is suspiciously long, and then
    /// bounds the time accounted for.
    pub(crate) fn spend_at_most(&mut self, octave: u8, elapsed: Duration) {
        let own = if elapsed < SUSPICIOUS { elapsed } else { elapsed.min(self.used()) };
        self.spend(octave, own);
    }

    /// Notes that a question of any kind was answered within `elapsed`, so that the time for it is not charged to a
    /// later window that is interrupted.
    pub(crate) fn note_answered(&mut self, elapsed: Duration) {
        self.answered += 1;
        self.steady_questions = self.steady_questions.map(|questions| questions + 1);
        if elapsed >= SUSPICIOUS || self.answered >= SHORT_QUESTIONS {
            self.used();
        }
    }

    /// Returns the processor time this thread has used since the last call of this function.
    fn used(&mut self) -> Duration {
        self.answered = 0;
        let now = own_cpu();
        now.saturating_sub(std::mem::replace(&mut self.cpu, now))
    }

    /// Accounts for time spent on a window of `octave`.
    pub(crate) fn spend(&mut self, octave: u8, time: Duration) {
        self.spent.add(octave, time);
    }

    /// Accounts for time spent on a sample outside windows.
    pub(crate) fn spend_on_look(&mut self, octave: u8, time: Duration) {
        self.looked.add(octave, time);
    }

    /// Returns true if the budget allows for another window of any octave.
    pub(crate) fn has_room(&self, run_ns: u64) -> bool {
        !self.is_overspent && self.spent.allows(u8::MAX, self.budget(run_ns))
    }

    /// Notes a window that a thread has opened by itself.
    pub(crate) fn note_opened(&mut self, octave: u8) {
        self.opened += 1;
        if let Some(opened) = self.of_octave.get_mut(usize::from(octave)) {
            *opened = opened.saturating_add(1);
        }
    }

    /// Notes the name of the descriptor that a process's call uses.
    pub(crate) fn seen(&mut self, pid: i32, signature: &Signature, name: &Arc<str>) {
        // A socket that is only being created has no ends yet.
        if signature.transfers || signature.name.starts_with("accept") {
            self.sockets.seen(pid, name);
        }
    }

    /// Returns the name of the descriptor that a call of a window uses.
    pub(crate) fn descriptor(&mut self, pid: i32, signature: &Signature, args: &[u64; 6]) -> Option<Arc<str>> {
        let fd = *args.get(signature.fd_arg()?)? as i32;
        if fd < 0 {
            return None;
        }
        let target = procfs::fd_target(pid, fd)?;
        self.seen(pid, signature, &target);
        Some(target)
    }

    /// Returns the names of sockets, by the names that [`Windows::descriptor`] returned for the sockets.
    pub(crate) fn socket_names(&self) -> HashMap<String, Arc<str>> {
        self.sockets.names()
    }

    /// Returns the number of page faults of thread `tid` so far if the call maps memory or gives it back: memory that
    /// was given back may have to be faulted in again.
    pub(crate) fn faults(tid: i32, signature: &Signature) -> Option<u64> {
        let maps = GIVES_BACK.contains(&signature.name) || MAPS.contains(&signature.name);
        maps.then(|| procfs::minor_faults(tid))?
    }

    /// Opens a window at a call of `row`.
    pub(crate) fn open(table: &mut Table, row: u32, octave: u8, by: Opener) -> RawWindow {
        let Opener { thread, tid, process } = by;
        let image = table.rows.get(row as usize).map_or(ImageId::FIRST, |r| r.image);
        table.name_thread(image, tid as u32, &procfs::comm(tid));
        let process = table.process(image, process);
        RawWindow { image, process, thread, row, octave, tells_requests: false, calls: Vec::new() }
    }

    /// Returns a window's call that is about to be made, with the data to which its arguments point.
    pub(crate) fn entered(&mut self, call: &EnteredCall, stack: Option<u32>) -> RawCall {
        let EnteredCall { tid, row, nth, signature, args, run_ns } = *call;
        let read = |address: u64, buffer: &mut [u8]| read_memory(tid, address, buffer);
        let bound = self.bytes();
        let data = signature.map_or_else(Vec::new, |s| argument_data(s, Moment::Entry, &args, None, bound, &read));
        RawCall {
            row,
            nth,
            args,
            data,
            fd: signature.and_then(|s| self.descriptor(tid, s, &args)),
            result: None,
            entry_ns: run_ns,
            elapsed_ns: 0,
            waited_ns: None,
            signals_before: 0,
            faults: None,
            stack,
            stands_for: 0,
            asked: None,
            request: None,
            begins_request: false,
        }
    }

    pub(crate) fn full(&self, calls: usize) -> bool {
        calls >= self.policy.calls
    }

    /// Returns true if a window has no more calls to record.
    pub(crate) fn is_over(&self, window: &RawWindow) -> bool {
        if window.tells_requests { RequestWindows::is_over(window) } else { self.full(window.calls.len()) }
    }

    /// Returns true if requests are to be reported.
    pub(crate) fn tells_requests(&self) -> bool {
        self.requests.is_some()
    }

    /// Returns true if a window that tells requests may open in a run that has lasted `run_ns`.
    pub(crate) fn request_is_due(&self, run_ns: u64) -> bool {
        self.requests.as_ref().is_some_and(|requests| requests.is_due(run_ns))
    }

    /// Decides if a window opens that tells requests, in a run that has lasted `run_ns`.
    pub(crate) fn opens_for_request(&mut self, run_ns: u64) -> bool {
        let Some(requests) = self.requests.as_mut().filter(|requests| requests.is_due(run_ns)) else { return false };
        requests.note_opened(run_ns);
        self.opened += 1;
        true
    }

    /// Notes what a call of a window has received, if the window tells requests. `read` reads memory of its process.
    pub(crate) fn received(
        &mut self,
        window: &mut RawWindow,
        signature: &Signature,
        read: &dyn Fn(u64, &mut [u8]) -> usize,
    ) {
        if let (Some(requests), true) = (&mut self.requests, window.tells_requests)
            && let Some(call) = window.calls.last_mut()
        {
            requests.note(call, signature, read);
        }
    }

    /// Removes what the calls of a window have received and sent, if requests are to be told.
    fn forget_contents(&mut self, table: &Table, window: &mut RawWindow) {
        let Some(requests) = &mut self.requests else { return };
        for call in &mut window.calls {
            let syscall = table.rows.get(call.row as usize).map(|row| row.syscall);
            if let Some(signature) = syscall.and_then(|syscall| syscall.signature()) {
                forget_contents(call, signature);
            }
        }
        if window.tells_requests {
            requests.note_ended(&window.calls);
        }
    }

    /// Returns the number of windows kept of each row: more where they tell requests, which differ.
    fn kept_per_row(&self) -> usize {
        if self.requests.is_some() { KEPT_FOR_REQUESTS } else { self.policy.kept_per_row }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.policy.bytes
    }

    /// Keeps a window; if there are too many, drops one that tells less, of its row or of all rows.
    pub(crate) fn keep(&mut self, table: &mut Table, mut window: RawWindow) {
        if window.calls.is_empty() {
            return;
        }
        self.forget_contents(table, &mut window);
        for call in &mut window.calls {
            call.asked = self.ledger.note(table, window.process, call.looked_at());
        }
        let row = window.row as usize;
        if table.rows[row].windows.len() >= self.kept_per_row() {
            // Of many windows that tell requests, any may go: the rest are a sample of all.
            let any = 1 + self.random.below(KEPT_FOR_REQUESTS as u64 - 1) as usize;
            let told = self.requests.is_some().then_some(any);
            let which = told.unwrap_or_else(|| self.least_telling(&table.rows[row].windows, window.octave));
            let dropped = table.rows[row].windows.remove(which);
            self.release(dropped);
        } else if self.kept.len() - self.free.len() >= self.policy.kept {
            self.drop_any(table);
        }
        let id = match self.free.pop() {
            Some(id) => {
                self.kept[id as usize] = Some(window);
                id
            }
            None => {
                self.kept.push(Some(window));
                self.kept.len() as u32 - 1
            }
        };
        table.rows[row].windows.push(id);
    }

    /// Returns the index of the window of a row to drop. The row's first window stays. If two windows are of the same
    /// past octave, the newer one is dropped; otherwise the oldest one besides the first, whose octave is the smallest
    /// part of the row.
    fn least_telling(&self, ids: &[u32], newest: u8) -> usize {
        let octave = |i: usize| self.kept[ids[i] as usize].as_ref().map_or(0, |w| w.octave);
        (2..ids.len()).find(|&i| octave(i) == octave(i - 1) && octave(i) < newest).unwrap_or(1.min(ids.len() - 1))
    }

    fn drop_any(&mut self, table: &mut Table) {
        for _ in 0..64 {
            let id = self.random.below(self.kept.len() as u64) as u32;
            let Some(row) = self.kept[id as usize].as_ref().map(|w| w.row as usize) else { continue };
            if table.rows[row].windows.first() != Some(&id) {
                table.rows[row].windows.retain(|w| *w != id);
                self.release(id);
                return;
            }
        }
    }

    fn release(&mut self, id: u32) {
        self.kept[id as usize] = None;
        self.free.push(id);
    }

    /// Returns the windows kept, in the order they were opened.
    pub(crate) fn all(&self) -> Vec<&RawWindow> {
        let mut all: Vec<_> = self.kept.iter().flatten().collect();
        all.sort_by_key(|window| window.opened_ns());
        all
    }

    /// Takes the windows kept, in the order they were opened, when the run has ended.
    pub(crate) fn take_all(&mut self) -> Vec<RawWindow> {
        let mut all: Vec<_> = std::mem::take(&mut self.kept).into_iter().flatten().collect();
        all.sort_by_key(RawWindow::opened_ns);
        all
    }
}

/// Returns the number of parts into which an octave is divided; a row is sampled once in each part. Octaves with few
/// calls have fewer parts.
fn parts_of(octave: u32) -> u64 {
    match octave {
        0..4 => 1,
        4 => 2,
        _ => 3,
    }
}

/// Returns the same for a row that serves several lines. Until its 32,768th call it is sampled some 700 times, so that an
/// object of a hundredth of its calls has some seven samples; a steady server soon has no more of them than others.
fn parts_of_shared(octave: u32) -> u64 {
    const MANY: u64 = 64;
    match octave {
        5..15 => MANY.min(1 << (octave - 2)),
        _ => parts_of(octave),
    }
}

/// Returns the part of an octave, from 0, in which a row's `nth` call lies, if the octave has so many parts.
fn part_of(nth: u64, parts: u64) -> u64 {
    let nth = nth.max(1);
    let start = 1u64 << nth.ilog2();
    ((nth - start) / (start / parts)).min(parts - 1)
}

/// Returns the further prices that the run needs: that of a page fault if it gave memory back often enough to matter,
/// and that of a context switch if it waited often and windows tell how often. Every program loses its processor in
/// some call.
pub(crate) fn beside(table: &Table, windows: &[&RawWindow]) -> FaultAndSwitch {
    let often = |matters: &dyn Fn(&RawRow) -> bool| table.rows.iter().any(|r| r.counts.calls >= HABIT && matters(r));
    let faults = often(&|r| r.syscall.name().is_some_and(|name| GIVES_BACK.contains(&name)));
    let waited = |ns: Option<u64>| ns.is_some_and(|ns| ns > 0);
    let waits = || windows.iter().flat_map(|w| &w.calls).filter(|c| waited(c.waited_ns)).take(WAITS).count() == WAITS;
    FaultAndSwitch { faults, switches: often(&|r| waited(r.counts.waited_ns)) && waits() }
}

#[cfg(test)]
mod tests;
