//! Tests of work handed over one by one, which the price of a call and a process's own time tell.

use crate::common::{BUSY, Call, call, is, only, recording, rounds};
use systoll_judge::{Catalogue, Kind, Options, judge};
use systoll_model::{Process, Recording};

fn judged_as(recording: &Recording) -> systoll_judge::Judgement {
    judge(recording, &Catalogue::builtin(), &Options::default())
}

fn enters(entries: u64, waited: u64) -> Call {
    call("io_uring_enter", "syscall", &[3, entries, entries, 1], entries as i64).toll(300).waited(waited)
}

#[test]
fn a_ring_entered_for_each_entry() {
    let priced = |trace: &[Call]| {
        let mut rec = recording(trace, BUSY);
        rec.prices.crossing_before.min = 100.0;
        judged_as(&rec)
    };
    is(&only(priced(&rounds(10_000, |_| vec![enters(1, 0)]))), Kind::SmallIo, "ring-per-entry");
    // Not claimed: many entries at once, and an entry that is waited for. Beside the work of an expensive entry, little is
    // won: only the crossing goes.
    assert!(priced(&rounds(10_000, |_| vec![enters(32, 0)])).findings.is_empty());
    assert!(priced(&rounds(10_000, |_| vec![enters(1, 50_000)])).findings.is_empty());
    assert!(priced(&rounds(10_000, |_| vec![enters(1, 0).toll(20_000)])).findings.is_empty());
}

fn wakes(at: u64, woken: i64) -> Call {
    call("futex", "unpark", &[at, 129, 1], woken).toll(900)
}

fn waits(at: u64, waited: u64) -> Call {
    call("futex", "park", &[at, 128, 0], 0).toll(1_500).waited(waited)
}

#[test]
fn items_handed_over_one_by_one() {
    let of = |trace: &[Call], cpu: u64| {
        let mut rec = recording(trace, BUSY);
        rec.processes[0].cpu_ns = Some(cpu);
        judged_as(&rec)
    };
    let turns = rounds(10_000, |_| vec![wakes(0x10, 1), waits(0x20, 5_000)]);
    is(&only(of(&turns, 60_000_000)), Kind::SmallIo, "handoff-per-item");
    // Not claimed: the other threads work, the address is a lock, or a queue has room and its
    // threads are out of step.
    assert!(of(&turns, 3_000_000_000).findings.is_empty());
    let lock = rounds(10_000, |_| vec![wakes(0x10, 1), waits(0x10, 5_000)]);
    assert!(of(&lock, 60_000_000).findings.is_empty());
    let queue = rounds(5_000, |_| vec![wakes(0x10, 1), wakes(0x10, 1), wakes(0x10, 0), waits(0x20, 5_000)]);
    assert!(of(&queue, 60_000_000).findings.is_empty());
}

#[test]
fn threads_that_meet_after_each_little_step() {
    let of = |trace: &[Call]| {
        let mut rec = recording(trace, BUSY);
        rec.processes[0].cpu_ns = Some(60_000_000);
        judged_as(&rec)
    };
    let wakes_all = |at: u64| call("futex", "pthread_barrier_wait", &[at, 129, 0x7fff_ffff], 1).toll(900);
    let meets = rounds(10_000, |n| vec![if n % 3 == 0 { wakes_all(0x10) } else { waits(0x10, 5_000) }]);
    is(&only(of(&meets)), Kind::SmallIo, "handoff-per-item");
    // Not claimed: a condition that wakes all and waits elsewhere for what they do.
    let elsewhere = rounds(10_000, |n| vec![if n % 3 == 0 { wakes_all(0x10) } else { waits(0x20, 5_000) }]);
    assert!(of(&elsewhere).findings.is_empty());
}

fn spawns(stack: u64) -> Call {
    call("clone3", "pthread_create", &[1, 88], 77)
        .input(0, &[0x3d_0f00, 0, 0, 0, 0, stack].map(u64::to_le_bytes).concat())
}

#[test]
fn a_thread_for_each_job() {
    let of = |threads: u64, cpu: u64, stack: fn(u64) -> u64| {
        let round = |i| vec![spawns(stack(i)).toll(15_000), call("getpid", "x", &[], 1)];
        let mut rec = recording(&rounds(2_000, round), BUSY);
        rec.processes[0] = Process { threads, cpu_ns: Some(cpu), ..rec.processes[0].clone() };
        judged_as(&rec)
    };
    let found = of(2_001, 60_000_000, |_| 0x7000).findings;
    assert!(found.iter().any(|f| f.cause.as_deref() == Some("thread-per-item")), "{found:#?}");
    // Not claimed: all threads live at the same time, each has work, or there are few.
    let healthy = [of(2_001, 60_000_000, |i| i), of(2_001, 9_000_000_000, |_| 0x7000), of(9, 60_000, |_| 0x7000)];
    for judgement in healthy {
        assert!(judgement.findings.iter().all(|f| f.cause.as_deref() != Some("thread-per-item")), "{judgement:#?}");
    }
}
