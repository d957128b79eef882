//! Tests of thundering herds: threads that wait together and are woken together.

use crate::common::*;
use systoll_judge::{Catalogue, Judgement, Options, judge};
use systoll_model::{Recording, Spread};

const BUSY: u64 = 20_000_000;
const SWITCH: f64 = 500.0;

fn wakes_up() -> Call {
    call("epoll_wait", "epoll_wait:serve", &[3, 0x3000, 8, u64::MAX], 1).waited(40_000)
}

#[test]
fn who_has_a_socket_alone_is_woken_for_nothing_that_another_took() {
    let looks = || call("recvfrom", "recv:serve", &[4, 0x1000, 64, 0x40], -11).fd("UNIX-STREAM:[7]").toll(2_800);
    let mut rec = recording(&rounds(6_000, |_| vec![wakes_up(), looks()]), BUSY);
    let causes = |rec: &Recording| {
        let said = judge(rec, &Catalogue::builtin(), &Options::default());
        let herds = |f: &&systoll_judge::Finding| f.cause.as_deref() == Some("thundering-herd");
        said.findings.iter().chain(&said.also).filter(herds).count()
    };
    (rec.processes[0].threads, rec.processes[0].instances) = (1, 1);
    assert_eq!(causes(&rec), 0);
    rec.processes[0].threads = 4;
    assert!(causes(&rec) > 0);
}

const WAIT: u64 = 0x189;
const WAKE: u64 = 0x81;

fn futex(api: &'static str, thread: u32, [at, op, value]: [u64; 3], result: i64) -> Call {
    Call { thread, ..call("futex", api, &[at, op, value, 0, 0, 0], result).toll(200) }
}

/// Returns a recording of four threads that wait for items: each item wakes `together` of them, and they contend for
/// the lock.
fn workers(together: i64) -> Recording {
    let waits = || futex("pthread_cond_wait:work", 1, [0x1000, WAIT, 0], 0).waited(30_000);
    let locks = || futex("pthread_mutex_lock:work", 1, [0x2000, 0x80, 2], 0).waited(9_000);
    let frees = || futex("pthread_mutex_unlock:work", 1, [0x2000, WAKE, 1], 1);
    let wakes = || futex("pthread_cond_broadcast:main", 0, [0x1000, WAKE, 0x7fff_ffff], together);
    // Each kind of call comes in a long run, as in windows of one thread each.
    let trace = rounds(12, |_| {
        let mut some: Vec<Call> = (0..400).map(|_| wakes()).collect();
        some.extend((0..400).flat_map(|_| [waits(), locks(), frees()]));
        some
    });
    let mut rec = recording(&trace, BUSY);
    let main: Vec<bool> = rec.rows.iter().map(|r| r.api.as_deref() == Some("main")).collect();
    let of_main = |call: &systoll_model::WindowCall| main[call.row.0 as usize];
    rec.windows.retain(|w| w.calls.iter().all(of_main) || !w.calls.iter().any(of_main));
    rec.prices.switch = Some(Spread { min: SWITCH, median: 600.0, high: 900.0 });
    // The process has next to no processor time of its own.
    rec.processes[0].cpu_ns = Some(0);
    rec
}

fn judgement(rec: &Recording) -> Judgement {
    judge(rec, &Catalogue::builtin(), &Options::default())
}

#[test]
fn workers_woken_together_for_one_item_are_a_herd() {
    let f = only(judgement(&workers(4)));
    assert_eq!(f.cause.as_deref(), Some("thundering-herd"), "{f:?}");
    // The call that wakes all is where to change something; the calls that it makes needless are the workers'.
    assert_eq!(f.apis.first().map(|api| &**api), Some("main"), "{f:?}");
    // One of four rounds gets the item.
    let share = f.needless.estimate as f64 / (f.calls - 12 * 400) as f64;
    assert!((0.6..0.85).contains(&share), "{f:?}");
    // The wait and the contended lock switch, the unlocking does not.
    let later = f.later.unwrap();
    let switched = later.switches.estimate as f64 / f.needless.estimate as f64;
    assert!((0.6..0.7).contains(&switched), "{f:?}");
    assert!(later.ns.low as f64 >= later.switches.low as f64 * (SWITCH - 1.0) && later.switches.low > 0, "{later:?}");
}

#[test]
fn one_woken_for_one_item_is_no_herd() {
    let said = judgement(&workers(1));
    assert!(said.findings.is_empty() && said.also.is_empty(), "{said:#?}");
}

#[test]
fn workers_that_have_time_for_work_may_have_done_some() {
    let mut rec = workers(4);
    rec.processes[0].cpu_ns = Some(4_800 * 200_000);
    // Between two calls of a thread lie some 50 microseconds.
    rec.windows.iter_mut().flat_map(|w| &mut w.calls).for_each(|c| c.entry_ns = 1 + c.entry_ns.saturating_mul(50_000));
    let said = judgement(&rec);
    assert!(said.findings.is_empty() && said.also.is_empty(), "{said:#?}");
}

#[test]
fn workers_that_wait_again_at_once_had_no_work_whatever_others_did() {
    let mut rec = workers(4);
    rec.processes[0].cpu_ns = Some(4_800 * 200_000);
    rec.windows.iter_mut().flat_map(|w| &mut w.calls).for_each(|c| c.entry_ns = 1 + c.entry_ns.saturating_mul(1_000));
    let f = only(judgement(&rec));
    assert_eq!(f.cause.as_deref(), Some("thundering-herd"), "{f:?}");
}

#[test]
fn a_barrier_wakes_all_and_is_none() {
    let mut rec = workers(4);
    // At a barrier the last thread wakes the others, so the wakers are the waiters.
    rec.windows.iter_mut().for_each(|w| w.thread = 1);
    let said = judgement(&rec);
    assert!(said.findings.is_empty() && said.also.is_empty(), "{said:#?}");
}

#[test]
fn yields_that_switch_are_priced_by_their_switches() {
    let yields = |i: u64| {
        vec![call("sched_yield", "spin", &[], 0).toll(200).waited(if i.is_multiple_of(2) { 3_000 } else { 0 })]
    };
    let mut rec = recording(&rounds(8_000, yields), BUSY);
    assert_eq!(only(judgement(&rec)).later, None);
    rec.prices.switch = Some(Spread { min: SWITCH, median: 600.0, high: 900.0 });
    let f = only(judgement(&rec));
    let later = f.later.unwrap();
    assert!(later.switches.estimate.abs_diff(f.needless.estimate / 2) <= f.needless.estimate / 20, "{later:?}");
    assert!(later.switches.low <= later.switches.estimate && later.switches.estimate <= later.switches.high);
    assert_eq!(later.faults.high, 0);
    assert!(later.ns.estimate.abs_diff(later.switches.estimate * 500) <= 500, "{later:?}");
    // The price was measured while other programs had their turns: more than the whole run took.
    rec.prices.switch = Some(Spread { min: 2e6, median: 3e6, high: 4e6 });
    assert_eq!(only(judgement(&rec)).later, None);
}

#[test]
fn a_switch_now_and_then_is_nobodys_fault() {
    let yields = |i: u64| {
        vec![call("sched_yield", "spin", &[], 0).toll(200).waited(if i.is_multiple_of(64) { 3_000 } else { 0 })]
    };
    let mut rec = recording(&rounds(8_000, yields), BUSY);
    rec.prices.switch = Some(Spread { min: SWITCH, median: 600.0, high: 900.0 });
    assert_eq!(only(judgement(&rec)).later, None);
}

#[test]
fn yields_that_hand_the_processor_over_are_of_use() {
    let yields = |switches: fn(u64) -> bool| {
        move |i: u64| vec![call("sched_yield", "spin", &[], 0).toll(200).waited(if switches(i) { 3_000 } else { 0 })]
    };
    silent(&rounds(40_000, yields(|i| !i.is_multiple_of(29))), BUSY);
    let f = only(judged(&rounds(40_000, yields(|i| i.is_multiple_of(29))), BUSY));
    assert_eq!(f.cause.as_deref(), Some("spin-wait"));
}

#[test]
fn locks_of_the_c_library_wake_as_they_must() {
    let wakes = |api| rounds(6_000, move |_| vec![futex(api, 1, [0x2000, WAKE, 1], 0)]);
    let f = only(judged(&wakes("unlock:syscall"), BUSY));
    assert_eq!(f.cause.as_deref(), Some("futex-empty-wake"), "{f:?}");
    no_finding(&wakes("work:pthread_mutex_unlock"), BUSY);
}
