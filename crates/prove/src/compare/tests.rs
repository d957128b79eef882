//! Comparisons by an executor that runs nothing, so that results are exact.

use super::*;
use crate::Processes;

/// Answers by script: what `a` and `b` take and say in their n-th run.
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
    fn run(&mut self, spec: &Spec, output: Output) -> Result<Run, ProveError> {
        let side = if spec.program.as_os_str() == "a" { 'a' } else { 'b' };
        let nth = self.log.iter().filter(|(s, _)| *s == side).count();
        self.log.push((side, output));
        self.offsets.extend(spec.env.iter().map(|change| match change {
            EnvChange::Set(_, value) => value.len(),
            EnvChange::Remove(_) => panic!("nothing was to be removed"),
        }));
        Ok((self.answer)(side, nth))
    }
}

fn run(wall_ns: u64, cpu_ns: u64, text: &str) -> Run {
    let usage = Usage { exit: Exit::Code(0), wall_ns, user_ns: cpu_ns / 2, sys_ns: cpu_ns / 2, max_rss: 1 << 20 };
    Run { usage, stdout: Some(Digest::of(text.as_bytes())), stderr: Some(Digest::of(b"")) }
}

fn compare_fakes(answer: impl FnMut(char, usize) -> Run) -> Comparison {
    compare(&mut Fake::new(answer), &Spec::new("a"), &Spec::new("b"), &Options::default()).unwrap()
}

#[test]
fn a_tenth_of_the_time_is_minus_90_percent() {
    let noise = |nth: usize| 1_000 * (nth as u64 * 7 % 11);
    let c = compare_fakes(|side, nth| match side {
        'a' => run(10_000_000 + noise(nth), 8_000_000, "x"),
        _ => run(1_000_000, 8_000_000, "x"),
    });
    assert_eq!(c.outcome, Outcome::Same { exit: Exit::Code(0), output: Sameness::Exact });
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
    assert_eq!(c, Comparison { outcome: Outcome::Differs(Difference::Stdout), measured: None });
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
        assert_eq!(c, Comparison { outcome: Outcome::Differs(difference), measured: None }, "run {at}");
    }
}

#[test]
fn what_varies_by_itself_is_left_aside_but_no_more() {
    let pids = |other: &'static str| {
        move |side: char, nth: usize| run(1, 1, &format!("{} {nth}", if side == 'a' { "pid" } else { other }))
    };
    let same = Outcome::Same { exit: Exit::Code(0), output: Sameness::ButDigits };
    assert_eq!(compare_fakes(pids("pid")).outcome, same);
    assert_eq!(compare_fakes(pids("uid")).outcome, Outcome::Differs(Difference::Stdout));
    let c = compare_fakes(|side, nth| run(1, 1, &format!("{side}{}", "x".repeat(nth))));
    assert_eq!(c.outcome, Outcome::Differs(Difference::Itself));
}

#[test]
fn runs_are_interleaved_in_both_orders_and_offsets_differ() {
    let mut fake = Fake::new(|_, _| run(1, 1, "x"));
    let options = Options { pairs: 21, seed: 3, ..Options::default() };
    compare(&mut fake, &Spec::new("a"), &Spec::new("b"), &options).unwrap();
    let order: String = fake.log.iter().map(|(side, _)| *side).collect();
    assert_eq!(&order[..3], "aab");
    let timed = &order.as_bytes()[3..];
    assert_eq!(timed.len(), 42);
    let blocks: std::collections::BTreeSet<_> = timed.chunks_exact(4).collect();
    assert_eq!(blocks, [b"abba".as_slice(), b"baab"].into());
    assert!(fake.log[..3].iter().all(|(_, o)| *o == Output::Digested));
    assert!(fake.log[3..].iter().all(|(_, o)| *o == Output::Discarded));
    assert_eq!(fake.offsets.len(), 42);
    assert!(fake.offsets.iter().collect::<std::collections::BTreeSet<_>>().len() > 35);
}

#[test]
fn real_processes_that_sleep_and_work() {
    let sh = |script| Spec::new("/bin/sh").arg("-c").arg(script);
    let options = Options { pairs: 8, ..Options::default() };
    let c = compare(&mut Processes::default(), &sh("sleep 0.05"), &sh("true"), &options).unwrap();
    let m = c.measured.unwrap();
    assert_eq!(m.wall.verdict, Verdict::Faster);
    assert!(m.a.wall_ns.median > 5e7 && m.wall.percent < -50.0, "{m:?}");
    let missing = compare(&mut Processes::default(), &sh("true"), &Spec::new("/nonexistent"), &options);
    assert!(matches!(missing, Err(ProveError::Run(_))));
}
