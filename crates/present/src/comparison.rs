//! The `prove` screen: two forms of a program side by side.

use crate::style::{Line, Role, Style};
use crate::text::{clean, columns, shorten};
use crate::units::{grouped, time};
use std::collections::BTreeSet;
use std::io::{self, Write};
use systoll_model::{Exit, Sysno};
use systoll_prove::{CallCounts, Change, Comparison, Difference, Estimate, Measured, Outcome, Sameness, Verdict};

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
    let outcome = Line::of(Role::Plain, "  ").with(outcome_role(comparison.outcome), outcome_text(comparison));
    writeln!(w, "{}", outcome.render(&style))?;
    if comparison.measured.is_none() && counts.is_none() {
        return Ok(());
    }
    writeln!(w, "\n{}", head(heads, &style).render(&style))?;
    if let Some((a, b)) = counts {
        for line in count_lines(a, b) {
            writeln!(w, "{}", line.render(&style))?;
        }
    }
    let Some(m) = &comparison.measured else { return Ok(()) };
    for (label, a, b, change) in [("wall", m.a.wall_ns, m.b.wall_ns, &m.wall), ("CPU", m.a.cpu_ns, m.b.cpu_ns, &m.cpu)]
    {
        writeln!(w, "{}", measure_line(label, a, b, change, m.confidence).render(&style))?;
    }
    writeln!(w, "\n{}", verdict_line(m, counts).render(&style))
}

fn outcome_role(outcome: Outcome) -> Role {
    match outcome {
        Outcome::Same { .. } => Role::Faint,
        Outcome::Differs(_) => Role::Bad,
    }
}

fn outcome_text(comparison: &Comparison) -> String {
    let same = |output, exit| {
        let output = match output {
            Sameness::Exact | Sameness::Different => "same output",
            Sameness::ButDigits => "same output but for digits, which vary by themselves",
            Sameness::ButDigitsAndOrder => {
                "same output but for digits and the order of lines, which vary by themselves"
            }
        };
        match exit {
            Exit::Code(0) => format!("{output}, same exit code"),
            exit => format!("{output}, both end with {}", exit_text(exit)),
        }
    };
    let differs = |what: String| format!("{what}: they do not do the same, so nothing is claimed");
    match (comparison.outcome, &comparison.measured) {
        (Outcome::Same { exit, output }, Some(m)) => {
            format!("{} pairs, interleaved, unwatched for time; {}", m.pairs, same(output, exit))
        }
        (Outcome::Same { exit, output }, None) => same(output, exit),
        (Outcome::Differs(Difference::Exit { a, b }), _) => {
            differs(format!("one ends with {}, the other with {}", exit_text(a), exit_text(b)))
        }
        (Outcome::Differs(Difference::Stdout), _) => differs("standard output differs".into()),
        (Outcome::Differs(Difference::Stderr), _) => differs("standard error differs".into()),
        (Outcome::Differs(Difference::Itself), _) => {
            "run twice as it is, it does not do the same, so nothing can be claimed of a change".into()
        }
    }
}

fn exit_text(exit: Exit) -> String {
    match exit {
        Exit::Code(code) => format!("exit code {code}"),
        Exit::Signal(signal) => format!("signal {signal}"),
    }
}

fn right(line: &mut Line, end: usize, role: Role, text: &str) {
    line.pad_to(end.saturating_sub(columns(text)));
    line.push(role, text);
}

fn head((a, b): (&str, &str), style: &Style) -> Line {
    let mut line = Line::default();
    right(&mut line, ENDS[1], Role::Strong, &shorten(&clean(a), ENDS[1] - ENDS[0]));
    let b = clean(b);
    if columns(&b) <= ENDS[2] - ENDS[1] - 2 {
        right(&mut line, ENDS[2], Role::Strong, &b);
    } else {
        line.push(Role::Plain, "   ");
        let room = style.columns().saturating_sub(line.width()).max(16);
        line.push(Role::Strong, shorten(&b, room));
    }
    line
}

/// All calls, then the system calls whose number changed most.
fn count_lines(a: &CallCounts, b: &CallCounts) -> Vec<Line> {
    let mut lines = vec![count_line("  system calls", a.total(), b.total(), Role::Plain)];
    let all: BTreeSet<Sysno> = a.by_syscall.keys().chain(b.by_syscall.keys()).copied().collect();
    let of = |s: Sysno| (a.of_syscall(s), b.of_syscall(s));
    let mut changed: Vec<_> = all.into_iter().map(|s| (s, of(s))).filter(|(_, (a, b))| a != b).collect();
    changed.sort_by_key(|(syscall, (a, b))| (std::cmp::Reverse(a.abs_diff(*b)), *syscall));
    lines.extend(
        changed.iter().take(CALLS_SHOWN).map(|(s, (a, b))| count_line(&format!("    {s}"), *a, *b, Role::Name)),
    );
    lines
}

fn count_line(label: &str, a: u64, b: u64, role: Role) -> Line {
    let mut line = Line::of(role, label);
    right(&mut line, ENDS[1], Role::Plain, &grouped(a));
    right(&mut line, ENDS[2], Role::Plain, &grouped(b));
    let sign = if b < a { "-" } else { "+" };
    let change = if a == b { "the same".into() } else { format!("{sign}{}", grouped(a.abs_diff(b))) };
    right(&mut line, ENDS[3], Role::Plain, &change);
    line
}

fn measure_line(label: &str, a: Estimate, b: Estimate, change: &Change, confidence: f64) -> Line {
    let ns = |e: Estimate| time(e.median.max(0.0) as u64);
    let mut line = Line::of(Role::Plain, format!("  {label}"));
    right(&mut line, ENDS[1], Role::Plain, &ns(a));
    right(&mut line, ENDS[2], Role::Plain, &ns(b));
    let role = match change.verdict {
        Verdict::Faster => Role::Good,
        Verdict::Slower => Role::Bad,
        Verdict::NoDifference => Role::Plain,
    };
    right(&mut line, ENDS[3], role, &format!("{} %", signed(change.percent)));
    let between = format!(
        "   {} % between {} and {}{}",
        confidence * 100.0,
        signed(change.low),
        signed(change.high),
        if change.verdict == Verdict::NoDifference { ": no difference shown" } else { "" }
    );
    line.push(Role::Faint, between);
    line
}

/// A percentage with its sign and one digit; never `-0.0`.
fn signed(percent: f64) -> String {
    match format!("{percent:+.1}") {
        zero if zero == "-0.0" || zero == "+0.0" => "0.0".into(),
        text => text,
    }
}

fn verdict_line(m: &Measured, counts: Option<(&CallCounts, &CallCounts)>) -> Line {
    let said: Vec<String> =
        [phrase(&m.wall, "faster", "slower"), phrase(&m.cpu, "less CPU", "more CPU")].into_iter().flatten().collect();
    let won = m.wall.verdict == Verdict::Faster || m.cpu.verdict == Verdict::Faster;
    if said.is_empty() {
        let fewer = counts.and_then(|(a, b)| fewer_calls(a.total(), b.total()));
        let text = match fewer {
            Some(fewer) => format!("{fewer}, nothing won in time"),
            None => "no difference shown".into(),
        };
        return Line::of(Role::Strong, "  not proved   ").with(Role::Plain, text);
    }
    let mut text = said.join(", ");
    if m.wall.verdict == Verdict::NoDifference {
        text.push_str(", same wall time");
    }
    let label = if won { "  proved   " } else { "  shown    " };
    Line::of(Role::Strong, label).with(if won { Role::Good } else { Role::Bad }, text)
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

fn fewer_calls(a: u64, b: u64) -> Option<String> {
    let percent = 100.0 * a.checked_sub(b)? as f64 / a.max(1) as f64;
    (percent >= 1.0).then(|| format!("{percent:.0} % fewer calls"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use systoll_prove::Side;

    fn change(percent: f64, low: f64, high: f64, verdict: Verdict) -> Change {
        Change { percent, low, high, verdict }
    }

    fn estimate(median: f64) -> Estimate {
        Estimate { median, low: median, high: median }
    }

    fn side(wall: f64, cpu: f64) -> Side {
        let zero = estimate(0.0);
        Side { wall_ns: estimate(wall), cpu_ns: estimate(cpu), user_ns: zero, sys_ns: zero, max_rss: zero }
    }

    fn measured(a: Side, b: Side, wall: Change, cpu: Change) -> Comparison {
        let same = change(0.0, 0.0, 0.0, Verdict::NoDifference);
        let m = Measured { pairs: 20, confidence: 0.99, a, b, wall, cpu, user: same, sys: same, max_rss: same };
        Comparison { outcome: Outcome::Same { exit: Exit::Code(0), output: Sameness::Exact }, measured: Some(m) }
    }

    fn counts(pairs: &[(&str, u64)]) -> CallCounts {
        CallCounts { by_syscall: pairs.iter().map(|(n, c)| (Sysno::from_name(n).unwrap(), *c)).collect() }
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
            "  20 pairs, interleaved, unwatched for time; same output, same exit code

                          as it is   cured: TZ=:/etc/localtime
  system calls           1,000,040                41      -999,999
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
        assert!(text.contains("      0.0 %   99 % between -1.0 and +1.0: no difference shown\n"), "{text}");
        assert!(written(&c, None, "cured").ends_with("  not proved   no difference shown\n"));
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
        let c = Comparison { outcome: Outcome::Differs(difference), measured: None };
        assert_eq!(
            written(&c, None, "b"),
            "  one ends with exit code 0, the other with signal 11: they do not do the same, so nothing is claimed\n"
        );
    }
}
