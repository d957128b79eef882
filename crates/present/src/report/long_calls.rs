//! The longest calls in a report: one by one if the recording kept them, otherwise by caller.

use super::screen::{CLOSING_TEXT, Report};
use crate::access::{frame, module, row};
use crate::style::{Line, Role};
use crate::text::{clean, columns, shorten};
use crate::units::{calls, grouped, time};
use std::collections::BTreeMap;
use systoll_model::{LongCall, Row};

/// Duration from which on calls are listed under `longest`, ns.
const LONG_CALL_NS: u64 = 1_000_000;

/// Calls that are listed under `longest`, at most.
const LONGEST: usize = 5;

/// Calls that `--longer` lists, at most: some screens.
const LONGER: usize = 100;

/// Callers that are listed, at most, if long calls were not kept one by one.
const BY_CALLER: usize = 10;

impl Report<'_> {
    pub(super) fn longest(&self) -> Vec<Line> {
        let at_least = self.options.longer_ns.unwrap_or_else(|| self.long_call_ns());
        let limit = match (self.options.longer_ns, self.options.all) {
            (Some(_), true) => usize::MAX,
            (Some(_), false) => LONGER,
            (None, _) => LONGEST,
        };
        let all: Vec<&LongCall> = self.rec.longest.iter().filter(|l| l.ns >= at_least).collect();
        let (idle, mut long): (Vec<&LongCall>, Vec<&LongCall>) = match self.options.longer_ns {
            Some(_) if !self.options.all => all.into_iter().partition(|l| self.is_idle(l)),
            _ => (vec![], all),
        };
        let kept = (long.len() + idle.len()) as u64;
        let more = long.len().saturating_sub(limit) as u64;
        long.truncate(limit);
        let mut lines = self.long_calls(&long);
        if self.options.longer_ns.is_some() && more > 0 {
            let text = format!("{} more were kept: --all lists them", grouped(more));
            lines.extend(self.closing_line("", Role::Faint, &text));
        }
        lines.extend(self.idle(&idle, lines.is_empty()));
        if !long.is_empty() && self.slowed() {
            lines.extend(self.closing_line("", Role::Faint, "elapsed, the watching included"));
        }
        if self.options.longer_ns.is_some() {
            let known = kept;
            let more = self.calls_of_at_least(&self.rec.rows, at_least).saturating_sub(known);
            if known == 0 && more > 0 {
                lines.extend(self.long_by_caller(at_least));
            } else if more > 0 {
                // A tracer keeps calls that are long by its own clock; the histogram also has those
                // that only waited for the tracer.
                let why = match self.rec.header.backend.stops_at_calls() {
                    true => "the wait for a processor included",
                    false => "not kept one by one",
                };
                let text = format!("at least {} more of {} or longer, {why}", grouped(more), time(at_least));
                lines.extend(self.closing_line("", Role::Faint, &text));
            } else if known == 0 {
                let text = format!("no call took {} or longer", time(at_least));
                lines.extend(self.closing_line("longest", Role::Plain, &text));
            }
        }
        lines
    }

    /// Returns true if a call waited for work, as a server's `epoll_wait` does.
    fn is_idle(&self, call: &LongCall) -> bool {
        row(self.rec, call.row).is_some_and(|row| self.sentences().is_idle(row.syscall))
    }

    /// Says which calls are not listed because they waited for work.
    fn idle(&self, idle: &[&LongCall], is_first: bool) -> Vec<Line> {
        let mut by_name: BTreeMap<String, u64> = BTreeMap::new();
        for call in idle.iter().filter_map(|call| row(self.rec, call.row)) {
            *by_name.entry(call.syscall.to_string()).or_default() += 1;
        }
        if by_name.is_empty() {
            return vec![];
        }
        let names: Vec<String> = by_name.iter().map(|(name, n)| format!("{} {name}", grouped(*n))).collect();
        let are = if idle.len() == 1 { "is" } else { "are" };
        let text = format!("{} that waited for work {are} left out: --all lists them", names.join(", "));
        self.closing_line(if is_first { "longest" } else { "" }, Role::Faint, &text)
    }

    /// Returns the duration from which on a call is worth a line, ns: far above the time that
    /// watching alone adds.
    fn long_call_ns(&self) -> u64 {
        let watching = 100.0 * self.rec.header.observer_wall_ns_per_call;
        // The cast turns a float that is too large into the type's largest value, and NaN into 0.
        LONG_CALL_NS.max(watching as u64)
    }

    fn long_calls(&self, long: &[&LongCall]) -> Vec<Line> {
        let name = |l: &LongCall| row(self.rec, l.row).map_or("?".into(), |r| r.syscall.to_string());
        let cells: Vec<[String; 4]> = long
            .iter()
            .map(|l| [name(l), time(l.ns), format!("at +{}", time(l.at_ns)), shorten(&clean(&l.thread), 32)])
            .collect();
        let widths = widest(&cells);
        let mut lines = vec![];
        for (i, (l, [name, ns, at, thread])) in long.iter().zip(&cells).enumerate() {
            let mut when = Line::of(Role::Plain, at);
            fill(&mut when, at, widths[2]);
            let mut who = Line::default();
            who.push_name(Role::Plain, thread);
            fill(&mut who, thread, widths[3]);
            let mut segments = vec![time_of(name, ns, [widths[0], widths[1]]), when, who];
            if let Some(r) = row(self.rec, l.row) {
                segments.push(self.culprit(r, l.startup));
            }
            lines.extend(self.long_line(i == 0, segments));
        }
        lines
    }

    /// Returns the lines of one long call; the first one is labelled.
    fn long_line(&self, is_first: bool, segments: Vec<Line>) -> Vec<Line> {
        let mut first = Line::of(Role::Plain, "  ");
        first.push(Role::Faint, if is_first { "longest" } else { "" });
        first.pad_to(CLOSING_TEXT);
        crate::style::flow(first, segments, 3, CLOSING_TEXT + 2, self.style.columns())
    }

    /// Lists long calls by caller, with their number and the longest of each, for recordings that kept none of these
    /// calls one by one.
    fn long_by_caller(&self, at_least: u64) -> Vec<Line> {
        let long = |r: &&Row| r.counts.max_ns >= at_least;
        let mut rows: Vec<&Row> = self.rec.rows.iter().filter(long).collect();
        rows.sort_by_key(|r| std::cmp::Reverse(r.counts.max_ns));
        let shown = if self.options.all { rows.len() } else { BY_CALLER };
        let left = rows.len().saturating_sub(shown);
        rows.truncate(shown);
        let cells: Vec<[String; 3]> = rows
            .iter()
            .map(|r| {
                // The limit may lie inside a bucket, whose calls are then not known to be long,
                // except the longest.
                let surely = self.calls_of_at_least(std::slice::from_ref(*r), at_least).max(1);
                let of = if surely == r.counts.calls { calls(surely) } else { format!("{} or more", calls(surely)) };
                [r.syscall.to_string(), time(r.counts.max_ns), of]
            })
            .collect();
        let widths = widest(&cells);
        let mut lines = vec![];
        for (i, (r, [name, ns, of])) in rows.iter().zip(&cells).enumerate() {
            let mut many = Line::of(Role::Plain, of);
            fill(&mut many, of, widths[2]);
            let call = time_of(name, ns, [widths[0], widths[1]]);
            lines.extend(self.long_line(i == 0, vec![call, many, self.caller(r)]));
        }
        let more = if left > 0 { format!("; {left} callers more: --all") } else { String::new() };
        let text = format!(
            "the longest of each caller, and how many took {} or longer; one by one: systoll run --longer{more}",
            time(at_least)
        );
        lines.extend(self.closing_line("", Role::Faint, &text));
        lines
    }

    /// Returns the number of calls that surely took `ns` or longer: those in buckets entirely above
    /// it. A call that was counted in the process is in the bucket of the middle of its power of
    /// two of cycles, and may have taken only two thirds of that time.
    fn calls_of_at_least(&self, rows: &[Row], ns: u64) -> u64 {
        let from = if ns <= 1 { 0 } else { u64::BITS - (ns - 1).leading_zeros() } as usize;
        let from = from + usize::from(self.rec.header.backend.buckets_overlap());
        let counts = rows.iter().flat_map(|r| r.counts.histogram.buckets().iter().skip(from));
        counts.fold(0, |sum, n| sum.saturating_add(*n))
    }

    /// Returns the caller of a long call and, before `main`, the library whose constructor it is.
    fn culprit(&self, r: &Row, startup: bool) -> Line {
        let mut line = self.caller(r);
        if startup {
            let user = r.user.and_then(|id| frame(self.rec, id));
            // A place without a source line already names its module.
            let named = user.and_then(|f| f.location()).is_none_or(|l| l.file.is_none());
            let library = user.and_then(|f| module(self.rec, f.module)).filter(|_| !named);
            line.push(Role::Faint, if line.is_empty() { "" } else { ", " });
            line.push_name(Role::Faint, library.map_or_else(String::new, |m| shorten(&clean(m.file_name()), 40)));
            let space = if library.is_some() { " " } else { "" };
            let when = if self.in_constructor(r) { "constructor" } else { "before main" };
            line.push(Role::Faint, format!("{space}{when}"));
        }
        line
    }
}

/// Returns the widths of the columns.
fn widest<const N: usize>(cells: &[[String; N]]) -> [usize; N] {
    std::array::from_fn(|i| cells.iter().filter_map(|c| c.get(i)).map(|c| columns(c)).max().unwrap_or(0))
}

/// Pads a column after `text`.
fn fill(line: &mut Line, text: &str, width: usize) {
    line.push(Role::Plain, " ".repeat(width.saturating_sub(columns(text))));
}

/// Returns a call's name and time, in columns of these widths.
fn time_of(name: &str, ns: &str, [names, times]: [usize; 2]) -> Line {
    let mut call = Line::default();
    call.push_name(Role::Name, name);
    call.pad_to(names + 3 + times.saturating_sub(columns(ns)));
    call.push(Role::Plain, ns);
    call
}
