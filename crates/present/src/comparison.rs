//! The `prove` screen: two commands side by side.

use crate::answered;
use crate::servers::{APART, are_apart};
use crate::style::{Line, Role, Style};
use crate::text::{clean, columns, shorten, wrap};
use crate::units::{grouped, time, time_span};
use std::io::{self, Write};
use systoll_model::Exit;
use systoll_prove::{
    Agreement, CallCounts, Change, Comparison, Conclusion, CountChange, Difference, DiffersAt, Enough, Estimate,
    ExpectedBeside, ExpectedWin, GainReason, GainSource, Measured, Options, Outcome, Range, Sameness, Stopped,
    Undecided, Verdict,
};

/// Columns at which the table's columns end: label, `a`, `b`, change.
const ENDS: [usize; 4] = [18, 34, 52, 66];

/// Columns at which the table's columns end on a narrow terminal.
const NARROW_ENDS: [usize; 4] = [16, 28, 42, 54];

/// System calls that are listed one by one, at most: those whose number changed most.
const CALLS_SHOWN: usize = 3;

/// Writes the comparison, side by side. `counts` are the calls of watched runs of either side,
/// `expected` is the gain that findings predicted, `heads` are the names of the columns, e.g. `as
/// it is` and `cured: TZ=:/etc/localtime`.
///
/// # Errors
/// The errors of `w`.
pub fn write_comparison(
    w: &mut dyn Write,
    comparison: &Comparison,
    counts: Option<(&CallCounts, &CallCounts)>,
    expected: Option<ExpectedWin>,
    heads: (&str, &str),
    style: Style,
) -> io::Result<()> {
    write_outcome(w, comparison, counts, &style)?;
    if comparison.measured.is_none() && counts.is_none() {
        return write_answered(w, comparison, &style);
    }
    writeln!(w, "\n{}", head(heads, &style).render(&style))?;
    if let Some((a, b)) = counts {
        for line in count_lines(a, b, &style) {
            writeln!(w, "{}", line.render(&style))?;
        }
    }
    let Some(m) = &comparison.measured else { return write_answered(w, comparison, &style) };
    let measures = [("wall", [m.a.wall_ns, m.b.wall_ns], &m.wall), ("CPU", [m.a.cpu_ns, m.b.cpu_ns], &m.cpu)];
    for (label, sides, change) in measures {
        for line in measure_lines(label, sides, change, m.confidence, &style) {
            writeln!(w, "{}", line.render(&style))?;
        }
    }
    if measures.iter().any(|(_, sides, change)| are_apart(*sides, change)) {
        write_text(w, Line::of(Role::Plain, "  "), Role::Faint, APART.trim_start(), &style)?;
    }
    write_verdict(w, comparison, m, (counts, expected), &style)?;
    write_answered(w, comparison, &style)?;
    if comparison.watched {
        write_text(w, Line::of(Role::Strong, "  experiment "), Role::Plain, EXPERIMENT, &style)?;
    }
    Ok(())
}

/// Writes if both sides do the same, and where they differ.
fn write_outcome(
    w: &mut dyn Write,
    comparison: &Comparison,
    counts: Option<(&CallCounts, &CallCounts)>,
    style: &Style,
) -> io::Result<()> {
    let text = outcome_text(comparison, counts);
    write_text(w, Line::of(Role::Plain, "  "), outcome_role(comparison.outcome), &text, style)?;
    if let Some(at) = &comparison.differs_at {
        for line in differing_lines(at, style) {
            writeln!(w, "{}", line.render(style))?;
        }
        let help = "if that may differ: --same exit, or --same 'CMD' with a command that looks at what must not";
        write_text(w, Line::of(Role::Plain, "    "), Role::Faint, help, style)?;
    }
    Ok(())
}

/// Writes what the measurements `m` say, what was expected, and where the gain comes from.
fn write_verdict(
    w: &mut dyn Write,
    comparison: &Comparison,
    m: &Measured,
    (counts, expected): (Option<(&CallCounts, &CallCounts)>, Option<ExpectedWin>),
    style: &Style,
) -> io::Result<()> {
    let undecided = comparison.undecided(counts, expected);
    let (label, role, verdict) = match &undecided {
        Some(undecided) => ("  not decided   ", Role::Plain, undecided_text(undecided, counts)),
        None => verdict(m, counts, comparison.told_ns(counts, expected), comparison.watched),
    };
    writeln!(w)?;
    write_text(w, Line::of(Role::Strong, label), role, &verdict, style)?;
    if let Some(advice) = advice(m).filter(|_| undecided.is_none_or(|undecided| undecided.shown_by.is_none())) {
        write_text(w, Line::of(Role::Plain, "  to show smaller differences "), Role::Plain, advice, style)?;
    }
    if let Some(beside) = comparison.expected(expected) {
        let text = expected_text(&beside, m.cpu.verdict);
        write_text(w, Line::of(Role::Plain, "  expected "), Role::Plain, &text, style)?;
    }
    if let Some(source) = counts.and_then(|(a, b)| comparison.gain_source(a, b)) {
        write_text(w, Line::of(Role::Plain, "  of which "), Role::Plain, &gain_text(&source), style)?;
    }
    Ok(())
}

/// Writes `text` beside its label, on as many lines as it needs.
fn write_text(w: &mut dyn Write, label: Line, role: Role, text: &str, style: &Style) -> io::Result<()> {
    let indent = label.width();
    let mut label = Some(label);
    for part in wrap(text, style.columns().saturating_sub(indent)) {
        let line = label.take().unwrap_or_else(|| Line::of(Role::Plain, " ".repeat(indent)));
        writeln!(w, "{}", line.with(role, part).render(style))?;
    }
    Ok(())
}

/// Returns the columns at which the table's columns end.
fn ends(style: &Style) -> [usize; 4] {
    if style.columns() > ENDS[3] { ENDS } else { NARROW_ENDS }
}

/// Writes how many calls were answered in place; nothing if the two commands don't do the same.
fn write_answered(w: &mut dyn Write, comparison: &Comparison, style: &Style) -> io::Result<()> {
    let Some(answered) = comparison.answered_of_same() else { return Ok(()) };
    answered::lines(answered).iter().try_for_each(|line| writeln!(w, "{}", line.render(style)))
}

/// Returns the first line that differs, of both outputs.
fn differing_lines(at: &DiffersAt, style: &Style) -> [Line; 2] {
    let label = format!("    line {}   ", grouped(at.line));
    let indent = " ".repeat(columns(&label));
    let room = style.columns().saturating_sub(columns(&label) + 2).max(16);
    let side = |label: String, sign: &str, text: &Option<String>| {
        let line = Line::of(Role::Faint, label);
        match text {
            Some(text) => line.with(Role::Plain, format!("{sign} {}", shorten(&clean(text), room))),
            None => line.with(Role::Faint, format!("{sign} (ended)")),
        }
    };
    [side(label, "-", &at.a), side(indent, "+", &at.b)]
}

/// Remark below an experiment that answered calls in place.
const EXPERIMENT: &str = "the calls are answered without the kernel by code that watching put there: about what \
    a program that does not make them would win; no cure, nothing to keep";

/// Writes the predicted and the measured gain: `18 ms to 88 ms of CPU by the calls that are gone,
/// won 60 ms`. A gain that the runs don't show is not written.
fn expected_text(beside: &ExpectedBeside, shown: Verdict) -> String {
    let ns = |ns: f64| ns.max(0.0).round() as u64;
    let told = match beside.told.is_at_least {
        true => format!("at least {}", time(ns(beside.told.low_ns))),
        false => time_span(ns(beside.told.low_ns), ns(beside.told.high_ns)),
    };
    let won = if shown == Verdict::Faster { time(ns(beside.won_ns)) } else { "nothing that shows".into() };
    format!("{told} of CPU by the calls that are gone, won {won}")
}

fn gain_text(source: &GainSource) -> String {
    let calls = format!("the calls that are gone cost {}", time(source.calls_ns.max(0.0) as u64));
    let won = time(source.most_cpu_ns as u64);
    match source.why {
        GainReason::Waiting if source.calls_ns <= 0.0 => "most was waiting".into(),
        GainReason::Faults(a, b) => format!("{calls}; the rest are page faults, {} -> {}", grouped(a), grouped(b)),
        GainReason::Around => format!("{calls}; the rest is the program's own work around them"),
        GainReason::Kernel => format!("{calls}; the rest is the kernel's work outside them"),
        GainReason::Replaced => format!("{calls}, at most {won} is won: what is done in their place costs as well"),
        GainReason::NotWon => format!("{calls} in watched runs, of which at most {won} is won here"),
        GainReason::Waiting => format!("{calls}; the rest was waiting"),
    }
}

/// Writes the gains of several variants of a command, one line each.
///
/// # Errors
/// The errors of `w`.
pub fn write_ways(w: &mut dyn Write, ways: &[(&str, &Comparison)], style: Style) -> io::Result<()> {
    writeln!(w)?;
    for (i, (name, comparison)) in ways.iter().enumerate() {
        let mut line = Line::of(Role::Strong, if i == 0 { "  proved   " } else { "           " });
        line.push(Role::Plain, clean(name));
        line.pad_to(WAYS[0]);
        match &comparison.measured {
            None => line.push(Role::Bad, unmeasured_text(comparison)),
            Some(m) => {
                for (end, label, change) in [(WAYS[1], "wall", &m.wall), (WAYS[2], "CPU", &m.cpu)] {
                    let percent = format!("{label} {} %", signed(change.percent));
                    line.push(verdict_role(change.verdict), percent);
                    line.push(Role::Faint, format!(" ({} to {})", signed(change.low), signed(change.high)));
                    line.pad_to(end);
                }
            }
        }
        writeln!(w, "{}", line.render(&style).trim_end())?;
    }
    let note = "answered in place, the calls alone are gone: what is done around them remains";
    let in_place = ways.iter().any(|(_, c)| c.watched);
    if in_place { write_text(w, Line::of(Role::Plain, " ".repeat(11)), Role::Faint, note, &style) } else { Ok(()) }
}

/// Columns of [`write_ways`]: start of the wall time, start of the CPU time, end.
const WAYS: [usize; 3] = [46, 78, 78];

/// Writes that a cure has nothing to do because `command` makes none of the calls of `causes`.
///
/// # Errors
/// The errors of `w`.
pub fn write_idle(w: &mut dyn Write, command: &[String], causes: &[&str], style: &Style) -> io::Result<()> {
    let program = command.first().map_or_else(String::new, |program| clean(program));
    let text = format!("{program} makes none of the calls of {}", clean(&causes.join(", ")));
    write_text(w, Line::of(Role::Strong, "  nothing to prove   "), Role::Plain, &text, style)
}

/// Writes the way to keep a cure that won, and the price of the cure (`gives_up`).
///
/// # Errors
/// The errors of `w`.
pub fn write_keep(w: &mut dyn Write, lines: &[String], gives_up: &str, style: &Style) -> io::Result<()> {
    for (i, text) in lines.iter().enumerate() {
        let label = if i == 0 { "  keep it  " } else { "           " };
        writeln!(w, "{}", Line::of(Role::Strong, label).with(Role::Plain, clean(text)).render(style))?;
    }
    if gives_up.is_empty() {
        return Ok(());
    }
    write_text(w, Line::of(Role::Plain, "  gives up "), Role::Plain, &clean(gives_up), style)
}

fn outcome_role(outcome: Outcome) -> Role {
    match outcome {
        Outcome::Same(_) => Role::Faint,
        Outcome::Differs(_) => Role::Bad,
    }
}

fn outcome_text(comparison: &Comparison, counts: Option<(&CallCounts, &CallCounts)>) -> String {
    match (comparison.outcome, &comparison.measured) {
        (Outcome::Same(same), Some(m)) => {
            let watched = counts.map_or_else(String::new, |(a, b)| match a.runs.min(b.runs) {
                0 | 1 => String::new(),
                n => format!("; {n} watched runs a side for counts"),
            });
            let how = match comparison.watched {
                true => "both sides watched alike from inside",
                false => "timed without systoll",
            };
            format!("{}, {how}{watched}; {}", pairs_text(m), same_text(same))
        }
        (Outcome::Same(same), None) => same_text(same),
        (Outcome::Differs(difference), _) => difference_text(difference),
    }
}

/// Writes the reason why nothing was measured.
fn unmeasured_text(comparison: &Comparison) -> String {
    match comparison.answered_of_same() {
        Some(answered) => answered::too_few(answered),
        None => outcome_text(comparison, None),
    }
}

fn pairs_text(m: &Measured) -> String {
    let pairs = format!("{} interleaved pairs", m.pairs);
    match m.stopped {
        Stopped::Asked | Stopped::Decided => pairs,
        Stopped::LastLook => format!("{pairs} (the maximum)"),
        Stopped::Time => format!("{pairs} in the time allowed"),
        Stopped::Interrupted => format!("interrupted after {pairs}"),
    }
}

/// Writes which parts of the outcome were compared and are the same, and which were not compared.
fn same_text(same: Agreement) -> String {
    let what = match (same.stdout, same.stderr) {
        (Some(_), None) => "standard output",
        (None, Some(_)) => "standard error",
        _ => "output",
    };
    let output = same.output().map(|degree| match degree {
        Sameness::Exact | Sameness::Different => format!("same {what}"),
        Sameness::ButDigits => format!("same {what} but for numbers, which vary by themselves"),
        Sameness::ButDigitsAndOrder => {
            format!("same {what} but for numbers and the order of lines, which vary by themselves")
        }
    });
    let said = same.by.then(|| "the comparing command says the same of both".to_owned());
    let exit = same.exit.map(|exit| match exit {
        Exit::Code(0) => "same exit code".into(),
        exit => format!("both end with {exit}"),
    });
    let unseen = (output.is_none() && !same.by).then(|| "output was not compared".to_owned());
    if unseen.is_some() && exit.is_none() {
        return "neither output nor exit code was compared".into();
    }
    output.into_iter().chain(said).chain(exit).chain(unseen).collect::<Vec<_>>().join(", ")
}

fn difference_text(difference: Difference) -> String {
    let differs = |what: String| format!("{what}: they do not do the same, so nothing is claimed");
    match difference {
        Difference::Exit { a, b } => differs(format!("one ends with {a}, the other with {b}")),
        Difference::Stdout => differs("standard output differs".into()),
        Difference::Stderr => differs("standard error differs".into()),
        Difference::By => differs("what the comparing command says differs".into()),
        Difference::Hangs(limit) => differs(format!("the other was still running after {} s", limit.as_secs())),
        Difference::Itself => {
            "run twice as it is, it does not do the same, so nothing can be claimed of a change".into()
        }
    }
}

fn head((a, b): (&str, &str), style: &Style) -> Line {
    let mut line = Line::default();
    let ends = ends(style);
    line.right(ends[1], Role::Strong, &shorten(&clean(a), ends[1] - ends[0]));
    let b = clean(b);
    if columns(&b) <= ends[2] - ends[1] - 2 {
        line.right(ends[2], Role::Strong, &b);
    } else {
        line.push(Role::Plain, "   ");
        let room = style.columns().saturating_sub(line.width()).max(16);
        line.push(Role::Strong, shorten(&b, room));
    }
    line
}

/// Returns the lines of all calls and of the system calls whose number changed most.
fn count_lines(a: &CallCounts, b: &CallCounts, style: &Style) -> Vec<Line> {
    let ends = &ends(style);
    let total = count_line("  system calls", a.total, b.total, Role::Plain, ends);
    let remark = match (a.exact && b.exact, a.total.is_same() && b.total.is_same()) {
        (false, _) => "not exact: `systoll run` tells why",
        (true, true) if a.runs.min(b.runs) > 1 => "the same in all watched runs",
        _ => "",
    };
    let mut lines = with_remark(total, remark, ends, style);
    let changed = a.changed_in(b);
    lines.extend(
        changed.iter().take(CALLS_SHOWN).map(|c| count_line(&format!("    {}", c.syscall), c.a, c.b, Role::Name, ends)),
    );
    lines
}

/// Adds a remark to a row: behind the row, or on lines below it if there is no room.
fn with_remark(mut row: Line, remark: &str, ends: &[usize; 4], style: &Style) -> Vec<Line> {
    if row.width() + 3 + columns(remark) <= style.columns() {
        let remark = if remark.is_empty() { String::new() } else { format!("   {remark}") };
        row.push(Role::Faint, remark);
        return vec![row];
    }
    let indent = ends[0].saturating_sub(6);
    let parts = wrap(remark, style.columns().saturating_sub(indent));
    let under = |part| Line::of(Role::Plain, " ".repeat(indent)).with(Role::Faint, part);
    [row].into_iter().chain(parts.into_iter().map(under)).collect()
}

fn count_line(label: &str, a: Range, b: Range, role: Role, ends: &[usize; 4]) -> Line {
    let mut line = Line::of(role, label);
    line.right(ends[1], Role::Plain, &range(a));
    line.right(ends[2], Role::Plain, &range(b));
    let change = match a.change_to(b) {
        CountChange::Varies => "varies".into(),
        CountChange::Same => "the same".into(),
        CountChange::More(by) => format!("+{}", grouped(by)),
        CountChange::Fewer(by) => format!("-{}", grouped(by)),
    };
    line.right(ends[3], Role::Plain, &change);
    line
}

/// Writes a count, or its lowest and highest value if it varied.
fn range(r: Range) -> String {
    if r.is_same() { grouped(r.median) } else { format!("{}..{}", grouped(r.low), grouped(r.high)) }
}

fn measure_lines(label: &str, sides: [Estimate; 2], change: &Change, confidence: f64, style: &Style) -> Vec<Line> {
    let ns = |e: Estimate| time(e.median.max(0.0) as u64);
    let ends = &ends(style);
    let mut line = Line::of(Role::Plain, format!("  {label}"));
    line.right(ends[1], Role::Plain, &ns(sides[0]));
    line.right(ends[2], Role::Plain, &ns(sides[1]));
    let role = verdict_role(change.verdict);
    line.right(ends[3], role, &format!("{} %", signed(change.percent)));
    let between = format!(
        "{} % between {} and {}{}",
        confidence * 100.0,
        signed(change.low),
        signed(change.high),
        if change.verdict == Verdict::NoDifference { none_shown(change) } else { String::new() }
    );
    with_remark(line, &between, ends, style)
}

fn verdict_role(verdict: Verdict) -> Role {
    match verdict {
        Verdict::Faster => Role::Good,
        Verdict::Slower => Role::Bad,
        Verdict::NoDifference => Role::Plain,
    }
}

fn none_shown(change: &Change) -> String {
    if change.is_decided() {
        return ": no difference of 1 % or more".into();
    }
    if change.pairs_for_one_percent <= Options::MAX_PAIRS {
        return format!(": no difference shown; 1 % would need about {} pairs", change.pairs_for_one_percent);
    }
    ": no difference shown".into()
}

/// Returns advice if a difference of one percent could be shown only with more pairs than are ever
/// run.
fn advice(m: &Measured) -> Option<&'static str> {
    let is_noisy = |change: &Change| {
        change.verdict == Verdict::NoDifference
            && !change.is_decided()
            && change.pairs_for_one_percent > Options::MAX_PAIRS
    };
    (is_noisy(&m.wall) || is_noisy(&m.cpu)).then_some(
        "let each run do more work, or use a box with nothing else to do: these runs vary too much for more pairs to help",
    )
}

/// Writes a percentage with its sign and one digit; never `-0.0`.
fn signed(percent: f64) -> String {
    match format!("{percent:+.1}") {
        zero if zero == "-0.0" || zero == "+0.0" => "0.0".into(),
        text => text,
    }
}

/// Returns the verdict's label, colour and text.
fn verdict(
    m: &Measured,
    counts: Option<(&CallCounts, &CallCounts)>,
    told_ns: Option<f64>,
    experiment: bool,
) -> (&'static str, Role, String) {
    let said: Vec<String> =
        [phrase(&m.wall, "faster", "slower"), phrase(&m.cpu, "less CPU", "more CPU")].into_iter().flatten().collect();
    let conclusion = m.conclusion();
    if conclusion == Conclusion::NothingShown {
        // Either the runs rule the predicted gain out, or none was predicted.
        let most = (0.0 - m.cpu.low / 100.0 * m.a.cpu_ns.median).max(0.0);
        let text = match (fewer(counts), told_ns) {
            (Some(fewer), Some(_)) => format!("{fewer}; at most {} of CPU is won", time(most as u64)),
            (Some(fewer), None) => format!("{fewer}, no difference in time shown"),
            (None, _) => "no difference shown".into(),
        };
        return ("  not proved   ", Role::Plain, text);
    }
    let mut text = said.join(", ");
    if m.wall.verdict == Verdict::NoDifference {
        text.push_str(if m.wall.is_decided() { ", same wall time" } else { ", no difference in wall time shown" });
    }
    let (label, role) = match (conclusion, experiment) {
        (Conclusion::Less, false) => ("  proved   ", Role::Good),
        (Conclusion::Less, true) => ("  without them   ", Role::Good),
        _ => ("  shown    ", Role::Bad),
    };
    (label, role, text)
}

/// Writes `97 % fewer calls`.
fn fewer(counts: Option<(&CallCounts, &CallCounts)>) -> Option<String> {
    let percent = counts.and_then(|(a, b)| a.percent_fewer_in(b))?;
    Some(format!("{percent:.0} % fewer calls"))
}

/// Writes `11 % fewer calls; 4.0 ms of 87 ms CPU is below what these runs can show`.
fn undecided_text(undecided: &Undecided, counts: Option<(&CallCounts, &CallCounts)>) -> String {
    let [told, cpu] = [undecided.told_ns, undecided.cpu_ns].map(|ns| time(ns.max(0.0) as u64));
    let below = format!("{told} of {cpu} CPU is below what these runs can show");
    fewer(counts).map_or_else(|| below.clone(), |fewer| format!("{fewer}; {below}"))
}

/// Writes the command that would show a gain which these runs could not show.
///
/// # Errors
/// The errors of `w`.
pub fn write_to_decide(w: &mut dyn Write, command: &str, enough: Enough, style: &Style) -> io::Result<()> {
    let time = time(u64::try_from(enough.time.as_nanos()).unwrap_or(u64::MAX));
    write_text(
        w,
        Line::of(Role::Strong, "  to decide  "),
        Role::Plain,
        &format!("{}   (some {time})", clean(command)),
        style,
    )
}

/// Writes `38 times faster` or `12 % less CPU`. Returns `None` if no difference was shown.
fn phrase(change: &Change, less: &str, more: &str) -> Option<String> {
    let times = change.times_less();
    match change.verdict {
        Verdict::NoDifference => None,
        Verdict::Faster if times >= 10.0 => Some(format!("{times:.0} times {less}")),
        Verdict::Faster if times >= 2.0 => Some(format!("{times:.1} times {less}")),
        // "12 % faster" would be ambiguous, since it is the time that became less.
        Verdict::Faster => {
            Some(format!("{:.1} % {}", -change.percent, if less == "faster" { "less time" } else { less }))
        }
        Verdict::Slower if times <= 0.5 => {
            Some(format!("{:.1} times {}", 1.0 / times, if more == "slower" { "as long" } else { "the CPU" }))
        }
        Verdict::Slower => {
            Some(format!("{:.1} % {}", change.percent, if more == "slower" { "more time" } else { more }))
        }
    }
}

#[cfg(test)]
mod tests;
