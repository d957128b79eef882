//! Gives the lines of a trace the times that they lack.

/// Time of a call whose line has none, ns; a program that does nothing else makes calls as often.
const CALL_NS: u64 = 1_000;
/// Time between two calls of a block that says nothing of it, ns.
pub(super) const APART_NS: u64 = 1_000;
/// Time of the first call, s since 1970.
const BEGINNING_S: u64 = 1_700_000_000;

/// Writes a trace with times, from its first call to the program's end.
#[derive(Debug, Default)]
pub(super) struct Clock {
    now_ns: u64,
    text: String,
}

impl Clock {
    /// Returns a trace that begins with the program's start, by the thread of the line `first`.
    pub(super) fn new(first: &str) -> Self {
        let mut clock = Self::default();
        let (thread, call) = thread(first);
        if !call.starts_with("execve") {
            clock.line(&format!("{thread}execve(\"/srv/app\", [\"app\"], 0x7ffd0000 /* 9 vars */) = 0"), APART_NS);
        }
        clock
    }

    /// Lets time pass in which the program computes.
    pub(super) fn computes(&mut self, ns: u64) {
        self.now_ns += ns;
    }

    /// Writes a line, and lets `apart_ns` pass after it.
    pub(super) fn line(&mut self, line: &str, apart_ns: u64) {
        use std::fmt::Write as _;
        if line.starts_with(" > ") {
            let _ = writeln!(self.text, "{line}");
            return;
        }
        let (thread, call) = thread(line);
        let (seconds, ns) = (BEGINNING_S + self.now_ns / 1_000_000_000, self.now_ns % 1_000_000_000);
        let _ = write!(self.text, "{thread}{seconds}.{ns:09} {call}");
        let returns = !call.starts_with(['+', '-', '<']) && !call.ends_with("<unfinished ...>");
        let elapsed = elapsed_ns(call);
        if returns && elapsed.is_none() {
            let _ = write!(self.text, " <0.{CALL_NS:09}>");
        }
        self.text.push('\n');
        self.now_ns += elapsed.unwrap_or(CALL_NS) + apart_ns;
    }

    /// Returns the trace, which ends with the program's end.
    pub(super) fn finish(mut self, last: &str) -> String {
        let (thread, call) = thread(last);
        if !call.starts_with("+++") {
            self.line(&format!("{thread}+++ exited with 0 +++"), APART_NS);
        }
        self.text
    }
}

/// Returns true if a line has a time of its own in front of its call.
pub(super) fn has_time(line: &str) -> bool {
    let (_, call) = thread(line);
    call.trim_start().starts_with(|c: char| c.is_ascii_digit())
}

/// Splits the thread's number, as strace writes it, off a line.
fn thread(line: &str) -> (&str, &str) {
    let end = if line.starts_with("[pid ") {
        line.find("] ").map(|at| at + 2)
    } else {
        let digits = line.bytes().take_while(u8::is_ascii_digit).count();
        let spaces = line[digits..].bytes().take_while(|byte| *byte == b' ').count();
        (digits > 0 && spaces > 0).then_some(digits + spaces)
    };
    line.split_at(end.unwrap_or(0))
}

/// Returns the time in angle brackets at a line's end, ns.
fn elapsed_ns(call: &str) -> Option<u64> {
    let (_, seconds) = call.strip_suffix('>')?.rsplit_once(" <")?;
    let seconds: f64 = seconds.parse().ok()?;
    Some((seconds * 1e9).round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_has_a_time() {
        let mut clock = Clock::new("[pid 7] close(3) = 0");
        clock.line("[pid 7] close(3) = 0 <0.000300>", APART_NS);
        clock.computes(5_000);
        clock.line("[pid 7] read(3, <unfinished ...>", APART_NS);
        let text = clock.finish("[pid 7] read(3, <unfinished ...>");
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].starts_with("[pid 7] 1700000000.000000000 execve(") && lines[0].ends_with(" <0.000001000>"));
        assert_eq!(lines[1], "[pid 7] 1700000000.000002000 close(3) = 0 <0.000300>");
        assert_eq!(lines[2], "[pid 7] 1700000000.000308000 read(3, <unfinished ...>");
        assert_eq!(lines[3], "[pid 7] 1700000000.000310000 +++ exited with 0 +++");
    }

    #[test]
    fn times_of_a_trace_s_own_are_seen() {
        let (with, without) =
            (["7 12:00:01 close(3) = 0", "1700000000.5 close(3) = 0"], ["close(3) = 0", "7  close(3) = 0"]);
        assert!(with.iter().all(|line| has_time(line)) && !without.iter().any(|line| has_time(line)));
    }
}
