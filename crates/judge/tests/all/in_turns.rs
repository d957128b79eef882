//! Tests of calls that are undone around a body, that set a value to what it is, or that are asked
//! again, where many things take turns; with their healthy neighbours.

use crate::common::*;
use systoll_judge::Kind;

const PAGE: u64 = 4096;

fn protect(page: u64, protection: u64) -> Call {
    call("mprotect", "mprotect", &[0x7000_0000 + page * PAGE, PAGE, protection], 0).toll(700)
}

#[test]
fn pages_opened_and_closed_for_writing_in_turns() {
    let store = |page: u64| vec![protect(page, 3), protect(page, 1)];
    let f = only(judged(&rounds(5_000, |n| store(n * 7 % 64)), BUSY));
    assert_eq!((f.kind, f.cause.as_deref()), (Kind::Toggle, Some("mprotect-toggle")), "{f:#?}");
    // Not claimed: pages that are changed once each, as code that is made; pages that a handler
    // opens after a touch; and addresses at which other memory lies next.
    no_finding(&rounds(5_000, store), BUSY);
    let handled = |page: u64| vec![protect(page, 0), Call { signals: 1, ..protect(page, 3) }];
    no_finding(&rounds(5_000, |n| handled(n * 7 % 64)), BUSY);
    let unmaps = |page: u64| call("munmap", "munmap", &[0x7000_0000 + page * PAGE, PAGE], 0).toll(200);
    no_finding(&rounds(5_000, |n| [store(n * 7 % 64), vec![unmaps(n * 7 % 64)]].concat()), BUSY);
}

fn chdir(path: &str) -> Call {
    call("chdir", "chdir", &[1], 0).path(0, path).toll(1_500)
}

#[test]
fn a_folder_gone_into_and_back_from_around_each_step() {
    let step = |n: u64| vec![chdir(&format!("/srv/box/{}", n % 40)), chdir("/srv")];
    let f = only(judged(&rounds(4_000, step), BUSY));
    assert_eq!((f.kind, f.cause.as_deref()), (Kind::Toggle, Some("cwd-toggle")), "{f:#?}");
    // Not claimed: a walk down a tree, with each folder once, and a child that starts in the
    // folder.
    no_finding(&rounds(4_000, |n| vec![chdir(&format!("/srv/box/{n}"))]), BUSY);
    let child = || call("clone", "fork", &[17, 0, 0, 0, 0], 100).toll(9_000);
    let judgement = judged(&rounds(2_000, |n| vec![chdir(&format!("/srv/{n}")), child(), chdir("/srv")]), BUSY);
    assert!(judgement.findings.iter().all(|f| f.cause.as_deref() != Some("cwd-toggle")), "{judgement:#?}");
}

fn chmod(n: u64, mode: u64) -> Call {
    call("chmod", "chmod", &[1, mode], 0).path(0, &format!("/srv/session{n}")).toll(1_100)
}

#[test]
fn a_mode_set_to_what_it_is() {
    let f = only(judged(&rounds(5_000, |n| vec![chmod(n % 50, 0o600)]), BUSY));
    assert_eq!((f.kind, f.cause.as_deref()), (Kind::NoOp, Some("rights-again")), "{f:#?}");
    // Not claimed: another file each time, another mode each time, and a file that is removed and
    // made again.
    no_finding(&rounds(5_000, |n| vec![chmod(n, 0o600)]), BUSY);
    no_finding(&rounds(5_000, |n| vec![chmod(n % 50, 0o600 + n / 50 % 2 * 0o40)]), BUSY);
    let removes = |n: u64| call("unlink", "unlink", &[1], 0).path(0, &format!("/srv/session{n}")).toll(2_000);
    no_finding(&rounds(5_000, |n| vec![chmod(n % 50, 0o600), removes(n % 50)]), BUSY);
    // The descriptor may lead to the same file.
    let by_descriptor = || call("fchmod", "fchmod", &[4, 0o644], 0).fd("/srv/session1").toll(900);
    let judgement = judged(&rounds(5_000, |_| vec![chmod(1, 0o600), by_descriptor()]), BUSY);
    assert!(judgement.findings.iter().all(|f| f.kind != Kind::NoOp), "{judgement:#?}");
}

#[test]
fn times_set_to_what_they_are_and_those_set_to_now() {
    let sets = |n: u64, ns: u64| {
        let times = [1_700_000_000, ns, 1_700_000_000, ns].map(u64::to_le_bytes).concat();
        call("utimensat", "utimensat", &[CWD, 1, 1, 0], 0).path(1, &format!("/srv/{n}")).input(2, &times).toll(1_100)
    };
    let is_again = |trace: &[Call]| judged(trace, BUSY).findings.iter().any(|f| f.kind == Kind::NoOp);
    assert!(is_again(&rounds(5_000, |n| vec![sets(n % 50, 5)])));
    // These times are UTIME_NOW.
    assert!(!is_again(&rounds(5_000, |n| vec![sets(n % 50, (1 << 30) - 1)])));
    let write = |n: u64| {
        let mut write = call("write", "write", &[4, 0x1000, 3_000], 3_000).toll(600);
        write.fd = Some(if n == 0 { "/srv/0" } else { "/srv/1" });
        write
    };
    assert!(!is_again(&rounds(5_000, |n| vec![sets(n % 2, 5), write(n % 2)])));
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

#[test]
fn waits_that_run_out() {
    let poll = |ready: i64| call("poll", "poll", &[0x1000, 1, 5], ready).toll(900).waited(5_000_000);
    let told = |trace: &[Call]| {
        let judgement = judged(trace, 20_000);
        judgement.findings.iter().chain(&judgement.also).any(|f| f.cause.as_deref() == Some("wait-runs-out"))
    };
    assert!(told(&rounds(2_000, |_| vec![poll(0)])));
    let reads = || call("read", "read", &[5, 0x1000, 64], 64).fd("pipe:[7]");
    assert!(!told(&rounds(2_000, |_| vec![poll(1), reads()])));
    // Waits that run out now and then are healthy.
    assert!(!told(&rounds(2_000, |n| if n % 4 == 0 { vec![poll(0)] } else { vec![poll(1), reads()] })));
}

/// Returns an `epoll_ctl` that adds (1), takes away (2) or changes (3) an interest in reading; `events` are those asked
/// for.
fn interest(operation: u64, fd: u64, events: u32) -> Call {
    let event = [events.to_le_bytes(), (fd as u32).to_le_bytes(), [0; 4]].concat();
    let call = call("epoll_ctl", "epoll_ctl", &[3, operation, fd, 0x7fff_0000], 0).fd("anon_inode:[eventpoll]");
    call.input(3, &event).toll(400)
}

#[test]
fn the_interest_of_one_connection_after_the_other_set_to_what_it_is() {
    let serves = |n: u64| vec![call("read", "read", &[5 + n % 40, 0x1000, 64], 20).fd("socket:[9]").toll(600)];
    let again = |n: u64| [serves(n), vec![interest(3, 5 + n % 40, 1)]].concat();
    let f = only(judged(&rounds(8_000, again), BUSY));
    assert_eq!((f.kind, f.cause.as_deref()), (Kind::NoOp, Some("epoll-churn")), "{f:#?}");
    // Not claimed: another interest each time, and a descriptor that is added anew.
    no_finding(&rounds(8_000, |n| vec![interest(3, 5 + n % 40, 1 + (n / 40 % 2) as u32 * 4)]), BUSY);
    no_finding(&rounds(8_000, |n| [vec![interest(1, 5 + n % 40, 1)], serves(n)].concat()), BUSY);
}

#[test]
fn interests_taken_away_and_given_back_in_turn() {
    let step = |n: u64| {
        let read = call("read", "read", &[5 + n % 4, 0x1000, 64], 20).fd("socket:[9]").toll(600);
        vec![interest(2, 5 + n % 4, 1), read, interest(1, 5 + n % 4, 1)]
    };
    let f = only(judged(&rounds(6_000, step), BUSY));
    assert_eq!((f.kind, f.cause.as_deref()), (Kind::Toggle, Some("epoll-churn")), "{f:#?}");
    assert!(f.needless.estimate > 11_000, "{:?}", f.needless);
    // Not claimed: room to write, which is asked for only while something is left to write.
    let writes =
        |n: u64, result: i64| call("write", "write", &[5 + n % 4, 0x1000, 64], result).fd("socket:[9]").toll(600);
    let full = |n: u64| vec![writes(n, -11), interest(3, 5 + n % 4, 5), writes(n, 64), interest(3, 5 + n % 4, 1)];
    let judgement = judged(&rounds(6_000, full), BUSY);
    assert!(judgement.findings.iter().all(|f| f.kind != Kind::Toggle), "{judgement:#?}");
}
