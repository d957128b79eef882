//! Tests of deferred costs: page faults on memory that was given back.

use crate::common::*;
use systoll_judge::{Catalogue, Judgement, Options, judge};
use systoll_model::Spread;

const BUSY: u64 = 20_000_000;
/// Price of a fault, ns: fastest and median.
const FAULT: (f64, f64) = (500.0, 600.0);
const PAGE: u64 = 4096;

/// Judges the trace with the price of a fault, as in a run that gave memory back.
fn priced(trace: &[Call]) -> Judgement {
    let mut rec = recording(trace, BUSY);
    rec.prices.fault = Some(Spread { min: FAULT.0, median: FAULT.1, high: 900.0 });
    judge(&rec, &Catalogue::builtin(), &Options::default())
}

fn seen(mut call: Call, faults: u64) -> Call {
    call.faults = Some(faults);
    call
}

/// Returns rounds that give back one range each, of which `touched` pages are used again.
fn given_back(rounds_made: u64, touched: u64) -> Vec<Call> {
    rounds(rounds_made, |i| vec![seen(call("madvise", "arena", &[0x10_0000, 64 * PAGE, 4], 0).toll(900), i * touched)])
}

#[test]
fn memory_that_comes_back_is_paid_for_by_faults() {
    let f = only(priced(&given_back(5_000, 40)));
    assert_eq!(f.cause.as_deref(), Some("madvise-churn"));
    let later = f.later.unwrap();
    let (faults, needless) = (later.faults, f.needless);
    assert!(faults.estimate.abs_diff(needless.estimate * 40) <= 40, "{f:?}");
    assert!(faults.low <= faults.estimate && faults.estimate <= faults.high, "{later:?}");
    assert!(faults.low >= needless.low * 39 && faults.high <= 5_000 * 41, "{later:?}");
    assert!(later.ns.estimate.abs_diff(faults.estimate * FAULT.0 as u64) <= FAULT.0 as u64, "{later:?}");
    // A cost above all processor time has no share.
    assert!(later.ns.high <= faults.high * 601 && later.share_of_cpu.is_none(), "{later:?}");
    assert!(f.time_to_win_ns() > f.needless_toll_ns * 10);
}

#[test]
fn no_more_faults_count_than_pages_were_given_back() {
    let later = only(priced(&given_back(5_000, 1_000))).later.unwrap();
    assert!(later.faults.high <= 5_000 * 64, "{later:?}");
}

#[test]
fn what_never_comes_back_costs_nothing_later() {
    for f in priced(&given_back(5_000, 0)).findings {
        assert_eq!(f.later, None);
    }
}

#[test]
fn without_a_look_or_a_price_nothing_is_said() {
    let unseen = rounds(5_000, |_| vec![call("madvise", "arena", &[0x10_0000, 64 * PAGE, 4], 0).toll(9_000)]);
    assert_eq!(only(priced(&unseen)).later, None);
    let unpriced = judged(&given_back(5_000, 40), BUSY);
    assert!(unpriced.findings.iter().chain(&unpriced.also).all(|f| f.later.is_none()));
}

/// The heap's top goes up in two steps and down in one, and its pages are touched each time.
#[test]
fn a_heap_that_shrinks_and_grows_is_paid_for_by_its_faults_more_than_by_its_calls() {
    let brk = |end: u64, faults| seen(call("brk", "malloc", &[end], end as i64).toll(300), faults);
    let trace = rounds(3_000, |i| {
        let (base, from) = (0x55_0000_0000, i * 60);
        vec![brk(base + 33 * PAGE, from), brk(base + 66 * PAGE, from + 30), brk(base, from + 60)]
    });
    let f = only(priced(&trace));
    assert_eq!(f.cause.as_deref(), Some("heap-trim"));
    let faults = f.later.unwrap().faults;
    assert!((3_000 * 50..=3_000 * 66).contains(&faults.estimate), "{faults:?}");
}

#[test]
fn other_faults_in_between_are_not_theirs() {
    // A program that uses much new memory gives back ranges of one page: one fault counts for each,
    // no more.
    let trace = rounds(5_000, |i| {
        vec![
            seen(call("mmap", "work", &[0, PAGE, 3, 0x22, u64::MAX, 0], 0x7000_0000).toll(900), i * 500),
            seen(call("munmap", "work", &[0x7000_0000, PAGE], 0).toll(900), i * 500 + 400),
        ]
    });
    let f = only(priced(&trace));
    let faults = f.later.unwrap().faults;
    assert!(faults.high <= 5_001, "{faults:?}");
}

#[test]
fn work_that_the_kernel_does_on_the_way_back_is_no_switch() {
    // `madvise` does not wait: what seems to be a switch is work on the way back, or another program's turn.
    let switches = |trace: &[Call]| {
        let mut rec = recording(trace, BUSY);
        rec.prices.switch = Some(Spread { min: 500.0, median: 600.0, high: 900.0 });
        only(judge(&rec, &Catalogue::builtin(), &Options::default())).later.map_or(0, |later| later.switches.estimate)
    };
    let away = |call: Call| call.waited(2_000);
    let trims: Vec<Call> = given_back(5_000, 0).into_iter().map(away).collect();
    assert_eq!(switches(&trims), 0);
    let yields = rounds(8_000, |_| vec![call("sched_yield", "spin", &[], 0).toll(200)]);
    let yields: Vec<Call> = yields.into_iter().enumerate().map(|(i, c)| if i % 2 == 0 { away(c) } else { c }).collect();
    assert!(switches(&yields) > 1_000);
}
