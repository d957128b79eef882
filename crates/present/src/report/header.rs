//! The first lines of a report (the command, the way in which it ended, the verdict) and the last (the way in which
//! calls were counted).

use super::screen::Report;
use crate::access::{has_folded_processes, processes};
use crate::narrowing::Narrowing;
use crate::sentences::{LONG_RUN_NS, is_wide};
use crate::style::{Line, Role};
use crate::text::{columns, shell_words, shorten};
use crate::units::{calls, counted, grouped, ns, percent, rate, time, time_span};
use systoll_model::{BackendKind, Exit};

/// Column at which the header's text starts.
pub(super) const HEAD: usize = 9;

/// How much the first line of a report says.
#[derive(Clone, Copy, PartialEq)]
enum Details {
    All,
    /// No interval of the processor time.
    WithoutSpan,
    /// Nor systoll's part of the elapsed time, if that is small.
    Least,
}

impl Report<'_> {
    /// Returns the line with the command and the way in which it ended.
    pub(super) fn header(&self) -> Vec<Line> {
        let laid_out = |details: Details| {
            let mut first = Line::of(Role::Strong, "systoll");
            first.pad_to(HEAD);
            self.segments(first, self.what_ran(details), HEAD)
        };
        if self.options.all {
            return laid_out(Details::All);
        }
        // What can be left out is worth no line of its own.
        [Details::All, Details::WithoutSpan, Details::Least]
            .map(laid_out)
            .into_iter()
            .min_by_key(Vec::len)
            .unwrap_or_default()
    }

    /// Returns the parts of the first line.
    fn what_ran(&self, details: Details) -> Vec<Line> {
        let h = &self.rec.header;
        let mut what = Line::default();
        what.push_name(Role::Strong, self.command());
        let mut segments = vec![what, self.ending()];
        // The time of a process that was entered is not that of its whole life.
        let watched = if self.slowed() || h.attached.is_some() { " watched" } else { "" };
        // A trace without times does not tell how long the run took.
        if h.wall_ns > 0 || !h.backend.is_trace() {
            let held_up = self.sentences().held_up(details == Details::Least);
            segments.push(Line::of(Role::Plain, format!("{}{watched}{held_up}", time(h.wall_ns))));
        }
        segments.push(self.cpu(details == Details::All));
        let processes = processes(self.rec);
        if processes > 1 {
            // A program that could no longer be watched after its `execve` is not among these processes.
            let about = if has_folded_processes(self.rec) { "about " } else { "" };
            segments.push(Line::of(Role::Plain, format!("{about}{}", counted(processes, "process", "processes"))));
        }
        segments
    }

    /// Returns the command as typed. Where it does not fit on a line, its words lose their folders first, since options at its
    /// end often tell one service from another; only then is it cut.
    fn command(&self) -> String {
        let width = self.style.columns() - HEAD;
        let words = &self.rec.header.command;
        let command = shell_words(words);
        if self.options.stacks || columns(&command) <= width {
            return command;
        }
        let without_folder = |word: &String| match word.strip_prefix('/').and_then(|path| path.rsplit_once('/')) {
            Some((_, name)) if !name.is_empty() => name.to_owned(),
            _ => word.clone(),
        };
        shorten(&shell_words(&words.iter().map(without_folder).collect::<Vec<_>>()), width)
    }

    /// Returns a line that says that no call, or none of the requested calls, was seen.
    pub(super) fn nothing_seen(&self) -> Vec<Line> {
        let none = self.options.only.as_ref().filter(|only| only.others > 0).map(Narrowing::none_seen);
        let nothing = if self.rec.header.attached.is_some() {
            "no system call returned while it was watched"
        } else {
            "no system call was seen"
        };
        let text = none.unwrap_or_else(|| nothing.into());
        self.labelled(HEAD, "", HEAD, Role::Plain, &text)
    }

    /// Returns the verdict of a run with findings: the needless part of its time.
    pub(super) fn verdict(&self) -> Vec<Line> {
        let mut line = Line::of(Role::Bad, self.sentences().findings());
        line.push(Role::Plain, format!(": {}", self.sentences().verdict()));
        let width = self.style.columns().saturating_sub(HEAD);
        self.beside(HEAD, "", HEAD, line.broken(width))
    }

    /// Returns the report's last line: the number of calls, the way in which they were counted, and where to read more.
    pub(super) fn counted_how(&self) -> Vec<Line> {
        let mut segments = vec![self.count()];
        segments.extend(self.only());
        if self.rec.header.backend.stops_at_calls() {
            let slow = "watched by ptrace, which is slow: times are estimates";
            segments.push(Line::of(Role::Plain, slow));
        }
        if self.rec.prices.moved() {
            segments.push(self.crossing());
        }
        if !self.options.all {
            segments.push(Line::of(Role::Faint, "--all: everything, and the figures of this box"));
        }
        self.segments(Line::of(Role::Plain, "  "), segments, 2)
    }

    /// Returns all figures of the run and the box, for `--all`.
    pub(super) fn figures(&self) -> Vec<Line> {
        let mut lines = self.toll();
        lines.extend(self.segments(Line::of(Role::Plain, "  "), self.what_was_seen(), 2));
        lines
    }

    fn count(&self) -> Line {
        let n = self.rec.calls();
        let mut count = Line::of(Role::Plain, counted(n, "system call", "system calls"));
        match (self.rec.exact(), self.rec.header.lost) {
            (true, _) => count.push(Role::Plain, ", counted exactly"),
            (false, 0) => count.push(Role::Warn, ", not counted exactly: see the problems"),
            (false, lost) => count.push(Role::Warn, format!(", not counted exactly: {} lost", calls(lost))),
        }
        // A reader of a service's report wants the number of calls a second.
        if let (Some(rate), true) = (rate(n, self.rec.header.wall_ns), self.rec.header.attached.is_some() && n > 0) {
            count.push(Role::Plain, format!(", {rate}"));
        }
        count
    }

    fn only(&self) -> Option<Line> {
        let only = self.options.only.as_ref()?;
        Some(Line::of(Role::Warn, format!("only {}", only.text())))
    }

    /// Returns true if watching took so long that the wall time isn't the program's own.
    pub(super) fn slowed(&self) -> bool {
        self.sentences().slowed()
    }

    /// Returns the processor time. It is an estimate if watching took a considerable part of the measured time, or if
    /// processes took more time than was measured.
    fn cpu(&self, with_span: bool) -> Line {
        let h = &self.rec.header;
        let measured = h.user_ns.saturating_add(h.sys_ns);
        match self.sentences().own_cpu_ns() {
            None => Line::of(Role::Warn, "CPU time unknown"),
            // The estimate includes processes that nobody waited for; the measured time does not.
            Some(own) if own.abs_diff(measured) > measured / 50 => {
                let span = self.judgement.own_cpu_span_ns(self.rec).filter(|span| is_wide(span, own, SPAN_TOLD));
                let span = span.filter(|_| with_span);
                let span = span.map_or_else(String::new, |s| format!(" ({})", time_span(*s.start(), *s.end())));
                Line::of(Role::Plain, format!("about {} CPU{span}", time(own)))
            }
            Some(_) => Line::of(Role::Plain, format!("{} CPU", time(measured))),
        }
    }

    fn ending(&self) -> Line {
        if self.options.so_far {
            return Line::of(Role::Warn, "so far");
        }
        let role = match self.rec.header.exit {
            Some(Exit::Code(0)) => Role::Plain,
            Some(Exit::Signal(_)) => Role::Bad,
            None if self.rec.header.attached.is_some() || self.rec.header.until.is_some() => Role::Plain,
            Some(Exit::Code(_)) | None => Role::Warn,
        };
        self.sentences().ended().map_or_else(Line::default, |text| Line::of(role, text))
    }

    fn what_was_seen(&self) -> Vec<Line> {
        let h = &self.rec.header;
        let n = self.rec.calls();
        let mut segments = vec![];
        if let (Some(rate), true) = (rate(n, h.wall_ns), n > 0) {
            segments
                .push(Line::of(Role::Plain, format!("{rate}{}", if self.slowed() { " while watched" } else { "" })));
        }
        segments.push(match h.threads {
            0 => Line::default(),
            1 => Line::of(Role::Plain, "one thread"),
            n if n == processes(self.rec) => Line::of(Role::Plain, "one thread each"),
            n => Line::of(Role::Plain, format!("{} threads", grouped(n))),
        });
        if let Some(vdso) = h.vdso_calls.filter(|v| *v > 0) {
            segments.push(Line::of(Role::Plain, format!("{} more in the vDSO", grouped(vdso))));
        }
        // If the price has moved, a line at the report's end says so.
        if !self.rec.prices.moved() {
            segments.push(self.crossing());
        }
        segments.push(self.watching());
        if let Some(attached) = &h.attached {
            segments
                .push(Line::of(Role::Plain, format!("threads stopped for {} at most", time(attached.longest_stop_ns))));
        }
        segments
    }

    fn crossing(&self) -> Line {
        let p = &self.rec.prices;
        let (before, after) = (&p.crossing_before, &p.crossing_after);
        let quoted = p.crossing_ns();
        if !(quoted.is_finite() && quoted > 0.0) {
            return Line::of(Role::Warn, "what entering the kernel costs here was not measured");
        }
        if p.moved() {
            let text = format!(
                "entering the kernel cost {} before the run, {} after: this machine is busy",
                ns(before.min),
                ns(after.min)
            );
            return Line::of(Role::Warn, text);
        }
        let high = before.high.max(after.high).max(quoted);
        let low = if high.round() > quoted.round() {
            format!("{} to ", grouped(quoted.round() as u64))
        } else {
            String::new()
        };
        Line::of(Role::Plain, format!("entering the kernel costs {low}{} here", ns(high)))
    }

    fn watching(&self) -> Line {
        let h = &self.rec.header;
        let added = |per_call: f64| match per_call {
            a if a.is_finite() && a > 0.0 => format!(", +{} a call", ns(a)),
            _ => String::new(),
        };
        let cpu = added(h.observer_ns_per_call);
        let off = if cpu.is_empty() { "" } else { ", taken off below" };
        match h.backend {
            BackendKind::Inproc => Line::of(Role::Plain, format!("watched in-process{cpu}{off}")),
            BackendKind::Bpf => Line::of(Role::Plain, format!("counted in the kernel by bpf{cpu}{off}")),
            BackendKind::Ptrace => {
                Line::of(Role::Plain, format!("watched by ptrace: slow{}", added(h.observer_wall_ns_per_call)))
            }
            BackendKind::Import if self.sentences().is_table() => {
                Line::of(Role::Plain, "read from a table: times are its own, prices of rows without are this box's")
            }
            BackendKind::Import => Line::of(Role::Plain, "read from a trace, prices are this box's"),
        }
    }

    /// Returns the sum of all tolls and its needless part.
    fn toll(&self) -> Vec<Line> {
        let total = self.rec.total();
        let mut toll = label("all calls");
        match total.toll_ns {
            Some(ns) => {
                toll.push(Role::Strong, format!("{}{}", self.about(), time(ns)));
                toll.push(Role::Plain, self.of_cpu(ns));
            }
            None => toll.push(Role::Warn, "unknown"),
        }
        let mut lines = self.segments(
            Line::of(Role::Plain, "  "),
            if self.judgement.findings.is_empty() { vec![toll] } else { vec![toll, self.needless()] },
            2,
        );
        lines.extend(self.doubts());
        lines
    }

    /// Returns the needless parts of the toll, of the waiting and of the started programs' time.
    fn needless(&self) -> Line {
        let claimed = self.sentences().claimed();
        let mut line = label("needless");
        let mut parts = 0;
        let mut put = |text: String| {
            line.push(Role::Bad, format!("{}{text}", if parts > 0 { ", and " } else { "" }));
            parts += 1;
        };
        let share = |ns: u64| self.part_of_cpu(ns).map_or_else(String::new, |p| format!("   {p}"));
        if claimed.calls > 0 {
            put(format!("about {}{}", time(claimed.calls), share(claimed.calls)));
        }
        for (ns, what) in [(claimed.starts, "starting programs"), (claimed.copies, "forking processes")] {
            if ns > 0 {
                let share = share(ns);
                let of_cpu = if share.is_empty() { "" } else { " of CPU" };
                put(format!("about {} for {what}{share}{of_cpu}", time(ns)));
            }
        }
        if claimed.waited > 0 {
            let waiting = self.judgement.findings.iter().filter(|f| f.is_about_waiting());
            let shares = waiting.filter_map(|f| f.share_of_wall).fold(0.0, |sum, share| sum + share);
            let share =
                percent(shares).filter(|_| shares > 0.0).map_or_else(String::new, |p| format!("   {p} of wall"));
            put(format!("{} of waiting{share}", time(claimed.waited)));
        }
        if parts == 0 && claimed.later > 0 {
            line.push(Role::Plain, format!("none of it, but about {} while others ran or after", time(claimed.later)));
        } else if parts == 0 {
            line.push(Role::Warn, "unknown");
        }
        line
    }

    fn of_cpu(&self, toll_ns: u64) -> String {
        let h = &self.rec.header;
        let Some(own) = self.sentences().own_cpu_ns() else { return String::new() };
        // Cores mean something only if watching has not changed the wall time.
        if h.wall_ns >= LONG_RUN_NS && !self.slowed() {
            let cores = |ns: u64| ns as f64 / h.wall_ns as f64;
            return format!("   {:.2} of {:.2} cores", cores(toll_ns), cores(own));
        }
        self.part_of_cpu(toll_ns).map_or_else(String::new, |p| format!("   {p} of CPU"))
    }

    /// Returns `ns` as a part of the program's own processor time, if that is known.
    pub(super) fn part_of_cpu(&self, ns: u64) -> Option<String> {
        self.sentences().part_of_cpu(ns)
    }

    /// Returns the reasons to doubt the sum of tolls.
    fn doubts(&self) -> Vec<Line> {
        match (self.rec.own_cpu_ns(), self.rec.header.own_cpu_ns) {
            (Some(_), _) => vec![],
            (None, None | Some(0)) => self.doubt("the program's own processor time is not known: no shares of it"),
            (None, _) => self.doubt(
                "the calls come to more than the program's processor time: prices are too high for this run, \
                 or that time is too low, so there are no shares of it",
            ),
        }
    }

    fn doubt(&self, text: &str) -> Vec<Line> {
        self.labelled(2, "", 12, Role::Warn, text)
    }
}

/// Fraction of the estimated processor time by which an end of its interval must differ for the interval to be shown:
/// runs of one program differ by less.
const SPAN_TOLD: f64 = 0.05;
/// Returns a label for the sum of tolls.
fn label(text: &str) -> Line {
    let mut line = Line::of(Role::Faint, text);
    line.pad_to(11);
    line
}
