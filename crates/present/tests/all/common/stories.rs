//! The stories of screens.md as recordings. They have the problems that systoll exists to find.

use super::{Builder, counts, cure, failing, finding};
use systoll_judge::{Confidence, Judgement, Kind};
use systoll_model::{BackendKind, Counts, Exit, FrameClass, Phase, Problem, ProblemKind, Recording, RowId};

use FrameClass::{Loader, User};

/// Returns the story of Ruby 1.8, which saves its frames with getcontext: 20 million rt_sigprocmask
/// that change nothing.
pub fn ruby() -> (Recording, Judgement) {
    let mut b = Builder::new(&["ruby", "test.rb"]).times(6_150.0, 6_120.0);
    let exe = "/usr/local/bin/ruby";
    let frames = [("rb_yield_0", "eval.c:5081"), ("rb_yield", "eval.c:5189"), ("int_dotimes", "numeric.c:2964")]
        .map(|(function, place)| b.frame(exe, User, function, &format!("/src/ruby-1.8.7/{place}")));
    let row = b.row("rt_sigprocmask", Some("getcontext"), &frames, counts(20_033_022, 1_950_000_000));
    b.rec.rows[0].counts.waited_ns = Some(0);
    for (syscall, calls, toll) in [("mmap", 70, 400_000), ("openat", 41, 200_000), ("read", 40, 100_000)] {
        let row = b.plain(syscall, calls, toll);
        b.rec.rows[row.0 as usize].counts.startup_calls = calls;
    }
    b.plain("write", 41, 200_000);
    let rec = b.build();
    let mut f = finding(&rec, Kind::NoOp, Some("sigmask-context"), &[row]);
    f.why = "glibc's getcontext asks the kernel for the signal mask each time; \
             in 24 of 24 windows it had not changed"
        .into();
    f.cures = vec![
        cure(
            "save frames with _setjmp/_longjmp (Ruby 1.8: configure without --enable-pthread)",
            "a context no longer carries its signal mask",
        ),
        cure("preload a getcontext that leaves the mask alone", ""),
    ];
    f.prove = words("systoll prove --cure sigmask-context -- ruby test.rb");
    (rec, Judgement { findings: vec![f], also: vec![], ..Judgement::default() })
}

/// Returns the story of liblttng-ust before main: membarrier GLOBAL waits for every processor.
pub fn lttng() -> (Recording, Judgement) {
    let mut b = Builder::new(&["./app"]).times(241.0, 4.0);
    let ust = "/usr/lib/x86_64-linux-gnu/liblttng-ust.so.0";
    let frames = ["synchronize_rcu_bp", "lttng_probe_register", "__lttng_events_init__lttng_ust_lib"]
        .map(|function| b.frame(ust, User, function, ""));
    let loader = b.frame("/usr/lib64/ld-linux-x86-64.so.2", Loader, "call_init", "");
    let frames: Vec<_> = frames.into_iter().chain([loader]).collect();
    let waits = Counts {
        waited_ns: Some(166_000_000),
        elapsed_ns: 166_010_000,
        startup_calls: 14,
        startup_waited_ns: 166_000_000,
        ..counts(14, 10_000)
    };
    let membarrier = b.row("membarrier", None, &frames, waits);
    let recvmsg = b.row("recvmsg", Some("recvmsg"), &frames[1..2], counts(4, 9_000));
    b.rec.rows[recvmsg.0 as usize].counts.waited_ns = Some(2_300_000);
    b.plain("mmap", 4_315, 430_000);
    b.long_call(membarrier, 16.1, 5.0, true);
    b.long_call(membarrier, 12.4, 23.0, true);
    b.long_call(recvmsg, 2.4, 2.0, true);
    b.long_call(recvmsg, 0.4, 3.0, true);
    let rec = b.build();
    let mut f = finding(&rec, Kind::Blocking, Some("membarrier-global"), &[membarrier]);
    f.waited_ns = Some(166_000_000);
    f.share_of_cpu = None;
    f.share_of_wall = Some(0.69);
    f.phase = Phase::StartUp;
    f.why = "MEMBARRIER_CMD_GLOBAL waits until every CPU has been through the scheduler".into();
    f.cures = vec![cure("liburcu 0.11 or newer (PRIVATE_EXPEDITED, Linux 4.14)", "")];
    f.prove = words("systoll explain membarrier-global");
    (rec, Judgement { findings: vec![f], also: vec![], ..Judgement::default() })
}

/// Returns the story of a loop of localtime under ptrace: estimated, from two places, with remarks.
pub fn localtime() -> (Recording, Judgement) {
    let mut b = Builder::new(&["./app", "--days", "two words"]).times(14_200.0, 1_180.0).by_ptrace();
    // The measured time includes the time of the tracer's stops.
    (b.rec.header.user_ns, b.rec.header.sys_ns) = (1_600_000_000, 3_700_000_000);
    let main = b.frame("/home/me/app", User, "main", "app.c:30");
    let start = b.frame("/usr/lib/libc.so.6", FrameClass::Libc, "__libc_start_call_main", "");
    let stamp = b.frame("/home/me/app", User, "stamp", "log.c:12");
    let other = b.frame("/home/me/app", User, "rotate", "log.c:80");
    let sick = b.row("newfstatat", Some("localtime"), &[stamp, main, start], counts(899_999, 1_000_000_000));
    let less = b.row("newfstatat", Some("mktime"), &[other, main, start], counts(100_000, 110_000_000));
    let seek = b.row("lseek", Some("ftell"), &[other, main, start], counts(4_000, 400_000));
    let open = failing(counts(120, 180_000), "ENOENT", 100);
    b.row("openat", Some("fopen"), &[other, main, start], open);
    b.rec.problems.push(Problem::new(ProblemKind::Name, "no source lines for libfoo.so.1: install its debug file"));
    let rec = b.build();
    let mut f = finding(&rec, Kind::Repeat, Some("tz-unset"), &[sick, less]);
    f.what = Some("/etc/localtime".into());
    f.why = "localtime looks at /etc/localtime on each call while TZ is unset; \
             in 38 of 38 windows the answer was the same"
        .into();
    f.cures = vec![
        cure("export TZ=:/etc/localtime", "a changed /etc/localtime is seen only after a restart"),
        cure("localtime_r, which does not look", ""),
    ];
    f.prove = words("systoll prove --cure tz-unset -- ./app --days");
    f.prove.push("two words".into());
    let mut also = finding(&rec, Kind::Repeat, None, &[seek]);
    also.confidence = Confidence::Low;
    (rec, Judgement { findings: vec![f], also: vec![also], ..Judgement::default() })
}

/// Returns the story of wc reading a file, in which there is nothing to find.
pub fn healthy() -> (Recording, Judgement) {
    let mut b = Builder::new(&["wc", "-l", "/usr/share/dict/words"]).times(3.0, 2.0).by_ptrace();
    let count = b.frame("/usr/bin/wc", User, "wc_lines", "src/wc.c:274");
    b.row("read", Some("read"), &[count], counts(62, 60_000));
    b.plain("mmap", 20, 14_000);
    b.plain("openat", 11, 13_000);
    b.rec.header.sys_ns = 1_400_000;
    (b.build(), Judgement::default())
}

/// Returns a recording with every problem that a recording can have.
pub fn troubled() -> (Recording, Judgement) {
    let mut b = Builder::new(&["./x\u{1b}[31m", "a\nb"]).times(500.0, 0.0);
    b.rec.header.backend = BackendKind::Inproc;
    b.rec.header.exit = Some(Exit::Signal(11));
    b.rec.header.lost = 1_200;
    b.rec.header.threads = 0;
    b.rec.prices.crossing_after.min = 145.0;
    let frame = b.frame("/tmp/\u{1b}]0;owned\u{7}.so", User, "evil\u{202e}\u{1b}[2J", "/tmp/x\r.c:1");
    let unknown = Counts { calls: 1_000, toll_ns: None, ..Counts::default() };
    let row = b.row("getpid", Some("get\u{9b}pid"), &[frame], unknown);
    for (kind, text) in [
        (ProblemKind::Lost, "1,200 calls were made by threads that started before bpf was attached"),
        (ProblemKind::Unwatched, "/usr/bin/sudo is set-uid: it ran unwatched"),
        (ProblemKind::Name, "\u{1b}[1mno file for /tmp/gone.so"),
    ] {
        b.rec.problems.push(Problem::new(kind, text));
    }
    let rec = b.build();
    let mut f = finding(&rec, Kind::Repeat, None, &[row]);
    f.what = Some("\u{1b}[5mblink".into());
    f.share_of_cpu = Some(f64::NAN);
    f.share_of_calls = f64::INFINITY;
    f.why = "line one\nline two \u{1b}[0m".into();
    f.prove = words("systoll run --");
    f.prove.push("a\u{1b}b".into());
    (rec, Judgement { findings: vec![f], also: vec![], ..Judgement::default() })
}

/// Returns the recording of a run in which nothing ran.
pub fn empty() -> (Recording, Judgement) {
    let rec = Recording::default();
    (rec, Judgement::default())
}

/// Returns every story by name.
pub fn all() -> Vec<(&'static str, Recording, Judgement)> {
    [("ruby", ruby()), ("lttng", lttng()), ("localtime", localtime()), ("healthy", healthy())]
        .into_iter()
        .chain([("troubled", troubled()), ("empty", empty())])
        .map(|(name, (rec, judgement))| (name, rec, judgement))
        .collect()
}

/// Returns a judgement with `n` findings about the same row.
pub fn many(n: usize) -> (Recording, Judgement) {
    let (rec, judgement) = ruby();
    let mut f = judgement.findings[0].clone();
    f.rows = vec![RowId(0)];
    (rec, Judgement { findings: vec![f; n], also: vec![], ..Judgement::default() })
}

fn words(line: &str) -> Vec<String> {
    line.split(' ').map(str::to_owned).collect()
}
