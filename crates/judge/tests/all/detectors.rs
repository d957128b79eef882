//! Tests of detectors: their claims, the changes that void a claim, and the neighbours that they leave alone.

use crate::common::*;

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
fn a_walk_down_a_path_is_claimed_only_where_its_end_was_asked_for() {
    let link = |path: &str| call("readlink", "realpath", &[1, 2, 100], -22).path(0, path).toll(560);
    let walk = |leaf: String| vec![link("/usr"), link("/usr/include"), link(&format!("/usr/include/{leaf}"))];
    silent(&rounds(10_000, |i| walk(i.to_string())), BUSY);
    only(judged(&rounds(10_000, |_| walk("stdio.h".into())), BUSY));
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

// Tests of sets that are undone.

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
    // In a short run of a tiny program, the share of a few thousand equal calls counts; 36 us are too little.
    only(judged(&same(2_200), 2_000_000));
    no_finding(&same(300), 200_000);
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
    let nodelay = rounds(2500, |n| {
        vec![call("setsockopt", "setsockopt", &[5 + n % 2, 6, 1, 1, 4], 0).input(3, &1u32.to_le_bytes()).fd(socket(n))]
    });
    assert_eq!(only(judged(&nodelay, 10_000)).what.as_deref(), Some("SOL_TCP, TCP_NODELAY on TCP sockets"));
    let size = rounds(2500, |_| {
        vec![call("ioctl", "isatty", &[1, 0x5413, 1], 0).output(2, &[80, 0, 25, 0, 0, 0, 0, 0]).fd("/dev/pts/0")]
    });
    assert_eq!(only(judged(&size, 10_000)).what.as_deref(), Some("TIOCGWINSZ on /dev/pts/0"));
    let toggle = rounds(2500, |_| vec![sigmask("lock", 0, Some(1 << 1), Some(0)), sigmask("lock", 2, Some(0), None)]);
    let what = only(judged(&toggle, 10_000)).what.unwrap_or_default();
    assert!(what.contains("SIG_BLOCK, [INT]") && what.contains("SIG_SETMASK, []"), "{what}");
}
