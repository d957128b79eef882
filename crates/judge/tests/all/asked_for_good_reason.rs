//! Tests of sequences that look needless and are not, each beside a needless one: the calls in
//! between tell them apart.

use crate::common::{BUSY, CWD, Call, call, judged, only, recording, rounds, stat, stat_bytes};
use systoll_judge::{Catalogue, Finding, Judgement, Kind, Options, judge};
use systoll_model::{Window, WindowCall};

const LOG: &str = "/srv/app.log";

/// Returns the findings and remarks of a cause.
fn of_cause<'j>(judgement: &'j Judgement, cause: &'j str) -> impl Iterator<Item = &'j Finding> {
    judgement.findings.iter().chain(&judgement.also).filter(move |f| f.cause.as_deref() == Some(cause))
}

#[test]
fn a_name_looked_at_beside_the_open_file() {
    let at_end = || call("read", "read", &[5, 0x1000, 4096], 0).fd(LOG).toll(300);
    let own = || call("fstat", "fstat", &[5, 0x2000], 0).output(1, &stat_bytes(3, 4)).fd(LOG).toll(200);
    let follows = rounds(5_000, |_| vec![stat(LOG, "stat", 3, 4), at_end(), own()]);
    assert_eq!(of_cause(&judged(&follows, BUSY), "stat-per-op").count(), 0);
    let another = rounds(5_000, |_| vec![stat("/srv/app.conf", "stat", 3, 4), at_end(), own()]);
    assert_eq!(of_cause(&judged(&another, BUSY), "stat-per-op").count(), 1);
}

#[test]
fn a_sync_before_a_file_gets_its_name() {
    let sync = |file: &'static str| call("fsync", "fsync", &[6], 0).fd(file).toll(900).waited(4_000_000);
    let write = || call("write", "write", &[6, 0x1000, 400], 400).fd("/srv/state.new").toll(700);
    let rename = || call("rename", "rename", &[1, 2], 0).path(0, "/srv/state.new").path(1, "/srv/state").toll(900);
    let close = || call("close", "close", &[6], 0).toll(200);
    let saves = rounds(300, |_| vec![write(), sync("/srv/state.new"), close(), rename(), sync("/srv"), close()]);
    assert_eq!(of_cause(&judged(&saves, BUSY), "sync-per-op").count(), 0);
    let appends = rounds(300, |_| vec![write(), sync("/srv/state.new")]);
    assert_eq!(only(judged(&appends, BUSY)).cause.as_deref(), Some("sync-per-op"));
    // The rename is of another file, so that the sync belongs to no replacement.
    let other = || call("rename", "rename", &[1, 2], 0).path(0, "/var/a").path(1, "/var/b").toll(900);
    let beside = rounds(300, |_| vec![write(), sync("/srv/state.new"), other()]);
    assert_eq!(of_cause(&judged(&beside, BUSY), "sync-per-op").count(), 1);
}

#[test]
fn a_second_descriptor_around_each_operation() {
    let made = || call("fcntl", "fcntl", &[5, 1030, 3], 9).fd("/srv/store").toll(300);
    let reads = || call("pread64", "pread", &[9, 0x1000, 4096, 0], 4096).fd("/srv/store").toll(700);
    let close = |fd| call("close", "close", &[fd], 0).toll(300);
    let found = only(judged(&rounds(5_000, |_| vec![made(), reads(), close(9)]), BUSY));
    assert_eq!((found.kind, found.syscalls.len()), (Kind::Toggle, 2), "{found:#?}");
    assert!(found.cures[0].how.contains("descriptor that is there"), "{found:#?}");
    // A copy that is put back around each step could be kept. If the first descriptor is closed,
    // the copy is what keeps the file open.
    let copies = |from, to| call("dup2", "dup2", &[from, to], to as i64).toll(300);
    let saved = rounds(5_000, |_| vec![made(), copies(7, 5), reads(), copies(9, 5), close(9)]);
    let moved = rounds(5_000, |_| vec![made(), close(5), reads(), close(9)]);
    let toggles = |trace| judged(trace, BUSY).findings.iter().filter(|f| f.kind == Kind::Toggle).count();
    assert_eq!((toggles(&saved), toggles(&moved)), (1, 0));
}

#[test]
fn a_temporary_file_that_only_its_maker_reads() {
    const NEW: u64 = 0o302;
    let name = |n: u64| format!("/tmp/box/page{n}");
    let file = "/tmp/box/page";
    let round = |n: u64, between: &dyn Fn() -> Vec<Call>| {
        let made = call("openat", "open", &[CWD, 1, NEW, 0o600], 9).path(1, &name(n)).toll(9_000);
        let wrote = call("write", "write", &[9, 0x1000, 900], 900).fd(file).toll(2_000);
        let gone = call("unlink", "unlink", &[1], 0).path(0, &name(n)).toll(9_000);
        let close = call("close", "close", &[9], 0).fd(file).toll(2_000);
        [vec![made, wrote], between(), vec![gone, close]].concat()
    };
    let back = || {
        let start = call("lseek", "lseek", &[9, 0, 0], 0).fd(file).toll(200);
        vec![start, call("read", "read", &[9, 0x1000, 4096], 900).fd(file).toll(700)]
    };
    let judgement = judged(&rounds(3_000, |n| round(n, &back)), BUSY);
    let told = |j: &Judgement| j.findings.iter().any(|f| f.kind == Kind::Toggle && f.why.contains("temporary file"));
    assert!(told(&judgement), "{judgement:#?}");
    // Not claimed: a lock file, which nobody reads, and a file that got another name before.
    assert!(!told(&judged(&rounds(3_000, |n| round(n, &Vec::new)), BUSY)));
    let kept = |n: u64| {
        let rename = call("rename", "rename", &[1, 2], 0).path(0, &name(n)).path(1, "/srv/page").toll(900);
        round(n, &|| [back(), vec![rename.clone()]].concat())
    };
    assert!(!told(&judged(&rounds(3_000, kept), BUSY)));
}

#[test]
fn a_temporary_file_that_its_maker_opens_again_by_its_name() {
    const NEW: u64 = 0o301;
    let round = |n: u64, between: Vec<Call>, read: i64| {
        let name = format!("/tmp/box/page{n}");
        let file: &'static str = name.clone().leak();
        let on = |of: &'static str, fd: u64, result: i64| call(of, of, &[fd, 0x1000, 900], result).fd(file).toll(700);
        let opens =
            |of: &'static str, flags: u64| call("openat", of, &[CWD, 1, flags, 0o600], 9).path(1, &name).toll(900);
        let gone = call("unlink", "unlink", &[1], 0).path(0, &name).toll(900);
        let made = vec![opens("make", NEW), on("write", 9, 900), on("close", 9, 0)];
        let back = vec![opens("open", 0), on("read", 9, read), on("close", 9, 0), gone];
        [made, between, back].concat()
    };
    let told = |trace: &[Call]| {
        let judgement = judged(trace, BUSY);
        of_cause(&judgement, "tmpfile-per-item").map(|f| f.needless.estimate).sum::<u64>()
    };
    let calls = told(&rounds(3_000, |n| round(n, vec![], 900)));
    assert!(calls > 20_000, "{calls} of 21,000");
    // Not claimed: nothing is read back, the file gets another name, a child may use it, or another process answers.
    assert_eq!(told(&rounds(3_000, |n| round(n, vec![], 0))), 0);
    let renames = |n: u64| call("rename", "rename", &[1, 2], 0).path(0, &format!("/tmp/box/page{n}")).path(1, "/srv/p");
    assert_eq!(told(&rounds(3_000, |n| round(n, vec![renames(n)], 900))), 0);
    let forks = || call("clone", "fork", &[17], 4_711).toll(9_000);
    assert_eq!(told(&rounds(3_000, |n| round(n, vec![forks()], 900))), 0);
    let syncs = || call("fsync", "fsync", &[9], 0).fd("/tmp/box/page").toll(90_000);
    assert_eq!(told(&rounds(3_000, |n| [round(n, vec![syncs()], 900)].concat())), 0);
    let answers = || call("read", "read:answer", &[4, 0x1000, 64], 64).fd("pipe:[7]").toll(900);
    assert_eq!(told(&rounds(3_000, |n| round(n, vec![answers()], 900))), 0);
    // One such file is no habit.
    assert_eq!(told(&[round(1, vec![], 900), rounds(3_000, |_| vec![forks()])].concat()), 0);
}

#[test]
fn files_that_are_synced_and_then_removed() {
    let file = |n: u64| -> &'static str { format!("/tmp/sort/run{n}").leak() };
    let spilled = |n: u64| {
        let on = |of: &'static str, toll: u64| call(of, of, &[9, 0x1000, 9_000], 0).fd(file(n)).toll(toll);
        let made = call("openat", "open", &[CWD, 1, 0o301, 0o600], 9).path(1, file(n)).toll(900);
        let wrote = call("write", "write", &[9, 0x1000, 9_000], 9_000).fd(file(n)).toll(900);
        vec![made, wrote, on("fsync", 900).waited(300_000), on("close", 200)]
    };
    let gone = |n: u64| vec![call("unlink", "unlink", &[1], 0).path(0, file(n)).toll(900)];
    let told = |after: &dyn Fn(u64) -> Vec<Call>, between: &[Call]| {
        let judgement =
            judged(&[rounds(400, |n| [spilled(n), between.to_vec()].concat()), rounds(400, after)].concat(), BUSY);
        of_cause(&judgement, "sync-per-op").count()
    };
    assert_eq!(told(&gone, &[]), 1);
    // Not claimed: the files stay, others are removed, or a client is told after each.
    assert_eq!(told(&|_| Vec::new(), &[]), 0);
    assert_eq!(told(&|n| gone(n + 1_000), &[]), 0);
    let answer = call("sendto", "send", &[5, 0x1000, 3, 0, 0, 0], 3).fd("TCP:[127.0.0.1:25]").toll(900);
    assert_eq!(told(&gone, &[answer]), 0);
    // Not claimed either: something may keep the file when its name is removed. A lasting name, by whichever call; a child,
    // a process that gets the descriptor, or what a ring does.
    let to_lasting = |name: &'static str, args: &[u64], paths: &[(u8, &str)]| {
        paths.iter().fold(call(name, name, args, 0).toll(900), |call, (arg, path)| call.path(*arg, path))
    };
    let message = [0, 0, 0x2000, 1, 0x3000, 24, 0].map(u64::to_le_bytes).concat();
    let keepers = [
        to_lasting("link", &[1, 2], &[(0, "/tmp/sort/run1"), (1, "/srv/1")]),
        to_lasting("linkat", &[CWD, 1, CWD, 2, 0x400], &[(1, "/proc/self/fd/9"), (3, "/srv/1")]),
        to_lasting("linkat", &[9, 1, CWD, 2, 0x1000], &[(1, ""), (3, "/srv/1")]).fd("/tmp/sort/run1"),
        to_lasting("rename", &[1, 2], &[(0, "/tmp/sort/run1"), (1, "/srv/1")]),
        call("clone", "fork", &[17], 4_711).toll(900),
        call("sendmsg", "sendmsg", &[5, 0x4000, 0], 1).input(1, &message).fd("UNIX-STREAM:[7]").toll(900),
        call("io_uring_enter", "syscall", &[3, 1, 0, 0], 1).toll(900),
    ];
    for keeper in keepers {
        let once = [vec![keeper.clone()], rounds(400, spilled), rounds(400, gone)].concat();
        assert_eq!(
            of_cause(&judged(&once, BUSY), "sync-per-op").filter(|f| f.why.contains("removes")).count(),
            0,
            "{}",
            keeper.name
        );
    }
}

#[test]
fn a_file_that_lasts_is_synced_beside_those_that_are_removed() {
    let file = |n: u64| -> &'static str { format!("/tmp/sort/run{n}").leak() };
    let on = |of: &'static str, file: &'static str| call(of, of, &[9, 0x1000, 9_000], 0).fd(file).toll(900);
    let round = |n: u64| {
        let made = call("openat", "open", &[CWD, 1, 0o301, 0o600], 9).path(1, file(n)).toll(900);
        let gone = call("unlink", "unlink", &[1], 0).path(0, file(n)).toll(900);
        let sync = |file: &'static str| on("fsync", file).waited(300_000);
        let log = if n.is_multiple_of(12) { vec![sync("/tmp/sort/log")] } else { vec![] };
        [vec![made, on("write", file(n)), sync(file(n)), on("close", file(n)), gone], log].concat()
    };
    let judgement = judged(&rounds(600, round), BUSY);
    let stops: Vec<String> =
        of_cause(&judgement, "sync-per-op").flat_map(Finding::stop).map(|how| how.to_string()).collect();
    assert!(!stops.iter().any(|how| how.contains("leave the sync out")), "{stops:?}");
}

#[test]
fn a_folder_watched_anew_after_each_of_its_files() {
    let watch = |number| call("inotify_add_watch", "watch", &[4, 1, 8], number).path(1, "/var/spool").toll(2_000);
    let gone = |n| call("unlink", "unlink", &[1], 0).path(0, &format!("/var/spool/{n}")).toll(700);
    let found = only(judged(&rounds(3_000, |n| vec![gone(n), watch(1)]), BUSY));
    assert_eq!((found.kind, found.cause.as_deref()), (Kind::NoOp, Some("watch-again")));
    // Another watch number shows that it is another folder each time, of the same name.
    let anew = judged(&rounds(3_000, |n| vec![gone(n), watch(n as i64)]), BUSY);
    assert_eq!(of_cause(&anew, "watch-again").count(), 0);
}

#[test]
fn a_wait_before_each_of_some_messages() {
    let waits = || call("epoll_wait", "epoll_wait", &[4, 0x1000, 8, u64::MAX], 1).toll(800);
    let takes = || call("recvfrom", "recv", &[5, 0x1000, 64], 64).fd("UDP:[127.0.0.1:53]").toll(900);
    let judgement = judged(&rounds(5_000, |_| vec![waits(), takes()]), BUSY);
    assert_eq!(of_cause(&judgement, "tiny-io").count(), 0, "{judgement:#?}");
}

#[test]
fn a_file_is_looked_at_again_after_it_was_read() {
    const FILE: &str = "/srv/data.bin";
    let open = || call("open", "openat", &[u64::MAX - 99, 0x1000, 0], 5).path(1, FILE).toll(900);
    let read = |got| call("read", "read", &[5, 0x1000, 4096], got).fd(FILE).toll(400);
    let close = || call("close", "close", &[5], 0).fd(FILE).toll(200);
    let by_name = || stat(FILE, "stat", 3, 4);
    // Archivers ask once before and once after the whole read: has the file changed meanwhile?
    let checks = rounds(3_000, |_| vec![open(), read(4096), read(1096), by_name(), close()]);
    assert_eq!(of_cause(&judged(&checks, BUSY), "stat-per-op").count(), 0);
    // Before each piece, or after the file was closed, nothing is checked.
    let per_piece = rounds(3_000, |_| vec![open(), by_name(), read(4096), by_name(), read(0), close()]);
    assert_eq!(of_cause(&judged(&per_piece, BUSY), "stat-per-op").count(), 1);
    let closed = rounds(3_000, |_| vec![open(), read(4096), close(), by_name()]);
    assert_eq!(of_cause(&judged(&closed, BUSY), "stat-per-op").count(), 1);
    // Nor where another file is read.
    let other = || call("read", "read", &[6, 0x1000, 4096], 4096).fd("/srv/other.bin").toll(400);
    let beside = rounds(3_000, |_| vec![other(), by_name()]);
    assert_eq!(of_cause(&judged(&beside, BUSY), "stat-per-op").count(), 1);
}

#[test]
fn descriptors_closed_twice_are_no_storm() {
    let refused = |fd: u64| call("close", "close", &[fd], -9).toll(200);
    // A shell's child closes the two ends of a pipe that it has no more.
    let twice = rounds(3_000, |n| vec![refused(3), refused(4), stat(&format!("/srv/{n}"), "stat", 3, 4)]);
    assert_eq!(of_cause(&judged(&twice, BUSY), "close-storm").count(), 0);
    let storm = rounds(3_000, |n| vec![refused(3 + n % 1_000)]);
    assert_eq!(of_cause(&judged(&storm, BUSY), "close-storm").count(), 1);
    // From the highest number down as well.
    let down = rounds(3_000, |n| vec![refused(1_002 - n % 1_000)]);
    assert_eq!(of_cause(&judged(&down, BUSY), "close-storm").count(), 1);
}

/// Judges a recording of one window with 300,000 calls, which go through the trace again and again.
fn in_one_long_window(trace: &[Call]) -> Judgement {
    let mut hostile = recording(trace, 1_000);
    let seen: Vec<WindowCall> = hostile.windows.iter().flat_map(|window| window.calls.clone()).collect();
    let calls = seen.iter().cycle().take(300_000).cloned().collect();
    hostile.windows = vec![Window { calls, ..hostile.windows[0].clone() }];
    judge(&hostile, &Catalogue::builtin(), &Options::default())
}

#[test]
fn questions_in_one_long_window_are_no_burden() {
    let read = call("read", "read", &[6, 0x1000, 4096], 4096).fd("/srv/other.bin").toll(400);
    let trace: Vec<_> = std::iter::once(read).chain((0..2_000).map(|_| stat("/srv/data.bin", "stat", 3, 4))).collect();
    // Each question looks for the reads and the closing around it: as far as the window reaches, that takes minutes.
    assert_eq!(of_cause(&in_one_long_window(&trace), "stat-per-op").count(), 1);
}

#[test]
fn files_made_in_one_long_window_are_no_burden() {
    let made = |n: u64| call("openat", "make", &[CWD, 1, 0o301, 0o600], 9).path(1, &format!("/tmp/box/{n}")).toll(900);
    let closed = || call("close", "close", &[9], 0).toll(200);
    let waits = || call("poll", "poll", &[0x1000, 1, 50], 1).toll(200).waited(9_000);
    // Each of very many files stays, and others may use them again and again.
    in_one_long_window(&rounds(2_000, |n| vec![made(n), closed(), waits()]));
}
