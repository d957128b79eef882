//! A test of questions about the room on a disk, whose answers a trace's ledger does not compare.

use crate::common::{BUSY, Call, call, judged, rounds};
use systoll_judge::Finding;

/// Returns the findings and remarks with this cause.
fn told(trace: &[Call], cause: &str) -> Vec<Finding> {
    let judgement = judged(trace, BUSY);
    judgement.findings.into_iter().chain(judgement.also).filter(|f| f.cause.as_deref() == Some(cause)).collect()
}

/// Returns the number of needless calls that the findings with this cause tell of.
fn needless(trace: &[Call], cause: &str) -> u64 {
    let found = judged(trace, BUSY).findings;
    found.iter().filter(|f| f.cause.as_deref() == Some(cause)).map(|f| f.needless.estimate).sum()
}

#[test]
fn the_room_on_a_disk_is_asked_before_each_write() {
    let asks = |blocks: u64| {
        let mut answer = vec![0; 120];
        answer[8..16].copy_from_slice(&4_096u64.to_le_bytes());
        answer[32..40].copy_from_slice(&blocks.to_le_bytes());
        call("statfs", "statvfs", &[1, 2], 0).path(0, "/srv/spool").output(1, &answer).toll(1_600)
    };
    let writes = || call("write", "write", &[4, 0x1000, 16_384], 16_384).fd("/srv/spool/1").toll(9_000);
    let plenty = rounds(3_000, |n| vec![asks(10_000_000 - 4 * n), writes()]);
    assert_eq!(needless(&plenty, "stat-per-op"), 0);
    let remarks = told(&plenty, "stat-per-op");
    assert!(remarks.len() == 1 && remarks[0].why.contains("how much room"), "{remarks:#?}");
    // Not claimed: the disk is nearly full, or the program writes nothing, so that other processes' writes change the
    // answer.
    assert_eq!(told(&rounds(3_000, |n| vec![asks(200 - n % 7), writes()]), "stat-per-op").len(), 0);
    assert_eq!(told(&rounds(3_000, |n| vec![asks(10_000_000 - 4 * n)]), "stat-per-op").len(), 0);
}
