//! Tests of locks released and taken again, timeouts rounded down, polls between sleeps, files read again; each with
//! a neighbour that makes the same calls for good reason.

use crate::common::{BUSY, CWD, Call, call, is, judged, no_finding, only, recording, rounds, silent, stat, stat_bytes};
use systoll_judge::{Finding, Kind};

fn flock(operation: u64) -> Call {
    call("flock", "flock", &[3, operation], 0).fd("/tmp/log").toll(300)
}

/// Returns an F_SETLKW call; F_WRLCK is 1, F_UNLCK 2.
fn record_lock(kind: u16) -> Call {
    let mut bytes = vec![0; 32];
    bytes[..2].copy_from_slice(&kind.to_le_bytes());
    call("fcntl", "fcntl", &[3, 7, 0x1000], 0).fd("/tmp/log").input(2, &bytes).toll(300)
}

fn writes() -> Call {
    call("pwrite64", "pwrite", &[3, 0x1000, 4000, 0], 4000).fd("/tmp/log").toll(700)
}

#[test]
fn a_lock_left_and_taken_again_around_each_line() {
    is(&only(judged(&rounds(5_000, |_| vec![flock(2), writes(), flock(8)]), BUSY)), Kind::Toggle, "lock-per-line");
    let records = |_| vec![record_lock(1), writes(), record_lock(2)];
    is(&only(judged(&rounds(5_000, records), BUSY)), Kind::Toggle, "lock-per-line");
    // Not claimed: another process held the lock, the program waited for a request, it does much
    // under the lock or between two, or it makes a child.
    silent(&rounds(5_000, |_| vec![flock(2).waited(20_000), writes(), flock(8)]), BUSY);
    silent(&rounds(5_000, |_| vec![flock(6), call("flock", "flock", &[3, 6], -11).fd("/tmp/log"), flock(8)]), BUSY);
    let asked = || call("read", "read", &[5, 0x1000, 512], 64).fd("pipe:[7]").waited(9_000);
    silent(&rounds(5_000, |_| vec![asked(), flock(2), writes(), flock(8)]), BUSY);
    let sums = |n: usize| vec![call("getrusage", "getrusage", &[0, 0x1000], 0).toll(20); n];
    let busy = |under: usize, between: usize| {
        rounds(2_000, |_| [vec![flock(2)], sums(under), vec![flock(8)], sums(between)].concat())
    };
    let locks =
        |trace: &[Call]| judged(trace, BUSY).findings.iter().any(|f| f.cause.as_deref() == Some("lock-per-line"));
    assert!(locks(&busy(2, 1)) && !locks(&busy(12, 1)) && !locks(&busy(2, 5)));
    let forks = || call("clone", "fork", &[17, 0, 0, 0, 0], 100).toll(9_000);
    assert!(!locks(&rounds(2_000, |_| vec![flock(2), writes(), flock(8), forks()])));
}

#[test]
fn a_lock_of_a_file_that_is_opened_for_each_time_under_it() {
    let lock = |how: u64| call("flock", "flock", &[3, how], 0).fd("/run/app.lock").toll(300);
    let opens = || call("openat", "open", &[CWD, 1, 2, 0], 3).path(1, "/run/app.lock").toll(1_500);
    let status = || call("fstat", "fstat", &[3, 0x1000], 0).fd("/run/app.lock").output(1, &stat_bytes(1, 0));
    let closes = || call("close", "close", &[3], 0).fd("/run/app.lock").toll(300);
    let write = || call("write", "write", &[4, 0x1000, 4_000], 4_000).fd("/var/log/app").toll(900);
    let locks = |trace: &[Call]| {
        let told = judged(trace, BUSY);
        let mut all = told.findings.into_iter().chain(told.also);
        let is =
            |f: &Finding| f.cause.as_deref() == Some("lock-per-line") && f.apis.iter().any(|api| &**api == "flock");
        all.find(is).map(|finding| finding.calls)
    };
    // What opens, asks about and closes the file of the lock, and does nothing else with it, goes with it.
    let left = rounds(3_000, |_| vec![opens(), status(), lock(2), write(), lock(8), closes()]);
    assert_eq!(locks(&left), Some(15_000));
    // Closing the file releases the lock.
    let closed = rounds(3_000, |_| vec![opens(), status(), lock(2), write(), closes()]);
    assert_eq!(locks(&closed), Some(12_000));
    // Another process held the lock; the program does much in between; it waits for a request.
    let busy = |between: Vec<Call>| {
        rounds(3_000, move |_| [vec![opens(), lock(2), write(), lock(8), closes()], between.clone()].concat())
    };
    let asked = call("read", "read", &[5, 0x1000, 512], 64).fd("pipe:[7]").waited(9_000);
    assert_eq!(locks(&busy(vec![lock(6), call("flock", "flock", &[3, 6], -11).fd("/run/app.lock")])), None);
    assert_eq!(locks(&busy(vec![call("getrusage", "getrusage", &[0, 0x1000], 0).toll(20); 5])), None);
    assert_eq!(locks(&busy(vec![asked])), None);
}

fn poll(timeout: u64, ready: i64) -> Call {
    let waited = if timeout > 0 { 1_000_000 * timeout } else { 0 };
    call("epoll_wait", "epoll_wait", &[4, 0x1000, 8, timeout], ready).toll(400).waited(waited)
}

#[test]
fn what_is_left_of_a_timeout_is_rounded_down() {
    let rounded = |spins: usize| rounds(2_000, |_| [vec![poll(2, 0)], vec![poll(0, 0); spins]].concat());
    is(&only(judged(&rounded(40), BUSY)), Kind::BusyPoll, "timeout-rounded");
    // No wait timed out, so the program only spins; or it polls once after each wait for what came
    // meanwhile.
    is(&only(judged(&rounds(40_000, |_| vec![poll(0, 0)]), BUSY)), Kind::BusyPoll, "spin-wait");
    silent(&rounded(1), BUSY);
    let came = || call("read", "read", &[5, 0x1000, 64], 64).fd("pipe:[7]");
    silent(&rounds(5_000, |_| vec![poll(2, 1), came(), poll(0, 0)]), BUSY);
}

#[test]
fn looks_between_sleeps_belong_to_the_sleeping() {
    let sleeps = || {
        let time: Vec<u8> = [0u64, 100_000].iter().flat_map(|word| word.to_le_bytes()).collect();
        call("ppoll", "ppoll", &[0x1000, 1, 0x2000, 0, 8], 0).input(2, &time).toll(500).waited(150_000)
    };
    let looks = || call("read", "read", &[3, 0x1000, 8], -11).fd("anon_inode:[eventfd]").toll(400);
    let judgement = judged(&rounds(3_000, |_| vec![sleeps(), looks()]), BUSY);
    assert!(judgement.findings.is_empty(), "{judgement:#?}");
    let remark = &judgement.also[0];
    assert_eq!((remark.cause.as_deref(), remark.syscalls.len()), (Some("sleep-poll"), 2), "{remark:#?}");
}

#[test]
fn short_sleeps_until_a_moment_are_slices_too() {
    // CPython's time.sleep, from 3.11 on, sleeps until a moment of the clock.
    let remarks = |waited: u64, found: i64| {
        let sleeps = call("clock_nanosleep", "clock_nanosleep", &[1, 1, 0x1000, 0], 0).toll(500).waited(waited);
        let looks = call("wait4", "waitpid", &[4_711, 0x2000, 1, 0], found).toll(300);
        let judgement = judged(&rounds(4_000, |_| vec![sleeps.clone(), looks.clone()]), BUSY);
        let all = judgement.findings.iter().chain(&judgement.also);
        all.filter(|f| f.cause.as_deref() == Some("sleep-poll")).map(|f| f.syscalls.len()).collect::<Vec<_>>()
    };
    assert_eq!(remarks(560_000, 0), [2]);
    // Not claimed: the sleep is a long one, or a child has ended each time.
    assert!(remarks(20_000_000, 0).is_empty() && remarks(560_000, 4_711).is_empty());
}

fn opens(path: &str) -> Call {
    call("openat", "open", &[CWD, 1, 0, 0], 3).path(1, path).toll(1_500)
}

fn fstat(ctime: u64) -> Call {
    call("fstat", "fstat", &[3, 1], 0).output(1, &stat_bytes(ctime, 1)).toll(280)
}

fn reads(got: i64) -> Call {
    call("read", "read", &[3, 0x1000, 4096], got).fd("/tmp/f").toll(600)
}

fn closes() -> Call {
    call("close", "close", &[3], 0).toll(150)
}

fn remarked(trace: &[Call]) -> Option<u64> {
    let judgement = judged(trace, BUSY);
    let of = judgement.findings.iter().chain(&judgement.also).filter(|f| f.cause.as_deref() == Some("file-reread"));
    of.map(|f| f.needless.estimate).reduce(|a, b| a + b)
}

#[test]
fn a_file_whose_next_opening_no_window_reaches() {
    let bundle = |ctime: &dyn Fn(u64) -> u64| {
        rounds(60, |n| [vec![opens("/tmp/f"), fstat(ctime(n))], vec![reads(4096); 70], vec![closes()]].concat())
    };
    let calls = 60 * 73;
    let claimed = remarked(&bundle(&|_| 1)).unwrap();
    assert!(claimed > calls * 9 / 10 && claimed <= calls, "{claimed}");
    // Not claimed: the content changes, or each file is another.
    assert!(remarked(&bundle(&|n| n)).is_none_or(|claimed| claimed < calls / 10));
    let others = rounds(60, |n| [vec![opens(&format!("/tmp/{n}")), fstat(n)], vec![reads(4096); 70]].concat());
    no_finding(&others, BUSY);
    assert_eq!(remarked(&others), None);
}

#[test]
fn a_small_file_that_is_opened_very_often() {
    let zone = |n: u64, times: u64| {
        let path = |i: u64| if n == 1 { "/tmp/f".into() } else { format!("/tmp/{}", i % n) };
        rounds(times, move |i| vec![opens(&path(i)), fstat(1), reads(900), closes()])
    };
    assert!(remarked(&zone(1, 2_000)).is_some_and(|claimed| claimed > 5_500));
    // Not claimed: few openings, or one file among very many.
    assert_eq!(remarked(&zone(1, 60)), None);
    assert_eq!(remarked(&zone(1_000, 2_000)), None);
}

#[test]
fn sleeps_of_gos_run_time_are_nobodys() {
    let time: Vec<u8> = [0u64, 20_000].iter().flat_map(|word| word.to_le_bytes()).collect();
    let sleeps = |of: &'static str| {
        let sleep = || call("nanosleep", of, &[0x1000, 0], 0).input(0, &time).toll(500).waited(80_000);
        let judgement = judged(&rounds(6_000, |_| vec![sleep()]), BUSY);
        judgement.findings.iter().chain(&judgement.also).filter(|f| f.cause.as_deref() == Some("sleep-poll")).count()
    };
    assert_eq!((sleeps("usleep"), sleeps("runtime.usleep")), (1, 0));
}

#[test]
fn what_came_before_an_unknown_main_is_not_told() {
    let stats = rounds(6_000, |_| vec![fstat(1).startup()]);
    let phase = |change: fn(&mut systoll_model::Process)| {
        let mut rec = recording(&stats, BUSY);
        change(&mut rec.processes[0]);
        let said = systoll_judge::judge(&rec, &systoll_judge::Catalogue::builtin(), &systoll_judge::Options::default());
        said.findings.first().map(|f| f.phase)
    };
    assert_eq!(phase(|_| ()), Some(systoll_model::Phase::StartUp));
    assert_eq!(phase(|process| process.main_at_ns = None), Some(systoll_model::Phase::Steady));
}

#[test]
fn whether_a_link_lies_there_is_another_question() {
    let asked = |flags: u64| {
        let ask = |i: u64| {
            let mut ask = stat(&format!("/srv/{i}/file"), "walk", 1, 1);
            ask.args[3] = flags;
            vec![ask]
        };
        let mut rec = recording(&rounds(4_000, ask), BUSY);
        let calls = rec.windows.iter_mut().flat_map(|window| &mut window.calls);
        calls.for_each(|call| call.before = systoll_model::Before::OtherWay);
        let said = systoll_judge::judge(&rec, &systoll_judge::Catalogue::builtin(), &systoll_judge::Options::default());
        said.findings.len() + said.also.len()
    };
    // Whoever saw that there is no link knows what the name leads to, but not the reverse.
    assert_eq!((asked(0), asked(0x100)), (1, 0));
}
