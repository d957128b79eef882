//! Tells a trace that shows its program from beginning to end from an excerpt.

use crate::lex::name_end;

/// Length of the longest mark for lines that were left out, bytes.
const LONGEST_CUT: usize = 12;

/// The signs of a trace's beginning and end.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Edges {
    /// True if any call was seen.
    any: bool,
    /// True if the first lines show a program's start, or strace attach to it.
    begins: bool,
    /// True if a program's end is seen, or strace's leaving it.
    ends: bool,
    /// Number of places where somebody left lines out and marked that.
    cuts: u64,
}

impl Edges {
    /// Takes in a line without the text that a tracer writes in front of it.
    pub(crate) fn line(&mut self, body: &[u8]) {
        let has = |text: &[u8]| memchr::memmem::find(body, text).is_some();
        if body.len() <= LONGEST_CUT
            && matches!(body, b"..." | b"[...]" | b"(...)" | b"\xe2\x80\xa6" | b"[snip]" | b"<snip>" | b"-- snip --")
        {
            self.cuts += 1;
            return;
        }
        // Most lines are ordinary calls, which are no edge.
        let starts = body.starts_with(b"execve");
        let told = name_end(body).is_none() && has(b"Process ");
        self.begins |= !self.any && (starts || told && has(b" attached"));
        self.ends |= body.starts_with(b"+++ ")
            || body.starts_with(b"exit")
            || told && has(b" detached")
            || body.ends_with(b"<detached ...>");
        self.any |= !told;
    }

    /// Takes in a call of a tracer that does not tell when it attaches and leaves. A trace that
    /// shows a program begin or end was not cut out of another.
    pub(crate) fn call(&mut self, name: &[u8]) {
        self.any = true;
        let edge = name.starts_with(b"execve") || name.starts_with(b"exit");
        (self.begins, self.ends) = (self.begins | edge, self.ends | edge);
    }

    /// Takes in the signs that another file of the same trace shows.
    pub(crate) fn join(&mut self, other: Self) {
        self.any |= other.any;
        self.begins |= other.begins;
        self.ends |= other.ends;
        self.cuts = self.cuts.saturating_add(other.cuts);
    }

    /// Returns the reason why the trace is an excerpt; `None` if it is whole, or if nothing tells.
    pub(crate) fn excerpt(self) -> Option<String> {
        let edges = match (self.begins, self.ends) {
            (true, true) => None,
            (false, false) => Some("neither the program's beginning nor its end is in it"),
            (false, true) => Some("the program's beginning is not in it"),
            (true, false) => Some("the program's end is not in it"),
        };
        let cuts = (self.cuts > 0).then_some("lines were left out");
        let why: Vec<&str> = edges.into_iter().chain(cuts).collect();
        (self.any && !why.is_empty()).then(|| why.join(", and "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn excerpt(lines: &[&str]) -> Option<String> {
        let mut edges = Edges::default();
        lines.iter().for_each(|line| edges.line(line.as_bytes()));
        edges.excerpt()
    }

    #[test]
    fn whole_traces_and_excerpts() {
        let (exec, close) = ("execve(\"/bin/ls\", [\"ls\"], 0x7f) = 0", "close(3) = 0");
        assert_eq!(excerpt(&[exec, close, "exit_group(0) = ?", "+++ exited with 0 +++"]), None);
        assert_eq!(excerpt(&["strace: Process 7 attached", close, "poll( <detached ...>"]), None);
        assert_eq!(excerpt(&[exec, close]).as_deref(), Some("the program's end is not in it"));
        assert_eq!(excerpt(&[close, exec]).as_deref(), Some("neither the program's beginning nor its end is in it"));
        assert_eq!(excerpt(&[exec, "...", "+++ exited with 0 +++"]).as_deref(), Some("lines were left out"));
        assert_eq!(excerpt(&[]), None);
    }
}
