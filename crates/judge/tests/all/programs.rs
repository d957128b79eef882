//! Tests of searches for programs in one folder after another, and of searches that look like them.

use crate::common::*;
use std::sync::Arc;
use systoll_judge::{Catalogue, Judgement, Options, judge};
use systoll_model::Process;

const MISSING: i64 = -2;
const R_OK: u64 = 4;
const W_OK: u64 = 2;
const X_OK: u64 = 1;
const PATH: [&str; 4] = ["/usr/local/sbin", "/usr/local/bin", "/usr/bin", "/bin"];

fn asks(path: &str, result: i64) -> Call {
    match result {
        0 => stat(path, "stat", 7, 7),
        _ => call("newfstatat", "stat", &[CWD, 1, 2, 0], result).path(1, path).toll(1_000),
    }
}

fn may(path: &str, mode: u64, result: i64) -> Call {
    call("access", "access", &[1, mode], result).path(0, path).toll(1_000)
}

/// Returns the calls of a search for a name in the folders, of which the `at`th has it.
fn search(name: &str, folders: &[&str], at: usize, asks: impl Fn(&str, i64) -> Call) -> Vec<Call> {
    let found = |n: usize| if n == at { 0 } else { MISSING };
    let folders = folders.iter().take(at + 1).enumerate();
    folders.map(|(n, folder)| asks(&format!("{folder}/{name}"), found(n))).collect()
}

/// Returns the causes of all findings and remarks.
fn causes(judgement: &Judgement) -> Vec<&str> {
    let told = judgement.findings.iter().chain(&judgement.also);
    told.map(|finding| finding.cause.as_deref().unwrap_or("none")).collect()
}

fn is_told_as(calls: &[Call], expected: &[&str]) {
    let judgement = judged(calls, BUSY);
    assert_eq!(causes(&judgement), expected, "{judgement:#?}");
}

/// Asserts that the calls are told, and not as a search.
fn is_no_search(calls: &[Call]) {
    let judgement = judged(calls, BUSY);
    let causes = causes(&judgement);
    assert!(!causes.is_empty() && !causes.contains(&"search-path"), "{judgement:#?}");
}

/// Judges the calls as those of a run in which these programs were started.
fn with_started(calls: &[Call], started: &[&str]) -> Judgement {
    let mut recording = recording(calls, BUSY);
    for program in started {
        let exe: Arc<str> = (*program).into();
        recording.processes.push(Process { exe, instances: 1, ..Process::default() });
    }
    judge(&recording, &Catalogue::builtin(), &Options::default())
}

#[test]
fn the_right_to_run_asked_for_in_each_folder() {
    let calls = rounds(2_000, |_| search("date", &PATH, 2, |path, result| may(path, X_OK, result)));
    let f = only(judged(&calls, BUSY));
    assert_eq!((f.cause.as_deref(), f.calls), (Some("search-path"), 6_000));
    assert!(f.why.contains("looks for a program") && f.cures.iter().all(|cure| !cure.how.contains("@INC")), "{f:#?}");
}

#[test]
fn the_right_to_run_asked_for_where_the_name_was_found() {
    let calls = rounds(2_000, |_| {
        let found = may("/usr/bin/date", X_OK, 0);
        search("date", &PATH, 2, asks).into_iter().chain([found, asks("/usr/bin/date", 0)]).collect()
    });
    let f = only(judged(&calls, BUSY));
    assert_eq!((f.cause.as_deref(), f.calls), (Some("search-path"), 10_000));
}

#[test]
fn a_name_that_is_a_programs_since_it_ran() {
    let calls = rounds(2_000, |_| search("date", &PATH, 2, asks));
    is_told_as(&calls, &["stat-per-op"]);
    assert_eq!(causes(&with_started(&calls, &["/bin/data", "/usr/bin/date"])), ["search-path"]);
}

#[test]
fn a_program_that_no_folder_has_is_looked_for_where_others_are() {
    let never = |folders: &'static [&'static str]| {
        rounds(500, move |i| {
            let none = search("gdate", folders, folders.len(), asks);
            let found = search("date", &PATH, 3, |path, result| may(path, X_OK, result));
            none.into_iter().chain(found.into_iter().take(if i % 8 == 0 { 4 } else { 0 })).collect()
        })
    };
    is_told_as(&never(&PATH), &["search-path"]);
    is_told_as(&never(&["/usr/share/x", "/usr/local/bin", "/usr/bin"]), &["stat-per-op", "search-path"]);
}

#[test]
fn a_programs_own_file_looked_for_in_several_folders() {
    let folders = ["/opt/app", "/etc/xdg", "/usr/share", "/etc"];
    let plain = rounds(2_000, |_| search("app.conf", &folders, 3, asks));
    is_told_as(&plain, &["stat-per-op"]);
    assert_eq!(causes(&with_started(&plain, &["/usr/bin/app", "/usr/bin/date"])), ["stat-per-op"]);
    is_told_as(
        &rounds(2_000, |_| search("app.conf", &folders, 3, |path, result| may(path, R_OK, result))),
        &["stat-per-op"],
    );
}

#[test]
fn a_folder_that_a_search_may_not_enter() {
    const REFUSED: i64 = -13;
    let calls = rounds(2_000, |_| {
        let closed = [may("/closed/bin/date", X_OK, REFUSED), may("/closed/bin", X_OK, REFUSED)];
        let open = search("date", &PATH, 2, |path, result| may(path, X_OK, result));
        closed.into_iter().chain(open).collect()
    });
    let f = only(judged(&calls, BUSY));
    assert_eq!((f.cause.as_deref(), f.calls, f.calls_about), (Some("search-path"), 10_000, None));
}

#[test]
fn a_folder_that_may_be_passed_through_or_written_to_is_no_program() {
    let folders = ["/home/app", "/var/cache", "/tmp"];
    let mut folder = stat_bytes(7, 7);
    folder[24..28].copy_from_slice(&0o040_755u32.to_le_bytes());
    let passed = rounds(2_000, |_| {
        let mut calls = search("cache", &folders, 2, |path, result| may(path, X_OK, result));
        let status = call("newfstatat", "stat", &[CWD, 1, 2, 0], 0).path(1, "/tmp/cache");
        calls.push(status.output(2, &folder).toll(1_000));
        calls
    });
    is_told_as(&passed, &["stat-per-op"]);
    let written = rounds(2_000, |_| search("cache", &folders, 2, |path, result| may(path, W_OK | X_OK, result)));
    is_told_as(&written, &["stat-per-op"]);
}

#[test]
fn one_path_and_two_names_are_no_search() {
    is_no_search(&rounds(6_000, |_| vec![may("/usr/bin/date", X_OK, 0)]));
    let two = rounds(3_000, |_| vec![may("/opt/a/x", X_OK, MISSING), may("/opt/b/y", X_OK, 0)]);
    is_no_search(&two);
    // What the first folder has is not looked for in the second.
    let both = rounds(3_000, |_| vec![may("/opt/a/x", X_OK, 0), may("/opt/b/x", X_OK, 0)]);
    is_no_search(&both);
}

#[test]
fn programs_looked_for_once_each() {
    silent(&rounds(2_000, |i| search(&format!("p{i}"), &PATH, 2, |path, result| may(path, X_OK, result))), BUSY);
}

#[test]
fn a_search_for_programs_and_one_for_files_are_two_findings() {
    let folders: Vec<String> = (0..12).map(|n| format!("/inc/d{n}")).collect();
    let folders: Vec<&str> = folders.iter().map(String::as_str).collect();
    let calls = rounds(1_000, |i| {
        let of_file = |path: &str, result| Call { api: "open", ..asks(path, result) };
        let file = search(&format!("h{i}.pm"), &folders, 11, of_file);
        file.into_iter().chain(search("date", &PATH, 2, |path, result| may(path, X_OK, result))).collect()
    });
    let judgement = judged(&calls, BUSY);
    assert_eq!(causes(&judgement), ["search-path", "search-path"], "{judgement:#?}");
    let list = |at: usize| &judgement.findings[at].cures[0].how;
    assert!(!list(0).contains("(PATH)") && list(1).contains("(PATH)"), "{judgement:#?}");
}
