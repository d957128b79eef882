//! Collects the calls that every format yields: they are counted and sampled, by threads that come
//! and go.

use crate::call::{Call, Calls, Times, Written};
use crate::decode::{self, Decoded, decode};
use crate::descriptors::Descriptors;
use crate::family::{Family, Forked, Gone, Met, Thread};
use crate::follow;
use crate::frames::{Context, Frames, TracedFrame};
use crate::gaps::Gaps;
use crate::notes::Notes;
use crate::table::{Answer, Ended, RowCall, Table};
use crate::waits::{Untimed, WaitsFor, is_futex_wait, ran_out};
use crate::windows::Windows;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use systoll_model::{
    Before, Counts, Errno, Exit, KeptWaits, LONG_WAIT_NS, Looked, Machine, Process, ProcessId, Question, QuestionAsked,
    RowId, Signature, StackId, Sysno, WaitSpan, WindowCall,
};

/// Largest number of slowest calls remembered.
const MAX_LONGEST: usize = 256;
/// Shortest call worth remembering, ns: a tracer's own stops take tens of microseconds.
const LONG_NS: u64 = 200_000;
/// A second, ns.
const SECOND_NS: u64 = 1_000_000_000;

/// One of the slowest calls.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Long {
    pub(crate) ns: u64,
    pub(crate) row: u32,
    pub(crate) at_ns: u64,
    pub(crate) tid: u32,
}

/// A call of which a trace tells its name and its times only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Timed {
    /// Thread id; 0 if the trace tells none.
    pub(crate) tid: u32,
    /// The system call.
    pub(crate) syscall: Sysno,
    /// Time of entry, ns on any clock that the whole trace shares.
    pub(crate) entry_ns: u64,
    /// Elapsed time, ns.
    pub(crate) elapsed_ns: u64,
}

/// The position of a call in the trace.
#[derive(Clone, Copy)]
struct CallPosition {
    /// The process, by our number.
    process: u32,
    counted: RowCall,
    /// Time of entry since the trace's beginning, ns.
    entry_ns: u64,
    /// Elapsed time, as far as the trace tells.
    elapsed_ns: Option<u64>,
    /// Number of signals that came before the call.
    signals: u32,
}

/// All that was read so far.
pub(crate) struct Trace {
    pub(crate) table: Table,
    pub(crate) family: Family,
    pub(crate) windows: Windows,
    pub(crate) frames: Frames,
    pub(crate) longest: BinaryHeap<Reverse<Long>>,
    /// The calls that waited for long.
    pub(crate) waits: KeptWaits,
    pub(crate) gaps: Gaps,
    pub(crate) notes: Notes,
    pub(crate) clock: Clock,
    /// The machine that the calls were made on, if the trace shows it.
    pub(crate) machine: Option<Machine>,
    /// Objects of the calls that are looked at one by one, and their counts.
    pub(crate) ledger: systoll_model::Notes,
    /// True if times are those at which another tool than the tracer wrote the lines, and not those
    /// at which calls were entered.
    pub(crate) stamped_when_written: bool,
    looks: u64,
    descriptors: Descriptors,
    follow: Calls,
    /// Calls that may ask about a path.
    asks: Calls,
}

/// The trace's beginning and end on its own clock.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Clock {
    began: Option<u64>,
    /// Time of the latest moment seen, ns since the trace's beginning.
    pub(crate) now: u64,
    /// The earliest time seen, ns, if a trace does not begin with it; times are then counted from 0
    /// until all is read.
    earliest: Option<u64>,
}

impl Clock {
    fn since(&mut self, at: Option<u64>) -> Option<u64> {
        let at = at?;
        let since = at.saturating_sub(*self.began.get_or_insert(at));
        self.now = self.now.max(since);
        if let Some(earliest) = &mut self.earliest {
            *earliest = since.min(*earliest);
        }
        Some(since)
    }

    /// Counts times from 0: the trace does not begin with its earliest time, which is known only
    /// when all is read.
    pub(crate) fn count_from_nothing(&mut self) {
        if self.began.is_none() {
            (self.began, self.earliest) = (Some(0), Some(u64::MAX));
        }
    }

    /// Returns the offset to subtract from all times, ns.
    pub(crate) fn late_by(&self) -> u64 {
        self.earliest.filter(|earliest| *earliest != u64::MAX).unwrap_or(0)
    }

    /// Returns the time at which the trace began, in seconds since 1970; 0 if its clock does not
    /// count from there.
    pub(crate) fn started_unix(&self) -> u64 {
        const YEAR_2000: u64 = 946_684_800;
        self.began.map(|ns| ns / 1_000_000_000).filter(|s| *s > YEAR_2000).unwrap_or(0)
    }
}

impl Trace {
    /// Returns a trace without calls.
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            table: Table::default(),
            family: Family::default(),
            windows: Windows::new(seed),
            frames: Frames::new(),
            longest: BinaryHeap::new(),
            waits: KeptWaits::default(),
            gaps: Gaps::default(),
            notes: Notes::default(),
            clock: Clock::default(),
            machine: None,
            ledger: systoll_model::Notes::default(),
            stamped_when_written: false,
            looks: 0,
            descriptors: Descriptors::default(),
            follow: follow::concerned(),
            asks: Calls::those(Question::is_asked_by),
        }
    }

    /// Takes in a call of which the trace tells its name and its times only. It is counted, but not
    /// sampled, since nothing tells its arguments.
    pub(crate) fn timed(&mut self, timed: Timed) {
        let Timed { tid, syscall, entry_ns, elapsed_ns } = timed;
        let signature = syscall.signature();
        let at = self.clock.since(Some(entry_ns));
        self.clock.since(Some(entry_ns.saturating_add(elapsed_ns)));
        let entry = at.unwrap_or(self.clock.now);
        let met = self.meet(tid, entry);
        let row = self.table.row(self.family.image(met.process), syscall, StackId(0));
        self.notes.timed(syscall);
        let waited_ns = waited(signature, Some(elapsed_ns));
        let answer = Answer::Untold;
        let ended = Ended { answer, transfers: false, elapsed_ns: Some(elapsed_ns), waited_ns };
        let counted = self.table.count(row, tid, ended);
        let times = Times { entry_ns: at, elapsed_ns: Some(elapsed_ns) };
        self.took(tid, counted, &met, times, WaitsFor::of(signature));
    }

    /// Takes in a call with its stack, innermost frame first.
    pub(crate) fn call(&mut self, call: &Call, stack: &[TracedFrame]) {
        let syscall = call.syscall.0;
        let signature = syscall.signature();
        let at = self.clock.since(call.times.entry_ns);
        let entry = at.unwrap_or(self.clock.now);
        let met = self.meet(call.tid, entry);
        let (ordinal, process) = (met.ordinal, met.process);
        self.returned_by_now(&met, call.tid, at);
        let ended_in = call.times.elapsed_ns.or_else(|| ran_out(call));
        let image = self.family.image(process);
        let context = if stack.is_empty() { Context::NONE } else { self.frames.context(stack) };
        let row = self.table.row(image, syscall, context.context);
        self.name_row(row, &context);
        let ended = Ended {
            answer: call.result.map_or(Answer::None, Answer::Is),
            transfers: signature.is_some_and(|s| s.transfers),
            elapsed_ns: ended_in,
            waited_ns: waited(signature, ended_in),
        };
        self.notes.call(syscall, call);
        if self.machine.is_none() {
            self.machine = signature.and_then(|signature| shown_machine(signature.name, call));
        }
        let counted = self.table.count(row, call.tid, ended);
        let wanted = self.windows.wants(image, ordinal, counted);
        if wanted || self.asks.contains(syscall) {
            let mut decoded = decode(call, signature);
            if let Some(machine) = self.machine.filter(|_| call.written == Written::Registers) {
                decoded.args = machine.args(syscall, decoded.args);
            }
            if wanted {
                self.notes.looked_at(&decoded);
            }
            let place = CallPosition { process, counted, entry_ns: entry, elapsed_ns: ended_in, signals: met.signals };
            let mut looked = self.looked_at(call, decoded, place, &context);
            looked.before = self.note(image, syscall, &looked, wanted);
            if wanted {
                self.windows.add(ordinal, looked);
            }
        }
        if let Some(begin_ns) = at.filter(|_| ended.waited_ns >= LONG_WAIT_NS && !self.stamped_when_written) {
            self.keep_wait(call, row, (image, process), (begin_ns, ended.waited_ns));
        }
        let waits_for = if is_futex_wait(call) { WaitsFor::Surely } else { WaitsFor::of(signature) };
        self.took(call.tid, counted, &met, Times { entry_ns: at, elapsed_ns: ended_in }, waits_for);
        if self.follow.contains(syscall) {
            self.changes(call, process, entry);
        }
    }

    /// Keeps a call that waited for long: its entry and its time, ns.
    fn keep_wait(&mut self, call: &Call, row: RowId, (image, process): (ProcessId, u32), (begin_ns, ns): (u64, u64)) {
        let syscall = call.syscall.0;
        let decoded = decode(call, syscall.signature());
        let fd = syscall.signature().and_then(Signature::fd_arg).and_then(|at| decoded.args.get(at)).copied();
        let object = decoded.fd.or_else(|| self.descriptors.name(process, fd? as i32));
        let pid = self.table.images.get(image.0 as usize).map_or(0, |image| image.pid);
        let (tid, args, result) = (call.tid, decoded.args, call.result);
        self.waits.add(WaitSpan { row, pid, tid, begin_ns, ns, args, result, object, ..WaitSpan::default() }, syscall);
    }

    /// Notes that a thread makes another call: its last call, if the trace told no time for it, had
    /// returned by then.
    fn returned_by_now(&mut self, met: &Thread, tid: u32, at: Option<u64>) {
        let Some((untimed, at)) = met.untimed.zip(at).filter(|_| !self.stamped_when_written) else { return };
        self.has_waited(met.ordinal, tid, untimed, at.saturating_sub(untimed.entry_ns));
    }

    /// Notes that a call without a told time lasted until `ns` after its entry.
    fn has_waited(&mut self, ordinal: u32, tid: u32, untimed: Untimed, ns: u64) {
        // Two times in whole seconds may lie up to a second closer together than they seem.
        let ns = if ns.is_multiple_of(SECOND_NS) { ns.saturating_sub(SECOND_NS) } else { ns };
        if ns < LONG_NS {
            return;
        }
        self.table.waited(untimed.row, ns);
        self.windows.waited(ordinal, RowCall { row: untimed.row, nth: untimed.nth }, ns);
        self.note_long(Long { ns, row: untimed.row.0, at_ns: untimed.entry_ns, tid });
    }

    /// Notes the time of a thread's call. `met` is the thread before the call; times are since the
    /// trace's beginning.
    fn took(&mut self, tid: u32, counted: RowCall, met: &Thread, times: Times, waits_for: WaitsFor) {
        let (at, row) = (times.entry_ns, counted.row);
        let mut untimed = None;
        if let (Some(at), None, WaitsFor::Surely) = (at, times.elapsed_ns, waits_for) {
            let entry_ns = if self.stamped_when_written { met.last_end.unwrap_or(at) } else { at };
            let this = Untimed { row, nth: counted.nth, entry_ns };
            if self.stamped_when_written {
                self.has_waited(met.ordinal, tid, this, at.saturating_sub(entry_ns));
            }
            untimed = Some(this);
        }
        // A long time up to this call's line was the call before, or, if lines are stamped when
        // written, this call itself.
        let waits = if self.stamped_when_written { untimed.is_some() } else { met.untimed.is_some() };
        let long = at.zip(met.last_end).is_some_and(|(at, end)| at.saturating_sub(end) >= LONG_NS);
        let last_end = met.last_end.filter(|_| !(waits && long));
        if let Some(ns) = times.elapsed_ns.filter(|ns| *ns >= LONG_NS) {
            self.note_long(Long { ns, row: row.0, at_ns: at.unwrap_or(self.clock.now), tid });
        }
        let ends = times.elapsed_ns.filter(|_| !self.stamped_when_written);
        let end = at.zip(ends).map(|(at, elapsed)| at.saturating_add(elapsed));
        self.gaps.between(last_end, at);
        if let (Some(ns), WaitsFor::Nothing) = (times.elapsed_ns, waits_for) {
            self.gaps.inside(ns);
        }
        if let Some(thread) = self.family.thread_mut(tid) {
            thread.last_end = end.or(at);
            thread.untimed = untimed;
            thread.signals = 0;
        }
    }

    fn meet(&mut self, tid: u32, now: u64) -> Thread {
        let Met { thread, forked } = self.family.thread(&mut self.table, tid, now);
        if let Some(Forked { child, parent }) = forked {
            self.descriptors.fork(parent, child);
        }
        thread
    }

    fn name_row(&mut self, row: RowId, context: &Context) {
        let Some(row) = self.table.rows.get_mut(row.0 as usize).filter(|r| r.context != StackId(0)) else { return };
        if row.counts.calls == 0 && row.counts.unreturned == 0 {
            (row.user, row.outer) = (context.user, context.outer);
            (row.api, row.api_module) = (context.api.clone(), context.api_module);
        } else if row.outer != context.outer {
            row.outer = StackId(0);
        }
    }

    fn looked_at(&self, call: &Call, decoded: Decoded, place: CallPosition, context: &Context) -> WindowCall {
        let CallPosition { process, counted: RowCall { row, nth }, entry_ns, elapsed_ns: elapsed, signals } = place;
        let signature = call.syscall.0.signature();
        let fd = || {
            let word = *decoded.args.get(signature?.fd_arg()?)? as i32;
            self.descriptors.name(process, word)
        };
        WindowCall {
            row,
            nth,
            args: decoded.args,
            fd: decoded.fd.clone().or_else(fd),
            data: decoded.data,
            result: call.result,
            entry_ns,
            elapsed_ns: elapsed.unwrap_or(0),
            waited_ns: elapsed.map(|_| waited(signature, elapsed)),
            signals_before: signals,
            faults: None,
            stack: (context.whole != StackId(0)).then_some(context.whole),
            before: Before::Unknown,
            request: None,
        }
    }

    /// Notes a call in the ledger, which sees all calls of a trace. Returns how its question is
    /// known from before, if `wanted`.
    fn note(&mut self, image: ProcessId, syscall: Sysno, call: &WindowCall, wanted: bool) -> Before {
        let asked =
            syscall.signature().and_then(|s| Question::of(s, &call.args, &call.data, call.fd.as_deref(), call.result));
        let Some(question) = asked else { return Before::Unknown };
        // If calls have no times, their order replaces them.
        self.looks += 1;
        let (process, row, at_ns) = (image.0, call.row.0, self.looks);
        let before =
            if wanted { self.ledger.before(&QuestionAsked::new(process, &question), at_ns) } else { Before::Unknown };
        self.ledger.add(Looked { process, row, syscall, question: &question, at_ns, stands_for: 1 });
        before
    }

    fn note_long(&mut self, long: Long) {
        self.longest.push(Reverse(long));
        if self.longest.len() > MAX_LONGEST {
            self.longest.pop();
        }
    }

    /// Notes what a call changes for the calls that follow: children, programs, descriptors.
    fn changes(&mut self, call: &Call, process: u32, now: u64) {
        let name = call.syscall.0.name().unwrap_or_default();
        match (name, call.result) {
            ("clone" | "clone3" | "fork" | "vfork", Some(child)) if child > 0 => {
                let shares = decode::shares_process(&call.text);
                self.family.made(call.tid, u32::try_from(child).unwrap_or(u32::MAX), shares);
            }
            ("clone" | "clone3" | "fork" | "vfork", _) => self.family.made_none(call.tid),
            ("execve" | "execveat", Some(0)) => {
                let path = usize::from(name == "execveat");
                let exe = decode::string_at(call, path).unwrap_or_default();
                let argv = decode::strings_at(call, path + 1);
                self.family.exec(&mut self.table, call.tid, Arc::from(exe), argv, now);
                self.descriptors.exec(process);
            }
            _ => follow::descriptors(&mut self.descriptors, process, name, call),
        }
    }

    /// Notes that a call which makes a child has been entered and has not returned.
    pub(crate) fn entered(&mut self, tid: u32, syscall: Sysno, text: &[u8]) {
        if matches!(syscall.name(), Some("clone" | "clone3" | "fork" | "vfork")) {
            self.family.making(tid, decode::shares_process(text));
        }
    }

    /// Notes that a signal was delivered to a thread.
    pub(crate) fn signal(&mut self, tid: u32) {
        if let Some(thread) = self.family.thread_mut(tid) {
            thread.signals = thread.signals.saturating_add(1);
        }
    }

    /// Notes that a thread has ended.
    pub(crate) fn exited(&mut self, tid: u32, exit: Exit, at: Option<u64>) {
        let now = self.clock.since(at).unwrap_or(self.clock.now);
        if let Some(Gone { thread, last }) = self.family.exited(&mut self.table, tid, exit, now) {
            self.windows.close(thread.ordinal);
            if last {
                self.descriptors.end(thread.process);
            }
        }
    }

    /// Takes in a table that alone counts its calls, for a program if it names one.
    pub(crate) fn summed_up(&mut self, name: &str, pid: u32, calls: impl Iterator<Item = (Sysno, Counts)>) {
        let image = self.table.image(Process { pid, exe: Arc::from(name), ..Process::default() });
        for (syscall, counts) in calls {
            let row = self.table.row(image, syscall, StackId(0));
            self.table.count_many(row, &counts);
        }
    }
}

/// Returns the part of a call's elapsed time that was surely waiting: all of a long call that may
/// wait. A tracer's own stops take tens of microseconds and vary by as much.
fn waited(signature: Option<&Signature>, elapsed: Option<u64>) -> u64 {
    let waits = signature.is_some_and(|s| s.waits || s.may_block);
    elapsed.filter(|ns| waits && *ns >= LONG_NS).unwrap_or(0)
}

/// Returns the result for an errno that a trace gives by name.
pub(crate) fn failed(name: &[u8]) -> Option<i64> {
    let name = std::str::from_utf8(name).ok()?;
    // strace and perf have other names for some of the kernel's errors.
    let name = match name {
        "ENOTSUP" => "EOPNOTSUPP",
        "EWOULDBLOCK" => "EAGAIN",
        "EDEADLOCK" => "EDEADLK",
        "ERESTART_RESTARTBLOCK" => "ERESTART_RESTARTBLOCK",
        name => name,
    };
    let numbered = || name.strip_prefix("errno ").or_else(|| name.strip_prefix("ERRNO_"))?.parse().ok().map(Errno);
    Errno::from_name(name).or_else(numbered).map(|errno| -i64::from(errno.0))
}

/// Returns the machine that a call shows: strace prints none, but a program that asks for the machine's name is answered,
/// the loader opens Debian's C library in a folder with that name, and only x86-64 has `arch_prctl`.
fn shown_machine(name: &str, call: &Call) -> Option<Machine> {
    const LIBRARIES: [(&[u8], Machine); 2] =
        [(b"/aarch64-linux-gnu/libc.so.6\"", Machine::Aarch64), (b"/x86_64-linux-gnu/libc.so.6\"", Machine::X86_64)];
    let holds = |text: &[u8]| memchr::memmem::find(&call.text, text).is_some();
    let succeeded = call.written == Written::Decoded && call.result.is_some_and(|result| result >= 0);
    match name {
        _ if !succeeded => None,
        "arch_prctl" => Some(Machine::X86_64),
        "open" | "openat" => LIBRARIES.iter().find(|(path, _)| holds(path)).map(|(_, machine)| *machine),
        "uname" => [Machine::X86_64, Machine::Aarch64]
            .into_iter()
            .find(|machine| holds(format!("machine=\"{}\"", machine.name()).as_bytes())),
        _ => None,
    }
}
