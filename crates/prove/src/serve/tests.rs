//! Tests of comparisons of servers by scripted turns: no server runs.

use super::*;
use crate::Verdict;
use systoll_model::{Elision, Exit};

/// A script: the result of each side's n-th turn.
struct Fake<F> {
    answer: F,
    log: Vec<(char, Watching)>,
}

impl<F: FnMut(char, usize) -> Result<Turn, ServeError>> Turns for Fake<F> {
    fn turn(&mut self, spec: &Spec, watching: Watching) -> Result<Turn, ServeError> {
        let side = if spec.program.as_os_str() == "a" { 'a' } else { 'b' };
        let nth = self.log.iter().filter(|(s, _)| *s == side).count();
        self.log.push((side, watching));
        let mut turn = (self.answer)(side, nth)?;
        turn.recording = (watching != Watching::No).then(Recording::default);
        Ok(turn)
    }
}

fn turn(per_second: f64, cpu_ns: u64) -> Turn {
    let work = Some(1_000);
    Turn { per_second, told: true, work, latency_ns: Some(1e9 / per_second), cpu_ns, ended: true, ..Turn::default() }
}

const OPTIONS: ServeOptions =
    ServeOptions { turns: 8, confidence: 0.99, negligible_percent: 0.5, counted: true, seed: 3 };

fn served(
    answer: impl FnMut(char, usize) -> Result<Turn, ServeError>,
    options: &ServeOptions,
) -> (Result<Served, ProveError>, Vec<(char, Watching)>) {
    let mut fake = Fake { answer, log: Vec::new() };
    let result = compare_servers(&mut fake, &Spec::new("a"), &Spec::new("b"), options, &mut |_, _| {});
    (result, fake.log)
}

fn both(result: Result<Served, ProveError>) -> ServeComparison {
    match result {
        Ok(Served::Both(both)) => *both,
        other => panic!("{other:?}"),
    }
}

#[test]
fn more_requests_a_second_are_better_and_less_of_the_rest() {
    let (result, log) = served(
        |side, nth| Ok(if side == 'a' { turn(1_000.0 + nth as f64, 5_000_000) } else { turn(2_000.0, 3_000_000) }),
        &OPTIONS,
    );
    let c = both(result);
    assert_eq!(
        (c.per_second.verdict, c.latency.unwrap().verdict, c.cpu.unwrap().verdict),
        (Verdict::Faster, Verdict::Faster, Verdict::Faster)
    );
    assert!((98.0..100.1).contains(&c.per_second.percent), "{:?}", c.per_second);
    assert_eq!(c.a.cpu_ns.unwrap().median, 5_000.0);
    assert!(c.a.calls.is_some() && c.told && !c.watched);
    let order: String = log.iter().map(|(side, _)| *side).collect();
    assert_eq!((order.len(), &order[..1], &order[17..]), (19, "a", "ab"));
    assert!(order.as_bytes()[1..17].chunks_exact(4).all(|c| c == b"abba" || c == b"baab"), "{order}");
    assert!(
        log[17..].iter().all(|(_, w)| *w == Watching::Closely) && log[..17].iter().all(|(_, w)| *w == Watching::No)
    );
}

#[test]
fn turns_come_in_pairs_and_are_enough() {
    let of = |turns| ServeOptions { turns, counted: false, ..OPTIONS };
    let (result, log) = served(|_, _| Ok(turn(10.0, 1)), &of(9));
    assert_eq!(both(result).per_second.verdict, Verdict::NoDifference);
    assert_eq!(log.iter().filter(|(side, _)| *side == 'a').count(), 1 + 9);
    assert!(matches!(served(|_, _| Ok(turn(10.0, 1)), &of(5)).0, Err(ProveError::Options(_))));
}

#[test]
fn calls_answered_in_place_have_both_sides_watched_alike() {
    let b = Spec { elisions: vec![Elision::Getpid], ..Spec::new("b") };
    let mut fake = Fake { answer: |_, _| Ok(turn(10.0, 1)), log: Vec::new() };
    let options = ServeOptions { counted: false, ..OPTIONS };
    let result = compare_servers(&mut fake, &Spec::new("a"), &b, &options, &mut |_, _| {});
    assert!(both(result).watched && fake.log.iter().all(|(_, w)| *w == Watching::Alike));
}

#[test]
fn a_change_that_breaks_the_server_is_reported_as_broken() {
    let died = || ServeError::Died { exit: Exit::Signal(11), when: "under its load", said: String::new() };
    let (result, _) =
        served(|side, nth| if side == 'b' && nth == 3 { Err(died()) } else { Ok(turn(10.0, 1)) }, &OPTIONS);
    assert_eq!(result.unwrap(), Served::Fails("the server ended with signal 11 under its load".into()));
    let (result, _) = served(|side, _| if side == 'a' { Err(died()) } else { Ok(turn(10.0, 1)) }, &OPTIONS);
    assert!(matches!(result, Err(ProveError::Serve(_))));
    let failing = |side, _| Ok(Turn { failed: u64::from(side == 'b'), ..turn(10.0, 1) });
    assert_eq!(
        served(failing, &OPTIONS).0.unwrap(),
        Served::Fails("8 requests failed, 0 of the program as it is".into())
    );
}

#[test]
fn unknown_counts_are_not_compared() {
    let (result, _) = served(|_, _| Ok(Turn { work: None, latency_ns: None, ..turn(10.0, 1) }), &OPTIONS);
    let c = both(result);
    assert_eq!((c.latency, c.cpu, c.a.calls), (None, None, None));
}
