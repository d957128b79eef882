//! Reads strace's text, and ltrace's, which is written alike.

pub(crate) mod leader;
mod names;
pub(crate) mod outcome;
mod solo;
mod stack;
mod summary;

use crate::call::{Call, Syscall, Times, Written};
use crate::edges::Edges;
use crate::frames::TracedFrame;
use crate::lex::{arguments, name_end};
use crate::pending::{Entered, Pending};
use crate::trace::Trace;
use leader::{Led, Stamp, led};
pub(crate) use names::named;
use names::named_by_ltrace;
use outcome::outcome;
use solo::Solo;
use summary::{Summary, Table};
use systoll_model::{Exit, ProblemKind, Sysno, signal_number};

/// Largest number of frames of one stack.
const MAX_DEPTH: usize = 128;
/// Largest number of bytes of a torn line that are joined with lines that may be its rest, all
/// tries together.
const MOST_JOINED: usize = 64 << 20;
const DAY_NS: u64 = 86_400_000_000_000;

/// The tool that wrote the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// strace.
    Strace,
    /// ltrace, which marks system calls; calls without a mark are library functions.
    Ltrace,
}

/// The state of reading one file of strace's or ltrace's.
pub(crate) struct Strace {
    dialect: Dialect,
    solo: Solo,
    pending: Pending,
    moments: Moments,
    /// The call that has returned last; its stack may follow.
    held: Call,
    holds: bool,
    stack: Vec<TracedFrame>,
    /// The thread of the last line that a stack may belong to.
    last_tid: u32,
    summary: Summary,
    /// Number of calls that have returned in this file.
    returned: u64,
    /// The call's line in which something else was written, if there is one.
    torn: Option<Torn>,
    edges: Edges,
}

/// A call's line in which the program or the tracer wrote something else.
#[derive(Clone, Copy, Debug)]
struct Torn {
    tid: u32,
    /// Number of bytes that were joined with lines that were not its rest.
    joined: usize,
}

impl Strace {
    /// Returns the state at the beginning of a file. `tid` is the thread of lines that do not tell
    /// theirs; 0 if it is unknown.
    pub(crate) fn new(dialect: Dialect, tid: u32) -> Self {
        Self {
            dialect,
            solo: Solo::new(tid),
            pending: Pending::default(),
            moments: Moments::default(),
            held: Call::default(),
            holds: false,
            stack: Vec::new(),
            last_tid: tid,
            summary: Summary::default(),
            returned: 0,
            torn: None,
            edges: Edges::default(),
        }
    }

    /// Takes in a line.
    pub(crate) fn line(&mut self, trace: &mut Trace, line: &[u8]) {
        if let Some(frame) = stack::frame(line) {
            return self.frame(frame);
        }
        self.settle(trace);
        if line.starts_with(b" | ") || self.summary.line(line) || self.returned == 0 && self.summary.bare(line) {
            return;
        }
        let led = led(line);
        let body = led.body.trim_ascii_end();
        if body.is_empty() {
            return;
        }
        self.edges.line(body);
        match body.first() {
            Some(b'<') if body.starts_with(b"<...") => self.resumed(trace, led, body),
            Some(b'+') if body.starts_with(b"+++ ") => self.ended(trace, led, body),
            Some(b'-') if body.starts_with(b"--- ") => {
                let tid = self.solo.tid(trace, led.tid, false, &mut self.pending);
                trace.signal(tid);
            }
            _ => self.call(trace, led, body),
        }
    }

    fn call(&mut self, trace: &mut Trace, led: Led<'_>, body: &[u8]) {
        let Some(open) = name_end(body) else { return self.message(trace, body) };
        let (name, rest) = (body.get(..open).unwrap_or_default(), body.get(open + 1..).unwrap_or_default());
        let cut = unfinished(rest);
        let found = arguments(cut.unwrap_or(rest));
        let ended = found.rest.and_then(outcome);
        if ended.is_none() && cut.is_none() && !is_known(name, self.dialect) {
            return self.message(trace, body);
        }
        let Some(syscall) = self.syscall(trace, name) else { return };
        let tid = self.solo.tid(trace, led.tid, true, &mut self.pending);
        let entry_ns = self.moments.at(led.stamp);
        self.last_tid = tid;
        let text = cut.unwrap_or_else(|| rest.get(..rest.len() - found.rest.map_or(0, <[u8]>::len)).unwrap_or(rest));
        let Some(ended) = ended else {
            let broken = cut.is_none();
            let text = if broken { self.solo.torn(trace, text) } else { text };
            self.torn = broken.then_some(Torn { tid, joined: 0 });
            let entered = Entered { syscall, text: text.to_vec(), entry_ns, broken, ..Entered::default() };
            trace.entered(tid, syscall.0, text);
            if let Some(before) = self.pending.enter(tid, entered) {
                lost(trace, tid, before);
            }
            return;
        };
        if let Some(before) = self.pending.take(tid) {
            lost(trace, tid, before);
        }
        self.returned += u64::from(ended.result.is_some());
        let held = &mut self.held;
        (held.tid, held.syscall, held.written, held.result) = (tid, syscall, Written::Decoded, ended.result);
        held.times = Times { entry_ns, elapsed_ns: ended.elapsed_ns };
        fill(&mut held.text, text);
        fill(&mut held.told, ended.told);
        self.holds = true;
    }

    /// Reads a line that ends an interrupted call: `<... read resumed>"abc", 4096) = 3`.
    fn resumed(&mut self, trace: &mut Trace, led: Led<'_>, body: &[u8]) {
        let at_end = self.moments.at(led.stamp);
        let tid = self.solo.tid(trace, led.tid, false, &mut self.pending);
        let Some(end) = memchr::memmem::find(body, b" resumed>") else { return self.message(trace, body) };
        let name = body.get(4..end).unwrap_or_default().trim_ascii();
        let more = body.get(end + b" resumed>".len()..).unwrap_or_default();
        let Some(mut entered) = self.pending.take(tid) else {
            return self.without_beginning(trace, tid, name, more, at_end);
        };
        self.last_tid = tid;
        let Some(cut) = unfinished(more) else { return self.returns(trace, tid, entered, more, at_end) };
        // The call was interrupted once more: it waits for its next part.
        entered.text.extend_from_slice(cut);
        self.pending.enter(tid, entered);
    }

    /// Takes in the rest of a torn line. Returns true if it is that.
    fn goes_on(&mut self, trace: &mut Trace, body: &[u8]) -> bool {
        let Some(Torn { tid, joined: before }) = self.torn else { return false };
        let Some(entered) = self.pending.call_of(tid).filter(|entered| entered.broken) else { return false };
        if before > MOST_JOINED {
            return false;
        }
        self.torn = Some(Torn { tid, joined: before + entered.text.len() });
        let joined = [&entered.text[..], body].concat();
        if body == b"<unfinished ...>" {
            if let Some(entered) = self.pending.take(tid) {
                self.pending.enter(tid, Entered { broken: false, ..entered });
            }
        } else if arguments(&joined).rest.and_then(outcome).is_some() {
            if let Some(entered) = self.pending.take(tid) {
                self.returns(trace, tid, entered, body, None);
            }
        } else {
            return false;
        }
        self.torn = None;
        true
    }

    fn returns(&mut self, trace: &mut Trace, tid: u32, mut entered: Entered, more: &[u8], at_end: Option<u64>) {
        entered.text.extend_from_slice(more);
        let found = arguments(&entered.text);
        let Some(ended) = found.rest.and_then(outcome) else {
            trace.notes.unknown(more);
            return;
        };
        let between = entered.entry_ns.zip(at_end).map(|(from, to)| to.saturating_sub(from));
        let elapsed = ended.elapsed_ns.or(between);
        let (result, told) = (ended.result, ended.told.to_vec());
        self.returned += u64::from(result.is_some());
        let text = entered.text.len() - found.rest.map_or(0, <[u8]>::len);
        entered.text.truncate(text);
        let (call, stack) = entered.returned(tid, result, elapsed);
        self.held = Call { told, ..call };
        self.stack = stack;
        self.holds = true;
    }

    /// Counts a call that returns without having been entered: the trace begins in the middle, or
    /// lost the line of its entry.
    fn without_beginning(&mut self, trace: &mut Trace, tid: u32, name: &[u8], more: &[u8], at: Option<u64>) {
        let Some(syscall) = self.syscall(trace, name) else { return };
        trace.notes.without_beginning += 1;
        let found = arguments(more);
        let Some(ended) = found.rest.and_then(outcome) else { return };
        self.returned += u64::from(ended.result.is_some());
        let times = Times { entry_ns: at, elapsed_ns: None };
        self.held = Call { tid, syscall, result: ended.result, told: ended.told.to_vec(), times, ..Call::default() };
        self.holds = true;
    }

    fn ended(&mut self, trace: &mut Trace, led: Led<'_>, body: &[u8]) {
        let tid = self.solo.tid(trace, led.tid, false, &mut self.pending);
        let text = String::from_utf8_lossy(body);
        let words: Vec<&str> = text.split([' ', '(', ')']).filter(|w| !w.is_empty()).collect();
        let exit = match words.as_slice() {
            ["+++", "exited", "with", code, ..] | ["+++", "exited", "status", code, ..] => {
                code.parse().ok().map(Exit::Code)
            }
            ["+++", "killed", "by", signal, ..] => signal_number(signal).map(Exit::Signal),
            ["+++", "superseded", "by", "execve", "in", "pid", pid, ..] => {
                // The thread that execs goes on under the process's id.
                if let Ok(other) = pid.parse() {
                    self.pending.take(tid);
                    self.pending.rename(other, tid);
                    self.solo.gone(other);
                    trace.exited(other, Exit::Code(0), None);
                }
                return;
            }
            _ => return trace.notes.unknown(body),
        };
        if let Some(entered) = self.pending.take(tid) {
            lost(trace, tid, entered);
        }
        let at = self.moments.at(led.stamp);
        trace.exited(tid, exit.unwrap_or(Exit::Code(0)), at);
        self.solo.gone(tid);
    }

    /// Takes in a line that is no call: a message of the tracer, output of the program, or
    /// something unknown.
    fn message(&mut self, trace: &mut Trace, body: &[u8]) {
        if self.goes_on(trace, body) {
            return;
        }
        let said = solo::said_by_tracer(body);
        if said.starts_with(b"[ Process PID=") {
            if memchr::memmem::find(said, b"32 bit").is_some() || memchr::memmem::find(said, b"x32").is_some() {
                trace.notes.add(
                    ProblemKind::Note,
                    "a process runs in another mode than 64 bits: its calls are counted by name".into(),
                );
            }
        } else if !self.solo.said(trace, said) && said.len() == body.len() {
            // While a line is broken, the lines that follow are the program's own output.
            let broken =
                self.torn.and_then(|torn| self.pending.call_of(torn.tid)).is_some_and(|entered| entered.broken);
            if !broken {
                trace.notes.unknown(body);
            }
        }
    }

    fn frame(&mut self, frame: TracedFrame) {
        let stack = if self.holds { Some(&mut self.stack) } else { self.pending.stack_mut(self.last_tid) };
        if let Some(stack) = stack.filter(|stack| stack.len() < MAX_DEPTH) {
            stack.push(frame);
        }
    }

    /// Hands over the call that waits for its stack.
    fn settle(&mut self, trace: &mut Trace) {
        if self.holds {
            self.holds = false;
            trace.call(&self.held, &self.stack);
            self.stack.clear();
        }
    }

    fn syscall(&mut self, trace: &mut Trace, name: &[u8]) -> Option<Syscall> {
        let name = match self.dialect {
            Dialect::Strace => name,
            Dialect::Ltrace => match system_call(name) {
                Some(name) => name,
                None => {
                    trace.notes.library_calls += 1;
                    return None;
                }
            },
        };
        let known = if self.dialect == Dialect::Ltrace { named_by_ltrace(name) } else { named(name) };
        Some(Syscall(known.unwrap_or_else(|| {
            trace.notes.nameless(name);
            Sysno::UNKNOWN
        })))
    }

    /// Takes in the calls that had not returned at the file's end, and tables; `whole` is false if
    /// the file is cut.
    pub(crate) fn finish(mut self, trace: &mut Trace, whole: bool) {
        self.settle(trace);
        if self.returned > 0 {
            trace.notes.edges.join(self.edges);
        }
        let left = self.pending.drain();
        trace.notes.cut |= !whole || left.iter().any(|(_, entered)| entered.broken);
        trace.notes.unfinished += left.iter().filter(|(_, entered)| !entered.broken).count() as u64;
        for (tid, entered) in left.into_iter().filter(|(_, entered)| !entered.broken) {
            let (call, stack) = entered.returned(tid, None, None);
            trace.call(&call, &stack);
        }
        if self.returned > 0 {
            self.summary.forget_bare();
        }
        let tables: Vec<&Table> = self.summary.tables().collect();
        let is_excerpt = self.edges.excerpt().is_some();
        match tables.as_slice() {
            [] => {}
            tables if self.returned == 0 => sum_up(trace, tables),
            [whole] if is_excerpt && whole.calls() > self.returned => beside_lines(trace, whole, self.returned),
            tables => {
                let counted = tables.iter().fold(0, |sum: u64, table| sum.saturating_add(table.calls()));
                if counted != self.returned {
                    let text = format!("the trace's own table counts {counted} calls, its lines {}", self.returned);
                    trace.notes.add(ProblemKind::Lost, text);
                }
            }
        }
    }
}

/// Takes in tables without lines of calls: each becomes an entry of its own among the recording's
/// processes.
fn sum_up(trace: &mut Trace, tables: &[&Table]) {
    let several = tables.len() > 1;
    for (n, table) in (1..).zip(tables) {
        let (name, pid) = match &table.of {
            Some((name, tid)) => (name.clone(), *tid),
            None if several => (format!("table {n}"), 0),
            None => (String::new(), 0),
        };
        let calls = table.lines().map(|line| (line.syscall().unwrap_or(Sysno::UNKNOWN), line.counts()));
        trace.summed_up(&name, pid, calls);
    }
    trace.notes.only_summed_up = true;
    if several && tables.iter().any(|table| table.of.is_none()) {
        let calls: Vec<String> = tables.iter().map(|table| table.calls().to_string()).collect();
        let text =
            format!("{} tables are in it, of {} calls: each is reported by itself", tables.len(), calls.join(", "));
        trace.notes.add(ProblemKind::Note, text);
    }
}

/// Takes in the table of a whole run beside an excerpt of its lines. Calls that it counts beyond
/// the lines were made as well.
fn beside_lines(trace: &mut Trace, table: &Table, returned: u64) {
    for line in table.lines() {
        if let Some(syscall) = line.syscall() {
            trace.table.count_beyond(syscall, &line.counts());
        }
    }
    let calls = table.calls();
    let text = format!(
        "the table beside the lines is of the whole run: {calls} calls, of which the lines show {returned}; counts are the \
         table's, and what is said of calls is what the lines show"
    );
    trace.notes.add(ProblemKind::Note, text);
}

/// Counts a call that was entered and whose return the trace does not show.
fn lost(trace: &mut Trace, tid: u32, entered: Entered) {
    if entered.broken {
        trace.notes.unknown(&entered.text);
        return;
    }
    let (call, stack) = entered.returned(tid, None, None);
    trace.call(&call, &stack);
}

fn fill(to: &mut Vec<u8>, from: &[u8]) {
    to.clear();
    to.extend_from_slice(from);
}

/// Returns the text in front of the mark of a call that has not returned.
fn unfinished(text: &[u8]) -> Option<&[u8]> {
    let text = text.strip_suffix(b">")?;
    let text = text.strip_suffix(b"<unfinished ...").or_else(|| text.strip_suffix(b"<detached ..."))?;
    Some(text.trim_ascii_end())
}

/// Returns the system call's name in `SYS_read` or `read@SYS`.
fn system_call(name: &[u8]) -> Option<&[u8]> {
    name.strip_prefix(b"SYS_").or_else(|| name.strip_suffix(b"@SYS"))
}

/// Returns true if a name is one that calls have in the dialect.
fn is_known(name: &[u8], dialect: Dialect) -> bool {
    match dialect {
        Dialect::Strace => named(name).is_some(),
        Dialect::Ltrace => system_call(name).and_then(named_by_ltrace).is_some(),
    }
}

/// Returns true if the line begins a call, whole or cut.
pub(crate) fn begins_call(line: &[u8]) -> bool {
    let body = led(line).body;
    let name = name_end(body).and_then(|end| body.get(..end));
    name.is_some_and(|name| is_known(name, Dialect::Strace) || is_known(name, Dialect::Ltrace))
        || body.starts_with(b"<... ")
}

/// Returns the dialect of a line that strace or ltrace wrote; `None` for any other line.
pub(crate) fn recognise(line: &[u8]) -> Option<Dialect> {
    if Summary::default().line(line) {
        return Some(Dialect::Strace);
    }
    let body = led(line).body.trim_ascii_end();
    if let Some(end) = name_end(body) {
        let name = body.get(..end)?;
        if system_call(name).and_then(named_by_ltrace).is_some() {
            return Some(Dialect::Ltrace);
        }
        let rest = body.get(end + 1..)?;
        let ends = unfinished(rest).is_some() || arguments(rest).rest.and_then(outcome).is_some();
        return (ends && named(name).is_some()).then_some(Dialect::Strace);
    }
    let resumed = body.starts_with(b"<... ") && memchr::memmem::find(body, b" resumed>").is_some();
    let ended = body.starts_with(b"+++ exited with ") || body.starts_with(b"+++ killed by ");
    (resumed || ended || body.starts_with(b"--- SIG")).then_some(Dialect::Strace)
}

/// Returns true if lines that no tool is known by hold a table of names and numbers.
pub(crate) fn is_bare_table(lines: &[Vec<u8>]) -> bool {
    let mut summary = Summary::default();
    lines.iter().for_each(|line| {
        summary.bare(line);
    });
    summary.tables().next().is_some()
}

/// Converts stamps to times on the tracer's clock, from line to line.
#[derive(Debug, Default)]
struct Moments {
    /// Time since the file's first line, ns, if lines tell the time since the line before.
    since: u64,
    /// Time of the midnights that have passed, ns.
    days: u64,
    last_of_day: u64,
}

impl Moments {
    fn at(&mut self, stamp: Option<Stamp>) -> Option<u64> {
        Some(match stamp? {
            Stamp::Unix(ns) => ns,
            Stamp::Since(ns) => {
                self.since = self.since.saturating_add(ns);
                self.since
            }
            Stamp::OfDay(ns) => {
                if ns.saturating_add(DAY_NS / 2) < self.last_of_day {
                    self.days = self.days.saturating_add(DAY_NS);
                }
                self.last_of_day = ns;
                self.days.saturating_add(ns)
            }
        })
    }
}
