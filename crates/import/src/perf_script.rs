//! Reads `perf script` of system calls' tracepoints: `ls 4882 [001] 12.345678:
//! raw_syscalls:sys_enter: NR 12 (0, …)`.

use crate::call::{Call, Syscall, Times, Written};
use crate::frames::TracedFrame;
use crate::pending::{Entered, Pending};
use crate::strace::named;
use crate::trace::Trace;
use systoll_model::{Machine, Sysno};

/// Largest number of frames of one stack.
const MAX_DEPTH: usize = 128;

/// The state of reading one file of perf script.
#[derive(Default)]
pub(crate) struct PerfScript {
    pending: Pending,
    /// The thread to whose call the following frames belong.
    stack_of: Option<u32>,
}

/// The content of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event<'a> {
    Enters(Option<Sysno>, &'a [u8], Form),
    Returns(Option<Sysno>, i64),
}

/// The notation of registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// The words in brackets: `(0, 7f, …)`.
    Listed,
    /// The words with their names: `dfd: 0xffffff9c, filename: 0x7f`.
    Named,
}

impl PerfScript {
    /// Takes in a line.
    pub(crate) fn line(&mut self, trace: &mut Trace, line: &[u8]) {
        if line.trim_ascii().is_empty() {
            self.stack_of = None;
            return;
        }
        if let Some(name) = line.strip_prefix(b"# arch : ") {
            // The header of `perf script --header`, or of `--header-only` before it.
            trace.machine = str::from_utf8(name.trim_ascii()).ok().and_then(Machine::from_name);
            return;
        }
        let Some((tid, at_ns, event)) = event(line, trace.machine.unwrap_or(Machine::X86_64)) else {
            match self.stack_of.and_then(|tid| self.pending.stack_mut(tid)).zip(frame(line)) {
                Some((stack, frame)) if stack.len() < MAX_DEPTH => stack.push(frame),
                Some(_) => {}
                None if self.stack_of.is_some() || other_event(line) => {}
                None => trace.notes.unknown(line),
            }
            return;
        };
        self.stack_of = None;
        match event {
            Event::Enters(number, words, form) => {
                let syscall = self.known(trace, number);
                let text = match form {
                    Form::Listed => words.to_vec(),
                    Form::Named => values(words),
                };
                trace.entered(tid, syscall.0, &text);
                let entered =
                    Entered { syscall, text, written: Written::Registers, entry_ns: Some(at_ns), ..Entered::default() };
                if let Some(before) = self.pending.enter(tid, entered) {
                    let (call, stack) = before.returned(tid, None, None);
                    trace.call(&call, &stack);
                }
                self.stack_of = Some(tid);
            }
            Event::Returns(number, result) => {
                let Some(entered) = self.pending.take(tid) else {
                    let syscall = self.known(trace, number);
                    trace.notes.without_beginning += 1;
                    let times = Times { entry_ns: Some(at_ns), elapsed_ns: None };
                    let written = Written::Registers;
                    let call = Call { tid, syscall, written, result: Some(result), times, ..Call::default() };
                    return trace.call(&call, &[]);
                };
                let elapsed = entered.entry_ns.map(|from| at_ns.saturating_sub(from));
                let (call, stack) = entered.returned(tid, Some(result), elapsed);
                trace.call(&call, &stack);
            }
        }
    }

    fn known(&self, trace: &mut Trace, number: Option<Sysno>) -> Syscall {
        if number.is_none_or(|n| n == Sysno::UNKNOWN) {
            trace.notes.nameless(b"?");
        }
        Syscall(number.unwrap_or(Sysno::UNKNOWN))
    }

    /// Takes in the calls that had not returned at the file's end; `whole` is false if the file is
    /// cut.
    pub(crate) fn finish(mut self, trace: &mut Trace, whole: bool) {
        trace.notes.cut |= !whole;
        let left = self.pending.drain();
        trace.notes.unfinished += left.len() as u64;
        for (tid, entered) in left {
            let (call, stack) = entered.returned(tid, None, None);
            trace.call(&call, &stack);
        }
    }
}

/// Returns true if perf script wrote the line.
pub(crate) fn recognise(line: &[u8]) -> bool {
    event(line, Machine::X86_64).is_some()
}

/// Returns true if the line is an event of another kind, recorded beside the calls.
fn other_event(line: &[u8]) -> bool {
    !line.starts_with(b"\t") && memchr::memmem::find(line, b": ").is_some() && line.contains(&b'[')
}

fn event(line: &[u8], machine: Machine) -> Option<(u32, u64, Event<'_>)> {
    let raw = memchr::memmem::find(line, b"raw_syscalls:sys_");
    let at = match raw {
        Some(at) => at,
        None => memchr::memmem::find(line, b"syscalls:sys_")?,
    };
    let (front, text) = (line.get(..at)?, line.get(at..)?);
    // The front is `ls 4882 [001] 12.345678: ` or `ls 4882/4883 [001] …`, with or without the
    // processor.
    let mut words = front.split(|b| *b == b' ').filter(|w| !w.is_empty()).rev();
    let time = words.find_map(|w| seconds(w.strip_suffix(b":")?))?;
    let tid = words.find(|w| w.first().is_some_and(u8::is_ascii_digit))?;
    let tid = tid.rsplit(|b| *b == b'/').next().and_then(|t| std::str::from_utf8(t).ok()?.parse().ok())?;
    let text = text.get(memchr::memmem::find(text, b"sys_")?..)?;
    Some((tid, time, if raw.is_some() { raw_event(text, machine)? } else { named_event(text)? }))
}

/// Reads `sys_enter: NR 12 (0, 7f, …)` and `sys_exit: NR 12 = 3`.
fn raw_event(text: &[u8], machine: Machine) -> Option<Event<'_>> {
    let enters = text.starts_with(b"sys_enter");
    let text = text.get(memchr::memmem::find(text, b"NR ")? + 3..)?;
    let end = memchr::memchr(b' ', text)?;
    let number: i64 = std::str::from_utf8(text.get(..end)?).ok()?.parse().ok()?;
    let syscall = u32::try_from(number).ok().map(|number| machine.call(number));
    let rest = text.get(end..)?.trim_ascii();
    if enters {
        return Some(Event::Enters(syscall, rest.strip_prefix(b"(")?.strip_suffix(b")")?, Form::Listed));
    }
    let result = std::str::from_utf8(rest.strip_prefix(b"=")?.trim_ascii()).ok()?.parse().ok()?;
    Some(Event::Returns(syscall, result))
}

/// Reads `sys_enter_openat: dfd: 0xffffff9c, …` and `sys_exit_openat: 0x3`.
fn named_event(text: &[u8]) -> Option<Event<'_>> {
    let (enters, text) = match text.strip_prefix(b"sys_enter_") {
        Some(text) => (true, text),
        None => (false, text.strip_prefix(b"sys_exit_")?),
    };
    let end = memchr::memchr(b':', text)?;
    let syscall = named(text.get(..end)?);
    let rest = text.get(end + 1..)?.trim_ascii();
    if enters {
        return Some(Event::Enters(syscall, rest, Form::Named));
    }
    Some(Event::Returns(syscall, word(rest)? as i64))
}

/// Returns the values of `dfd: 0xffffff9c, filename: 0x7f`, joined by commas.
fn values(text: &[u8]) -> Vec<u8> {
    let parts = text.split(|b| *b == b',').map(|part| {
        let at = memchr::memmem::find(part, b": ").map_or(0, |at| at + 2);
        part.get(at..).unwrap_or_default().trim_ascii()
    });
    parts.collect::<Vec<_>>().join(&b',')
}

fn word(text: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(text).ok()?;
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse::<i64>().ok().map(|n| n as u64),
    }
}

/// Returns a time such as `12.345678` in ns.
fn seconds(text: &[u8]) -> Option<u64> {
    let (whole, fraction) = std::str::from_utf8(text).ok()?.split_once('.')?;
    let digits = fraction.len().min(9);
    let ns: u64 = fraction.get(..digits)?.parse().ok()?;
    whole.parse::<u64>().ok()?.checked_mul(1_000_000_000)?.checked_add(ns * 10u64.pow(9 - digits as u32))
}

/// Reads a frame such as `\t    7f12 read+0x14 (/usr/lib/libc.so.6)`.
fn frame(line: &[u8]) -> Option<TracedFrame> {
    if !line.first().is_some_and(u8::is_ascii_whitespace) {
        return None;
    }
    let text = String::from_utf8_lossy(line.get(..line.len().min(2_048))?);
    let (address, rest) = text.trim().split_once(' ')?;
    let address = u64::from_str_radix(address, 16).ok()?;
    let (function, module) = rest.rsplit_once(" (")?;
    let module = module.strip_suffix(')')?;
    let name = function.rsplit_once("+0x").map_or(function, |(name, _)| name);
    let function = (name != "[unknown]").then(|| name.to_owned());
    let module = if module == "[unknown]" || module.starts_with("[kernel") { "" } else { module };
    Some(TracedFrame { module: module.to_owned(), function, address, source: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(line: &[u8]) -> Option<(u32, u64, Event<'_>)> {
        super::event(line, Machine::X86_64)
    }

    #[test]
    fn events() {
        let read = Sysno::from_name("read");
        let line =
            b"            ls  4882 [001]  1234.567890:       raw_syscalls:sys_enter: NR 0 (3, 7ffe12, 340, 0, 0, 0)";
        let want = Event::Enters(read, &b"3, 7ffe12, 340, 0, 0, 0"[..], Form::Listed);
        assert_eq!(event(line), Some((4882, 1_234_567_890_000, want)));
        let line = b"Web Content  4882/4890 [001]  12.5: raw_syscalls:sys_exit: NR 0 = -11";
        assert_eq!(event(line), Some((4890, 12_500_000_000, Event::Returns(read, -11))));
        let line = b"ls 5 [000] 1.000001: syscalls:sys_enter_openat: dfd: 0xffffff9c, filename: 0x7f, flags: 0x80000, mode: 0x0";
        let Some((5, 1_000_001_000, Event::Enters(_, words, Form::Named))) = event(line) else { panic!("no event") };
        assert_eq!(values(words), b"0xffffff9c,0x7f,0x80000,0x0");
        assert_eq!(
            event(b"ls 5 [000] 1.1: syscalls:sys_exit_openat: 0x3").map(|e| e.2),
            Some(Event::Returns(Sysno::from_name("openat"), 3))
        );
        assert!(event(b"read(3) = 0").is_none() && event(b"raw_syscalls:sys_enter: NR 0 ()").is_none());
    }

    #[test]
    fn frames() {
        let told = frame(b"\t    7f3a read+0x14 (/usr/lib/libc.so.6)").unwrap();
        assert_eq!(
            (told.function.as_deref(), &*told.module, told.address),
            (Some("read"), "/usr/lib/libc.so.6", 0x7f3a)
        );
    }
}
