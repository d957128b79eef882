//! Tests of changes of names where questions lie so far apart that no window shows two of them. Nearer ones are in
//! `cases/text/changed-names.md`.

use crate::common::*;
use systoll_judge::{Catalogue, Options, judge};
use systoll_model::Before;

/// Returns a question whether a path is there.
fn access(path: &str) -> Call {
    call("access", "access", &[1, 0], 0).path(0, path).toll(700)
}

fn readlink(path: &str, to: &[u8]) -> Call {
    call("readlink", "readlink", &[1, 0x1000, 4_096], to.len() as i64).path(0, path).output(1, to).toll(900)
}

fn unlink(path: &str) -> Call {
    call("unlink", "unlink", &[1], 0).path(0, path).toll(2_000)
}

fn rename(from: &str, to: &str) -> Call {
    call("rename", "rename", &[1, 2], 0).path(0, from).path(1, to).toll(2_000)
}

/// Returns calls that no question is about, more than a window holds.
fn other_work() -> Vec<Call> {
    (0..40).map(|_| call("write", "write", &[5, 0x1000, 9_000], 9_000).fd("/srv/out").toll(50)).collect()
}

/// Returns the number of calls of `name` that findings and remarks call needless, where the ledger knows each question from
/// before.
fn needless_by_ledger(trace: &[Call], name: &str) -> u64 {
    let mut recording = recording(trace, BUSY);
    let asks =
        |row: systoll_model::RowId, rows: &[systoll_model::Row]| rows[row.0 as usize].syscall.name() == Some(name);
    let rows = recording.rows.clone();
    for call in recording.windows.iter_mut().flat_map(|w| &mut w.calls).filter(|c| asks(c.row, &rows) && c.nth > 1) {
        call.before = Before::Same;
    }
    let judgement = judge(&recording, &Catalogue::builtin(), &Options::default());
    let all = judgement.findings.iter().chain(&judgement.also);
    let of = all.filter(|f| f.syscalls.iter().any(|call| call.name() == Some(name)));
    of.map(|f| f.needless.estimate).sum()
}

type Question = (&'static str, fn() -> Call);

/// Questions about the path `/srv/app/name`, or of another call about `/proc/self/exe`, each with its system call.
const QUESTIONS: [Question; 3] = [
    ("newfstatat", || stat("/srv/app/name", "stat", 7, 7)),
    ("access", || access("/srv/app/name")),
    ("readlink", || readlink("/srv/app/name", b"/opt/target")),
];

#[test]
fn a_change_of_another_name_in_each_round_hides_no_question() {
    for (name, question) in QUESTIONS {
        let apart = rounds(1_000, |n| [vec![unlink(&format!("/tmp/t{n}")), question()], other_work()].concat());
        assert!(needless_by_ledger(&apart, name) > 800, "{name}: {}", needless_by_ledger(&apart, name));
    }
}

#[test]
fn a_change_of_the_name_or_of_a_folder_on_the_way_to_it_is_a_reason_to_ask() {
    let swaps: [fn() -> Call; 5] = [
        || rename("/srv/app/new", "/srv/app/name"),
        || rename("/srv/next", "/srv/app"),
        || rename("/srv/next", "/srv/./app/"),
        || rename("next", "app"),
        || rename("../next", "../app"),
    ];
    // The status holds the time of the last change, which a swap of the folder leaves as it is.
    for (name, question) in &QUESTIONS[1..] {
        for (at, swap) in swaps.iter().enumerate() {
            let apart = rounds(1_000, |_| [vec![swap(), question()], other_work()].concat());
            assert_eq!(needless_by_ledger(&apart, name), 0, "{name} apart from swap {at}");
        }
    }
}
