//! Tests of detectors: their claims, the changes that void a claim, and the neighbours that they leave alone.

use crate::common::*;
use systoll_judge::{Confidence, Kind};

fn openat(path: &str, flags: u64, fd: i64) -> Call {
    call("openat", "open", &[CWD, 1, flags, 0o644], fd).path(1, path).toll(1_000)
}

fn close(fd: u64) -> Call {
    call("close", "close", &[fd], 0)
}

fn write(fd: u64) -> Call {
    call("write", "write", &[fd, 0x1000, 2000], 2000).fd("/tmp/log").toll(500)
}

// Tests of repeated questions.

#[test]
fn who_opens_comes_before_who_closes_whichever_costs_more() {
    let by = |name: &'static str, call: Call| Call { api: name, ..call };
    let round = |close_ns: u64| {
        vec![
            by("fopen", openat("/tmp/log", 0o2001, 3)),
            by("fputs", write(3)),
            by("fclose", close(3).fd("/tmp/log").toll(close_ns)),
        ]
    };
    for close_ns in [200, 900, 1_100, 5_000] {
        let trace = rounds(10_000, |_| round(close_ns));
        let f = only(judged(&trace, BUSY));
        assert_eq!(f.cause.as_deref(), Some("reopen-per-write"), "{close_ns}");
        let rec = recording(&trace, BUSY);
        assert_eq!(rec.row(f.rows[0]).api.as_deref(), Some("fopen"), "{close_ns}");
    }
}

#[test]
fn a_million_times_who_is_my_parent() {
    let f = only(judged(&rounds(100_000, |_| vec![call("getppid", "getppid", &[], 17)]), BUSY));
    assert_eq!((f.kind, f.cause.as_deref(), f.calls), (Kind::Repeat, Some("identity-per-op"), 100_000));
    assert!(f.why.contains("getppid") && f.why.contains("seen in all ") && f.why.ends_with(" samples"), "{}", f.why);
}

#[test]
fn a_file_whose_change_time_moves_is_asked_for_good_reason() {
    silent(&rounds(20_000, |i| vec![stat("/tmp/log", "stat", i, 0)]), BUSY);
}

#[test]
fn the_access_time_alone_is_no_news() {
    only(judged(&rounds(20_000, |i| vec![stat("/tmp/log", "stat", 1, i)]), BUSY));
}

#[test]
fn different_files_are_different_questions() {
    silent(&rounds(20_000, |i| vec![stat(&format!("/usr/share/doc/{i}"), "fts_read", 1, 0)]), BUSY);
}

#[test]
fn stat_and_lstat_are_different_questions() {
    let lstat = |i: u64| {
        let mut call = stat(&format!("/a/{i}"), "lstat", 1, 0);
        call.args[3] = 0x100;
        call
    };
    silent(&rounds(10_000, |i| vec![stat(&format!("/a/{i}"), "stat", 1, 0), lstat(i)]), BUSY);
}

#[test]
fn what_the_program_itself_may_have_changed_is_asked_again_for_good_reason() {
    let access = || call("access", "access", &[1, 0], 0).path(0, "/tmp/spool");
    only(judged(&rounds(10_000, |_| vec![access()]), BUSY));
    let changes: [fn() -> Call; 4] = [
        || openat("/tmp/spool", 0o1001, 3),
        || call("unlink", "unlink", &[1], 0).path(0, "/tmp/spool"),
        || call("rename", "rename", &[1, 2], 0).path(0, "/tmp/new").path(1, "/tmp/spool"),
        || call("rename", "rename", &[1, 2], 0).path(0, "/tmp").path(1, "/old"),
    ];
    for change in changes {
        let judgement = judged(&rounds(10_000, |_| vec![access(), change()]), BUSY);
        let most = judgement.also.iter().chain(&judgement.findings).map(|f| f.needless.estimate).max();
        assert!(most.unwrap_or(0) < 500, "{judgement:#?}");
    }
}

#[test]
fn relative_paths_mean_something_else_after_chdir() {
    let here = || stat("x", "stat", 1, 0);
    only(judged(&rounds(10_000, |_| vec![here()]), BUSY));
    let elsewhere = |i: u64| call("chdir", "chdir", &[1], 0).path(0, &format!("/d{i}"));
    silent(&rounds(10_000, |i| vec![here(), elsewhere(i)]), BUSY);
}

#[test]
fn getcwd_is_void_after_chdir() {
    let getcwd = || call("getcwd", "getcwd", &[1, 100], 5).output(0, b"/tmp\0");
    only(judged(&rounds(10_000, |_| vec![getcwd()]), BUSY));
    let up = || call("chdir", "chdir", &[1], 0).path(0, "..");
    silent(&rounds(10_000, |_| vec![getcwd(), up()]), BUSY);
}

#[test]
fn an_open_file_is_another_after_reading_and_after_reopening() {
    let fstat = || call("fstat", "fstat", &[3, 1], 0).output(1, &stat_bytes(1, 1));
    only(judged(&rounds(10_000, |_| vec![fstat()]), BUSY));
    // Not claimed: a read came short, so the file ended there and may have grown since.
    let read = || call("read", "read", &[3, 1, 4096], 100).fd("/tmp/f");
    silent(&rounds(10_000, |_| vec![fstat(), read()]), BUSY);
    let reopened = || vec![openat("/tmp/f", 0, 3), fstat(), close(3)];
    silent(&rounds(10_000, |_| reopened()), BUSY);
}

#[test]
fn refusals_are_answers_but_interruptions_are_not() {
    let readlink = |errno: i64| call("readlink", "realpath", &[1, 2, 100], -errno).path(0, "/usr");
    only(judged(&rounds(10_000, |_| vec![readlink(22), close(9)]), BUSY));
    silent(&rounds(10_000, |_| vec![readlink(4), close(9)]), BUSY);
}

#[test]
fn a_walk_down_a_path_is_claimed_only_where_its_end_was_asked_for() {
    let link = |path: &str| call("readlink", "realpath", &[1, 2, 100], -22).path(0, path).toll(560);
    let walk = |leaf: String| vec![link("/usr"), link("/usr/include"), link(&format!("/usr/include/{leaf}"))];
    silent(&rounds(10_000, |i| walk(i.to_string())), BUSY);
    only(judged(&rounds(10_000, |_| walk("stdio.h".into())), BUSY));
}

#[test]
fn asking_where_the_file_stands_though_it_is_known() {
    let tell = |at: i64| call("lseek", "ftell", &[3, 0, 1], at);
    let trace: Vec<Call> = std::iter::once(openat("/tmp/f", 0, 3))
        .chain(rounds(10_000, |i| vec![call("read", "read", &[3, 1, 1000], 1000), tell(1000 * (i as i64 + 1))]))
        .collect();
    let f = only(judged(&trace, BUSY));
    assert_eq!(f.syscalls[0].name(), Some("lseek"));
    // Not claimed: another process moves the position, so each answer is new.
    silent(&rounds(10_000, |i| vec![call("read", "read", &[3, 1, 1000], 1000), tell(7 * (i as i64 + 1))]), BUSY);
}

#[test]
fn a_path_asked_about_and_opened_at_once_is_a_remark_at_most() {
    let trace =
        rounds(10_000, |_| vec![stat("/srv/index.html", "stat", 1, 0), openat("/srv/index.html", 0, 3), close(3)]);
    let judgement = judged(&trace, BUSY);
    assert!(judgement.findings.is_empty(), "{judgement:#?}");
    assert!(!judgement.also.is_empty() && judgement.also.iter().all(|f| f.confidence == Confidence::Low));
}

#[test]
fn a_cut_answer_proves_nothing() {
    let mut recording = recording(&rounds(20_000, |i| vec![stat("/etc/localtime", "localtime", 5, i)]), BUSY);
    for data in recording.windows.iter_mut().flat_map(|w| &mut w.calls).flat_map(|c| &mut c.data) {
        data.cut = true;
    }
    let judgement = systoll_judge::judge(&recording, &systoll_judge::Catalogue::builtin(), &Default::default());
    assert!(judgement.findings.is_empty() && judgement.also.is_empty(), "{judgement:#?}");
}

// Tests of sets that change nothing.

#[test]
fn an_option_set_to_what_it_is() {
    let nodelay = |on: u32| call("setsockopt", "setsockopt", &[4, 6, 1, 1, 4], 0).input(3, &on.to_le_bytes());
    let f = only(judged(&rounds(10_000, |_| vec![nodelay(1), write(4)]), BUSY));
    assert_eq!((f.kind, f.syscalls[0].name()), (Kind::NoOp, Some("setsockopt")));
    assert!(f.needless.estimate >= 9_000);
    // Not claimed: TCP_QUICKACK wears off, so setting it again is useful.
    let quickack = || call("setsockopt", "setsockopt", &[4, 6, 12, 1, 4], 0).input(3, &1u32.to_le_bytes());
    silent(&rounds(10_000, |_| vec![quickack(), write(4)]), BUSY);
    // A new socket each time has no options yet.
    let fresh = || vec![call("accept4", "accept", &[3, 0, 0, 0], 4), nodelay(1), close(4)];
    silent(&rounds(10_000, |_| fresh()), BUSY);
}

#[test]
fn a_handler_put_back_as_it_was() {
    let handler = |new: u8, old: u8| {
        call("rt_sigaction", "sigaction", &[2, 1, 2, 8], 0).input(1, &[new; 32]).output(2, &[old; 32])
    };
    assert_eq!(only(judged(&rounds(10_000, |_| vec![handler(3, 3)]), BUSY)).kind, Kind::NoOp);
    silent(&rounds(10_000, |i| vec![handler(i as u8, (i as u8).wrapping_sub(1))]), BUSY);
}

#[test]
fn a_signal_between_makes_the_mask_unknown() {
    let set = || {
        let mut call = sigmask("sigprocmask", 2, Some(8), None);
        call.signals = 1;
        call
    };
    silent(&rounds(10_000, |_| vec![set()]), BUSY);
}

#[test]
fn sigkill_in_a_full_mask_is_never_really_set() {
    let full = !0u64;
    let kept = full & !(1 << 8 | 1 << 18);
    let f = only(judged(&rounds(10_000, |_| vec![sigmask("pthread_sigmask", 2, Some(full), Some(kept))]), BUSY));
    assert_eq!(f.kind, Kind::NoOp);
}

#[test]
fn an_edge_triggered_interest_is_armed_again_for_good_reason() {
    let modify = |events: u32| {
        let mut event = events.to_le_bytes().to_vec();
        event.extend([0; 8]);
        call("epoll_ctl", "epoll_ctl", &[5, 3, 6, 1], 0).input(3, &event)
    };
    assert_eq!(only(judged(&rounds(10_000, |_| vec![modify(1)]), BUSY)).kind, Kind::NoOp);
    silent(&rounds(10_000, |_| vec![modify(1 | 1 << 31)]), BUSY);
    silent(&rounds(10_000, |_| vec![modify(1 | 1 << 30)]), BUSY);
}

// Tests of sets that are undone.

#[test]
fn a_flag_switched_on_and_off() {
    let set = |flags: u64| call("fcntl", "fcntl", &[3, 4, flags], 0);
    let f = only(judged(&rounds(5_000, |_| vec![set(0x800), write(3), set(0)]), BUSY));
    assert_eq!(f.kind, Kind::Toggle);
    assert_eq!(f.calls, 10_000);
}

#[test]
fn signals_blocked_around_a_section_are_a_toggle_but_not_around_fork() {
    let guard = |middle: Call| {
        rounds(5_000, move |_| {
            vec![
                sigmask("lock:sigprocmask", 0, Some(2), Some(0)),
                middle.clone(),
                sigmask("unlock:sigprocmask", 2, Some(0), None),
            ]
        })
    };
    let f = only(judged(&guard(write(3)), BUSY));
    assert_eq!((f.kind, f.cause.as_deref()), (Kind::Toggle, Some("sigmask-toggle")));
    let fork = call("clone", "fork", &[17], 4711).toll(90_000);
    silent(&guard(fork), BUSY);
}

#[test]
fn a_mask_is_needed_where_handlers_run() {
    let guarded = |each: u64, old: Option<u64>, how: u64, then: u64| {
        rounds(10_000, move |i| {
            let mut calls = vec![
                sigmask("lock:sigprocmask", 0, Some(1 << 13), old),
                write(3),
                sigmask("unlock:sigprocmask", how, Some(then), None),
            ];
            if i % each == 0 {
                calls.push(call("rt_sigreturn", "sigreturn", &[], 0));
            }
            calls
        })
    };
    // SIG_SETMASK back to what it was, and SIG_UNBLOCK without a look at the mask before.
    for (old, how, then) in [(Some(0), 2, 0), (None, 1, 1 << 13)] {
        silent(&guarded(90, old, how, then), BUSY);
        assert_eq!(only(judged(&guarded(5_000, old, how, then), BUSY)).cause.as_deref(), Some("sigmask-toggle"));
    }
}

#[test]
fn a_size_asked_by_seeks_there_and_back() {
    let seek = |to: u64, whence: u64, at: i64| call("lseek", "lseek", &[3, to, whence], at).fd("/srv/log").toll(300);
    let f = only(judged(&rounds(5_000, |_| vec![seek(0, 2, 90_000), seek(4_096, 0, 4_096)]), BUSY));
    assert_eq!((f.kind, f.cause.as_deref()), (Kind::Toggle, Some("tell-per-op")));
    assert!(f.cures.iter().all(|cure| cure.how.contains("size")), "{:?}", f.cures);
}

#[test]
fn protection_flipped_back_and_forth() {
    let protect = |prot: u64| call("mprotect", "mprotect", &[0x10000, 4096, prot], 0).toll(600);
    assert_eq!(only(judged(&rounds(5_000, |_| vec![protect(3), protect(1)]), BUSY)).kind, Kind::Toggle);
    let other = |i: u64, prot: u64| call("mprotect", "mprotect", &[0x10000 + i * 4096, 4096, prot], 0).toll(600);
    silent(&rounds(5_000, |i| vec![other(i, 3), other(i, 1)]), BUSY);
}

#[test]
fn blocks_mapped_and_unmapped_again() {
    let cycle = |i: u64, length: u64| {
        let at = 0x7f00_0000_0000 + i * 0x10_0000;
        vec![
            call("mmap", "malloc", &[0, length, 3, 0x22, !0, 0], at as i64).toll(900),
            call("munmap", "free", &[at, length], 0).toll(900),
        ]
    };
    assert_eq!(only(judged(&rounds(5_000, |i| cycle(i, 0x40000)), BUSY)).kind, Kind::Toggle);
    silent(&rounds(5_000, |i| cycle(i, 0x40000 + i * 4096)), BUSY);
}

/// Python's socket.recv makes a large block each time, cuts it down to the size of what came, and
/// frees it.
#[test]
fn blocks_cut_down_between_belong_to_them() {
    let length = 0x41000u64;
    let cycle = |i: u64| {
        let at = 0x7f00_0000_0000 + (i % 7) * 0x10_0000;
        let mut calls = vec![
            call("mmap", "malloc", &[0, length, 3, 0x22, !0, 0], at as i64).toll(1_400),
            call("mremap", "realloc", &[at, length, 4096, 1], at as i64).toll(1_800),
        ];
        calls.extend((0..5).map(|_| call("sendto", "send", &[7, 1, 700, 0, 0, 0], 700).toll(1_500)));
        calls.push(call("munmap", "free", &[at, 4096], 0).toll(2_000));
        calls
    };
    let f = only(judged(&rounds(3_000, cycle), 20_000_000));
    assert_eq!((f.cause.as_deref(), f.calls), (Some("mmap-churn"), 9_000));
    // Windows begin and end anywhere in a round: the part that they cut off is like the part that they show.
    assert!(f.needless.low >= 7_000 && f.needless.estimate >= 8_900, "{:?}", f.needless);
    // Not claimed: a block that grows while it is filled, and is kept.
    let grows = |i: u64| {
        vec![
            call(
                "mremap",
                "realloc",
                &[0x7f00_0000_0000, length + i * 4096, length + i * 4096 + 4096, 1],
                0x7f00_0000_0000,
            )
            .toll(1_800),
        ]
    };
    silent(&rounds(3_000, grows), 20_000_000);
}

#[test]
fn a_wish_that_changes_is_not_undone() {
    let interest = |op: u64, events: u32| {
        let mut event = events.to_le_bytes().to_vec();
        event.extend([0; 8]);
        call("epoll_ctl", "epoll_ctl", &[5, op, 6, 1], 0).input(3, &event).toll(600)
    };
    // Redis' client changes an interest from reading to writing and back, with no interest in
    // between: one call could change it, but nothing is undone.
    let wish = |_| vec![interest(2, 0), interest(1, 4), interest(2, 0), interest(1, 1), interest(3, 1)];
    let judgement = judged(&rounds(5_000, wish), BUSY);
    assert!(judgement.also.iter().any(|f| f.kind == Kind::SlowPath), "{judgement:#?}");
    assert!(!judgement.findings.iter().any(|f| f.kind == Kind::Toggle), "{judgement:#?}");
    no_finding(&rounds(5_000, |n| vec![interest(3, 1 + n as u32 % 2), interest(3, 4)]), BUSY);
    let churn = |_| vec![interest(1, 1), interest(2, 0)];
    assert_eq!(only(judged(&rounds(5_000, churn), BUSY)).kind, Kind::Toggle);
}

// Tests of the thresholds.

#[test]
fn a_finding_needs_calls_share_and_price() {
    let same = |n| rounds(n, |_| vec![call("getpid", "getpid", &[], 7)]);
    // The calls cost 0.6 ms, 19 % of the processor time: enough, since there are 5,000 of them.
    only(judged(&same(5_000), 2_500_000));
    // The same calls at 0.6 % are too cheap for a finding. As they are all the calls that there are, a remark tells them.
    let cheap = judged(&same(5_000), 100_000_000);
    assert_eq!((cheap.findings.len(), cheap.also.len()), (0, 1));
    let beside = |n: u64| (n < 450).then(|| call("getpid", "getpid", &[], 7));
    silent(
        &rounds(5_000, |n| {
            beside(n).into_iter().chain([call("unlink", "unlink", &[1], 0).path(0, &format!("/srv/{n}"))]).collect()
        }),
        100_000_000,
    );
    // 2.4 ms at 1.2 % are enough.
    only(judged(&same(20_000), 200_000_000));
    // In a short run of a tiny program, the share of a few hundred equal calls counts.
    only(judged(&same(300), 200_000));
    silent(&same(90), 20_000);
    silent(&same(300), 2_000_000);
}

#[test]
fn a_row_that_is_mostly_of_use_is_no_finding() {
    let set = |mask: u64| call("rt_sigprocmask", "sigprocmask", &[2, 1, 0, 8], 0).input(1, &(mask << 12).to_le_bytes());
    // One set in five sets the value that is set already.
    let trace = rounds(20_000, |i| vec![set(i - u64::from(i % 5 == 4))]);
    no_finding(&trace, BUSY);
    // Files that are asked about too rarely to be judged by themselves make no finding either.
    let different = rounds(20_000, |i| vec![stat(&format!("/data/{}", i - i % 2), "stat", 1 + i % 2, 0)]);
    no_finding(&different, BUSY);
}

#[test]
fn one_program_one_system_call_one_finding() {
    let trace = rounds(10_000, |_| vec![call("getpid", "log:getpid", &[], 7), call("getpid", "trace:getpid", &[], 7)]);
    let f = only(judged(&trace, BUSY));
    assert_eq!((f.rows.len(), f.calls), (2, 20_000));
}

/// A finding names the option and the file as far as its calls agree.
#[test]
fn findings_say_what_they_are_about() {
    let socket =
        |n: u64| if n.is_multiple_of(2) { "TCP:[127.0.0.1:1->127.0.0.1:2]" } else { "TCP:[127.0.0.1:1->127.0.0.1:3]" };
    let nodelay = rounds(2000, |n| {
        vec![call("setsockopt", "setsockopt", &[5 + n % 2, 6, 1, 1, 4], 0).input(3, &1u32.to_le_bytes()).fd(socket(n))]
    });
    assert_eq!(only(judged(&nodelay, 10_000)).what.as_deref(), Some("SOL_TCP, TCP_NODELAY on TCP sockets"));
    let size = rounds(2000, |_| {
        vec![call("ioctl", "isatty", &[1, 0x5413, 1], 0).output(2, &[80, 0, 25, 0, 0, 0, 0, 0]).fd("/dev/pts/0")]
    });
    assert_eq!(only(judged(&size, 10_000)).what.as_deref(), Some("TIOCGWINSZ on /dev/pts/0"));
    let toggle = rounds(2000, |_| vec![sigmask("lock", 0, Some(1 << 1), Some(0)), sigmask("lock", 2, Some(0), None)]);
    let what = only(judged(&toggle, 10_000)).what.unwrap_or_default();
    assert!(what.contains("SIG_BLOCK, [INT]") && what.contains("SIG_SETMASK, []"), "{what}");
}
