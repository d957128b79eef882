//! Kinds of waste that public reports taught, each with the neighbours that make the same calls for good reason.

use crate::common::*;
use systoll_judge::Finding;
use systoll_model::constants::*;

const BUSY: u64 = 1_000_000;

fn seek(fd: u64, to: u64, whence: u32, at: i64) -> Call {
    call("lseek", "lseek", &[fd, to, whence.into()], at).fd("/var/log/app").toll(400)
}

fn appends(bytes: i64) -> Call {
    call("write", "write", &[4, 0x1000, bytes as u64], bytes).fd("/var/log/app").toll(900)
}

#[test]
fn the_end_of_a_file_that_only_the_program_appends_to() {
    let asks = |n: u64, grown: i64| {
        let end = n as i64 * 5_000 + grown;
        vec![seek(4, 0, SEEK_END, end), seek(4, 0, SEEK_CUR, end), appends(5_000)]
    };
    let sure: u64 = judged(&rounds(4_000, |n| asks(n, 0)), BUSY).findings.iter().map(|f| f.needless.estimate).sum();
    assert!(sure > 7_000, "{sure}");
    let end_asked = |trace: &[Call]| {
        let is_seek = |c: &&Call| c.name == "lseek" && c.args[2] == u64::from(SEEK_END);
        let seeks = trace.iter().filter(is_seek).count() as u64;
        let told = judged(trace, BUSY);
        let of_seeks = |f: &&systoll_judge::Finding| f.syscalls.iter().any(|call| call.name() == Some("lseek"));
        let sure: u64 = told.findings.iter().filter(of_seeks).map(|f| f.needless.estimate).sum();
        sure > seeks / 2
    };
    let only_end = |round: &dyn Fn(u64) -> Vec<Call>| {
        let made = rounds(4_000, round);
        let without: Vec<Call> = made.into_iter().filter(|c| c.name != "lseek" || c.args[2] != 1).collect();
        end_asked(&without)
    };
    assert!(only_end(&|n| asks(n, 0)));
    // Not claimed: another process appends too, the lock lets other writers in, or the program waits for a request.
    assert!(!only_end(&|n| asks(n, 30 * n as i64)));
    let lock = |how: u64| call("flock", "flock", &[4, how], 0).fd("/var/log/app");
    assert!(!only_end(&|n| [vec![lock(2)], asks(n, 0), vec![lock(8)]].concat()));
    let wait = || call("epoll_wait", "epoll_wait", &[7, 0x2000, 8, u64::MAX], 1).waited(9_000);
    assert!(!only_end(&|n| [vec![wait()], asks(n, 0)].concat()));
}

fn event(events: u32, data: u64) -> Vec<u8> {
    [&events.to_le_bytes()[..], &data.to_le_bytes()[..]].concat()
}

#[test]
fn an_interest_in_one_event_that_has_not_come_is_still_set() {
    let sets = |fd: u64| {
        let asks = event(1 | EPOLLONESHOT, fd);
        call("epoll_ctl", "epoll_ctl", &[3, EPOLL_CTL_MOD.into(), fd, 0x1000], 0).input(3, &asks).toll(600)
    };
    let waits =
        |came: u64| call("epoll_wait", "epoll_wait", &[3, 0x2000, 8, u64::MAX], 1).output(1, &event(1, came)).toll(500);
    let idle = |thread: u32| {
        rounds(6_000, move |n| {
            let mut round = vec![sets(5), waits(6)];
            round.iter_mut().for_each(|c| c.thread = if n % 3_000 < 1_500 { 0 } else { thread });
            round
        })
    };
    let finding = only(judged(&idle(0), BUSY));
    assert!(finding.needless.estimate > 5_000, "{finding:#?}");
    // Not claimed: the interest's event came, another thread may have got it, or the wait is on another epoll
    // descriptor.
    no_finding(&rounds(6_000, |_| vec![sets(5), waits(5)]), BUSY);
    no_finding(&idle(1), BUSY);
    let of_another = || Call { args: [9, 0x2000, 8, u64::MAX, 0, 0], ..waits(6) };
    no_finding(&rounds(6_000, |_| vec![sets(5), of_another()]), BUSY);
}

#[test]
fn a_working_folder_set_and_set_back_by_its_descriptor() {
    let to = |path: String| call("chdir", "chdir", &[1], 0).path(0, &path).toll(900);
    let back = |home: &'static str| call("fchdir", "fchdir", &[3], 0).fd(home).toll(600);
    let around = |n: u64| {
        let writes = call("pwrite64", "pwrite", &[5, 1, 9_000, 9_000 * n], 9_000).fd("/srv/out").toll(3_000);
        vec![to(format!("sub{}", n % 700)), writes, back("/srv")]
    };
    let finding = only(judged(&rounds(4_000, around), BUSY));
    assert_eq!(finding.cause.as_deref(), Some("cwd-toggle"), "{finding:#?}");
    // Not claimed: the program goes from folder to folder, or starts a child in the folder.
    no_finding(&rounds(4_000, |n| vec![to(format!("/srv/{n}"))]), BUSY);
    let forks = || call("clone", "fork", &[17, 0, 0, 0, 0], 100).toll(9_000);
    no_finding(&rounds(2_000, |n| vec![to(format!("sub{n}")), forks(), back("/srv")]), BUSY);
}

/// Returns a question about the status of a log with this size and inode number.
fn status(size: u64, inode: u8) -> Call {
    let mut found = stat_bytes(size, 1);
    found[8] = inode;
    found[48..56].copy_from_slice(&size.to_le_bytes());
    call("newfstatat", "stat", &[CWD, 1, 2, 0], 0).path(1, "/var/log/app").output(2, &found).toll(1_100)
}

#[test]
fn whether_the_log_is_still_there_before_each_line() {
    let asks = |n: u64| vec![status(n * 5_000, 7), appends(5_000)];
    let finding = only(judged(&rounds(5_000, asks), BUSY));
    assert_eq!(finding.cause.as_deref(), Some("stat-per-op"), "{finding:#?}");
    // Not claimed: the log is replaced by another file, the program now and then opens the log anew, or another process
    // writes to it.
    no_finding(&rounds(5_000, |n| vec![status(n * 5_000, (n / 3) as u8), appends(5_000)]), BUSY);
    let opens = || call("openat", "open", &[CWD, 1, 0o2101, 0o600], 4).path(1, "/var/log/app").toll(2_000);
    no_finding(&rounds(5_000, |n| if n % 50 == 0 { [vec![opens()], asks(n)].concat() } else { asks(n) }), BUSY);
    no_finding(&rounds(5_000, |n| vec![status(n * 5_001, 7), appends(5_000)]), BUSY);
}

#[test]
fn a_file_opened_for_each_part_of_it() {
    let opens = |path: &str| call("openat", "open", &[CWD, 1, 0, 0], 3).path(1, path).toll(1_500);
    let reads = |at: u64| call("pread64", "pread", &[3, 0x1000, 200, at], 200).fd("/srv/pack").toll(300);
    let flags = |set: u64| call("fcntl", "fcntl", &[3, if set == 0 { 3 } else { 4 }, set], 0).fd("/srv/pack");
    let refused = || call("epoll_ctl", "epoll_ctl", &[8, 1, 3, 0x2000], -1).input(3, &event(1, 3));
    let closes = || call("close", "close", &[3], 0).fd("/srv/pack").toll(200);
    let item = |path: &str, n: u64| {
        let at = 300 * (n * 37 % 3_000);
        vec![opens(path), flags(0), flags(2_048), refused(), flags(0), flags(1), reads(at), closes()]
    };
    let judgement = judged(&rounds(4_000, |n| item("/srv/pack", n)), BUSY);
    let first = &judgement.findings[0];
    assert_eq!(first.cause.as_deref(), Some("reopen-per-part"), "{judgement:#?}");
    // The calls that come with each opening are needless too; the reads are not.
    let calls: Vec<_> = first.syscalls.iter().filter_map(|call| call.name()).collect();
    assert!(["openat", "close", "fcntl", "epoll_ctl"].iter().all(|call| calls.contains(call)), "{calls:?}");
    assert!(!calls.contains(&"pread64") && judgement.findings.len() == 1, "{judgement:#?}");
    // Not claimed: another file each time, a file that stays open, and few openings.
    let opened = |trace: &[Call]| {
        let told = judged(trace, BUSY);
        told.findings.iter().any(|f| f.syscalls.iter().any(|call| call.name() == Some("openat")))
    };
    assert!(!opened(&rounds(4_000, |n| item(&format!("/srv/pack{n}"), n))));
    assert!(!opened(&[vec![opens("/srv/pack")], rounds(4_000, |n| vec![reads(300 * (n * 37 % 3_000))])].concat()));
    assert!(!opened(&rounds(60, |n| item("/srv/pack", n))));
}

fn rings(fd: u64) -> Call {
    call("write", "write", &[fd, 0x1000, 8], 8).fd("anon_inode:[eventfd]").input(1, &1u64.to_le_bytes()).toll(600)
}

fn takes(fd: u64, value: u64) -> Call {
    call("read", "read", &[fd, 0x1000, 8], 8).fd("anon_inode:[eventfd]").output(1, &value.to_le_bytes()).toll(500)
}

#[test]
fn a_thread_that_wakes_itself() {
    let waits = || call("epoll_wait", "epoll_wait", &[3, 0x2000, 8, u64::MAX], 1).output(1, &event(1, 5)).toll(500);
    let judgement = judged(&rounds(6_000, |_| vec![rings(5), waits(), takes(5, 1)]), BUSY);
    let told =
        |judgement: &systoll_judge::Judgement| judgement.findings.iter().map(|f| f.needless.estimate).sum::<u64>();
    assert!(told(&judgement) > 10_000, "{judgement:#?}");
    // Not claimed: another thread rang as well, the thread never rings itself, or a signal handler rings.
    assert_eq!(told(&judged(&rounds(6_000, |_| vec![rings(5), waits(), takes(5, 2)]), BUSY)), 0);
    assert_eq!(told(&judged(&rounds(6_000, |_| vec![waits(), takes(5, 1)]), BUSY)), 0);
    let signalled = || Call { signals: 1, ..rings(5) };
    assert_eq!(told(&judged(&rounds(6_000, |_| vec![signalled(), waits(), takes(5, 1)]), BUSY)), 0);
    // Not claimed: an eventfd used as a semaphore, from which the thread takes a token and gives it back.
    let tokens = || call("eventfd2", "eventfd", &[4, 1], 5);
    let taken = [vec![tokens()], rounds(6_000, |_| vec![takes(5, 1), rings(5)])].concat();
    assert_eq!(told(&judged(&taken, BUSY)), 0);
}

#[test]
fn a_read_of_what_is_waited_for_by_its_edges() {
    let watches =
        |events: u32| call("epoll_ctl", "epoll_ctl", &[3, 1, 5, 0x1000], 0).input(3, &event(events, 5)).toll(600);
    let waits = || call("epoll_wait", "epoll_wait", &[3, 0x2000, 8, u64::MAX], 1).output(1, &event(1, 5)).waited(4_000);
    let woken = |events: u32| [vec![watches(events)], rounds(8_000, |_| vec![waits(), takes(5, 1)])].concat();
    assert!(only(judged(&woken(1 | EPOLLET), BUSY)).needless.estimate > 6_000);
    no_finding(&woken(1), BUSY);
}

#[test]
fn a_seek_that_reads_back_what_was_just_written() {
    let (lengths, page) = (29u64, 4_096);
    let round = |n: u64, back: &dyn Fn(u64) -> u64| {
        let end = 8_192 + n * lengths;
        let to = back(end);
        let read = call("read", "fseek", &[4, 0x1000, page], (end - to) as i64).fd("/var/log/app").toll(700);
        let wrote = call("write", "fseek", &[4, 0x1000, lengths], lengths as i64).fd("/var/log/app").toll(900);
        let status = call("fstat", "fseek", &[4, 1], 0).output(1, &stat_bytes(n, 1)).toll(280);
        vec![status, seek(4, to, SEEK_SET, to as i64), read, wrote]
    };
    let told = |trace: &[Call]| {
        let judgement = judged(trace, BUSY);
        let goes_back = |f: &&systoll_judge::Finding| f.why.starts_with("goes back in a file");
        judgement.findings.iter().filter(goes_back).map(|f| f.needless.estimate).sum::<u64>()
    };
    let sure = told(&rounds(5_000, |n| round(n, &|end| end / page * page)));
    assert!(sure > 12_000, "{sure}");
    // Not claimed: the read is of bytes that the program has not written, the program also writes elsewhere, or another
    // process may write in between.
    assert_eq!(told(&rounds(5_000, |n| round(n, &|_| 8_192 - n))), 0);
    let elsewhere = |n: u64| [round(n, &|end| end / page * page), vec![seek(4, 0, SEEK_SET, 0), appends(9)]].concat();
    assert_eq!(told(&rounds(5_000, elsewhere)), 0);
    let lock = |how: u64| call("flock", "flock", &[4, how], 0).fd("/var/log/app");
    assert_eq!(told(&rounds(5_000, |n| [vec![lock(2)], round(n, &|end| end / page * page)].concat())), 0);
}

#[test]
fn a_connection_for_each_request() {
    let address: Vec<u8> =
        [2u16.to_le_bytes(), 8_080u16.to_be_bytes()].concat().into_iter().chain([127, 0, 0, 1]).collect();
    let on = |name: &'static str, args: &[u64], result: i64| call(name, name, args, result).fd("socket:[7]").toll(900);
    let connect = |to: &[u8]| on("connect", &[5, 0x1000, 16], 0).input(1, to);
    let socket = || call("socket", "socket", &[2, 1, 0], 5).toll(900);
    let (asks, answer) =
        (on("sendto", &[5, 0x1000, 3_000, 0, 0, 0], 3_000), on("recvfrom", &[5, 0x1000, 9_000], 8_000));
    let (option, end) = (on("setsockopt", &[5, 6, 1, 0x1000, 4], 0), on("recvfrom", &[5, 0x1000, 9_000], 0));
    let request = |to: &[u8], rest: Vec<Call>| {
        let talk = vec![socket(), connect(to), option.clone(), asks.clone(), answer.clone()];
        [talk, rest, vec![on("close", &[5], 0)]].concat()
    };
    let told = |trace: &[Call]| {
        let judgement = judged(trace, BUSY);
        let calls = judgement.findings.iter().flat_map(|f| f.syscalls.clone());
        calls.filter(|call| ["connect", "close"].map(Some).contains(&call.name())).count()
    };
    assert_eq!(told(&rounds(2_000, |_| request(&address, vec![]))), 2);
    // Not claimed: the peer closes the connection, the peer is another each time, connections are few, or all requests
    // use one.
    assert_eq!(told(&rounds(2_000, |_| request(&address, vec![end.clone()]))), 0);
    let others = |n: u64| [&address[..], &n.to_le_bytes()].concat();
    assert_eq!(told(&rounds(2_000, |n| request(&others(n), vec![]))), 0);
    // Giving a connection up in two steps is giving it up, but for a peer that answers a request after its end only.
    let half = on("shutdown", &[5, 1], 0);
    assert_eq!(told(&rounds(2_000, |_| request(&address, vec![half.clone()]))), 2);
    assert_eq!(told(&rounds(2_000, |_| request(&address, vec![half.clone(), end.clone()]))), 2);
    let after = vec![half.clone(), answer.clone(), end.clone()];
    assert_eq!(told(&rounds(2_000, |_| request(&address, after.clone()))), 0);
    // Not claimed either: the peer speaks HTTP/1.0, and so ends each connection after its answer.
    let says = |answer: &[u8]| vec![on("recvfrom", &[5, 0x1000, 9_000], 3_000).output(1, answer)];
    assert_eq!(told(&rounds(2_000, |_| request(&address, says(b"HTTP/1.0 200 OK\r\nServer: S\r\n\r\n")))), 0);
    let kept = b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n\r\n";
    assert_eq!(told(&rounds(2_000, |_| request(&address, says(kept)))), 2);
    assert_eq!(told(&rounds(12, |_| request(&address, vec![]))), 0);
    let one = [vec![socket(), connect(&address)], rounds(2_000, |_| vec![asks.clone(), answer.clone()])].concat();
    assert_eq!(told(&one), 0);
}

#[test]
fn calls_on_a_connection_of_which_no_window_shows_the_peer_count_neither_way() {
    let address: Vec<u8> =
        [2u16.to_le_bytes(), 8_080u16.to_be_bytes()].concat().into_iter().chain([127, 0, 0, 1]).collect();
    // A connection is longer than a window.
    let trace = rounds(600, |n| {
        let name: &'static str = format!("socket:[{n}]").leak();
        let on = |call_name: &'static str, args: &[u64], result: i64| {
            call(call_name, call_name, args, result).fd(name).toll(900)
        };
        let talk = [on("sendto", &[5, 0x1000, 3_000, 0, 0, 0], 3_000), on("recvfrom", &[5, 0x1000, 9_000], 8_000)];
        let begin =
            [call("socket", "socket", &[2, 1, 0], 5).toll(900), on("connect", &[5, 0x1000, 16], 0).input(1, &address)];
        let talks = std::iter::repeat_n(talk, 20).flatten();
        begin
            .into_iter()
            .chain(talks)
            .chain([on("setsockopt", &[5, 6, 1, 0x1000, 4], 0), on("close", &[5], 0)])
            .collect()
    });
    let judgement = judged(&trace, BUSY);
    let all: Vec<&Finding> = judgement.findings.iter().chain(&judgement.also).collect();
    let found = all.iter().find(|f| f.cause.as_deref() == Some("connection-per-request")).expect("connections");
    assert!(found.needless.estimate >= found.calls - found.calls / 50, "{found:#?}");
}

#[test]
fn a_seek_that_throws_away_what_was_read() {
    let read = |bytes: u64| call("read", "read", &[3, 0x1000, bytes], bytes as i64).fd("/srv/chunks").toll(9_000);
    let at = |place: u64| call("lseek", "lseek", &[3, place, 0], place as i64).fd("/srv/chunks").toll(300);
    let again = |trace: &[Call]| {
        let judgement = judged(trace, BUSY);
        let of = judgement.findings.iter().filter(|f| f.why.contains("reads again most"));
        of.map(|f| f.needless.estimate).sum::<u64>()
    };
    assert!(again(&rounds(4_000, |n| vec![at(100 * n), read(65_536)])) > 3_500);
    // Not claimed: the next read continues, is far away, or is of the same place, which another process may have
    // changed, or the program itself has written in between.
    assert_eq!(again(&rounds(4_000, |n| vec![at(65_536 * n), read(65_536)])), 0);
    assert_eq!(again(&rounds(4_000, |n| vec![at(1_000_000 * (n % 7)), read(65_536)])), 0);
    assert_eq!(again(&rounds(4_000, |_| vec![at(0), read(65_536)])), 0);
    let writes = || call("pwrite64", "pwrite", &[3, 0x1000, 9_000, 0], 9_000).fd("/srv/chunks").toll(900);
    assert_eq!(again(&rounds(4_000, |n| vec![at(100 * n), read(65_536), writes()])), 0);
    // Where something was written, elsewhere too, the bytes tell whether what is read is the same.
    let written = |n: u64, ever: &[u8; 400]| {
        let shown = &ever[(n % 8 * 20) as usize..][..200];
        let prints = call("write", "write", &[1, 0x1000, 9_000], 9_000).fd("pipe:[9]").toll(900);
        vec![at(n % 8 * 20), read(65_536).output(1, shown), prints]
    };
    let bytes = std::array::from_fn(|at| (at % 251) as u8);
    assert!(again(&rounds(4_000, |n| written(n, &bytes))) > 3_000);
    assert_eq!(again(&rounds(4_000, |n| written(n, &[n as u8; 400]))), 0);
}

#[test]
fn a_header_that_is_written_again_before_anybody_reads_it() {
    let writes = |at: u64, bytes: u64| {
        call("pwrite64", if at == 0 { "pwrite:head" } else { "pwrite:append" }, &[3, 0x1000, bytes, at], bytes as i64)
            .fd("/srv/segment")
            .toll(900)
    };
    let append = |n: u64, rest: Vec<Call>| [vec![writes(64 + 9_000 * n, 9_000), writes(0, 64)], rest].concat();
    let dead = |trace: &[Call]| {
        let judgement = judged(trace, BUSY);
        let of = judgement.findings.iter().filter(|f| f.why.starts_with("writes a place"));
        of.map(|f| f.needless.estimate).sum::<u64>()
    };
    assert!(dead(&rounds(5_000, |n| append(n, vec![]))) > 3_500);
    // Not claimed: the header is flushed to the disk, another process is told, or the header is read.
    let sync = || call("fdatasync", "fdatasync", &[3], 0).fd("/srv/segment").toll(900);
    assert_eq!(dead(&rounds(5_000, |n| append(n, vec![sync()]))), 0);
    let tells = || call("sendto", "send", &[8, 0x1000, 3_000, 0, 0, 0], 3_000).fd("UNIX-STREAM:[7->8]").toll(900);
    assert_eq!(dead(&rounds(5_000, |n| append(n, vec![tells()]))), 0);
    let takes = || call("pread64", "pread", &[3, 0x1000, 64, 0], 64).fd("/srv/segment").toll(900);
    assert_eq!(dead(&rounds(5_000, |n| append(n, vec![takes()]))), 0);
}

/// Returns true if a finding or remark has this cause.
fn tells(trace: &[Call], cause: &str) -> bool {
    let judgement = judged(trace, BUSY);
    judgement.findings.iter().chain(&judgement.also).any(|f| f.cause.as_deref() == Some(cause))
}

#[test]
fn a_file_read_from_its_start_again() {
    let back = || call("lseek", "rewind", &[5, 0, SEEK_SET.into()], 0).fd("/srv/state").toll(300);
    let reads = |bytes: &[u8]| {
        let all = call("read", "read", &[5, 0x1000, 4096], bytes.len() as i64).fd("/srv/state").toll(900);
        [all.output(1, bytes), call("read", "read", &[5, 0x1000, 4096], 0).fd("/srv/state").toll(200)]
    };
    let round = |bytes: &[u8]| [vec![back()], reads(bytes).to_vec()].concat();
    assert!(tells(&rounds(2_000, |_| round(b"the same")), "file-reread"));
    // Not claimed: the content changes, or the program itself writes the file.
    assert!(!tells(&rounds(2_000, |n| round(&n.to_le_bytes())), "file-reread"));
    let writes = || call("write", "write", &[5, 0x1000, 4096], 4096).fd("/srv/state").toll(900);
    assert!(!tells(&rounds(2_000, |_| [vec![back(), writes()], round(b"the same")].concat()), "file-reread"));
}

#[test]
fn a_file_read_through_a_copy_of_its_descriptor() {
    let fd = |of: &'static str, args: &[u64], result: i64| call(of, of, args, result).fd("/srv/lib.sh").toll(400);
    let round = |n: u64, bytes: &[u8]| {
        let opens = call("openat", "open", &[CWD, 1, 0, 0], 3).path(1, "/srv/lib.sh").toll(1_500);
        let copies = [fd("fcntl", &[3, 0, 10], 10 + (n % 3) as i64), fd("close", &[3], 0)];
        let copy = 10 + n % 3;
        let read = fd("read", &[copy, 0x1000, 8192], bytes.len() as i64).output(1, bytes);
        [vec![opens], copies.to_vec(), vec![read, fd("read", &[copy, 0x1000, 8192], 0), fd("close", &[copy], 0)]]
            .concat()
    };
    let found = only(judged(&rounds(2_000, |n| round(n, b"f() { :; }")), BUSY));
    assert_eq!(found.cause.as_deref(), Some("file-reread"));
    assert!(found.needless.estimate > 11_000, "{found:#?}");
    assert!(!tells(&rounds(2_000, |n| round(n, &n.to_le_bytes())), "file-reread"));
}

#[test]
fn the_heap_s_top_goes_up_and_down_over_many_calls() {
    let step = 0x1_0000;
    let brk = |n: u64| call("brk", "malloc", &[0x40_0000 + n * step], 0x40_0000 + (n * step) as i64).toll(900);
    // 40 steps down and 40 up: no window shows both.
    let wave = |n: u64| if n % 80 < 40 { n % 80 } else { 80 - n % 80 };
    assert!(tells(&rounds(8_000, |n| vec![brk(wave(n))]), "heap-trim"));
    assert!(!tells(&rounds(8_000, |n| vec![brk(n)]), "heap-trim"));
    assert!(!tells(&rounds(8_000, |n| vec![brk(if n < 4_000 { n } else { 8_000 - n })]), "heap-trim"));
}

#[test]
fn an_interest_in_one_of_many_descriptors_around_each_wait() {
    let ctl = |op: u32, fd: u64, events: u32| {
        call("epoll_ctl", "epoll_ctl", &[3, op.into(), fd, 0x1000], 0).input(3, &event(events, fd)).toll(600)
    };
    let waits =
        |fd: u64| call("epoll_wait", "epoll_wait", &[3, 0x2000, 8, 100], 1).output(1, &event(1, fd)).waited(9_000);
    let takes = |fd: u64| call("recvfrom", "recv", &[fd, 0x1000, 2_000, 0], 2_000).fd("TCP:[1->2]").toll(900);
    let around = |fd: u64| vec![ctl(EPOLL_CTL_ADD, fd, 1), waits(fd), ctl(EPOLL_CTL_DEL, fd, 0), takes(fd)];
    assert!(tells(&rounds(3_000, |n| around(10 + n * 5 % 8)), "epoll-churn"));
    // Not claimed: another connection each time, and another interest each time.
    let connection = |fd: u64| {
        let accepts = call("accept4", "accept", &[4, 0, 0, 0x800], fd as i64).toll(900);
        [vec![accepts], around(fd), vec![call("close", "close", &[fd], 0).toll(300)]].concat()
    };
    assert!(!tells(&rounds(3_000, |n| connection(10 + n * 5 % 8)), "epoll-churn"));
    let varies = |n: u64| {
        let fd = 10 + n * 5 % 8;
        vec![
            ctl(EPOLL_CTL_ADD, fd, if (n / 8).is_multiple_of(2) { 1 } else { 4 }),
            waits(fd),
            ctl(EPOLL_CTL_DEL, fd, 0),
            takes(fd),
        ]
    };
    assert!(!tells(&rounds(3_000, varies), "epoll-churn"));
}

#[test]
fn a_question_whether_one_descriptor_is_ready_before_each_read() {
    let asks = |fd: i32, waited: u64| {
        let of = [&fd.to_le_bytes()[..], &1_u16.to_le_bytes(), &[0; 2]].concat();
        let ready = [&fd.to_le_bytes()[..], &1_u16.to_le_bytes(), &1_u16.to_le_bytes()].concat();
        call("poll", "poll", &[0x1000, 1, 2_000], 1).input(0, &of).output(0, &ready).waited(waited).toll(900)
    };
    let takes = |fd: u64| call("recvfrom", "recv", &[fd, 0x1000, 2_000, 0x40], 2_000).fd("TCP:[1->2]").toll(900);
    assert!(tells(&rounds(3_000, |_| vec![asks(5, 0), takes(5)]), "peek-then-read"));
    // Not claimed: the poll waits, the read is from another descriptor, or the program reads until nothing is left.
    assert!(!tells(&rounds(3_000, |_| vec![asks(5, 40_000), takes(5)]), "peek-then-read"));
    assert!(!tells(&rounds(3_000, |_| vec![asks(5, 0), takes(6)]), "peek-then-read"));
    let empty = || Call { result: -11, ..takes(5) };
    assert!(!tells(&rounds(3_000, |_| vec![asks(5, 0), takes(5), empty()]), "peek-then-read"));
}

#[test]
fn small_writes_to_a_file_that_the_program_maps() {
    let writes = |n: u64| call("pwrite64", "pwrite", &[4, 0x1000, 200, 200 * n], 200).fd("/srv/rows").toll(900);
    let maps = || call("mmap", "mmap", &[0, 1 << 20, 1, 1, 4, 0], 0x7000_0000).fd("/srv/rows").toll(2_000);
    assert!(tells(&rounds(5_000, |n| vec![writes(n)]), "unbuffered-output"));
    let mapped = |n: u64| if n == 0 { vec![maps(), writes(n)] } else { vec![writes(n)] };
    assert!(!tells(&rounds(5_000, mapped), "unbuffered-output"));
}
