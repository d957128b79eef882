//! `systoll box`: the price of system calls on this machine, as a screen and as JSON.
//!
//! Invariant: a figure that was not measured is shown as missing, with the reason, and never replaced by another.

use crate::json::SCHEMA_VERSION;
use crate::style::{Line, Role, Style, flow};
use crate::text::{clean, sentence};
use crate::units::grouped;
use serde_json::{Value, json};
use std::io;
use systoll_model::{BoxFigure, BoxReport, Figure, Host, Mitigation, Probe, Seccomp, Spread};

/// Column at which figures end; the next constant is the column at which their notes start.
const FIGURES: usize = 35;
const NOTES: usize = FIGURES + 4;

/// Columns that notes need beside figures. With fewer, they are on lines below.
const BESIDE: usize = 30;

/// Column at which notes below the figures start.
const BELOW: usize = 8;

/// Writes the screen of `systoll box`.
///
/// # Errors
/// The errors of `w`.
pub fn write_box(w: &mut dyn io::Write, report: &BoxReport, style: &Style) -> io::Result<()> {
    let screen = Screen { report, width: style.columns() };
    let mut lines = screen.head();
    lines.push(Line::default());
    let mut title = Line::of(Role::Faint, "  crossing");
    title.pad_to(FIGURES - 2);
    lines.push(title.with(Role::Faint, "ns"));
    lines.extend(screen.roads());
    lines.extend(screen.seccomp_adds());
    lines.extend(screen.watching());
    lines.extend(screen.doubts());
    lines.iter().try_for_each(|line| writeln!(w, "{}", line.render(style)))
}

struct Screen<'a> {
    report: &'a BoxReport,
    width: usize,
}

impl Screen<'_> {
    fn head(&self) -> Vec<Line> {
        let h = &self.report.host;
        let box_of = match &h.virtualization {
            Some(hypervisor) => format!("{}, {}, in a VM ({})", cpu(h), cpus(h), clean(hypervisor)),
            None => format!("{}, {}", cpu(h), cpus(h)),
        };
        let known = |what: &str, value: &str| match value {
            "" => format!("{what} not known"),
            value => format!("{what} {}", clean(value)),
        };
        let facts = [box_of, known("Linux", &h.kernel), known("clock source", &h.clock_source)];
        let facts = facts.into_iter().map(|text| Line::of(Role::Strong, text)).collect();
        let mut lines = flow(Line::of(Role::Plain, "  "), facts, 4, 4, self.width);
        let label = Line::of(Role::Faint, "  mitigations   ");
        let states = match &self.report.mitigations {
            Some(all) if all.is_empty() => vec![Line::of(Role::Plain, "none that bears on a crossing")],
            Some(all) => all.iter().map(|m| Line::of(Role::Plain, mitigation(m))).collect(),
            None => vec![Line::of(Role::Warn, "not known: the kernel does not tell")],
        };
        lines.extend(flow(label, states, 3, 16, self.width));
        lines
    }

    fn roads(&self) -> Vec<Line> {
        use Probe::*;
        let rows: [(Probe, &str, Option<String>); 12] = [
            (FunctionCall, "a function call", None),
            (ClockVdso, "clock_gettime, vDSO", self.vdso_missing()),
            (TimeVdso, "time, vDSO", None),
            (Crossing, "getppid", Some(self.gate())),
            (ClockKernel, "clock_gettime, kernel", self.clock_in_kernel()),
            (Sigprocmask, "rt_sigprocmask", Some("no change to the mask".into())),
            (StatLocaltime, "stat /etc/localtime", self.stats()),
            (ReadByte, "read 1 byte", self.bulk(ReadBulk)),
            (WriteByte, "write 1 byte", self.bulk(WriteBulk)),
            (FutexWake, "futex wake", Some("no thread waits".into())),
            (MembarrierGlobal, "membarrier GLOBAL", Some("nearly all of it waiting".into())),
            (MembarrierPrivate, "  PRIVATE_EXPEDITED", self.while_running()),
        ];
        let rows = rows.iter().flat_map(|(probe, label, note)| self.row(&format!("    {label}"), *probe, note.clone()));
        rows.collect()
    }

    /// Returns a probe's lines: label, figure and note.
    fn row(&self, label: &str, probe: Probe, note: Option<String>) -> Vec<Line> {
        let mut line = Line::of(Role::Plain, label);
        let mut notes = vec![];
        let figure = self.figure(probe);
        match figure.map(|f| &f.figure) {
            Some(Figure::Measured(spread)) => {
                let text = ns(figure.and_then(BoxFigure::quoted).unwrap_or_default());
                line.pad_to(FIGURES.saturating_sub(text.len()));
                line.push(Role::Strong, text);
                let wide = spread_if_wide(probe, *spread);
                let separator = if wide.is_some() { ";" } else { "" };
                notes.extend(note.map(|n| Line::of(Role::Faint, n + separator)));
                notes.extend(wide.map(|n| Line::of(Role::Warn, n)));
            }
            Some(Figure::NotMeasured(why)) => {
                line.pad_to(FIGURES - 1);
                line.push(Role::Faint, "-");
                notes.push(Line::of(Role::Warn, format!("not measured: {}", sentence(why))));
            }
            None => return vec![],
        }
        if self.width < NOTES + BESIDE && !notes.is_empty() {
            let below = flow(Line::of(Role::Plain, " ".repeat(BELOW)), notes, 1, BELOW, self.width);
            return std::iter::once(line).chain(below).collect();
        }
        line.pad_to(NOTES);
        flow(line, notes, 1, NOTES, self.width)
    }

    fn seccomp_adds(&self) -> Vec<Line> {
        let note = self.quoted(Probe::SeccompArgumentAdds).map(|n| format!("{} if it looks at an argument", ns(n)));
        self.row("  a seccomp filter adds", Probe::SeccompAdds, note)
    }

    fn watching(&self) -> Vec<Line> {
        if self.report.watch_ns.is_empty() {
            return vec![];
        }
        let all = self.report.watch_ns.iter();
        let mut parts: Vec<_> = all.map(|(backend, spread)| format!("{} {}", clean(backend), ns(spread.min))).collect();
        let last = parts.len() - 1;
        parts.iter_mut().take(last).for_each(|part| part.push(','));
        let parts = parts.into_iter().map(|part| Line::of(Role::Strong, part)).collect();
        flow(Line::of(Role::Plain, "  being watched adds: "), parts, 1, BELOW, self.width)
    }

    fn doubts(&self) -> Vec<Line> {
        let filter = match self.report.seccomp {
            Seccomp::None => None,
            Seccomp::Strict => Some("these calls are in seccomp's strict mode".to_owned()),
            Seccomp::Filters(0) => Some("every figure includes a seccomp filter that was here already".to_owned()),
            Seccomp::Filters(1) => Some("every figure includes one seccomp filter that was here already".to_owned()),
            Seccomp::Filters(n) => Some(format!("every figure includes {n} seccomp filters that were here already")),
            Seccomp::Unknown => Some("whether a seccomp filter was here already is not known".to_owned()),
        };
        let noise = self.report.noisy().then(|| {
            let (before, after) = (self.report.crossing_before, self.report.crossing_after);
            let (low, high) = (before.min.min(after.min), before.high.max(after.high));
            format!("this box was not quiet: a getppid took {} to {} ns; look again when it is", ns(low), ns(high))
        });
        let all: Vec<_> = filter.into_iter().chain(noise).collect();
        let mut lines = vec![];
        for text in all {
            lines.extend(
                crate::text::wrap(&text, self.width - 2).iter().map(|l| Line::of(Role::Warn, format!("  {l}"))),
            );
        }
        if !lines.is_empty() {
            lines.insert(0, Line::default());
        }
        lines
    }

    fn figure(&self, probe: Probe) -> Option<&BoxFigure> {
        self.report.figures.iter().find(|f| f.probe == probe)
    }

    fn quoted(&self, probe: Probe) -> Option<f64> {
        self.figure(probe)?.quoted()
    }

    fn gate(&self) -> String {
        let gate = "the gate: every call pays about this";
        match (self.quoted(Probe::Crossing), self.quoted(Probe::CrossingAlone)) {
            (Some(call), Some(alone)) if call > 1.1 * alone => {
                format!("{gate}; {} without the return that follows", ns(alone))
            }
            _ => gate.into(),
        }
    }

    /// Returns the ratio of the price of the kernel's clock to that of the vDSO's.
    fn clock_times(&self) -> Option<f64> {
        let (vdso, kernel) = (self.quoted(Probe::ClockVdso)?, self.quoted(Probe::ClockKernel)?);
        (vdso > 0.0).then(|| kernel / vdso)
    }

    fn vdso_missing(&self) -> Option<String> {
        let missing = self.clock_times().is_some_and(|t| t < 1.4);
        missing.then(|| "as expensive as the kernel's: this clock source can't avoid it".into())
    }

    fn clock_in_kernel(&self) -> Option<String> {
        let times = self.clock_times().filter(|t| *t >= 1.4)?;
        Some(format!("the same answer as the vDSO's, {} times as expensive", number(times)))
    }

    fn stats(&self) -> Option<String> {
        let own = self.figure(Probe::StatLocaltime).and_then(|f| f.on.as_deref()).map(sentence);
        let other = self.figure(Probe::StatPlain).and_then(|f| Some((f.on.as_deref()?, f.quoted()?)));
        let other = other.map(|(path, n)| format!("{} {}", sentence(path), ns(n)));
        let both: Vec<_> = own.into_iter().chain(other).collect();
        (!both.is_empty()).then(|| both.join("; "))
    }

    fn bulk(&self, probe: Probe) -> Option<String> {
        let (ns, bytes) = (self.quoted(probe)?, probe.bytes()?);
        Some(format!("{} KiB: {:.2} ns a byte", bytes / 1024, ns / bytes as f64))
    }

    fn while_running(&self) -> Option<String> {
        let figure = self.figure(Probe::MembarrierPrivateRunning)?;
        Some(match (&figure.figure, figure.quoted()) {
            (Figure::Measured(_), Some(n)) => format!("{} while another of its threads runs", ns(n)),
            (Figure::NotMeasured(why), _) => format!("while another thread runs: not measured: {}", sentence(why)),
            _ => return None,
        })
    }
}

fn cpu(host: &Host) -> String {
    if host.cpu.is_empty() { "a processor that doesn't tell its model".into() } else { sentence(&host.cpu) }
}

fn cpus(host: &Host) -> String {
    if host.cpus == 1 { "1 CPU".into() } else { format!("{} CPUs", host.cpus) }
}

fn mitigation(m: &Mitigation) -> String {
    // The kernel's texts about branches already name the mitigation.
    if m.name == "branches" { clean(&m.state) } else { format!("{} {}", clean(&m.name), clean(&m.state)) }
}

/// Returns the spread, if the figure alone would be misleading.
fn spread_if_wide(probe: Probe, s: Spread) -> Option<String> {
    let (low, middle, high) = (ns(s.min), ns(s.median), ns(s.high));
    let wide = s.median > 1.1 * s.min || s.high > 1.5 * s.min;
    match (wide && low != high, probe.quotes_median()) {
        (false, _) => None,
        (true, true) => Some(format!("{low} to {high} here")),
        (true, false) => Some(format!("{low} to {high} here, {middle} in the middle")),
    }
}

/// Writes a time in ns for a column, with tenths if it is below ten.
fn ns(ns: f64) -> String {
    if !ns.is_finite() || ns < 0.0 {
        "?".into()
    } else if ns < 9.95 {
        format!("{ns:.1}")
    } else {
        grouped(ns.round() as u64)
    }
}

/// Writes a factor; up to ten, it is written as a word.
fn number(factor: f64) -> String {
    const WORDS: [&str; 9] = ["two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"];
    let rounded = factor.round() as usize;
    match WORDS.get(rounded.wrapping_sub(2)) {
        Some(word) => (*word).into(),
        None if rounded < 2 => format!("{factor:.1}"),
        None => rounded.to_string(),
    }
}

/// Converts the report to one JSON object (docs/reference/box.schema.json): times in ns; fields are added,
/// never renamed.
pub fn box_json(report: &BoxReport) -> Value {
    let h = &report.host;
    json!({
        "systoll": { "version": env!("CARGO_PKG_VERSION"), "schema": SCHEMA_VERSION },
        "host": {
            "cpu": h.cpu,
            "cpus": h.cpus,
            "kernel": h.kernel,
            "clock_source": h.clock_source,
            "virtualization": h.virtualization,
        },
        "mitigations": report.mitigations.as_ref().map(|all| all.iter().map(|m| json!({
            "name": m.name,
            "state": m.state,
            "kernel_says": m.told,
        })).collect::<Vec<_>>()),
        "seccomp": seccomp(report.seccomp),
        "noisy": report.noisy(),
        "crossing_ns": { "before": spread(report.crossing_before), "after": spread(report.crossing_after) },
        "figures": report.figures.iter().map(figure).collect::<Vec<_>>(),
        "watch_ns": report.watch_ns.iter()
            .map(|(backend, s)| json!({ "backend": backend, "ns": spread(*s) }))
            .collect::<Vec<_>>(),
    })
}

fn seccomp(state: Seccomp) -> Value {
    match state {
        Seccomp::None => json!({ "mode": "none", "filters": 0 }),
        Seccomp::Strict => json!({ "mode": "strict", "filters": 0 }),
        Seccomp::Filters(n) => json!({ "mode": "filter", "filters": (n > 0).then_some(n) }),
        Seccomp::Unknown => json!({ "mode": null, "filters": null }),
    }
}

fn figure(figure: &BoxFigure) -> Value {
    let (ns, why) = match &figure.figure {
        Figure::Measured(s) => (spread(*s), None),
        Figure::NotMeasured(why) => (Value::Null, Some(why)),
    };
    json!({
        "id": figure.probe.id(),
        "on": figure.on,
        "bytes": figure.probe.bytes(),
        "quoted_ns": figure.quoted().filter(|n| n.is_finite()),
        "ns": ns,
        "not_measured": why,
    })
}

fn spread(s: Spread) -> Value {
    json!({ "min": s.min, "median": s.median, "high": s.high })
}
