//! Tests of openat2, whose flags lie in memory (`struct open_how`): its third argument is an address.

use crate::common::*;

/// O_PATH.
const PATH_ONLY: u64 = 0o10_000_000;

/// An address whose bits are those of O_RDWR, O_CREAT, O_TRUNC and O_APPEND.
const ADDRESS: u64 = 0xc000_0000 | 0o3102;

/// Returns the life of a file that is opened by openat2 with these flags, or with unknown ones.
fn life(path: &'static str, flags: Option<u64>) -> Vec<Call> {
    let opens = call("openat2", "openat2", &[CWD, 1, ADDRESS, 24], 7).path(1, path).toll(3_000);
    let opens = match flags {
        Some(flags) => opens.input(2, &[flags, 0, 8].map(u64::to_le_bytes).concat()),
        None => opens,
    };
    let asks = call("fstat", "fstat", &[7, 0x2000], 0).fd(path).output(1, &stat_bytes(1, 1)).toll(300);
    vec![opens, asks, call("close", "close", &[7], 0).fd(path).toll(400)]
}

#[test]
fn a_file_that_is_opened_as_a_path_only_is_not_written() {
    for flags in [Some(PATH_ONLY), None] {
        let judgement = judged(&rounds(4_000, |_| life("/srv/data/x", flags)), BUSY);
        let all: Vec<_> = judgement.findings.iter().chain(&judgement.also).collect();
        assert!(all.is_empty(), "{flags:?}: {all:#?}");
    }
}

#[test]
fn a_file_that_is_opened_to_append_to_it_is_opened_for_each_record() {
    let appends = |flags| {
        let mut calls = life("/srv/log", flags);
        calls.insert(1, call("write", "write", &[7, 0x1000, 60], 60).fd("/srv/log").toll(900));
        judged(&rounds(4_000, |_| calls.clone()), BUSY)
    };
    // O_WRONLY, O_CREAT, O_APPEND.
    let f = appends(Some(0o2101));
    assert!(f.findings.iter().any(|f| f.cause.as_deref() == Some("reopen-per-write")), "{f:#?}");
    let unknown = appends(None);
    assert!(!unknown.findings.iter().any(|f| f.cause.as_deref() == Some("reopen-per-write")), "{unknown:#?}");
}
