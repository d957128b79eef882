//! Collects facts that a trace lacks and text that could not be read, as problems of the recording.

use crate::call::{Call, Written};
use crate::decode::Decoded;
use crate::edges::Edges;
use crate::hash::Map;
use systoll_model::{Problem, ProblemKind, Sysno};

/// Largest number of characters shown of a line.
const SHOWN: usize = 120;
/// Largest number of different names of unknown calls that are kept.
const MOST_NAMES: usize = 64;
/// Largest number of different problems of other kinds.
const MOST_OTHERS: usize = 32;
/// Least number of calls in a trace that was surely filtered if it has fewer than [`FEW_KINDS`]
/// kinds of calls.
const MANY_CALLS: u64 = 200;
const FEW_KINDS: usize = 8;

/// The notes made while a trace is read.
#[derive(Default)]
pub(crate) struct Notes {
    calls: u64,
    timed: u64,
    with_elapsed: u64,
    kinds: Map<Sysno, u64>,
    registers: u64,
    untold: u64,
    vague: u64,
    /// Number of calls with a struct that the trace has cut short.
    abbreviated: u64,
    cut_data: u64,
    unknown_lines: u64,
    first_unknown: Option<String>,
    nameless: Map<String, u64>,
    others: Vec<Problem>,
    /// True if only a summary of a whole trace was read, and none of its lines.
    pub(crate) only_summed_up: bool,
    /// The signs of the program's beginning and end in strace's text.
    pub(crate) edges: Edges,
    /// Number of calls that had not returned when the trace ended.
    pub(crate) unfinished: u64,
    /// Number of calls that returned and whose beginning is missing.
    pub(crate) without_beginning: u64,
    /// True if the last line is not whole.
    pub(crate) cut: bool,
    /// Number of calls of library functions, which ltrace tells as well.
    pub(crate) library_calls: u64,
    /// Number of events that the tracer itself says were lost.
    pub(crate) lost: u64,
}

impl Notes {
    /// Counts a call.
    pub(crate) fn call(&mut self, syscall: Sysno, call: &Call) {
        self.calls += 1;
        self.timed += u64::from(call.times.entry_ns.is_some());
        self.with_elapsed += u64::from(call.times.elapsed_ns.is_some());
        self.registers += u64::from(call.written == Written::Registers);
        *self.kinds.entry(syscall).or_default() += 1;
    }

    /// Counts a call of which the trace tells its name and its times only.
    pub(crate) fn timed(&mut self, syscall: Sysno) {
        self.calls += 1;
        self.timed += 1;
        self.with_elapsed += 1;
        self.untold += 1;
        *self.kinds.entry(syscall).or_default() += 1;
    }

    /// Notes a call that was decoded.
    pub(crate) fn looked_at(&mut self, decoded: &Decoded) {
        self.vague += u64::from(decoded.vague);
        self.abbreviated += u64::from(decoded.abbreviated);
        self.cut_data += u64::from(decoded.data.iter().any(|d| d.cut));
    }

    /// Notes a line that is no call and no known message.
    pub(crate) fn unknown(&mut self, line: &[u8]) {
        self.unknown_lines += 1;
        if self.first_unknown.is_none() {
            self.first_unknown = Some(shown(line));
        }
    }

    /// Returns the first line that was not understood.
    pub(crate) fn first_unknown(&self) -> Option<&str> {
        self.first_unknown.as_deref()
    }

    /// Notes a call whose name is none of x86-64.
    pub(crate) fn nameless(&mut self, name: &[u8]) {
        let name = String::from_utf8_lossy(name.get(..name.len().min(40)).unwrap_or(name)).into_owned();
        if self.nameless.len() < MOST_NAMES || self.nameless.contains_key(&name) {
            *self.nameless.entry(name).or_default() += 1;
        }
    }

    /// Adds another problem, once.
    pub(crate) fn add(&mut self, kind: ProblemKind, text: String) {
        if self.others.len() < MOST_OTHERS && !self.others.iter().any(|p| p.text == text) {
            self.others.push(Problem::new(kind, text));
        }
    }

    /// Returns true if nothing of a trace was found.
    pub(crate) fn found_nothing(&self) -> bool {
        self.calls == 0 && !self.only_summed_up
    }

    /// Returns what the trace lacks, in words.
    pub(crate) fn problems(&self, has_stacks: bool) -> Vec<Problem> {
        let mut all = self.others.clone();
        all.extend(self.missing_calls());
        all.extend(self.lines_left_out());
        if self.only_summed_up {
            all.push(partial(
                "the trace is a table of counts: it does not tell what the calls were about, so systoll can't look for needless ones",
            ));
            return all;
        }
        all.extend(self.missing_times());
        if self.untold == 0 || self.untold < self.calls {
            all.extend(self.missing_arguments());
            if !has_stacks {
                all.push(note(
                    "the trace has no stacks: calls are reported by program, not by caller (strace -k shows callers)",
                ));
            }
        }
        all
    }

    /// Returns what is known of calls that are not in the trace, or not whole.
    fn missing_calls(&self) -> Vec<Problem> {
        let mut found = Vec::new();
        let mut add = |kind, text: String| found.push(Problem::new(kind, text));
        if self.lost > 0 {
            add(ProblemKind::Lost, format!("the tracer says that it lost {} events", self.lost));
        }
        if let Some(why) = self.edges.excerpt() {
            add(ProblemKind::CutShort, format!("the trace is an excerpt: {why}; counts are those of the lines shown"));
        }
        if self.cut {
            add(ProblemKind::CutShort, "the trace ends in the middle of a line: what came after is not known".into());
        }
        if self.without_beginning > 0 {
            let n = self.without_beginning;
            let text = format!("{n} calls return whose beginning is not in the trace: it begins in the middle");
            add(ProblemKind::CutShort, text);
        }
        if self.unfinished > 0 {
            let n = self.unfinished;
            let text = format!("{n} calls had not returned when the trace ended: they are counted as such");
            add(ProblemKind::Note, text);
        }
        found
    }

    /// Returns which lines and names of the trace could not be read as calls.
    fn lines_left_out(&self) -> Vec<Problem> {
        let mut found = Vec::new();
        if self.unknown_lines > 0 {
            let first = self.first_unknown.as_deref().unwrap_or_default();
            let n = self.unknown_lines;
            let lines = if n == 1 { "1 line is".into() } else { format!("{n} lines are") };
            found.push(note(format!("{lines} none of a trace's and were left out, the first: {first}")));
        }
        if !self.nameless.is_empty() {
            let mut nameless: Vec<(&String, &u64)> = self.nameless.iter().collect();
            nameless.sort_by(|a, b| b.1.cmp(a.1).then_with(|| a.0.cmp(b.0)));
            let names: Vec<String> = nameless.iter().take(5).map(|(name, n)| format!("{name} ({n})")).collect();
            let names = names.join(", ");
            found.push(note(format!("calls that x86-64 does not have are counted as unknown_syscall: {names}")));
        }
        if self.library_calls > 0 {
            let n = self.library_calls;
            found.push(note(format!("{n} calls of library functions were left out: they are no system calls")));
        }
        found
    }

    /// Returns which times, and which answers with them, the trace lacks.
    fn missing_times(&self) -> Vec<Problem> {
        let mut found = Vec::new();
        if self.timed < self.calls.div_ceil(2) {
            found.push(partial(
                "the trace has no times: how long the program ran is not known (strace -ttt -T tells it)",
            ));
        } else if self.with_elapsed == 0 {
            found.push(partial("the trace does not tell how long calls took (strace -T does)"));
        }
        if self.untold > 0 {
            found.push(partial(
                "the trace has names and times only: what calls were given and what they answered is not known, so systoll \
                 counts no errors and can't look for needless calls (perf trace and strace tell more)",
            ));
        }
        found
    }

    /// Returns which arguments and which kinds of calls the trace lacks.
    fn missing_arguments(&self) -> Vec<Problem> {
        let mut found = Vec::new();
        if self.registers > 0 {
            found.push(partial(
                "the trace has registers only: paths, buffers and structs that they point to are not known",
            ));
        }
        if self.vague > 0 {
            let help = if self.abbreviated > 0 { " (strace -v shows all)" } else { "" };
            let text = "structs are not known whole: answers are compared by what is shown of them";
            found.push(partial(format!("{text}{help}")));
        }
        if self.calls >= MANY_CALLS && self.kinds.len() < FEW_KINDS {
            let n = self.kinds.len();
            let kinds = if n == 1 { "one kind of call".to_owned() } else { format!("{n} kinds of calls") };
            found.push(partial(format!(
                "the trace has {kinds} only: what others did in between is not known (strace without -e trace tells it)"
            )));
        }
        found
    }
}

/// Returns a problem that says what the trace does not tell.
fn partial(text: impl Into<String>) -> Problem {
    Problem::new(ProblemKind::Partial, text)
}

/// Returns a problem that is worth knowing and takes nothing from the counts.
fn note(text: impl Into<String>) -> Problem {
    Problem::new(ProblemKind::Note, text)
}

/// A line, shortened and without what a terminal would obey.
pub(crate) fn shown(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(line.get(..line.len().min(4 * SHOWN)).unwrap_or(line));
    let clean: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let mut short: String = clean.trim().chars().take(SHOWN).collect();
    if clean.trim().chars().nth(SHOWN).is_some() {
        short.push('…');
    }
    short
}
