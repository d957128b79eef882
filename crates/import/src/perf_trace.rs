//! Reads `perf trace`: `0.271 ( 0.012 ms): ls/4882 openat(dfd: CWD, filename: "/etc", flags:
//! RDONLY) = 3`.

use crate::call::{Call, Syscall, Times, Written};
use crate::edges::Edges;
use crate::lex::arguments;
use crate::pending::{Entered, Pending};
use crate::strace::named;
use crate::strace::outcome::outcome;
use crate::trace::Trace;
use systoll_model::{ProblemKind, Sysno};

/// The state of reading one file of perf trace.
#[derive(Default)]
pub(crate) struct PerfTrace {
    pending: Pending,
    edges: Edges,
}

/// The parts of a line.
struct PerfCall<'a> {
    /// Time since the trace's start, ns.
    at_ns: Option<u64>,
    elapsed_ns: Option<u64>,
    tid: u32,
    name: &'a [u8],
    /// The text behind the opening bracket.
    rest: &'a [u8],
    /// True if the call was entered in an earlier line.
    continued: bool,
}

impl PerfTrace {
    /// Takes in a line.
    pub(crate) fn line(&mut self, trace: &mut Trace, line: &[u8]) {
        if let Some(rest) = line.trim_ascii().strip_prefix(b"LOST ") {
            let digits = rest.split(|b| !b.is_ascii_digit()).next().unwrap_or_default();
            let events = std::str::from_utf8(digits).ok().and_then(|d| d.parse().ok()).unwrap_or(1);
            trace.notes.lost = trace.notes.lost.saturating_add(events);
            return;
        }
        let Some(told) = taken_apart(line) else {
            if !line.trim_ascii().is_empty() {
                trace.notes.unknown(line);
            }
            return;
        };
        self.edges.call(told.name);
        let syscall = Syscall(named(told.name).unwrap_or_else(|| {
            trace.notes.nameless(told.name);
            Sysno::UNKNOWN
        }));
        let found = arguments(told.rest);
        let text = told.rest.get(..told.rest.len() - found.rest.map_or(0, <[u8]>::len)).unwrap_or_default();
        let Some(ended) = found.rest.and_then(outcome) else {
            let (text, written) = (text.to_vec(), Written::Named);
            trace.entered(told.tid, syscall.0, &text);
            let entered = Entered { syscall, text, written, entry_ns: told.at_ns, ..Entered::default() };
            if let Some(before) = self.pending.enter(told.tid, entered) {
                never_returned(trace, told.tid, before);
            }
            return;
        };
        let before = self.pending.take(told.tid);
        let (mut call, stack) = match before {
            Some(entered) if told.continued && entered.syscall == syscall => {
                let elapsed = entered.entry_ns.zip(told.at_ns).map(|(from, to)| to.saturating_sub(from));
                entered.returned(told.tid, ended.result, elapsed)
            }
            other => {
                if let Some(entered) = other {
                    never_returned(trace, told.tid, entered);
                }
                if told.continued && syscall.0.name() != Some("execve") {
                    trace.notes.without_beginning += 1;
                }
                let times = Times { entry_ns: told.at_ns, elapsed_ns: told.elapsed_ns };
                let (text, written) = (text.to_vec(), Written::Named);
                (
                    Call { tid: told.tid, syscall, text, written, result: ended.result, times, ..Call::default() },
                    Vec::new(),
                )
            }
        };
        call.told = ended.told.to_vec();
        trace.call(&call, &stack);
    }

    /// Takes in the calls that had not returned at the file's end; `whole` is false if the file is
    /// cut.
    pub(crate) fn finish(mut self, trace: &mut Trace, whole: bool) {
        trace.notes.cut |= !whole;
        trace.notes.edges.join(self.edges);
        let left = self.pending.drain();
        trace.notes.unfinished += left.len() as u64;
        for (tid, entered) in left {
            never_returned(trace, tid, entered);
        }
        trace.notes.add(
            ProblemKind::Partial,
            "perf trace tells what calls were given and not what they answered: answers are not compared".into(),
        );
    }
}

fn never_returned(trace: &mut Trace, tid: u32, entered: Entered) {
    let (call, stack) = entered.returned(tid, None, None);
    trace.call(&call, &stack);
}

/// Returns true if perf trace wrote the line.
pub(crate) fn recognise(line: &[u8]) -> bool {
    taken_apart(line).is_some_and(|told| named(told.name).is_some())
}

fn taken_apart(line: &[u8]) -> Option<PerfCall<'_>> {
    let text = line.trim_ascii();
    let (at_ns, text) = match text.strip_prefix(b"?") {
        Some(rest) => (None, rest),
        None => {
            let end = text.iter().position(|b| !(b.is_ascii_digit() || *b == b'.'))?;
            (Some(milliseconds(text.get(..end)?)?), text.get(end..)?)
        }
    };
    let text = text.trim_ascii_start().strip_prefix(b"(")?;
    let close = memchr::memmem::find(text, b"):")?;
    let took = text.get(..close)?.trim_ascii();
    let elapsed_ns = match took.strip_suffix(b"ms") {
        Some(number) => Some(milliseconds(number.trim_ascii())?),
        None if took.is_empty() => None,
        None => return None,
    };
    let text = text.get(close + 2..)?.trim_ascii_start();
    let (continued, front) = match memchr::memmem::find(text, b"... [continued]: ") {
        Some(at) => (true, at),
        None => (false, 0),
    };
    let open = memchr::memchr(b'(', text.get(front..)?)? + front;
    let before = text.get(..open)?;
    let begins = memchr::memrchr(b' ', before).map_or(0, |at| at + 1);
    let name = before.get(begins..)?;
    let mut who = text.get(..begins.min(if continued { front } else { begins }))?.trim_ascii();
    who = who.strip_suffix(b"...").unwrap_or(who).trim_ascii();
    let tid = memchr::memrchr(b'/', who).and_then(|at| std::str::from_utf8(who.get(at + 1..)?).ok()?.parse().ok());
    let rest = text.get(open + 1..)?;
    // If the call goes on, only the brackets stand here, one of them twice.
    let rest = if continued && rest.starts_with(b"))") { rest.get(1..)? } else { rest };
    (!name.is_empty()).then_some(PerfCall { at_ns, elapsed_ns, tid: tid.unwrap_or(0), name, rest, continued })
}

/// Returns a time such as `0.271`, ms, in ns.
fn milliseconds(text: &[u8]) -> Option<u64> {
    let ms: f64 = std::str::from_utf8(text).ok()?.parse().ok()?;
    (ms.is_finite() && ms >= 0.0).then_some((ms * 1e6) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines() {
        let line = taken_apart(b"     0.271 ( 0.012 ms): ls/4882 openat(dfd: CWD, filename: \"/etc\") = 3").unwrap();
        assert_eq!(
            (line.at_ns, line.elapsed_ns, line.tid, line.name),
            (Some(271_000), Some(12_000), 4882, &b"openat"[..])
        );
        let line = taken_apart(b"         ? (         ): Web Content/77  ... [continued]: poll()) = 0").unwrap();
        assert_eq!((line.at_ns, line.tid, line.name, line.continued), (None, 77, &b"poll"[..], true));
        let line = taken_apart(b"    ? (         ): ls/77  ... [continued]: execve())   = 0").unwrap();
        assert_eq!((line.name, line.rest), (&b"execve"[..], &b")   = 0"[..]));
        let line = taken_apart(b"     0.000 ( 0.003 ms): brk()   = 0x55").unwrap();
        assert_eq!((line.tid, line.name), (0, &b"brk"[..]));
        let line = taken_apart(b"     0.150 (         ): sh/5 wait4(upid: -1) ...").unwrap();
        assert_eq!((line.elapsed_ns, line.name), (None, &b"wait4"[..]));
        assert!(taken_apart(b"brk(NULL) = 0").is_none() && taken_apart(b"hello (world):").is_none());
    }
}
