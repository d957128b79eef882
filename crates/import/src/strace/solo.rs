//! Whose line it is, where lines do not always say: on a terminal strace writes ids only while there are several
//! threads, and the first one's id not before then.

use crate::pending::Pending;
use crate::trace::Trace;
use std::collections::BTreeSet;

/// Threads told of that have not been seen yet.
const MOST: usize = 4_096;

/// Whose lines are those without an id.
pub(super) struct Solo {
    /// The thread of lines that do not say; 0 where its id is not known.
    tid: u32,
    /// Threads that the tracer said it follows, and that have written no line.
    followed: BTreeSet<u32>,
    /// Whether lines have had ids.
    several: bool,
}

/// What the tracer says, without its name; a line of nobody's as it is.
pub(super) fn said_by_tracer(body: &[u8]) -> &[u8] {
    let name =
        memchr::memmem::find(body, b"strace: ").filter(|at| body.get(..*at).is_some_and(|path| !path.contains(&b' ')));
    name.and_then(|at| body.get(at + b"strace: ".len()..)).unwrap_or(body)
}

impl Solo {
    pub(super) fn new(tid: u32) -> Self {
        Self { tid, followed: BTreeSet::new(), several: false }
    }

    /// The thread of a line without an id.
    pub(super) fn current(&self, trace: &Trace) -> u32 {
        if !self.several { self.tid } else { trace.family.only().unwrap_or(self.tid) }
    }

    /// The thread of a line that says `told`; `enters` where it begins a call.
    pub(super) fn tid(&mut self, trace: &mut Trace, told: Option<u32>, enters: bool, pending: &mut Pending) -> u32 {
        let Some(tid) = told else { return self.current(trace) };
        self.several = true;
        let followed = self.followed.remove(&tid);
        if self.tid == 0 && trace.family.knows(0) && !followed && !trace.family.knows(tid) && !trace.family.expects(tid)
        {
            // It is the first one, unless that is about to make a child, which then begins.
            if !(enters && pending.of(0).is_some()) {
                trace.family.named(&mut trace.table, 0, tid);
                pending.rename(0, tid);
                self.tid = tid;
            }
        }
        tid
    }

    /// A thread has ended.
    pub(super) fn gone(&mut self, tid: u32) {
        self.followed.remove(&tid);
    }

    /// A call's line without what the tracer says of threads at its end.
    pub(super) fn torn<'a>(&mut self, trace: &mut Trace, text: &'a [u8]) -> &'a [u8] {
        let Some(at) = memchr::memmem::rfind(text, b"Process ").filter(|_| text.ends_with(b" attached")) else {
            return text;
        };
        let (before, said) = text.split_at(at);
        if !self.said(trace, said) {
            return text;
        }
        // The tracer is called as it was typed.
        let Some(before) = before.strip_suffix(b"strace: ") else { return before };
        let path = before.iter().rev().take_while(|b| !b" ,()|[]{}\"=".contains(b)).count();
        let typed = before.len() - path;
        match before.get(typed..).and_then(|word| memchr::memchr(b'/', word)) {
            Some(slash) => before.get(..typed + slash).unwrap_or(before),
            None => before,
        }
    }

    /// Takes in what the tracer says of threads: `Process 4951 attached`; whether it is that.
    pub(super) fn said(&mut self, trace: &mut Trace, text: &[u8]) -> bool {
        let Some(text) = text.strip_prefix(b"Process ") else { return false };
        let text = String::from_utf8_lossy(text.get(..text.len().min(200)).unwrap_or(text));
        let mut words = text.split(' ');
        let Some(tid) = words.next().and_then(|w| w.parse::<u32>().ok()) else { return false };
        match words.next() {
            Some("attached") => {
                if text.contains(" threads") {
                    // All its threads are there before any of them makes a call.
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
