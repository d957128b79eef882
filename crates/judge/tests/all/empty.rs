//! Tests of transfers of no bytes, and of calls that look like them.

use crate::common::{Call, call, judged, no_finding, only, rounds};
use systoll_judge::Kind;

const BUSY: u64 = 1_000_000;

fn write(bytes: u64, to: &'static str) -> Call {
    call("write", "write:suffix", &[5, 0x1000, bytes], bytes as i64).fd(to).toll(300)
}

fn record(to: &'static str) -> Call {
    call("write", "write:record", &[5, 0x1000, 8_192], 8_192).fd(to).toll(900)
}

#[test]
fn what_moves_no_byte_is_needless() {
    for to in ["/tmp/out", "pipe:[77]"] {
        let finding = only(judged(&rounds(20_000, |_| vec![record(to), write(0, to)]), BUSY));
        assert_eq!((finding.kind, finding.cause.as_deref(), finding.calls), (Kind::SlowPath, None, 20_000), "{to}");
        assert_eq!(finding.stop(), ["look at the length first"]);
    }
    let read = |_| vec![call("read", "read", &[5, 0x1000, 0], 0).fd("pipe:[77]").toll(300)];
    assert_eq!(only(judged(&rounds(20_000, read), BUSY)).kind, Kind::SlowPath);
}

#[test]
fn what_means_something_is_not() {
    // An empty transfer may mean something as a message, to a device or a file of the kernel, or on
    // an unknown descriptor.
    for to in ["UDP:[127.0.0.1:9]", "UNIX-DGRAM:[7]", "/dev/nst0", "/dev/pts/1", "/proc/self/comm", "anon_inode:[x]"] {
        no_finding(&rounds(20_000, |_| vec![record(to), write(0, to)]), BUSY);
    }
    let nameless = |_| vec![record("/tmp/out"), Call { fd: None, ..write(0, "") }];
    no_finding(&rounds(20_000, nameless), BUSY);
}

#[test]
fn the_end_of_a_file_is_an_answer() {
    // Not claimed: the call asked for bytes and got none, or failed.
    let end = |_| vec![call("read", "read", &[5, 0x1000, 4_096], 0).fd("/tmp/in").toll(300)];
    no_finding(&rounds(20_000, end), BUSY);
    let fails = |_| vec![call("write", "write", &[5, 0x1000, 0], -32).fd("pipe:[77]").toll(300)];
    no_finding(&rounds(20_000, fails), BUSY);
}
