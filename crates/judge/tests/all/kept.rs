//! Tests of things that a program could have kept for its next step: a deadline, a folder, a socket, a lock, what a
//! stream has read, an open file; each with a neighbour that makes the same calls for good reason.

use crate::common::{BUSY, CWD, Call, call, is, judged, only, rounds, stat_bytes};
use systoll_judge::{Finding, Kind};

const TIMER: &str = "anon_inode:[timerfd]";

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

fn waits() -> Call {
    call("epoll_wait", "epoll_wait", &[3, 0x1000, 16, u64::MAX], 1).fd("anon_inode:[eventpoll]").waited(9_000)
}

fn receives() -> Call {
    call("read", "read", &[5, 0x1000, 512], 300).fd("UNIX-STREAM:[7]").toll(500)
}

fn answers() -> Call {
    call("write", "write", &[5, 0x1000, 8], 8).fd("UNIX-STREAM:[7]").toll(900)
}

/// Returns a call that sets the timer `fd` to this length.
fn put_off(fd: u64, seconds: u64, ns: u64) -> Call {
    let time = [0, 0, seconds, ns].map(u64::to_le_bytes).concat();
    call("timerfd_settime", "timerfd_settime", &[fd, 0, 0x1000, 0], 0).input(2, &time).fd(TIMER).toll(800)
}

#[test]
fn timers_in_rotation_that_never_fire_are_counted_whole() {
    let round = |timer: Call, more: Vec<Call>| [vec![waits(), receives(), timer, answers()], more].concat();
    let all = rounds(6_000, |n| round(put_off(20 + n % 8, 30, 0), vec![]));
    assert!(needless(&all, "timer-rearm") > 5_800, "{:?}", needless(&all, "timer-rearm"));
    // Not claimed: a deadline of 6 ns, which passes before the next setting of the timer, since calls follow each other
    // by 1 ns.
    let soon = rounds(6_000, |n| round(put_off(20 + n % 8, 0, 6), vec![]));
    assert_eq!(told(&soon, "timer-rearm").len(), 0);
    // Not claimed: timers that fire now and then.
    let fires = |n: u64| call("read", "read:timer", &[20 + n % 8, 0x1000, 8], 8).fd(TIMER);
    let some = rounds(6_000, |n| round(put_off(20 + n % 8, 30, 0), if n % 5 == 0 { vec![fires(n)] } else { vec![] }));
    assert_eq!(told(&some, "timer-rearm").len(), 0);
    // Not claimed: timers that are set once each.
    let makes = || call("timerfd_create", "timerfd_create", &[1, 0], 20).toll(900);
    let ends = || call("close", "close", &[20], 0).fd(TIMER).toll(300);
    let once = rounds(6_000, |_| vec![makes(), put_off(20, 30, 0), waits(), receives(), answers(), ends()]);
    assert_eq!(told(&once, "timer-rearm").len(), 0);
}

#[test]
fn a_folder_that_is_there_is_not_made_for_each_file() {
    let folder = |n: u64| format!("/srv/cache/{}", n % 16);
    let makes = |n: u64| call("mkdir", "mkdir", &[1, 0o777], -17).path(0, &folder(n)).toll(2_000);
    // Each file changes the folder's times.
    let asks = |n: u64| {
        call("newfstatat", "stat", &[CWD, 1, 2, 0], 0).path(1, &folder(n)).output(2, &stat_bytes(n, n)).toll(1_100)
    };
    let writes = |n: u64| {
        let path = format!("{}/{n}", folder(n));
        let opens = call("openat", "open", &[CWD, 1, 0o1101, 0o666], 9).path(1, &path).toll(9_000);
        let fills = call("write", "write", &[9, 0x1000, 700], 700).fd("/srv/cache/file").toll(2_000);
        vec![opens, fills, call("close", "close", &[9], 0).fd("/srv/cache/file").toll(400)]
    };
    let round = |n: u64| [vec![makes(n), asks(n)], writes(n)].concat();
    let f = only(judged(&rounds(4_000, round), BUSY));
    is(&f, Kind::Failing, "refused-again");
    assert!(f.syscalls.len() == 2 && f.needless.estimate > 7_000, "{f:#?}");
    // Not claimed: the program removes the folder each time.
    let removes = |n: u64| call("rmdir", "rmdir", &[1], 0).path(0, &folder(n)).toll(2_000);
    let anew = rounds(4_000, |n| [vec![makes(n), removes(n)], writes(n)].concat());
    assert_eq!(told(&anew, "refused-again").len(), 0);
}

#[test]
fn a_socket_for_each_datagram_goes_with_all_that_prepares_it() {
    const SOCKET: &str = "UDP:[127.0.0.1:9->127.0.0.1:8]";
    let on = |name: &'static str, args: &[u64], result: i64| call(name, name, args, result).fd(SOCKET).toll(900);
    let round = |kind: u64, talk: Vec<Call>| {
        let begins = call("socket", "socket", &[2, kind, 0], 5).toll(2_000);
        let prepares =
            [on("ioctl", &[5, 21_505, 0x1000], -25), on("fcntl", &[5, 2, 1], 0), on("connect", &[5, 0x1000, 16], 0)];
        [vec![begins], prepares.to_vec(), talk, vec![on("close", &[5], 0)]].concat()
    };
    let sends = || on("sendto", &[5, 0x1000, 20, 0, 0, 0], 20);
    let f = told(&rounds(2_000, |_| round(2, vec![sends()])), "socket-per-datagram");
    let [f] = f.as_slice() else { panic!("{f:#?}") };
    assert!(f.needless.estimate > 9_500 && f.syscalls.len() == 5, "{f:#?}");
    assert!(f.cures.iter().any(|cure| cure.how.contains("make the socket once")), "{:#?}", f.cures);
    // Only a remark: an answer is expected, and a new port for each question makes an answer harder to forge.
    let asks = rounds(2_000, |_| round(2, vec![sends(), on("recvfrom", &[5, 0x1000, 512, 0, 0, 0], 90)]));
    assert_eq!(needless(&asks, "socket-per-datagram"), 0);
    // Not claimed: a socket through which nothing is sent, which asks the kernel for a route; and a stream.
    assert_eq!(told(&rounds(2_000, |_| round(2, vec![])), "socket-per-datagram").len(), 0);
    assert_eq!(told(&rounds(2_000, |_| round(1, vec![sends()])), "socket-per-datagram").len(), 0);
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

/// Returns a call on the lock of a range of a database; F_RDLCK is 0, F_UNLCK 2.
fn lock(kind: u16, from: u64, length: u64, result: i64) -> Call {
    let words = [u64::from(kind), from, length, 0].map(u64::to_le_bytes).concat();
    call("fcntl", "fcntl", &[3, 6, 0x1000], result).fd("/srv/db").input(2, &words).toll(500)
}

#[test]
fn a_lock_of_several_ranges_goes_with_what_is_asked_under_it() {
    let journal = || call("newfstatat", "stat", &[CWD, 1, 2, 0], -2).path(1, "/srv/db-journal").toll(900);
    let counter =
        |n: u8| call("pread64", "pread", &[3, 0x1000, 16, 24], 16).fd("/srv/db").output(1, &[n; 16]).toll(400);
    let page = |n: u64| call("pread64", "pread:page", &[3, 0x1000, 4_096, 4_096 * n], 4_096).fd("/srv/db").toll(900);
    let takes = |result: i64| vec![lock(0, 1 << 30, 1, result), lock(0, (1 << 30) + 2, 510, 0), lock(2, 1 << 30, 1, 0)];
    let round = |n: u64, result: i64, version: u8| {
        [takes(result), vec![journal(), counter(version), page(n), lock(2, 0, 0, 0)]].concat()
    };
    let f = only(judged(&rounds(2_500, |n| round(n, 0, 1)), BUSY));
    is(&f, Kind::Toggle, "lock-per-line");
    // Needless in each round: four calls on the lock, the question and the counter. The page is another one each time.
    assert!((14_000..=15_000).contains(&f.needless.estimate), "{f:#?}");
    // Not claimed: another process holds the lock now and then, or the program waits between two rounds.
    let met = rounds(2_500, |n| round(n, if n % 8 == 0 { -11 } else { 0 }, 1));
    assert_eq!(told(&met, "lock-per-line").len(), 0);
    let asked = rounds(2_500, |n| [vec![waits(), receives()], round(n, 0, 1)].concat());
    assert_eq!(told(&asked, "lock-per-line").len(), 0);
    // The counter's reads are useful if another process changes it.
    let news = only(judged(&rounds(2_500, |n| round(n, 0, n as u8)), BUSY));
    assert!(news.needless.estimate < 12_600, "{news:#?}");
}

#[test]
fn a_stream_that_seeks_to_where_it_stands_reads_what_it_had() {
    let at = |place: u64| call("lseek", "fseeko", &[3, place, 0], place as i64).fd("/srv/records").toll(300);
    let read = |bytes: u64, content: u8| {
        call("read", "fread", &[3, 0x1000, bytes], bytes as i64).fd("/srv/records").output(1, &[content; 64]).toll(700)
    };
    // The stream reads from the page's start up to its position, and then a buffer from that position on.
    let round = |n: u64, content: u8| {
        let (page, within) = (n * 64 / 4_096 * 4_096, n * 64 % 4_096);
        vec![at(page), read(within.max(1), content), at(n * 64), read(4_096, content)]
    };
    let f = told(&rounds(3_500, |n| round(n, 7)), "seek-read-pair");
    assert!(f.iter().any(|f| f.why.contains("a seek threw it away") && f.needless.estimate > 6_000), "{f:#?}");
    // Not claimed: records far from each other.
    let apart = rounds(3_500, |n| vec![at(n * 7_919 % 9_973 * 8_192), read(4_096, 7)]);
    assert!(told(&apart, "seek-read-pair").iter().all(|f| !f.why.contains("a seek threw it away")));
    // Not claimed: two places whose content another process changes each time.
    let watched = rounds(3_500, |n| vec![at(0), read(4_096, n as u8), at(65_536), read(4_096, n as u8)]);
    assert!(told(&watched, "seek-read-pair").iter().all(|f| !f.why.contains("a seek threw it away")));
    // Not claimed: a program that polls one place for a change.
    let polled = rounds(3_500, |_| vec![at(0), read(64, 7)]);
    assert!(told(&polled, "seek-read-pair").iter().all(|f| !f.why.contains("a seek threw it away")));
}

#[test]
fn a_file_opened_for_each_of_its_parts_in_turn() {
    const DEVICE: &str = "/srv/dev/d";
    let opens = |n: u64| call("openat", "open", &[CWD, 1, 0, 0], 3).path(1, &format!("{DEVICE}{n}")).toll(2_500);
    let part = |n: u64, place: u64| {
        let name: &'static str = Box::leak(format!("{DEVICE}{n}").into_boxed_str());
        let on = |name: &'static str, args: &[u64], result: i64| call(name, name, args, result).toll(400);
        let goes = on("lseek", &[3, place, 0], place as i64).fd(name);
        let takes = on("read", &[3, 0x1000, 8], 8).fd(name).output(1, &[place as u8; 8]);
        vec![opens(n), goes, takes, on("close", &[3], 0).fd(name)]
    };
    let turns = rounds(260, |n| [0, 8, 12, 16, 4_096].into_iter().flat_map(|place| part(n, place)).collect());
    let f = told(&turns, "reopen-per-part");
    assert!(f.len() == 1 && f[0].needless.estimate > 1_000, "{f:#?}");
    // Not claimed: one part of each of many files.
    assert_eq!(told(&rounds(1_300, |n| part(n, 4_096)), "reopen-per-part").len(), 0);
}

#[test]
fn a_mask_of_sigpipe_around_a_send_has_a_cure_of_its_own() {
    const PIPE: u64 = 1 << 12;
    let round = |set: u64| {
        let send = call("sendto", "send", &[5, 0x1000, 500, 0, 0, 0], 500).fd("UNIX-STREAM:[7]").toll(900);
        let block = crate::common::sigmask("pthread_sigmask", 0, Some(set), Some(0));
        vec![block, send, crate::common::sigmask("pthread_sigmask", 2, Some(0), None)]
    };
    let advised = |set: u64| {
        let found = told(&rounds(5_000, |_| round(set)), "sigmask-toggle");
        found.iter().flat_map(|f| &f.cures).any(|cure| cure.how.contains("MSG_NOSIGNAL"))
    };
    assert!(advised(PIPE) && !advised(PIPE | 2));
}

#[test]
fn the_status_of_a_file_that_stays_open_is_kept() {
    let asks = |fd: u64| {
        let asks = call("fstat", "fstat", &[fd, 0x1000], 0).fd("/srv/segment").toll(900);
        asks.output(1, &stat_bytes(1, 1))
    };
    let reads = |n: u64| call("pread64", "pread", &[6, 0x1000, 512, 512 * n], 512).fd("/srv/segment").toll(900);
    let f = told(&rounds(6_000, |n| vec![asks(6), asks(6), reads(n)]), "status-per-read");
    assert!(f.len() == 1 && f[0].needless.estimate > 11_000, "{f:#?}");
}

#[test]
fn a_short_read_is_the_last_one_where_the_end_tells_itself() {
    let interest = |events: u32| {
        let event = [&events.to_le_bytes()[..], &[0; 8]].concat();
        call("epoll_ctl", "epoll_ctl", &[3, 1, 5, 0x1000], 0).input(3, &event)
    };
    let takes =
        |result: i64| call("recvfrom", "recv", &[5, 0x1000, 65_536, 0, 0, 0], result).fd("UNIX-STREAM:[7]").toll(600);
    let rest = rounds(5_000, |_| vec![waits(), takes(300), takes(-11), answers()]);
    let sure = |events: u32| needless(&[vec![interest(events)], rest.clone()].concat(), "drain-eagain");
    let accepts = |result: i64| call("accept4", "accept4", &[5, 0, 0, 0], result).fd("TCP:[7]").toll(900);
    let of_several = rounds(5_000, |_| vec![waits(), accepts(9), accepts(-11)]);
    assert_eq!(needless(&[vec![interest(1 << 31 | 1 | 0x2000)], of_several].concat(), "drain-eagain"), 0);
    // With edge-triggered epoll, the stream's end may come with the last bytes. Only another read finds it then, unless
    // EPOLLRDHUP announces it.
    assert!(sure(1 << 31 | 1 | 0x2000) > 4_500 && sure(1 << 31 | 1) == 0 && sure(1) > 4_500);
}

/// Returns the life of a file in memory that is filled through a mapping, with a message that does or does not pass the
/// descriptor on.
fn picture(control: u64) -> Vec<Call> {
    let memory = "/memfd:picture (deleted)";
    let message = [0, 0, 0x2000, 1, 0x3000, control, 0].map(u64::to_le_bytes).concat();
    vec![
        call("memfd_create", "memfd_create", &[0x1000, 1], 9).input(0, b"picture\0").toll(1_500),
        call("mmap", "mmap", &[0, 65_536, 3, 1, 9, 0], 0x7000_0000).fd(memory).toll(1_500),
        call("munmap", "munmap", &[0x7000_0000, 65_536], 0).toll(1_500),
        call("sendmsg", "sendmsg", &[5, 0x4000, 0], 1).input(1, &message).fd("UNIX-STREAM:[7]").toll(900),
        call("close", "close", &[9], 0).fd(memory).toll(300),
    ]
}

#[test]
fn a_mapping_of_a_file_that_is_given_away_is_of_use() {
    let given = rounds(3_000, |_| picture(24));
    let judgement = judged(&given, BUSY);
    assert!(judgement.findings.is_empty() && judgement.also.is_empty(), "{judgement:?}");
    let kept = rounds(3_000, |_| {
        let mut calls = picture(0);
        calls.remove(3);
        calls
    });
    let needless: u64 = judged(&kept, BUSY).findings.iter().map(|f| f.needless.estimate).sum();
    assert!(needless > 11_500, "{needless}");
}

#[test]
fn a_refusal_is_of_the_user_who_asked() {
    let asks = || call("openat", "open", &[CWD, 1, 0, 0], -13).path(1, "/srv/private").toll(2_000);
    let turns = |id: u64| call("setresuid", "seteuid", &[u64::MAX, id, u64::MAX], 0).toll(400);
    assert_eq!(told(&rounds(4_000, |_| vec![asks()]), "refused-again").len(), 1);
    // Not claimed: another user asks each time.
    assert_eq!(told(&rounds(4_000, |n| vec![turns(1_000 + n % 50), asks(), turns(0)]), "refused-again").len(), 0);
}
