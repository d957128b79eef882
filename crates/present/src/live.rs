//! The `prove --live` screen and its JSON (docs/reference/json.md, docs/reference/live.schema.json).

use crate::answered;
use crate::json::SCHEMA_VERSION;
use crate::servers::{APART, are_apart, change, cpu_change, head, rate_change, row, three_digits};
use crate::style::{Line, Role, Style};
use crate::text::clean;
use crate::units::time;
use serde_json::{Value, json};
use std::io::{self, Write};
use systoll_model::Sysno;
use systoll_prove::{Ended, Estimate, LiveComparison, LiveResult, LiveSide, LiveTurn, Work};

/// The subject of a comparison, in words.
#[derive(Clone, Copy, Debug)]
pub struct LiveSubject<'a> {
    /// The processes, with their names.
    pub processes: &'a [(i32, String)],
    /// The calls that were answered in place.
    pub elided: &'a [&'static str],
    /// Command of the load that drove the processes, if there was one.
    pub load: Option<&'a [String]>,
    /// The longest stop of a thread, ns, and what could not be put back in the processes; `None` if unknown.
    pub left: Option<(u64, &'a [String])>,
}

impl LiveSubject<'_> {
    /// Writes the processes: `process 7 (app)`, `3 processes (app)`.
    fn named(&self) -> String {
        match self.processes {
            [(pid, name)] => format!("process {pid} ({})", clean(name)),
            all => {
                format!("{} processes ({})", all.len(), all.first().map_or_else(String::new, |(_, name)| clean(name)))
            }
        }
    }
}

/// Writes the comparison of a running program's turns.
///
/// # Errors
/// Those of `w`.
pub fn write_live(w: &mut dyn Write, result: &LiveResult, of: LiveSubject<'_>, style: Style) -> io::Result<()> {
    match result {
        LiveResult::Both(c) => write_both(w, c, of, &style)?,
        LiveResult::Fails(why) => {
            let text = format!("with calls answered it does not serve as it did: {}; nothing is claimed", clean(why));
            writeln!(w, "  {}", style.paint(Role::Bad, &text))?;
        }
        LiveResult::Part(answered) => {
            answered::lines_of(answered, "turn").iter().try_for_each(|line| writeln!(w, "{}", line.render(&style)))?;
        }
        LiveResult::NoCalls(seconds) => {
            let calls = of.elided.join(", ");
            writeln!(w, "  {} made no {calls} call in {seconds:.1} s: nothing to win there now", of.named())?;
        }
    }
    write_left(w, of, &style)
}

fn write_both(w: &mut dyn Write, c: &LiveComparison, of: LiveSubject<'_>, style: &Style) -> io::Result<()> {
    let how = format!(
        "{}: {} turns of {} each way, interleaved, watched alike from inside",
        of.named(),
        c.turns,
        time((c.seconds.median * 1e9) as u64)
    );
    writeln!(w, "  {}\n", style.paint(Role::Faint, &how))?;
    let heading = format!("with: {} answered in place", of.elided.join(", "));
    writeln!(w, "{}", head(("as it is", &heading), style).render(style))?;
    let (unit, rate) = (unit(c.work), format!("{} a second", plural(c.work)));
    let count = |e: Estimate| three_digits(e.median);
    let ns = |e: Estimate| time(e.median.max(0.0) as u64);
    let mut apart = are_apart([c.a.per_second, c.b.per_second], &c.per_second);
    let mut lines = vec![row(&rate, (&count(c.a.per_second), &count(c.b.per_second)), &c.per_second, c.confidence)];
    if let (Some(a), Some(b), Some(change)) = (c.a.latency_ns, c.b.latency_ns, &c.latency) {
        lines.push(row("latency", (&ns(a), &ns(b)), change, c.confidence));
        apart |= are_apart([a, b], change);
    }
    if let (Some(a), Some(b), Some(change)) = (c.a.cpu_ns, c.b.cpu_ns, &c.cpu) {
        lines.push(row(&format!("CPU a {unit}"), (&ns(a), &ns(b)), change, c.confidence));
        apart |= are_apart([a, b], change);
    }
    let busy = |e: Estimate| format!("{:.3}", e.median);
    lines.push(row("CPUs kept busy", (&busy(c.a.processors), &busy(c.b.processors)), &c.processors, c.confidence));
    apart |= are_apart([c.a.processors, c.b.processors], &c.processors);
    lines.push(counts("calls a second", c.a.calls, c.b.calls));
    lines.push(counts(&format!("  {}", short_names(of.elided)), c.a.asked, c.b.asked));
    lines.extend(apart.then(|| Line::of(Role::Faint, APART)));
    for line in lines.into_iter().chain([Line::default()]).chain(answered::lines_of(&c.answered, "turn")) {
        writeln!(w, "{}", line.render(style))?;
    }
    if let Some(why) = &c.ended {
        let text = match why {
            Ended::Interrupted => "interrupted: this is what the turns before it show".to_owned(),
            Ended::Gone(why) => format!("{}: this is what the turns before it show", clean(why)),
        };
        writeln!(w, "  {text}")?;
    }
    writeln!(w, "{}", verdict(c).render(style))
}

/// Writes the calls' names if they are short, otherwise `of these`.
fn short_names(elided: &[&str]) -> String {
    let names = elided.join(", ");
    if names.len() <= 16 { names } else { "of these".into() }
}

fn counts(label: &str, a: Estimate, b: Estimate) -> Line {
    let figure = |e: Estimate| if e.median == 0.0 { "0".into() } else { three_digits(e.median) };
    crate::servers::figures(label, &figure(a), &figure(b))
}

fn write_left(w: &mut dyn Write, of: LiveSubject<'_>, style: &Style) -> io::Result<()> {
    let Some((longest, problems)) = of.left else { return Ok(()) };
    for problem in problems {
        writeln!(w, "  note: {}", clean(problem))?;
    }
    let text = format!("it runs on as before; none of its threads was stopped for longer than {}", time(longest));
    writeln!(w, "  {}", style.paint(Role::Faint, &text))
}

fn unit(work: Work) -> String {
    match work {
        Work::Requests => "request".into(),
        Work::Loads => "load".into(),
        Work::Calls(syscall) => format!("{syscall} call"),
        Work::Asked => "answered call".into(),
    }
}

fn plural(work: Work) -> String {
    match work {
        Work::Requests => "requests".into(),
        Work::Loads => "loads".into(),
        Work::Calls(syscall) => format!("{syscall} calls"),
        Work::Asked => "answered calls".into(),
    }
}

fn verdict(c: &LiveComparison) -> Line {
    let cpu = c.cpu.as_ref().and_then(|change| cpu_change(change, &unit(c.work)));
    let said: Vec<String> = rate_change(&c.per_second, &plural(c.work)).into_iter().chain(cpu).collect();
    if said.is_empty() {
        return Line::of(Role::Strong, "  not proved   ").with(Role::Plain, "no difference shown");
    }
    let label = if c.is_won() { "  without them   " } else { "  shown    " };
    Line::of(Role::Strong, label).with(if c.is_won() { Role::Good } else { Role::Bad }, said.join(", "))
}

/// Converts the comparison of a running program's turns, which are given in their order, to one JSON object. `version`
/// is that of systoll.
pub fn live_json(result: &LiveResult, turns: &[LiveTurn], of: LiveSubject<'_>, version: &str) -> Value {
    let both = match result {
        LiveResult::Both(c) => Some(&**c),
        _ => None,
    };
    let (problem, why) = match result {
        LiveResult::Fails(why) => (Some("failed"), Some(why.clone())),
        LiveResult::Part(answered) => (Some("answered-in-part"), Some(answered::too_few(answered))),
        LiveResult::NoCalls(seconds) => {
            (Some("no-calls"), Some(format!("no {} call in {seconds:.1} s", of.elided.join(", "))))
        }
        LiveResult::Both(_) => (None, None),
    };
    let answered = match result {
        LiveResult::Both(c) => Some(&c.answered),
        LiveResult::Part(answered) => Some(answered),
        _ => None,
    };
    let (ended, ended_why) = match both.and_then(|c| c.ended.as_ref()) {
        None => (None, None),
        Some(Ended::Interrupted) => (Some("interrupted"), None),
        Some(Ended::Gone(why)) => (Some("gone"), Some(why.clone())),
    };
    json!({
        "systoll": { "version": version, "schema": SCHEMA_VERSION },
        "processes": of.processes.iter().map(|(pid, name)| json!({ "pid": pid, "name": name })).collect::<Vec<_>>(),
        "elided": of.elided,
        "load": of.load,
        "turns": both.map_or(0, |c| c.turns),
        "seconds": both.map(|c| c.seconds.median),
        "confidence": both.map(|c| c.confidence),
        "unit": both.map(|c| unit_name(c.work)),
        "a": both.map(|c| side(&c.a)),
        "b": both.map(|c| side(&c.b)),
        "change": both.map(|c| json!({
            "per_second": change(&c.per_second),
            "latency": c.latency.as_ref().map(change),
            "cpu": c.cpu.as_ref().map(change),
            "processors": change(&c.processors),
        })),
        "verdict": both.map(|c| json!({
            "per_second": c.per_second.verdict.name(),
            "latency": c.latency.as_ref().map(|c| c.verdict.name()),
            "cpu": c.cpu.as_ref().map(|c| c.verdict.name()),
        })),
        "answered": answered.map(answered::json),
        "each": turns.iter().map(turn).collect::<Vec<_>>(),
        "ended": ended,
        "problem": problem,
        "why": why.or(ended_why),
        "left": of.left.map(|(longest, problems)| json!({ "longest_stop_ns": longest, "problems": problems })),
    })
}

fn unit_name(work: Work) -> String {
    match work {
        Work::Asked => "elided".into(),
        Work::Calls(syscall) => syscall.to_string(),
        Work::Requests | Work::Loads => unit(work),
    }
}

fn side(side: &LiveSide) -> Value {
    let estimate = |e: Estimate| json!({ "median": e.median, "low": e.low, "high": e.high });
    json!({
        "per_second": estimate(side.per_second),
        "latency_ns": side.latency_ns.map(estimate),
        "cpu_ns": side.cpu_ns.map(estimate),
        "processors": estimate(side.processors),
        "calls": estimate(side.calls),
        "elided_calls": estimate(side.asked),
        "failed": side.failed,
    })
}

fn turn(turn: &LiveTurn) -> Value {
    let name = |syscall: &Sysno| syscall.to_string();
    json!({
        "answered": turn.answered,
        "seconds": turn.seconds,
        "cpu_ns": turn.cpu_ns,
        "calls": turn.made.iter().map(|(syscall, n)| (name(syscall), json!(n))).collect::<serde_json::Map<_, _>>(),
        "in_place": turn.in_place.iter().map(|p| (name(&p.syscall), json!(p.answered))).collect::<serde_json::Map<_, _>>(),
        "per_second": turn.load.as_ref().map(|load| load.per_second),
    })
}
