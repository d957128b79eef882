//! Tests of what another process does when all is over, of pipes that hold nothing, of servers that are not there, and
//! of names in a folder that is read again; each with a neighbour that makes the same calls for good reason.

use crate::common::{BUSY, CWD, Call, call, is, judged, only, recording, rounds, silent, stat_bytes};
use systoll_judge::{Catalogue, Judgement, Kind, Options, judge};
use systoll_model::{Counts, Errno, Process, ProcessId, Recording, Row, RowId, Sysno, Window, WindowCall};

fn judged_as(recording: &Recording) -> Judgement {
    judge(recording, &Catalogue::builtin(), &Options::default())
}

/// Adds a second process that makes `of` once at this time, with the data of the call that `of` returns.
fn another(mut recording: Recording, name: &'static str, like: &Call, at_ns: u64) -> Recording {
    let (process, row) = (ProcessId(1), RowId(recording.rows.len() as u32));
    recording.processes.push(Process { pid: 2, instances: 1, ..recording.processes[0].clone() });
    let counts = Counts { calls: 1, ..Counts::default() };
    recording.rows.push(Row { process, syscall: Sysno::named(name), counts, ..recording.rows[0].clone() });
    let one = crate::common::recording(std::slice::from_ref(like), BUSY).windows[0].calls[0].clone();
    let calls = vec![WindowCall { row, nth: 1, entry_ns: at_ns, ..one }];
    recording.windows.push(Window { process, thread: 9, row, octave: 0, calls });
    recording
}

#[test]
fn a_file_that_another_process_removes_when_all_is_over() {
    let asks =
        || call("newfstatat", "stat", &[CWD, 1, 2, 0], 0).path(1, "/srv/a").output(2, &stat_bytes(0, 0)).toll(900);
    let removes = call("unlink", "unlink", &[1], 0).path(0, "/srv/a");
    let trace = rounds(8_000, |_| vec![asks()]);
    let told = |recording: Recording| judged_as(&recording).findings.len();
    assert_eq!(told(another(recording(&trace, BUSY), "unlink", &removes, u64::MAX / 4)), 1);
    // Not claimed: the last question found that the file is gone, which the program waited for; or the other process
    // replaces the file.
    let mut waits = recording(&trace, BUSY);
    waits.rows[0].counts.errors.insert(Errno::ENOENT, 1);
    assert_eq!(told(another(waits, "unlink", &removes, u64::MAX / 4)), 0);
    let replaces = call("rename", "rename", &[1, 2], 0).path(0, "/srv/b").path(1, "/srv/a");
    assert_eq!(told(another(recording(&trace, BUSY), "rename", &replaces, u64::MAX / 4)), 0);
    let makes = call("chmod", "chmod", &[1, 0o644], 0).path(0, "/srv/a");
    assert_eq!(told(another(recording(&trace, BUSY), "chmod", &makes, 5)), 0);
}

#[test]
fn a_state_file_that_another_process_reads_when_all_is_over() {
    let opens = || call("openat", "open", &[CWD, 1, 0o1101, 0o666], 9).path(1, "/run/state").toll(4_000);
    let fills = || call("write", "write", &[9, 0x1000, 70], 70).fd("/run/state").toll(900);
    let closes = || call("close", "close", &[9], 0).fd("/run/state").toll(400);
    let trace = rounds(4_000, |_| vec![opens(), fills(), closes()]);
    let reads = call("openat", "open", &[CWD, 1, 0, 0], 3).path(1, "/run/state");
    let told = |at_ns: u64| judged_as(&another(recording(&trace, BUSY), "openat", &reads, at_ns)).findings.len();
    assert_eq!(told(u64::MAX / 4), 1);
    // Not claimed: it may have waited for each writing.
    assert_eq!(told(0), 0);
}

#[test]
fn a_pipe_for_each_item_that_is_read_out() {
    let pair = |taken: u64| {
        let makes = call("pipe2", "pipe", &[0x1000, 0], 0).output(0, &[3, 0, 0, 0, 4, 0, 0, 0]).toll(900);
        let writes = call("write", "write", &[4, 0x2000, 80], 80).fd("pipe:[7]").toll(300);
        let reads = call("read", "read", &[3, 0x2000, 80], taken as i64).fd("pipe:[7]").toll(300);
        let close = |fd: u64| call("close", "close", &[fd], 0).fd("pipe:[7]").toll(400);
        vec![makes, writes, reads, close(3), close(4)]
    };
    let f = only(judged(&rounds(4_000, |_| pair(80)), BUSY));
    assert!(f.kind == Kind::Toggle && f.needless.estimate > 11_000, "{f:#?}");
    // A remark only: what is left in it would come to the next reader.
    let left = judged(&rounds(4_000, |_| pair(40)), BUSY);
    assert!(left.findings.is_empty() && left.also.len() == 1, "{left:#?}");
}

#[test]
fn a_server_of_this_box_that_is_not_there() {
    let address = |last: u64| [&[1, 0][..], b"/dev/log", &last.to_le_bytes()].concat();
    let round = |kind: u8, last: u64, result: i64| {
        let makes = call("socket", "syslog", &[u64::from(kind), 0x8_0002, 0], 3).toll(1_900);
        let mut to = address(last);
        to[0] = kind;
        let tries = call("connect", "syslog", &[3, 0x1000, 110], result).input(1, &to).fd("socket:[9]").toll(1_700);
        vec![makes, tries, call("close", "syslog", &[3], 0).fd("socket:[9]").toll(1_500)]
    };
    let f = only(judged(&rounds(4_000, |_| round(1, 0, -2)), BUSY));
    is(&f, Kind::Failing, "refused-again");
    assert!(f.needless.estimate > 11_000, "{f:#?}");
    // Not claimed: another server each time, one of the network that is on its way, or one that answers.
    silent(&rounds(4_000, |n| round(1, n, -2)), BUSY);
    silent(&rounds(4_000, |_| round(2, 0, -115)), BUSY);
}

#[test]
fn names_in_a_folder_that_is_read_again() {
    let opens = || call("openat", "open", &[CWD, 1, 0x1_0000, 0], 3).path(1, "/srv/d").toll(1_500);
    let lists = |got: i64| call("getdents64", "readdir", &[3, 0x1000, 32_768], got).fd("/srv/d").toll(9_000);
    let removes =
        |n: u64| call("unlinkat", "unlinkat", &[3, 1, 0], 0).path(1, &format!("f{n}")).fd("/srv/d").toll(6_000);
    let mut trace = vec![opens(), lists(24), call("close", "close", &[3], 0).fd("/srv/d"), opens()];
    trace.extend(rounds(4_000, |n| vec![removes(n)]));
    let judgement = judged(&trace, BUSY);
    let about_names = |f: &systoll_judge::Finding| f.syscalls.iter().any(|s| s.name() == Some("unlinkat"));
    assert!(!judgement.findings.iter().chain(&judgement.also).any(about_names), "{judgement:#?}");
}

#[test]
fn relative_names_in_a_program_that_has_settled_in_a_folder() {
    let moves = |to: &str| call("chdir", "chdir", &[1], 0).path(0, to).toll(700);
    let asks = |n: u64| {
        let name = format!("f{}", n % 40);
        call("newfstatat", "stat", &[CWD, 1, 2, 0], 0).path(1, &name).output(2, &stat_bytes(n % 40, 0)).toll(900)
    };
    let begins = || call("getpid", "getpid", &[], 7).toll(20);
    let settles = [vec![begins(), moves("/srv/a")], rounds(8_000, |n| vec![asks(n)])].concat();
    let timed = |trace: &[Call]| {
        let mut recording = recording(trace, BUSY);
        recording.windows.iter_mut().flat_map(|w| &mut w.calls).for_each(|call| call.entry_ns *= 20_000);
        judged_as(&recording)
    };
    assert!(only(timed(&settles)).needless.estimate > 6_000);
    // Not claimed: the program goes from folder to folder.
    let wanders = rounds(200, |n| {
        let names = rounds(40, |n| vec![asks(n)]);
        [vec![begins(), moves(&format!("/srv/{n}"))], names].concat()
    });
    assert!(timed(&wanders).findings.is_empty());
}
