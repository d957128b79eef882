//! The `prove` screen: two forms of a program side by side.

use crate::answered;
use crate::style::{Line, Role, Style};
use crate::text::{clean, columns, shorten};
use crate::units::{grouped, time};
use std::io::{self, Write};
use systoll_model::Exit;
use systoll_prove::{
    CallCounts, Change, Comparison, Conclusion, CountChange, Difference, DiffersAt, Estimate, GainReason, GainSource,
    Measured, Outcome, Range, Sameness, Stopped, Verdict,
};

/// Where the columns end: label, `a`, `b`, change.
const ENDS: [usize; 4] = [18, 34, 52, 66];

/// System calls listed one by one, at most: those whose number changed most.
const CALLS_SHOWN: usize = 3;

/// Writes the comparison, side by side. `counts` are the calls of watched runs of either side;
/// `heads` are the names of the columns, e.g. `as it is` and `cured: TZ=:/etc/localtime`.
///
/// # Errors
/// Where `w` fails.
pub fn write_comparison(
    w: &mut dyn Write,
    comparison: &Comparison,
    counts: Option<(&CallCounts, &CallCounts)>,
    heads: (&str, &str),
    style: Style,
) -> io::Result<()> {
    let text = outcome_text(comparison, counts);
    let outcome = Line::of(Role::Plain, "  ").with(outcome_role(comparison.outcome), text);
    writeln!(w, "{}", outcome.render(&style))?;
    if let Some(at) = &comparison.differs_at {
        for line in differing_lines(at, &style) {
            writeln!(w, "{}", line.render(&style))?;
        }
    }
    if comparison.measured.is_none() && counts.is_none() {
        return write_answered(w, comparison, &style);
    }
    writeln!(w, "\n{}", head(heads, &style).render(&style))?;
    if let Some((a, b)) = counts {
        for line in count_lines(a, b) {
            writeln!(w, "{}", line.render(&style))?;
        }
    }
    let Some(m) = &comparison.measured else { return write_answered(w, comparison, &style) };
    for (label, a, b, change) in [("wall", m.a.wall_ns, m.b.wall_ns, &m.wall), ("CPU", m.a.cpu_ns, m.b.cpu_ns, &m.cpu)]
    {
        writeln!(w, "{}", measure_line(label, a, b, change, m.confidence).render(&style))?;
    }
    writeln!(w, "\n{}", verdict_line(m, counts, comparison.watched).render(&style))?;
    if let Some(source) = counts.and_then(|(a, b)| comparison.gain_source(a, b)) {
        writeln!(w, "{}", Line::of(Role::Plain, "  of which ").with(Role::Plain, gain_text(&source)).render(&style))?;
    }
    write_answered(w, comparison, &style)?;
    if comparison.watched {
        for (i, text) in EXPERIMENT.iter().enumerate() {
            let label = if i == 0 { "  experiment " } else { "             " };
            writeln!(w, "{}", Line::of(Role::Strong, label).with(Role::Plain, *text).render(&style))?;
        }
    }
    Ok(())
}

/// Of calls that were to be answered in place, how many were; nothing where the two do not do the same.
fn write_answered(w: &mut dyn Write, comparison: &Comparison, style: &Style) -> io::Result<()> {
    let Some(answered) = comparison.answered_of_same() else { return Ok(()) };
    answered::lines(answered).iter().try_for_each(|line| writeln!(w, "{}", line.render(style)))
}

/// The first line that differs, of both, and what to do where that may be.
fn differing_lines(at: &DiffersAt, style: &Style) -> [Line; 3] {
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
    let help = "    if that may differ: --same exit, or --same 'CMD' with a command that looks at what must not";
    [side(label, "-", &at.a), side(indent, "+", &at.b), Line::of(Role::Faint, help)]
}

/// What calls answered in place stand for.
const EXPERIMENT: [&str; 2] = [
    "the calls are answered without the kernel by code that watching put there: about what",
    "a program that does not make them would win; no cure, nothing to keep",
];

fn gain_text(source: &GainSource) -> String {
    let calls = format!("the calls that are gone cost {}", time(source.calls_ns.max(0.0) as u64));
    match source.why {
        GainReason::Waiting if source.calls_ns <= 0.0 => "most was waiting".into(),
        GainReason::Faults(a, b) => format!("{calls}; the rest are page faults, {} -> {}", grouped(a), grouped(b)),
        GainReason::Around => format!("{calls}; the rest is the program's own work around them"),
        GainReason::Kernel => format!("{calls}; the rest is the kernel's work outside them"),
        GainReason::Replaced => format!("{calls}, but what is done in their place costs as well"),
        GainReason::Waiting => format!("{calls}; the rest was waiting"),
    }
}

/// Writes what several ways to the same end win, one line each.
///
/// # Errors
/// Where `w` fails.
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
    let note = "answered in place, the calls alone are gone: what is done around them stays";
    let in_place = ways.iter().any(|(_, c)| c.watched);
    if in_place { writeln!(w, "           {}", style.paint(Role::Faint, note)) } else { Ok(()) }
}

/// Where the columns of [`write_ways`] begin: wall, CPU, and where they end.
const WAYS: [usize; 3] = [46, 78, 78];

/// Writes that a cure has nothing to do: `command` makes none of the calls that `causes` are known by.
///
/// # Errors
/// Where `w` fails.
pub fn write_idle(w: &mut dyn Write, command: &[String], causes: &[&str], style: &Style) -> io::Result<()> {
    let program = command.first().map_or_else(String::new, |program| clean(program));
    let text = format!("{program} makes none of the calls of {}", clean(&causes.join(", ")));
    writeln!(w, "{}", Line::of(Role::Strong, "  nothing to prove   ").with(Role::Plain, text).render(style))
}

/// Writes how to keep a cure that won, and what it gives up.
///
/// # Errors
/// Where `w` fails.
pub fn write_keep(w: &mut dyn Write, lines: &[String], gives_up: &str, style: &Style) -> io::Result<()> {
    for (i, text) in lines.iter().enumerate() {
        let label = if i == 0 { "  keep it  " } else { "           " };
        writeln!(w, "{}", Line::of(Role::Strong, label).with(Role::Plain, clean(text)).render(style))?;
    }
    if gives_up.is_empty() {
        return Ok(());
    }
    writeln!(w, "{}", Line::of(Role::Plain, "  gives up ").with(Role::Plain, clean(gives_up)).render(style))
}

fn outcome_role(outcome: Outcome) -> Role {
    match outcome {
        Outcome::Same { .. } => Role::Faint,
        Outcome::Differs(_) => Role::Bad,
    }
}

fn outcome_text(comparison: &Comparison, counts: Option<(&CallCounts, &CallCounts)>) -> String {
    match (comparison.outcome, &comparison.measured) {
        (Outcome::Same { exit, output }, Some(m)) => {
            let watched = counts.map_or_else(String::new, |(a, b)| match a.runs.min(b.runs) {
                0 | 1 => String::new(),
                n => format!("; {n} watched runs a side for counts"),
            });
            let how = match comparison.watched {
                true => "both sides watched alike from inside",
                false => "unwatched for time",
            };
            format!("{}, interleaved, {how}{watched}; {}", pairs_text(m), same_text(exit, output))
        }
        (Outcome::Same { exit, output }, None) => same_text(exit, output),
        (Outcome::Differs(difference), _) => difference_text(difference),
    }
}

/// Why nothing was measured.
fn unmeasured_text(comparison: &Comparison) -> String {
    match comparison.answered_of_same() {
        Some(answered) => answered::too_few(answered),
        None => outcome_text(comparison, None),
    }
}

fn pairs_text(m: &Measured) -> String {
    let pairs = format!("{} pairs", m.pairs);
    match m.stopped {
        Stopped::Asked | Stopped::Decided => pairs,
        Stopped::LastLook => format!("{pairs}, as many as it tries"),
        Stopped::Time => format!("{pairs} in the time allowed"),
        Stopped::Interrupted => format!("interrupted after {pairs}"),
    }
}

fn same_text(exit: Exit, output: Sameness) -> String {
    let output = match output {
        Sameness::Exact | Sameness::Different => "same output",
        Sameness::ButDigits => "same output but for numbers, which vary by themselves",
        Sameness::ButDigitsAndOrder => "same output but for numbers and the order of lines, which vary by themselves",
    };
    match exit {
        Exit::Code(0) => format!("{output}, same exit code"),
        exit => format!("{output}, both end with {exit}"),
    }
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
    line.right(ENDS[1], Role::Strong, &shorten(&clean(a), ENDS[1] - ENDS[0]));
    let b = clean(b);
    if columns(&b) <= ENDS[2] - ENDS[1] - 2 {
        line.right(ENDS[2], Role::Strong, &b);
    } else {
        line.push(Role::Plain, "   ");
        let room = style.columns().saturating_sub(line.width()).max(16);
        line.push(Role::Strong, shorten(&b, room));
    }
    line
}

/// All calls, then the system calls whose number changed most.
fn count_lines(a: &CallCounts, b: &CallCounts) -> Vec<Line> {
    let mut total = count_line("  system calls", a.total, b.total, Role::Plain);
    let remark = match (a.exact && b.exact, a.total.is_same() && b.total.is_same()) {
        (false, _) => "   not exact: `systoll run` tells why",
        (true, true) if a.runs.min(b.runs) > 1 => "   the same in all watched runs",
        _ => "",
    };
    total.push(Role::Faint, remark);
    let mut lines = vec![total];
    let changed = a.changed_in(b);
    lines.extend(
        changed.iter().take(CALLS_SHOWN).map(|c| count_line(&format!("    {}", c.syscall), c.a, c.b, Role::Name)),
    );
    lines
}

fn count_line(label: &str, a: Range, b: Range, role: Role) -> Line {
    let mut line = Line::of(role, label);
    line.right(ENDS[1], Role::Plain, &range(a));
    line.right(ENDS[2], Role::Plain, &range(b));
    let change = match a.change_to(b) {
        CountChange::Varies => "varies".into(),
        CountChange::Same => "the same".into(),
        CountChange::More(by) => format!("+{}", grouped(by)),
        CountChange::Fewer(by) => format!("-{}", grouped(by)),
    };
    line.right(ENDS[3], Role::Plain, &change);
    line
}

/// A count, or where it varied the middle one and by how much it did.
fn range(r: Range) -> String {
    if r.is_same() { grouped(r.median) } else { format!("{}..{}", grouped(r.low), grouped(r.high)) }
}

fn measure_line(label: &str, a: Estimate, b: Estimate, change: &Change, confidence: f64) -> Line {
    let ns = |e: Estimate| time(e.median.max(0.0) as u64);
    let mut line = Line::of(Role::Plain, format!("  {label}"));
    line.right(ENDS[1], Role::Plain, &ns(a));
    line.right(ENDS[2], Role::Plain, &ns(b));
    let role = verdict_role(change.verdict);
    line.right(ENDS[3], role, &format!("{} %", signed(change.percent)));
    let between = format!(
        "   {} % between {} and {}{}",
        confidence * 100.0,
        signed(change.low),
        signed(change.high),
        if change.verdict == Verdict::NoDifference { none_shown(change) } else { String::new() }
    );
    line.push(Role::Faint, between);
    line
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
    format!(": no difference shown; 1 % would need about {} pairs", grouped(change.pairs_for_one_percent.into()))
}

/// A percentage with its sign and one digit; never `-0.0`.
fn signed(percent: f64) -> String {
    match format!("{percent:+.1}") {
        zero if zero == "-0.0" || zero == "+0.0" => "0.0".into(),
        text => text,
    }
}

fn verdict_line(m: &Measured, counts: Option<(&CallCounts, &CallCounts)>, experiment: bool) -> Line {
    let said: Vec<String> =
        [phrase(&m.wall, "faster", "slower"), phrase(&m.cpu, "less CPU", "more CPU")].into_iter().flatten().collect();
    let conclusion = m.conclusion();
    if conclusion == Conclusion::NothingShown {
        let text = match counts.and_then(|(a, b)| a.percent_fewer_in(b)) {
            Some(percent) => format!("{percent:.0} % fewer calls, nothing won in time"),
            None => "no difference shown".into(),
        };
        return Line::of(Role::Strong, "  not proved   ").with(Role::Plain, text);
    }
    let mut text = said.join(", ");
    if m.wall.verdict == Verdict::NoDifference {
        text.push_str(", same wall time");
    }
    let (label, role) = match (conclusion, experiment) {
        (Conclusion::Less, false) => ("  proved   ", Role::Good),
        (Conclusion::Less, true) => ("  without them   ", Role::Good),
        _ => ("  shown    ", Role::Bad),
    };
    Line::of(Role::Strong, label).with(role, text)
}

/// `38 times faster`, `12 % less CPU`; `None` where no difference was shown.
fn phrase(change: &Change, less: &str, more: &str) -> Option<String> {
    let times = change.times_less();
    match change.verdict {
        Verdict::NoDifference => None,
        Verdict::Faster if times >= 10.0 => Some(format!("{times:.0} times {less}")),
        Verdict::Faster if times >= 2.0 => Some(format!("{times:.1} times {less}")),
        // Of a time "12 % faster" would be ambiguous: it is the time that became less.
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
mod tests {
    use super::*;
    use systoll_model::Sysno;
    use systoll_prove::Side;

    fn change(percent: f64, low: f64, high: f64, verdict: Verdict) -> Change {
        Change { percent, low, high, verdict, pairs_for_one_percent: 80 }
    }

    fn estimate(median: f64) -> Estimate {
        Estimate { median, low: median, high: median }
    }

    fn side(wall: f64, cpu: f64) -> Side {
        let (wall_ns, cpu_ns, zero) = (estimate(wall), estimate(cpu), estimate(0.0));
        let (user_ns, sys_ns, max_rss, switches, faults) = (zero, zero, zero, zero, zero);
        Side { wall_ns, cpu_ns, user_ns, sys_ns, max_rss, switches, faults, runs: Vec::new() }
    }

    fn measured(a: Side, b: Side, wall: Change, cpu: Change) -> Comparison {
        let same = change(0.0, 0.0, 0.0, Verdict::NoDifference);
        let stopped = Stopped::Asked;
        let m =
            Measured { pairs: 20, stopped, confidence: 0.99, a, b, wall, cpu, user: same, sys: same, max_rss: same };
        Comparison {
            outcome: Outcome::Same { exit: Exit::Code(0), output: Sameness::Exact },
            differs_at: None,
            measured: Some(m),
            watched: false,
            answered: None,
        }
    }

    fn counts(pairs: &[(&str, u64)]) -> CallCounts {
        let same = |n| Range { low: n, median: n, high: n };
        let by_syscall = pairs.iter().map(|(n, c)| (Sysno::from_name(n).unwrap(), same(*c))).collect();
        CallCounts {
            by_syscall,
            total: same(pairs.iter().map(|(_, c)| c).sum()),
            runs: 3,
            exact: true,
            ..CallCounts::default()
        }
    }

    #[test]
    fn where_outputs_differ_is_shown() {
        let at = DiffersAt { line: 1_200, a: Some("a\u{1b}[31m".into()), b: None };
        let outcome = Outcome::Differs(Difference::Stdout);
        let c = Comparison { outcome, differs_at: Some(at), measured: None, watched: false, answered: None };
        let text = written(&c, None, "b");
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 4, "{text}");
        assert!(lines[1].starts_with("    line 1,200   - a") && !lines[1].contains('\u{1b}'), "{text}");
        assert_eq!(lines[2], "                 + (ended)");
        assert!(lines[3].contains("--same exit"), "{text}");
    }

    fn written(c: &Comparison, counts: Option<(&CallCounts, &CallCounts)>, b: &str) -> String {
        let mut out = Vec::new();
        write_comparison(&mut out, c, counts, ("as it is", b), Style::default()).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_proof() {
        let c = measured(
            side(1.182e9, 1.173e9),
            side(3.1e7, 3e7),
            change(-97.4, -97.6, -97.1, Verdict::Faster),
            change(-97.45, -97.5, -97.2, Verdict::Faster),
        );
        let a = counts(&[("newfstatat", 999_999), ("read", 41)]);
        let b = counts(&[("read", 41)]);
        assert_eq!(
            written(&c, Some((&a, &b)), "cured: TZ=:/etc/localtime"),
            "  20 pairs, interleaved, unwatched for time; 3 watched runs a side for counts; same output, same exit code

                          as it is   cured: TZ=:/etc/localtime
  system calls           1,000,040                41      -999,999   the same in all watched runs
    newfstatat             999,999                 0      -999,999
  wall                      1.18 s             31 ms       -97.4 %   99 % between -97.6 and -97.1
  CPU                       1.17 s             30 ms       -97.5 %   99 % between -97.5 and -97.2

  proved   38 times faster, 39 times less CPU
"
        );
    }

    #[test]
    fn fewer_calls_and_nothing_won() {
        let same = change(-0.01, -1.0, 1.0, Verdict::NoDifference);
        let c = measured(side(1e9, 1e9), side(1e9, 1e9), same, same);
        let text = written(&c, Some((&counts(&[("read", 100)]), &counts(&[("read", 3)]))), "cured");
        assert!(text.contains("  not proved   97 % fewer calls, nothing won in time\n"), "{text}");
        let told = "99 % between -1.0 and +1.0: no difference shown; 1 % would need about 80 pairs\n";
        assert!(text.contains(&format!("      0.0 %   {told}")), "{text}");
        assert!(written(&c, None, "cured").ends_with("  not proved   no difference shown\n"));
    }

    #[test]
    fn counts_that_vary_are_ranges_and_no_change_where_they_overlap() {
        let r = |low, median, high| Range { low, median, high };
        let line = |a, b| count_line("    read", a, b, Role::Name).render(&Style::default());
        assert_eq!(line(r(1, 2, 3), r(3, 3, 3)), "    read                      1..3                 3        varies");
        assert_eq!(line(r(5, 6, 7), r(3, 3, 3)), "    read                      5..7                 3            -3");
    }

    #[test]
    fn a_cure_that_hangs_or_changes_what_is_done_is_told() {
        let text = |d| {
            written(
                &Comparison {
                    outcome: Outcome::Differs(d),
                    differs_at: None,
                    measured: None,
                    watched: false,
                    answered: None,
                },
                None,
                "b",
            )
        };
        let hangs = text(Difference::Hangs(std::time::Duration::from_secs(30)));
        assert!(hangs.contains("the other was still running after 30 s: they do not do the same"), "{hangs}");
        assert!(text(Difference::By).contains("what the comparing command says differs"));
    }

    #[test]
    fn less_processor_time_in_the_same_wall_time_and_the_reverse() {
        let same = change(0.0, -1.0, 1.0, Verdict::NoDifference);
        let c = measured(side(1e9, 1e9), side(1e9, 1e7), same, change(-98.8, -99.0, -98.0, Verdict::Faster));
        assert!(written(&c, None, "b").ends_with("  proved   83 times less CPU, same wall time\n"));
        let slower = change(150.0, 140.0, 160.0, Verdict::Slower);
        let c = measured(side(1e9, 1e9), side(2e9, 2e9), slower, change(20.0, 19.0, 21.0, Verdict::Slower));
        assert!(written(&c, None, "b").ends_with("  shown    2.5 times as long, 20.0 % more CPU\n"));
    }

    #[test]
    fn programs_that_differ_claim_nothing() {
        let difference = Difference::Exit { a: Exit::Code(0), b: Exit::Signal(11) };
        let c = Comparison {
            outcome: Outcome::Differs(difference),
            differs_at: None,
            measured: None,
            watched: false,
            answered: None,
        };
        assert_eq!(
            written(&c, None, "b"),
            "  one ends with exit code 0, the other with signal 11: they do not do the same, so nothing is claimed\n"
        );
    }
}
