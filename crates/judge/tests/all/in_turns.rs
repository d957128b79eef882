//! Tests of calls that are undone around a body, that set a value to what it is, or that are asked
//! again, where many things take turns; with their healthy neighbours.

use crate::common::*;
use systoll_judge::Kind;

const PAGE: u64 = 4096;

fn protect(page: u64, protection: u64) -> Call {
    call("mprotect", "mprotect", &[0x7000_0000 + page * PAGE, PAGE, protection], 0).toll(700)
}

#[test]
fn pages_that_a_handler_opens_after_a_touch() {
    let store = |page: u64| vec![protect(page, 3), protect(page, 1)];
    only(judged(&rounds(5_000, |n| store(n * 7 % 64)), BUSY));
    let handled = |page: u64| vec![protect(page, 0), Call { signals: 1, ..protect(page, 3) }];
    no_finding(&rounds(5_000, |n| handled(n * 7 % 64)), BUSY);
}

/// Returns the entries of a folder as the kernel writes them, with `padding` after each name.
fn entries(names: &[&str], padding: u8) -> Vec<u8> {
    let entry = |name: &&str| {
        let length = (19 + name.len() + 1).next_multiple_of(8);
        let mut bytes = [1_u64.to_le_bytes(), 2_u64.to_le_bytes()].concat();
        bytes.extend((length as u16).to_le_bytes());
        bytes.push(8);
        bytes.extend(name.bytes().chain([0]));
        bytes.resize(length, padding);
        bytes
    };
    names.iter().flat_map(entry).collect()
}

fn lists(entries: &[u8]) -> Vec<Call> {
    let opens = call("openat", "opendir", &[CWD, 1, 0o200000, 0], 3).path(1, "/srv/templates").toll(1_800);
    let reads = call("getdents64", "readdir", &[3, 0x1000, 32_768], entries.len() as i64);
    let reads = reads.fd("/srv/templates").output(1, entries).toll(2_500);
    let ends = call("getdents64", "readdir", &[3, 0x1000, 32_768], 0).fd("/srv/templates").toll(150);
    vec![opens, reads, ends, call("close", "closedir", &[3], 0).fd("/srv/templates").toll(150)]
}

#[test]
fn a_folder_listed_again_though_nothing_changed() {
    let judgement = judged(&rounds(3_000, |n| lists(&entries(&["a", "b"], n as u8))), BUSY);
    let f = &judgement.findings[0];
    assert_eq!((f.kind, f.cause.as_deref()), (Kind::Repeat, Some("file-reread")), "{judgement:#?}");
    let changes = judged(&rounds(3_000, |n| lists(&entries(&[&format!("{n:06}")], 0))), BUSY);
    assert!(changes.findings.is_empty(), "{changes:#?}");
}
