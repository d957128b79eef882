//! Tests of comparisons by an executor that runs nothing: results are exact.

use super::*;
use crate::{Digest, Estimate, Processes, Run, Same, Sameness, Verdict};
use systoll_cure::RunError;
use systoll_model::Exit;

/// A script: the times and output of each side's n-th run.
struct Fake<F> {
    answer: F,
    log: Vec<(char, Output)>,
    offsets: Vec<usize>,
}

impl<F: FnMut(char, usize) -> Run> Fake<F> {
    fn new(answer: F) -> Self {
        Self { answer, log: Vec::new(), offsets: Vec::new() }
    }
}

impl<F: FnMut(char, usize) -> Run> Executor for Fake<F> {
    fn run(&mut self, spec: &Spec, output: &Output, _: Option<Duration>) -> Result<Run, ProveError> {
        let side = if spec.program.as_os_str() == "a" { 'a' } else { 'b' };
        let nth = self.log.iter().filter(|(s, _)| *s == side).count();
        self.log.push((side, output.clone()));
        self.offsets.extend(spec.env.iter().map(|change| match change {
            EnvChange::Set(_, value) => value.len(),
            EnvChange::Remove(_) => panic!("nothing was to be removed"),
        }));
        Ok((self.answer)(side, nth))
    }
}

fn run(wall_ns: u64, cpu_ns: u64, text: &str) -> Run {
    let half = cpu_ns / 2;
    let exit = Exit::Code(0);
    let usage = Usage { exit, wall_ns, user_ns: half, sys_ns: half, max_rss: 1 << 20, switches: 2, faults: 100 };
    Run {
        usage,
        stdout: Some(Digest::of(text.as_bytes())),
        stderr: Some(Digest::of(b"")),
        by: None,
        wrote: Default::default(),
    }
}

fn compare_fakes(answer: impl FnMut(char, usize) -> Run) -> Comparison {
    compare_fakes_by(answer, &Options::default())
}

fn compare_fakes_by(answer: impl FnMut(char, usize) -> Run, options: &Options) -> Comparison {
    compare(&mut Fake::new(answer), &Spec::new("a"), &Spec::new("b"), options, &mut |_| {}).unwrap()
}

fn same_to(exit: Option<Exit>, stdout: Option<Sameness>, stderr: Option<Sameness>) -> Outcome {
    Outcome::Same(Agreement { exit, stdout, stderr, by: false })
}

#[test]
fn a_tenth_of_the_time_is_minus_90_percent() {
    let noise = |nth: usize| 1_000 * (nth as u64 * 7 % 11);
    let c = compare_fakes(|side, nth| match side {
        'a' => run(10_000_000 + noise(nth), 8_000_000, "x"),
        _ => run(1_000_000, 8_000_000, "x"),
    });
    let exact = Some(Sameness::Exact);
    assert_eq!(c.outcome, same_to(Some(Exit::Code(0)), exact, exact));
    let m = c.measured.unwrap();
    assert_eq!((m.wall.verdict, m.cpu.verdict), (Verdict::Faster, Verdict::NoDifference));
    assert!((-90.1..-90.0).contains(&m.wall.percent) && m.wall.low <= m.wall.percent, "{:?}", m.wall);
    assert!((9.99..10.02).contains(&m.wall.times_less()));
    assert_eq!(m.cpu.percent, 0.0);
    assert_eq!(m.b.wall_ns, Estimate { median: 1e6, low: 1e6, high: 1e6 });
}

#[test]
fn noise_alone_is_no_difference_and_twice_is_slower() {
    let c = compare_fakes(|side, nth| {
        let noise = nth as u64 * if side == 'a' { 7 } else { 5 } % 11;
        run(1_000_000 + 20_000 * noise, if side == 'a' { 500_000 } else { 1_000_000 }, "x")
    });
    let m = c.measured.unwrap();
    assert_eq!((m.wall.verdict, m.cpu.verdict), (Verdict::NoDifference, Verdict::Slower));
    assert!(m.wall.low < 0.0 && m.wall.high > 0.0);
}

#[test]
fn a_sure_but_tiny_change_is_not_called_a_difference() {
    let m = compare_fakes(|side, _| run(if side == 'a' { 1_000_000 } else { 997_000 }, 0, "x")).measured.unwrap();
    assert!(m.wall.high < 0.0 && m.wall.verdict == Verdict::NoDifference);
    assert_eq!(m.cpu.verdict, Verdict::NoDifference, "no processor time on either side is no division by zero");
}

#[test]
fn a_box_that_grows_slower_favours_neither() {
    let mut runs = 0;
    let c = compare_fakes(|_, _| {
        runs += 1;
        run(1_000_000 + runs * 20_000, 0, "x")
    });
    assert_eq!(c.measured.unwrap().wall.verdict, Verdict::NoDifference);
}

#[test]
fn other_output_or_exit_claims_nothing() {
    let c = compare_fakes(|side, _| run(1, 1, if side == 'a' { "x" } else { "y" }));
    assert_eq!(
        c,
        Comparison {
            outcome: Outcome::Differs(Difference::Stdout),
            differs_at: None,
            measured: None,
            watched: false,
            answered: None
        }
    );
    let failing = |at: usize| {
        move |side: char, nth: usize| {
            let mut run = run(1, 1, "x");
            run.usage.exit = Exit::Code(i32::from(side == 'b' && nth == at));
            run
        }
    };
    for at in [0, 9] {
        let c = compare_fakes(failing(at));
        let difference = Difference::Exit { a: Exit::Code(0), b: Exit::Code(1) };
        assert_eq!(
            c,
            Comparison {
                outcome: Outcome::Differs(difference),
                differs_at: None,
                measured: None,
                watched: false,
                answered: None
            },
            "run {at}"
        );
    }
}

#[test]
fn only_lines_that_vary_by_themselves_are_ignored() {
    let pids = |other: &'static str| {
        move |side: char, nth: usize| run(1, 1, &format!("{} {nth}", if side == 'a' { "pid" } else { other }))
    };
    let same = same_to(Some(Exit::Code(0)), Some(Sameness::ButDigits), Some(Sameness::Exact));
    assert_eq!(compare_fakes(pids("pid")).outcome, same);
    assert_eq!(compare_fakes(pids("uid")).outcome, Outcome::Differs(Difference::Stdout));
    let c = compare_fakes(|side, nth| run(1, 1, &format!("{side}{}", "x".repeat(nth))));
    assert_eq!(c.outcome, Outcome::Differs(Difference::Itself));
}

#[test]
fn runs_are_interleaved_in_both_orders_on_stacks_of_one_size_a_pair() {
    let mut fake = Fake::new(|_, _| run(1, 1, "x"));
    let options = Options { pairs: Pairs::Fixed(21), seed: 3, ..Options::default() };
    let mut heard = Vec::new();
    let (a, b) = (Spec::new("a").arg("longer"), Spec::new("b"));
    compare(&mut fake, &a, &b, &options, &mut |p| heard.push((p.pairs, p.wanted))).unwrap();
    assert_eq!(heard, (0..=21).map(|n| (n, 21)).collect::<Vec<_>>());
    let order: String = fake.log.iter().map(|(side, _)| *side).collect();
    assert_eq!(&order[..3], "aab");
    let timed = &order.as_bytes()[3..];
    assert_eq!(timed.len(), 42);
    let blocks: std::collections::BTreeSet<_> = timed.chunks_exact(4).collect();
    assert_eq!(blocks, [b"abba".as_slice(), b"baab"].into());
    assert!(fake.log[..3].iter().all(|(_, o)| *o == Output::Digested(None)));
    assert!(fake.log[3..].iter().all(|(_, o)| *o == Output::Discarded));
    let lacking = a.stack_bytes() - b.stack_bytes();
    let mut offsets = std::collections::BTreeSet::new();
    for (sides, pair) in timed.chunks_exact(2).zip(fake.offsets.chunks_exact(2)) {
        let of = |side| pair[sides.iter().position(|s| *s == side).unwrap()];
        assert_eq!(of(b'b'), of(b'a') + lacking);
        offsets.insert(of(b'a'));
    }
    assert!(offsets.len() > 15, "{offsets:?}");
}

#[test]
fn clear_changes_are_decided_first_and_noise_last() {
    let options = Options { pairs: Pairs::Decisive(Duration::from_secs(600)), ..Options::default() };
    let clear =
        compare_fakes_by(|side, _| run(if side == 'a' { 2_000_000 } else { 1_000_000 }, 500_000, "x"), &options);
    let m = clear.measured.unwrap();
    assert_eq!((m.pairs, m.stopped, m.wall.verdict), (10, Stopped::Decided, Verdict::Faster));
    // Equal to within less than 1 % is decided too: no difference.
    let equal = compare_fakes_by(|_, nth| run(2_000_000 + nth as u64 % 3, 500_000, "x"), &options);
    let m = equal.measured.unwrap();
    assert_eq!((m.pairs, m.stopped, m.wall.verdict), (10, Stopped::Decided, Verdict::NoDifference));
    let mut random = Random::new(9);
    let noisy = compare_fakes_by(|_, _| run(1_000_000 + random.draw() % 1_000_000, 500_000, "x"), &options);
    let m = noisy.measured.unwrap();
    assert_eq!((m.pairs, m.stopped, m.wall.verdict), (100, Stopped::LastLook, Verdict::NoDifference));
    assert!(m.wall.pairs_for_one_percent > 500, "{:?}", m.wall);
    let hurried = Options { pairs: Pairs::Decisive(Duration::ZERO), ..options };
    let m =
        compare_fakes_by(|_, _| run(1_000_000 + random.draw() % 1_000_000, 500_000, "x"), &hurried).measured.unwrap();
    assert_eq!((m.pairs, m.stopped), (10, Stopped::Time));
}

/// Five looks must not find differences where there are none.
#[test]
fn the_same_noise_on_both_sides_is_rarely_called_a_difference() {
    let options = Options { pairs: Pairs::Decisive(Duration::from_secs(600)), ..Options::default() };
    let mut random = Random::new(5);
    let mut claimed = 0;
    for _ in 0..400 {
        // Mostly quiet, sometimes with a neighbour, like measured runs of a short program.
        let mut takes = || {
            let jitter = 1_000_000 + random.draw() % 50_000;
            if random.draw().is_multiple_of(8) { jitter + random.draw() % 800_000 } else { jitter }
        };
        let m = compare_fakes_by(|_, _| run(takes(), takes(), "x"), &options).measured.unwrap();
        let differs = |c: &crate::Change| c.verdict != Verdict::NoDifference;
        claimed += u32::from(differs(&m.wall) || differs(&m.cpu));
    }
    assert!(claimed <= 8, "{claimed} of 400");
}

#[test]
fn only_the_requested_outputs_must_be_equal() {
    let answer = |side: char, _: usize| {
        let mut run = run(1, 1, if side == 'a' { "x" } else { "y" });
        run.usage.exit = Exit::Code(i32::from(side == 'b'));
        run.by = Some((Digest::of(b"7 rows"), Exit::Code(0)));
        run
    };
    let of = |same| compare_fakes_by(answer, &Options { same, ..Options::default() }).outcome;
    let exits = Difference::Exit { a: Exit::Code(0), b: Exit::Code(1) };
    assert_eq!(of(Same::default()), Outcome::Differs(exits));
    assert_eq!(of(Same { exit: false, ..Same::default() }), Outcome::Differs(Difference::Stdout));
    assert_eq!(of(Same::NONE), same_to(None, None, None), "nothing was compared, and nothing is said to be the same");
    assert_eq!(of(Same { stderr: true, ..Same::NONE }), same_to(None, None, Some(Sameness::Exact)));
    let by = Same { by: Some("count".into()), ..Same::NONE };
    assert_eq!(of(by), Outcome::Same(Agreement { by: true, ..Agreement::default() }));
    let said = |side: char, nth: usize| {
        let said = if side == 'b' { "6 rows" } else { "7 rows" };
        Run { by: Some((Digest::of(said.as_bytes()), Exit::Code(0))), ..answer(side, nth) }
    };
    let by = Options { same: Same { by: Some("count".into()), ..Same::NONE }, ..Options::default() };
    assert_eq!(compare_fakes_by(said, &by).outcome, Outcome::Differs(Difference::By));
}

/// The program `b` never ends: the executor reports the limit that it got.
struct Hanging;

impl Executor for Hanging {
    fn run(&mut self, spec: &Spec, _: &Output, limit: Option<Duration>) -> Result<Run, ProveError> {
        match limit {
            Some(limit) if spec.program.as_os_str() == "b" => {
                Err(RunError::Timeout { program: "b".into(), limit }.into())
            }
            _ => Ok(run(1_000_000_000, 1, "x")),
        }
    }
}

#[test]
fn a_hanging_cure_is_reported_as_hanging() {
    let c = compare(&mut Hanging, &Spec::new("a"), &Spec::new("b"), &Options::default(), &mut |_| {}).unwrap();
    assert_eq!(c.outcome, Outcome::Differs(Difference::Hangs(Duration::from_secs(30))));
    assert_eq!(c.measured, None);
}

/// An executor that is interrupted in the run with this number, from 0.
struct Interrupted(u32);

impl Executor for Interrupted {
    fn run(&mut self, _: &Spec, _: &Output, _: Option<Duration>) -> Result<Run, ProveError> {
        self.0 = self.0.checked_sub(1).ok_or(RunError::Interrupted { program: "a".into(), signal: 2 })?;
        Ok(run(1_000_000, 1_000_000, "x"))
    }
}

#[test]
fn an_interrupted_comparison_reports_its_whole_pairs() {
    let after = |runs| {
        let options = Options { pairs: Pairs::Fixed(30), ..Options::default() };
        compare(&mut Interrupted(runs), &Spec::new("a"), &Spec::new("b"), &options, &mut |_| {})
    };
    // Three runs compare the outcomes; fewer than eight pairs have no interval at 99 %.
    for few in [0, 1, 3, 3 + 2 * 7, 3 + 2 * 7 + 1] {
        assert!(matches!(after(few), Err(ProveError::Interrupted { signal: 2 })), "{few}");
    }
    for runs in [3 + 2 * 8, 3 + 2 * 8 + 1] {
        let measured = after(runs).unwrap().measured.unwrap();
        assert_eq!((measured.pairs, measured.stopped), (8, Stopped::Interrupted));
    }
}

#[test]
fn real_processes_that_sleep_and_work() {
    let sh = |script| Spec::new("/bin/sh").arg("-c").arg(script);
    let options = Options { pairs: Pairs::Fixed(8), ..Options::default() };
    let c = compare(&mut Processes::default(), &sh("sleep 0.05"), &sh("true"), &options, &mut |_| {}).unwrap();
    let m = c.measured.unwrap();
    assert_eq!(m.wall.verdict, Verdict::Faster);
    assert!(m.a.wall_ns.median > 5e7 && m.wall.percent < -50.0, "{m:?}");
    let missing = compare(&mut Processes::default(), &sh("true"), &Spec::new("/nonexistent"), &options, &mut |_| {});
    assert!(matches!(missing, Err(ProveError::Run(_))));
}

#[test]
fn no_pair_is_begun_where_the_fewest_take_longer_than_they_may() {
    let slow = |_: char, _: usize| run(1_000_000_000, 1, "x");
    let mut fake = Fake::new(slow);
    let options = Options { pairs: Pairs::Within(Duration::from_secs(5)), ..Options::default() };
    let refused = compare(&mut fake, &Spec::new("a"), &Spec::new("b"), &options, &mut |_| {});
    let told = refused.map(|_| ()).unwrap_err().to_string();
    assert!(told.contains("one pair takes 2.0 s, and 10 are the fewest"), "{told}");
    assert_eq!(fake.log.len(), 3);
}

#[test]
fn the_remaining_time_is_reported_before_and_after_each_pair() {
    let mut fake = Fake::new(|_, _| run(1_000_000, 1, "x"));
    let options = Options { pairs: Pairs::Fixed(8), ..Options::default() };
    let mut left = Vec::new();
    compare(&mut fake, &Spec::new("a"), &Spec::new("b"), &options, &mut |p| left.push(p.left().as_millis())).unwrap();
    assert_eq!(left, [16, 14, 12, 10, 8, 6, 4, 2, 0]);
}
