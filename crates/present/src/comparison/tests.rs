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
    let (confidence, negligible_percent, user, sys, max_rss) = (0.99, 0.5, same, same, same);
    let m = Measured { pairs: 20, stopped, confidence, negligible_percent, a, b, wall, cpu, user, sys, max_rss };
    Comparison {
        outcome: Outcome::Same(all_the_same()),
        differs_at: None,
        measured: Some(m),
        watched: false,
        answered: None,
    }
}

fn all_the_same() -> Agreement {
    let exact = Some(Sameness::Exact);
    Agreement { exit: Some(Exit::Code(0)), stdout: exact, stderr: exact, by: false }
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
fn the_first_difference_of_outputs_is_shown() {
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
    write_comparison(
        &mut out,
        c,
        counts,
        None,
        ("as it is", b),
        Style { color: false, width: 120, whole_names: false },
    )
    .unwrap();
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
        "  20 interleaved pairs, timed without systoll; 3 watched runs a side for counts; same output, same exit code

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
    assert!(text.contains("  not proved   97 % fewer calls, no difference in time shown\n"), "{text}");
    let told = "99 % between -1.0 and +1.0: no difference shown; 1 % would need about 80 pairs\n";
    assert!(text.contains("      0.0 %\n") && text.contains(told), "{text}");
    assert!(written(&c, None, "cured").ends_with("  not proved   no difference shown\n"));
}

/// Checks each sentence together with the facts on which it rests.
#[test]
fn no_more_is_called_the_same_than_was_compared() {
    let said = |same| same_text(same);
    let none = Agreement::default();
    assert_eq!(said(all_the_same()), "same output, same exit code");
    assert_eq!(said(none), "neither output nor exit code was compared");
    assert_eq!(said(Agreement { exit: Some(Exit::Code(0)), ..none }), "same exit code, output was not compared");
    assert_eq!(
        said(Agreement { exit: Some(Exit::Code(3)), ..none }),
        "both end with exit code 3, output was not compared"
    );
    assert_eq!(said(Agreement { stdout: Some(Sameness::Exact), ..none }), "same standard output");
    let varies = "same standard error but for numbers, which vary by themselves";
    assert_eq!(said(Agreement { stderr: Some(Sameness::ButDigits), ..none }), varies);
    let by = Agreement { by: true, exit: Some(Exit::Code(0)), ..none };
    assert_eq!(said(by), "the comparing command says the same of both, same exit code");
}

/// Checks that nothing is decided if the interval of the processor time holds both no change and
/// the 4 ms of 87 ms that were predicted.
#[test]
fn runs_that_show_nothing_decide_nothing() {
    let noisy = change(-1.3, -6.9, 4.4, Verdict::NoDifference);
    let c = measured(side(8.7e7, 8.7e7), side(8.6e7, 8.6e7), noisy, noisy);
    let (a, b) = (counts(&[("newfstatat", 8_000), ("read", 64_000)]), counts(&[("read", 64_000)]));
    let told =
        |ms: f64| Some(ExpectedWin { low_ns: ms * 1e6, high_ns: ms * 2e6, is_at_least: false, own_cpu_ns: None });
    let text = |ms| {
        let mut out = Vec::new();
        let style = Style { color: false, width: 120, whole_names: false };
        write_comparison(&mut out, &c, Some((&a, &b)), told(ms), ("as it is", "cured"), style).unwrap();
        String::from_utf8(out).unwrap()
    };
    let undecided = "  not decided   11 % fewer calls; 4 ms of 87 ms CPU is below what these runs can show\n";
    assert!(text(4.0).contains(undecided), "{}", text(4.0));
    assert!(!text(4.0).contains("nothing won") && !text(4.0).contains("in their place"), "{}", text(4.0));
    // A gain beyond the interval is ruled out.
    let most = "  not proved   11 % fewer calls; at most 6 ms of CPU is won\n";
    assert!(text(40.0).contains(most), "{}", text(40.0));
}

#[test]
fn counts_that_vary_are_ranges_and_no_change_where_they_overlap() {
    let r = |low, median, high| Range { low, median, high };
    let line = |a, b| count_line("    read", a, b, Role::Name, &ENDS).render(&Style::default());
    assert_eq!(line(r(1, 2, 3), r(3, 3, 3)), "    read                      1..3                 3        varies");
    assert_eq!(line(r(5, 6, 7), r(3, 3, 3)), "    read                      5..7                 3            -3");
}

#[test]
fn hanging_and_changing_cures_are_reported() {
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
    for (span, said) in [(0.5, "same wall time"), (2.0, "no difference in wall time shown")] {
        let wall = change(0.0, -span, span, Verdict::NoDifference);
        let c = measured(side(1e9, 1e9), side(1e9, 1e7), wall, change(-98.8, -99.0, -98.0, Verdict::Faster));
        let text = written(&c, None, "b");
        assert!(text.contains(&format!("  proved   83 times less CPU, {said}\n")), "{text}");
    }
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

#[test]
fn no_line_is_wider_than_the_terminal() {
    let same = change(-0.01, -11.0, 12.0, Verdict::NoDifference);
    let noisy = Change { pairs_for_one_percent: 284_063, ..same };
    let c = measured(side(1e9, 1e9), side(1e9, 1e9), noisy, noisy);
    let calls = counts(&[("rt_sigprocmask", 20_000_000), ("newfstatat", 999_999)]);
    for width in [60, 80, 120, 200] {
        let mut out = Vec::new();
        let head = ("as it is", "cured: TZ=:/etc/localtime and much else");
        let style = Style { color: false, width, whole_names: false };
        let told = ExpectedWin { low_ns: 2e7, high_ns: 9e7, is_at_least: false, own_cpu_ns: Some(500_000_000) };
        write_comparison(&mut out, &c, Some((&calls, &counts(&[("read", 3)]))), Some(told), head, style).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.lines().all(|line| columns(line) <= width), "{width}:\n{text}");
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            words.contains("expected 0.040 s to 0.180 s of CPU by the calls that are gone, won nothing"),
            "at the speed of the pairs:\n{text}"
        );
        assert!(text.contains("vary too much") && !text.contains("284,063"), "{text}");
    }
}

#[test]
fn a_gain_without_an_upper_bound_is_told_as_at_least() {
    let faster = change(-20.0, -21.0, -19.0, Verdict::Faster);
    let c = measured(side(1e9, 1e9), side(8e8, 8e8), faster, faster);
    let text = |is_at_least| {
        let told = ExpectedWin { low_ns: 1e8, high_ns: 3e8, is_at_least, own_cpu_ns: None };
        let mut out = Vec::new();
        let style = Style { color: false, width: 120, whole_names: false };
        write_comparison(&mut out, &c, None, Some(told), ("as it is", "cured"), style).unwrap();
        String::from_utf8(out).unwrap()
    };
    assert!(text(true).contains("expected at least 0.100 s of CPU by the calls that are gone"), "{}", text(true));
    assert!(text(false).contains("expected 0.100 s to 0.300 s of CPU"), "{}", text(false));
}
