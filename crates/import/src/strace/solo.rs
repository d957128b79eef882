//! Finds the thread of lines that do not always tell it: on a terminal strace writes ids only while
//! there are several threads, and the first thread's id not before then.

use crate::pending::Pending;
use crate::trace::Trace;
use std::collections::BTreeSet;

/// Largest number of announced threads that have not been seen yet.
const MOST: usize = 4_096;

/// The threads of lines without an id.
pub(super) struct Solo {
    /// The thread of lines that do not tell theirs; 0 if its id is unknown.
    tid: u32,
    /// Threads that the tracer said it follows and that have written no line.
    followed: BTreeSet<u32>,
    /// True if lines have had ids.
    several: bool,
}

/// Returns a tracer's message without the tracer's name; any other line is returned as it is.
pub(super) fn said_by_tracer(body: &[u8]) -> &[u8] {
    let name =
        memchr::memmem::find(body, b"strace: ").filter(|at| body.get(..*at).is_some_and(|path| !path.contains(&b' ')));
    name.and_then(|at| body.get(at + b"strace: ".len()..)).unwrap_or(body)
}

impl Solo {
    pub(super) fn new(tid: u32) -> Self {
        Self { tid, followed: BTreeSet::new(), several: false }
    }

    /// Returns the thread of a line without an id.
    pub(super) fn current(&self, trace: &Trace) -> u32 {
        if !self.several { self.tid } else { trace.family.only().unwrap_or(self.tid) }
    }

    /// Returns the thread of a line that tells `told`; `enters` is true if the line begins a call.
    pub(super) fn tid(&mut self, trace: &mut Trace, told: Option<u32>, enters: bool, pending: &mut Pending) -> u32 {
        let Some(tid) = told else { return self.current(trace) };
        self.several = true;
        let followed = self.followed.remove(&tid);
        if self.tid == 0 && trace.family.knows(0) && !followed && !trace.family.knows(tid) && !trace.family.expects(tid)
        {
            // The line is the first thread's, unless that thread is about to make a child, which
            // then begins.
            if !(enters && pending.call_of(0).is_some()) {
                trace.family.named(&mut trace.table, 0, tid);
                pending.rename(0, tid);
                self.tid = tid;
            }
        }
        tid
    }

    /// Notes that a thread has ended.
    pub(super) fn gone(&mut self, tid: u32) {
        self.followed.remove(&tid);
    }

    /// Returns a call's line without the tracer's message about threads at its end.
    pub(super) fn torn<'a>(&mut self, trace: &mut Trace, text: &'a [u8]) -> &'a [u8] {
        let Some(at) = memchr::memmem::rfind(text, b"Process ").filter(|_| text.ends_with(b" attached")) else {
            return text;
        };
        let (before, said) = text.split_at(at);
        if !self.said(trace, said) {
            return text;
        }
        // The tracer gives its name as it was typed.
        let Some(before) = before.strip_suffix(b"strace: ") else { return before };
        let path = before.iter().rev().take_while(|b| !b" ,()|[]{}\"=".contains(b)).count();
        let typed = before.len() - path;
        let word = before.get(typed..).unwrap_or_default();
        // The end of a comment is no beginning of a path.
        let from = if word.starts_with(b"*/") { 2 } else { 0 };
        let slash = word.get(from..).and_then(|word| memchr::memchr(b'/', word));
        slash.and_then(|slash| before.get(..typed + from + slash)).unwrap_or(before)
    }

    /// Takes in a tracer's message about threads, such as `Process 4951 attached`. Returns true if
    /// it is one.
    pub(super) fn said(&mut self, trace: &mut Trace, text: &[u8]) -> bool {
        let Some(text) = text.strip_prefix(b"Process ") else { return false };
        let text = String::from_utf8_lossy(text.get(..text.len().min(200)).unwrap_or(text));
        let mut words = text.split(' ');
        let Some(tid) = words.next().and_then(|w| w.parse::<u32>().ok()) else { return false };
        match words.next() {
            Some("attached") => {
                if text.contains(" threads") {
                    // All threads of the process are there before any of them makes a call.
                    trace.family.attached(tid);
                } else if self.followed.len() < MOST && (trace.family.knows(self.tid) || self.tid != 0) {
                    self.followed.insert(tid);
                }
                true
            }
            Some("detached" | "resumed" | "suspended") => true,
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_tracer_says_in_a_line_is_taken_out() {
        let mut trace = Trace::new(1);
        let mut torn =
            |text: &str| String::from_utf8_lossy(Solo::new(5).torn(&mut trace, text.as_bytes())).into_owned();
        assert_eq!(torn("flags=SIGCHLDstrace: Process 12 attached"), "flags=SIGCHLD");
        assert_eq!(torn("flags=SIGCHLD/usr/bin/strace: Process 12 attached"), "flags=SIGCHLD");
        assert_eq!(torn("0x7f /* 35 vars *//usr/bin/strace: Process 12 attached"), "0x7f /* 35 vars */");
        assert_eq!(torn("0x7f /* 35 vars */strace: Process 12 attached"), "0x7f /* 35 vars */");
        assert_eq!(torn("\"Process of mine attached"), "\"Process of mine attached");
    }
}
