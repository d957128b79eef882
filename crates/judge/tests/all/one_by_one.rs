//! Tests of questions before each step, of settings overwritten unseen, and of work handed over one by one; each with
//! a neighbour that makes the same calls for good reason.

use crate::common::{BUSY, CWD, Call, call, is, judged, no_finding, only, recording, rounds, silent, stat_bytes};
use systoll_judge::{Catalogue, Kind, Options, judge};
use systoll_model::{Counts, Process, ProcessId, Recording, Row, RowId, Sysno, Window, WindowCall};

fn fstat(ctime: u64) -> Call {
    call("fstat", "fstat", &[3, 1], 0).output(1, &stat_bytes(ctime, 1)).toll(280)
}

fn reads(got: i64) -> Call {
    call("read", "read", &[3, 0x1000, 4096], got).fd("/tmp/f").toll(600)
}

#[test]
fn the_status_before_each_whole_piece() {
    is(&only(judged(&rounds(10_000, |_| vec![fstat(1), reads(4096)]), BUSY)), Kind::Repeat, "status-per-read");
    // Not claimed: the status changed, the file ended, the program waited or wrote, or each file is
    // another.
    silent(&rounds(10_000, |i| vec![fstat(i), reads(4096)]), BUSY);
    silent(&rounds(10_000, |_| vec![fstat(1), reads(0)]), BUSY);
    let sleeps = || call("nanosleep", "sleep", &[1, 0], 0).input(0, &[1; 16]);
    silent(&rounds(10_000, |_| vec![fstat(1), reads(4096), sleeps()]), BUSY);
    let writes = || call("write", "write", &[3, 0x1000, 5000], 5000).fd("/tmp/f").toll(500);
    silent(&rounds(10_000, |_| vec![fstat(1), reads(4096), writes()]), BUSY);
    let open = |n: u64| call("openat", "open", &[CWD, 1, 0, 0], 3).path(1, &format!("/tmp/{n}")).toll(1_000);
    let close = || call("close", "close", &[3], 0);
    silent(&rounds(10_000, |n| vec![open(n), fstat(1), reads(4096), fstat(1), reads(0), close()]), BUSY);
}

fn error_of(fd: u64, error: u32) -> Call {
    call("getsockopt", "getsockopt", &[fd, 1, 4, 0x10, 0x20], 0).output(3, &error.to_le_bytes()).toll(200)
}

fn sends(fd: u64) -> Call {
    call("sendto", "send", &[fd, 0x1000, 2000, 0, 0, 0], 2000).fd("TCP:[1.2.3.4:5->1.2.3.4:6]").toll(900)
}

#[test]
fn a_sockets_error_before_each_send() {
    is(&only(judged(&rounds(10_000, |_| vec![error_of(5, 0), sends(5)]), BUSY)), Kind::SlowPath, "sockopt-per-op");
    // Not claimed: one question for each connection, which tells whether connecting succeeded; a
    // question that finds an error; and one that no transfer follows.
    let connects = || {
        let socket = call("socket", "socket", &[2, 1, 0], 5).toll(900);
        vec![
            socket,
            call("connect", "connect", &[5, 1, 16], -115),
            error_of(5, 0),
            sends(5),
            call("close", "close", &[5], 0),
        ]
    };
    silent(&rounds(5_000, |_| connects()), BUSY);
    silent(&rounds(10_000, |_| vec![error_of(5, 32), sends(5)]), BUSY);
    silent(&rounds(10_000, |_| vec![error_of(5, 0), sends(6)]), BUSY);
}

fn watch(path: &str, mask: u64, number: i64) -> Call {
    call("inotify_add_watch", "inotify_add_watch", &[3, 1, mask], number).path(1, path).toll(900)
}

#[test]
fn what_is_watched_is_watched_again() {
    let again = |_| vec![watch("/a", 8, 1), watch("/b", 8, 2)];
    is(&only(judged(&rounds(10_000, again), BUSY)), Kind::NoOp, "watch-again");
    // Not claimed: another watch number, since the watch was gone; another mask; a watch that was
    // removed in between; and another path each time.
    silent(&rounds(10_000, |i| vec![watch("/a", 8, i as i64)]), BUSY);
    let removes = || call("inotify_rm_watch", "inotify_rm_watch", &[3, 1], 0);
    silent(&rounds(10_000, |_| vec![watch("/a", 8, 1), removes()]), BUSY);
    silent(&rounds(10_000, |i| vec![watch(&format!("/{i}"), 8, 1)]), BUSY);
    let refused = |_| vec![watch("/gone", 8, -2)];
    is(&only(judged(&rounds(10_000, refused), BUSY)), Kind::Failing, "refused-again");
}

#[test]
fn watches_are_given_up_and_taken_up_again() {
    let name = |n: i64| format!("/src/{n}");
    let removes = |wd: i64| call("inotify_rm_watch", "unwatch", &[3, wd as u64], 0).toll(700);
    let waits = || call("epoll_wait", "epoll_wait", &[4, 0x1000, 8, u64::MAX], 1).toll(400).waited(9_000);
    let anew = |files: i64, paths: i64| {
        rounds(2_000, move |i| {
            let (i, first) = (i as i64, i as i64 * files);
            let gone = (0..files).map(move |n| removes(first + n));
            let again = (0..files).map(move |n| watch(&name((n + i * files) % paths), 8, first + files + n));
            [vec![waits()], gone.collect(), again.collect()].concat()
        })
    };
    let found = only(judged(&anew(8, 8), BUSY));
    is(&found, Kind::Toggle, "watch-again");
    assert!(found.needless.estimate > 28_000, "{found:#?}");
    // Not claimed: the file of one watch may have been replaced, and other files are watched each time.
    silent(&anew(1, 1), BUSY);
    silent(&anew(8, 16_000), BUSY);
    // Nor is what is watched again after a wait.
    let paused = |i: u64| {
        let first = i as i64 * 8;
        let again = (0..8).map(|n| watch(&name(n), 8, first + 8 + n)).collect();
        [(0..8).map(|n| removes(first + n)).collect(), vec![waits()], again, vec![waits()]].concat()
    };
    silent(&rounds(2_000, paused), BUSY);
}

fn names(n: u64) -> Call {
    call("prctl", "prctl", &[15, 1], 0).input(1, format!("request {n}").as_bytes()).toll(200)
}

fn times(path: &str) -> Call {
    call("utimensat", "utimensat", &[CWD, 1, 0, 0], 0).path(1, path).toll(900)
}

fn judged_as(recording: &Recording) -> systoll_judge::Judgement {
    judge(recording, &Catalogue::builtin(), &Options::default())
}

#[test]
fn times_at_which_another_process_looks_now_and_then() {
    let told = |looks: u64| {
        let mut recording = recording(&rounds(10_000, |_| vec![times("/beat")]), BUSY);
        let (process, row) = (ProcessId(1), RowId(recording.rows.len() as u32));
        recording.processes.push(Process { pid: 2, instances: 1, ..recording.processes[0].clone() });
        let counts = Counts { calls: looks, ..Counts::default() };
        recording.rows.push(Row { process, syscall: Sysno::named("newfstatat"), counts, ..recording.rows[0].clone() });
        let look = WindowCall { row, nth: 1, result: Some(0), ..recording.windows[0].calls[0].clone() };
        recording.windows.push(Window { process, thread: 9, row, octave: 0, calls: vec![look] });
        judged_as(&recording).findings.iter().filter(|f| f.cause.as_deref() == Some("times-per-op")).count()
    };
    assert_eq!([told(20), told(2_000)], [1, 0]);
}

#[test]
fn names_and_times_that_nobody_could_have_seen() {
    is(&only(judged(&rounds(10_000, |i| vec![names(i)]), BUSY)), Kind::Toggle, "title-per-op");
    is(&only(judged(&rounds(10_000, |_| vec![times("/beat")]), BUSY)), Kind::Toggle, "times-per-op");
    // Not claimed: another file each time; a program that looks itself; a child that inherits the
    // name; and a setting that lasts long enough to be seen.
    silent(&rounds(10_000, |i| vec![times(&format!("/out/{i}"))]), BUSY);
    silent(&rounds(10_000, |i| vec![times("/beat"), crate::common::stat("/beat", "stat", i, i)]), BUSY);
    silent(
        &rounds(10_000, |i| vec![names(i), call("clone", "fork", &[17, 0, 0, 0, 0], 100 + i as i64).toll(900)]),
        BUSY,
    );
    let mut slow = recording(&rounds(10_000, |i| vec![names(i)]), BUSY);
    slow.windows.iter_mut().flat_map(|w| &mut w.calls).for_each(|c| c.entry_ns *= 20_000_000);
    let judgement = judged_as(&slow);
    assert!(judgement.findings.is_empty() && judgement.also.is_empty(), "{judgement:#?}");
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

#[test]
fn a_wait_before_each_byte() {
    let ready = |waited: u64| call("poll", "poll", &[1, 1, 60_000], 1).toll(500).waited(waited);
    let byte = || call("read", "read", &[3, 0x1000, 1], 1).fd("pipe:[7]").toll(300);
    let judgement = judged(&rounds(10_000, |_| vec![ready(0), byte()]), BUSY);
    let f = only(judgement);
    is(&f, Kind::SmallIo, "tiny-io");
    assert_eq!(f.calls, 20_000);
    // Not claimed: the data comes byte by byte, or each byte is answered.
    no_finding(&rounds(10_000, |_| vec![ready(40_000), byte()]), BUSY);
    let answer = || call("write", "write", &[4, 0x1000, 1], 1).fd("pipe:[8]").toll(300);
    no_finding(&rounds(10_000, |_| vec![ready(0), byte(), answer()]), BUSY);
}

#[test]
fn programs_looked_for_where_they_never_are() {
    let tries = |dir: u64, errno: i64| {
        call("execve", "execvp", &[1, 2, 3], errno).path(0, &format!("/d{dir}/true")).toll(3_000)
    };
    let search = |_| (0..40).map(|d| tries(d, -2)).chain([tries(99, 0)]).collect();
    let mut rec = recording(&rounds(50, search), BUSY);
    for row in &mut rec.rows {
        row.counts.errors.insert(systoll_model::Errno::ENOENT, 2_000);
    }
    is(&only(judged_as(&rec)), Kind::Failing, "search-path");
    // Things found in the third directory: the program looks in order.
    let short = |_| (0..3).map(|d| tries(d, if d == 2 { 0 } else { -2 })).collect();
    let judgement = judged(&rounds(2_000, short), BUSY);
    assert!(judgement.findings.iter().all(|f| f.cause.as_deref() != Some("search-path")), "{judgement:#?}");
}
