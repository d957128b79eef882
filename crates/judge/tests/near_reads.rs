//! Small reads that say where in the file.

mod common;

use common::{Call, call, judged, no_finding, only, rounds};
use systoll_judge::Kind;

const BUSY: u64 = 100_000_000;

fn pread(fd: u64, bytes: u64, at: u64) -> Call {
    call("pread64", "pread", &[fd, 0x1000, bytes, at], bytes as i64).fd("/srv/table").toll(400)
}

/// Headers of 64 bytes and names of 20, in two places of a file.
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
    // As much as a buffer holds.
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
