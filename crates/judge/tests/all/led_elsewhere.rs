//! A test of files that are flushed, renamed and flushed again: its figures are of what is not reported.

use crate::common::*;

fn moves(from: &str, to: &str) -> Call {
    call("rename", "rename", &[1, 2], 0).path(0, from).path(1, to).toll(3_000)
}

fn opens(path: &str, flags: u64, fd: i64) -> Call {
    call("openat", "open", &[CWD, 1, flags, 0o600], fd).path(1, path).toll(2_000)
}

fn close(fd: u64, name: &'static str) -> Call {
    call("close", "close", &[fd], 0).fd(name).toll(300)
}

#[test]
fn a_flush_of_a_file_that_was_only_renamed_since() {
    let write = |name| call("write", "write", &[4, 0x1000, 4_096], 4_096).fd(name).toll(600);
    let sync = |fd: u64, name| call("fsync", "fsync", &[fd], 0).fd(name).waited(900_000).toll(20_000);
    // A file that takes the place of an older version is another question.
    let state = |i: u64| -> &'static str { format!("/srv/state.{i}").leak() };
    let kept = |i: u64, then: Vec<Call>| {
        let file = [opens("/srv/new", 0o1101, 4), write("/srv/new"), sync(4, "/srv/new"), moves("/srv/new", state(i))];
        [file.to_vec(), then, vec![close(4, state(i))]].concat()
    };
    let unsure = |trace: &[Call]| {
        let judgement = judged(trace, BUSY);
        assert!(judgement.findings.is_empty(), "{judgement:#?}");
        judgement.untold.calls
            + judgement.untold.unsure_calls
            + judgement.also.iter().map(|f| f.needless.estimate).sum::<u64>()
    };
    let again = rounds(1_000, |i| kept(i, vec![sync(4, state(i))]));
    assert!(unsure(&again) >= 900, "the bytes were on the disk");
    // The folder holds the new name, and what is written in between is not on the disk.
    let folder = rounds(1_000, |i| kept(i, vec![sync(5, "/srv")]));
    let written = rounds(1_000, |i| kept(i, vec![write(state(i)), sync(4, state(i))]));
    assert!(unsure(&folder) < 20 && unsure(&written) < 20);
}
