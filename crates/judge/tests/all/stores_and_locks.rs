//! A test of a log's status where its path is relative and its descriptor's is not.

use crate::common::*;
use systoll_judge::Kind;

fn write(fd: u64, name: &'static str, bytes: u64) -> Call {
    call("write", "write", &[fd, 0x1000, bytes], bytes as i64).fd(name).toll(600)
}

#[test]
fn the_status_of_a_log_that_only_the_program_writes_follows_from_what_it_wrote() {
    let status = |size: u64, when: u64| {
        let mut status = stat_bytes(when, when);
        status[48..56].copy_from_slice(&size.to_le_bytes());
        call("newfstatat", "stat", &[CWD, 1, 2, 0], 0).path(1, "log").output(2, &status).toll(1_100)
    };
    let told = |grows: u64| {
        let calls = rounds(5_000, |n| vec![status(n * grows, n), write(4, "/srv/log", 3_000)]);
        let judgement = judged(&calls, BUSY);
        judgement.findings.iter().chain(&judgement.also).any(|f| f.kind == Kind::Repeat)
    };
    assert!(told(3_000));
    // Other processes write there too.
    assert!(!told(3_100));
}
