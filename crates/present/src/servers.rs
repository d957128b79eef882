//! The `prove --serve` screen and its JSON (docs/reference/json.md, docs/reference/serve.schema.json).

use crate::answered;
use crate::json::{SCHEMA_VERSION, SideCommand};
use crate::style::{Line, Role, Style};
use crate::text::{clean, shorten};
use crate::units::{grouped, time};
use serde_json::{Value, json};
use std::io::{self, Write};
use systoll_prove::{Change, Estimate, ServeComparison, Served, ServerSide, Verdict};

/// Columns at which the table's columns end: label, `a`, `b`, change.
const ENDS: [usize; 4] = [22, 38, 54, 68];

/// Writes the comparison of two servers. `heads` are the names of the columns.
///
/// # Errors
/// The errors of `w`.
pub fn write_servers(w: &mut dyn Write, served: &Served, heads: (&str, &str), style: Style) -> io::Result<()> {
    let c = match served {
        Served::Both(c) => c,
        Served::Fails(why) => {
            let text = format!("changed, it does not serve as it did: {}; nothing is claimed", clean(why));
            return writeln!(w, "  {}", style.paint(Role::Bad, &text));
        }
        Served::Part(answered) => {
            return answered::lines(answered).iter().try_for_each(|line| writeln!(w, "{}", line.render(&style)));
        }
    };
    let how = if c.watched { "both sides watched alike from inside" } else { "unwatched" };
    let how_compared = format!("{} turns a side, interleaved, {how}; what is answered is not compared", c.turns);
    writeln!(w, "  {}\n", style.paint(Role::Faint, &how_compared))?;
    writeln!(w, "{}", head(heads, &style).render(&style))?;
    let (rate, unit) = if c.told { ("requests a second", "request") } else { ("loads a second", "load") };
    let ns = |e: Estimate| time(e.median.max(0.0) as u64);
    let line = |label: &str, a: String, b: String, change: &Change| row(label, (&a, &b), change, c.confidence);
    let count = |e: Estimate| three_digits(e.median);
    let mut lines = vec![line(rate, count(c.a.per_second), count(c.b.per_second), &c.per_second)];
    let mut apart = are_apart([c.a.per_second, c.b.per_second], &c.per_second);
    if let (Some(a), Some(b), Some(change)) = (c.a.latency_ns, c.b.latency_ns, &c.latency) {
        lines.push(line("latency", ns(a), ns(b), change));
        apart |= are_apart([a, b], change);
    }
    if let (Some(a), Some(b), Some(change)) = (c.a.cpu_ns, c.b.cpu_ns, &c.cpu) {
        lines.push(line(&format!("CPU a {unit}"), ns(a), ns(b), change));
        apart |= are_apart([a, b], change);
    }
    lines.extend(calls(c, unit));
    lines.extend(apart.then(|| Line::of(Role::Faint, APART)));
    for line in lines {
        writeln!(w, "{}", line.render(&style))?;
    }
    for (name, side) in [("as it is", &c.a), ("changed", &c.b)] {
        if side.killed > 0 {
            writeln!(w, "  {name}, it had to be killed after {} turns: it did not end on SIGTERM", side.killed)?;
        }
        if side.failed > 0 {
            writeln!(w, "  {name}, {} requests failed", grouped(side.failed))?;
        }
    }
    writeln!(w, "\n{}", verdict(c, unit).render(&style))
}

/// Points of percent between a change and the ratio of the two medians beside it from which on a note says why they differ.
const SHOWN_APART: f64 = 1.0;

/// The note under a table in which they differ.
pub(crate) const APART: &str =
    "  the change is the median over pairs that ran one after the other; each column has its own median";

/// Returns true if a change does not follow from the two medians that are shown beside it.
pub(crate) fn are_apart(sides: [Estimate; 2], change: &Change) -> bool {
    let [a, b] = sides.map(|side| side.median);
    a > 0.0 && ((b / a - 1.0) * 100.0 - change.percent).abs() > SHOWN_APART
}

/// Writes a change of a rate: `12.0 % more requests a second`, `3.3 times as many requests a second`.
pub(crate) fn rate_change(change: &Change, plural: &str) -> Option<String> {
    let times = 1.0 + change.percent / 100.0;
    match change.verdict {
        Verdict::NoDifference => None,
        _ if times >= 2.0 => Some(format!("{times:.1} times as many {plural} a second")),
        Verdict::Faster => Some(format!("{:.1} % more {plural} a second", change.percent)),
        Verdict::Slower => Some(format!("{:.1} % fewer {plural} a second", -change.percent)),
    }
}

/// Writes a change of the processor time of a `unit` of work: `12.0 % less CPU a request`, `3.3 times the CPU a request`.
pub(crate) fn cpu_change(change: &Change, unit: &str) -> Option<String> {
    let times = 1.0 + change.percent / 100.0;
    match change.verdict {
        Verdict::NoDifference => None,
        _ if times >= 2.0 => Some(format!("{times:.1} times the CPU a {unit}")),
        Verdict::Faster => Some(format!("{:.1} % less CPU a {unit}", -change.percent)),
        Verdict::Slower => Some(format!("{:.1} % more CPU a {unit}", change.percent)),
    }
}

/// Writes a figure with at least three digits: 0.2 and 0.2 would hide a difference of a tenth.
pub(crate) fn three_digits(figure: f64) -> String {
    match figure {
        f if f >= 100.0 => grouped(f as u64),
        f if f >= 10.0 => format!("{f:.1}"),
        f if f >= 1.0 => format!("{f:.2}"),
        f => format!("{f:.3}"),
    }
}

pub(crate) fn head((a, b): (&str, &str), style: &Style) -> Line {
    let mut line = Line::default();
    line.right(ENDS[1], Role::Strong, &shorten(&clean(a), ENDS[1] - ENDS[0]));
    line.push(Role::Plain, "   ");
    let room = style.columns().saturating_sub(line.width()).max(16);
    line.push(Role::Strong, shorten(&clean(b), room));
    line
}

pub(crate) fn row(label: &str, (a, b): (&str, &str), change: &Change, confidence: f64) -> Line {
    let mut line = figures(label, a, b);
    let role = match change.verdict {
        Verdict::Faster => Role::Good,
        Verdict::Slower => Role::Bad,
        Verdict::NoDifference => Role::Plain,
    };
    line.right(ENDS[3], role, &format!("{:+.1} %", change.percent));
    let none = if change.verdict == Verdict::NoDifference { ": no difference shown" } else { "" };
    line.push(
        Role::Faint,
        format!("   {} % between {:+.1} and {:+.1}{none}", confidence * 100.0, change.low, change.high),
    );
    line
}

/// Returns a line of the table with both sides' figures and no change.
pub(crate) fn figures(label: &str, a: &str, b: &str) -> Line {
    let mut line = Line::of(Role::Plain, format!("  {label}"));
    line.right(ENDS[1], Role::Plain, a);
    line.right(ENDS[2], Role::Plain, b);
    line
}

/// Returns the line with the calls for each request, of the watched turns.
fn calls(c: &ServeComparison, unit: &str) -> Option<Line> {
    let (a, b) = (by_work(&c.a)?, by_work(&c.b)?);
    let mut line = Line::of(Role::Plain, format!("  calls a {unit}"));
    line.right(ENDS[1], Role::Plain, &format!("{a:.2}"));
    line.right(ENDS[2], Role::Plain, &format!("{b:.2}"));
    line.right(ENDS[3], Role::Plain, &format!("{:+.2}", b - a));
    line.push(Role::Faint, "   a watched turn of either, start and end included");
    Some(line)
}

fn by_work(side: &ServerSide) -> Option<f64> {
    let (calls, work) = side.calls.as_ref()?;
    (*work > 0).then(|| calls.total.median as f64 / *work as f64)
}

fn verdict(c: &ServeComparison, unit: &str) -> Line {
    let plural = if unit == "request" { "requests" } else { "loads" };
    let cpu = c.cpu.as_ref().and_then(|change| cpu_change(change, unit));
    let said: Vec<String> = rate_change(&c.per_second, plural).into_iter().chain(cpu).collect();
    if said.is_empty() {
        return Line::of(Role::Strong, "  not proved   ").with(Role::Plain, "no difference shown");
    }
    let label = match (c.is_won(), c.watched) {
        (true, false) => "  proved   ",
        (true, true) => "  without them   ",
        (false, _) => "  shown    ",
    };
    Line::of(Role::Strong, label).with(if c.is_won() { Role::Good } else { Role::Bad }, said.join(", "))
}

/// Converts the comparison of two servers to one JSON object. `version` is that of systoll.
pub fn serve_json(served: &Served, sides: (SideCommand<'_>, SideCommand<'_>), load: &[String], version: &str) -> Value {
    let both = match served {
        Served::Both(c) => Some(c),
        Served::Fails(_) | Served::Part(_) => None,
    };
    let (problem, why) = match served {
        Served::Fails(why) => (Some("failed"), Some(why.clone())),
        Served::Part(answered) => (Some("answered-in-part"), Some(answered::too_few(answered))),
        Served::Both(_) => (None, None),
    };
    json!({
        "systoll": { "version": version, "schema": SCHEMA_VERSION },
        "load": load,
        "turns": both.map_or(0, |c| c.turns),
        "confidence": both.map(|c| c.confidence),
        "unit": both.map(|c| if c.told { "request" } else { "load" }),
        "watched": both.is_some_and(|c| c.watched),
        "a": side(sides.0, both.map(|c| &c.a)),
        "b": side(sides.1, both.map(|c| &c.b)),
        "change": both.map(|c| json!({
            "per_second": change(&c.per_second),
            "latency": c.latency.as_ref().map(change),
            "cpu": c.cpu.as_ref().map(change),
        })),
        "verdict": both.map(|c| json!({
            "per_second": c.per_second.verdict.name(),
            "latency": c.latency.as_ref().map(|c| c.verdict.name()),
            "cpu": c.cpu.as_ref().map(|c| c.verdict.name()),
        })),
        "problem": problem,
        "why": why,
    })
}

fn side(asked: SideCommand<'_>, side: Option<&ServerSide>) -> Value {
    let estimate = |e: Estimate| json!({ "median": e.median, "low": e.low, "high": e.high });
    json!({
        "command": asked.command,
        "env": asked.env,
        "elided": asked.elided,
        "per_second": side.map(|s| estimate(s.per_second)),
        "latency_ns": side.and_then(|s| s.latency_ns).map(estimate),
        "cpu_ns": side.and_then(|s| s.cpu_ns).map(estimate),
        "calls": side.and_then(by_work),
        "failed": side.map(|s| s.failed),
        "killed": side.map(|s| s.killed),
    })
}

pub(crate) fn change(c: &Change) -> Value {
    json!({ "percent": c.percent, "low": c.low, "high": c.high })
}
