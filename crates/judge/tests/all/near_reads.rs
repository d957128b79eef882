//! Tests of `near-reads`: small `pread`s, which name their offset.

use crate::common::{Call, call, judged, no_finding, only, rounds};
use systoll_judge::Kind;

const BUSY: u64 = 100_000_000;

fn pread(fd: u64, bytes: u64, at: u64) -> Call {
    call("pread64", "pread", &[fd, 0x1000, bytes, at], bytes as i64).fd("/srv/table").toll(400)
}

/// Returns reads of headers of 64 bytes and of names of 20, at two places of a file.
fn sections(n: u64) -> Vec<Call> {
    vec![pread(3, 64, n % 60 * 64), pread(3, 20, 8192 + n % 60 * 20)]
}

#[test]
fn pieces_of_two_tables_are_read_one_by_one() {
    let open = call("openat", "open", &[(-100i32) as u32 as u64, 1, 0, 0], 3).path(1, "/srv/table").toll(900);
    let close = call("close", "close", &[3], 0);
    let of_a_file =
        |_| std::iter::once(open.clone()).chain((0..40).flat_map(sections)).chain([close.clone()]).collect();
    let finding = only(judged(&rounds(500, of_a_file), BUSY));
    assert_eq!((finding.kind, finding.cause.as_deref()), (Kind::SmallIo, Some("near-reads")));
    assert!(finding.calls >= 500 * 78, "{:?}", finding.calls);
}

#[test]
fn what_lies_apart_is_read_apart() {
    no_finding(&rounds(20_000, |n| vec![pread(3, 16, n * 7_919 % 100_000 * 64)]), BUSY);
    // Reads of a whole buffer are not small.
    no_finding(&rounds(20_000, |n| vec![pread(3, 4096, n % 30 * 8192)]), BUSY);
}

#[test]
fn what_others_may_have_written_is_read_again() {
    let one_place = |_| vec![pread(3, 8, 64), pread(4, 16, 4096)];
    no_finding(&rounds(20_000, one_place), BUSY);
    let write = call("pwrite64", "pwrite", &[3, 0x1000, 8, 0], 8).fd("/srv/table").toll(900);
    no_finding(&rounds(20_000, |n| vec![pread(3, 16, n % 100 * 32), write.clone()]), BUSY);
    let made_up =
        |n: u64| vec![call("pread64", "pread", &[3, 0x1000, 8, n % 500 * 24], 8).fd("/proc/7/pagemap").toll(400)];
    no_finding(&rounds(20_000, made_up), BUSY);
}

#[test]
fn where_the_file_stands_is_nothing_to_reads_that_say_where() {
    // preadv2 may move the position, and reads the same file.
    let moves = || call("preadv2", "preadv2", &[3, 0x1000, 1, u64::MAX, 0, 0], 4096).fd("/srv/table").toll(900);
    let finding = only(judged(&rounds(10_000, |n| vec![pread(3, 16, n % 100 * 32), moves()]), BUSY));
    assert_eq!(finding.cause.as_deref(), Some("near-reads"));
}

#[test]
fn a_descriptor_in_a_range_that_is_closed_is_another_file_s() {
    let open = |n: u64| call("openat", "open", &[(-100i32) as u32 as u64, 1, 0, 0], 3).path(1, &format!("/srv/{n}"));
    let close = || call("close_range", "close_range", &[3, u64::from(u32::MAX), 0], 0);
    let three = |n: u64| [n * 64, n * 64 + 20].map(|at| pread(3, 16, at)).to_vec();
    let of_a_file = |n: u64| [vec![open(n).toll(900)], three(n % 60), vec![close()]].concat();
    no_finding(&rounds(10_000, of_a_file), BUSY);
}
