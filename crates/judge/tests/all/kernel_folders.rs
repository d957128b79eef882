//! Tests of what a program asks of /proc/PID/fd: a folder, which is listed and not read, and links, which are not opened.

use crate::common::*;

const FOLDER: &str = "/proc/self/fd";

fn listing() -> Vec<Call> {
    let opens = call("openat", "opendir", &[CWD, 1, 0o2_200_000, 0], 5).path(1, FOLDER).toll(2_000);
    let takes = |bytes: i64| {
        let call = call("getdents64", "readdir", &[5, 0x1000, 32_768], bytes).fd("/proc/7/fd").toll(90_000);
        if bytes > 0 { call.output(1, &[7; 64]) } else { call }
    };
    vec![opens, takes(24_000), takes(0), call("close", "closedir", &[5], 0).fd("/proc/7/fd").toll(900)]
}

#[test]
fn the_opening_of_a_folder_of_the_kernels_is_needless_and_its_listing_is_not() {
    let judgement = judged(&rounds(2_000, |_| listing()), BUSY);
    let all: Vec<_> = judgement.findings.iter().chain(&judgement.also).collect();
    assert!(!all.is_empty());
    for finding in all {
        assert!(finding.syscalls.iter().all(|call| call.name() != Some("getdents64")), "{finding:#?}");
        assert!(finding.stop().iter().all(|how| !how.contains("pread") && !how.contains("ReadAt")), "{finding:#?}");
        assert!(finding.stop().iter().any(|how| how.contains("its size is the number")), "{finding:#?}");
    }
}

#[test]
fn a_link_that_is_asked_about_is_not_opened_and_follows_no_path() {
    let asks = |n: u64| {
        let path = format!("{FOLDER}/{}", n % 20);
        let link = call("readlink", "readlink", &[1, 0x1000, 4_096], 9).path(0, &path).output(1, b"/dev/null");
        vec![stat(&path, "lstat", 1, n), link.toll(900)]
    };
    let judgement = judged(&rounds(6_000, asks), BUSY);
    for finding in judgement.findings.iter().chain(&judgement.also) {
        assert!(!finding.why.contains("opened anew"), "{finding:#?}");
        let hows = finding.stop();
        assert!(hows.iter().all(|how| !how.contains("realpath") && !how.contains("resolve the folder")), "{hows:#?}");
    }
    assert!(!judgement.findings.is_empty());
}
