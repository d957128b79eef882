//! For any recording with valid handles the judge returns, and its figures are consistent.

use proptest::prelude::*;
use std::sync::Arc;
use systoll_judge::{Catalogue, Options, judge};
use systoll_model::*;

fn sysno() -> impl Strategy<Value = Sysno> {
    prop_oneof![
        prop::sample::select(vec![
            "newfstatat",
            "rt_sigprocmask",
            "getpid",
            "readlink",
            "openat",
            "close",
            "dup2",
            "lseek",
            "read",
            "write",
            "mmap",
            "munmap",
            "mprotect",
            "epoll_ctl",
            "fcntl",
            "setsockopt",
            "clock_gettime",
            "membarrier",
            "clone",
            "statx",
            "chdir",
            "getcwd",
            "rt_sigaction",
            "prlimit64",
            "umask",
            "rename",
            "brk",
            "flock",
            "fsync",
        ])
        .prop_map(|n| Sysno::from_name(n).unwrap()),
        (0u32..600).prop_map(Sysno),
        any::<u32>().prop_map(Sysno),
    ]
}

fn number() -> impl Strategy<Value = u64> {
    prop_oneof![0u64..8, any::<u64>(), Just(u64::MAX), Just(0x7fff_ffff_ffff_f000), Just((-100i64) as u64)]
}

fn data() -> impl Strategy<Value = ArgData> {
    let bytes = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..150),
        Just(b"/etc/localtime".to_vec()),
        Just(vec![0; 8]),
        Just(vec![3; 144]),
    ];
    (0u8..8, any::<bool>(), bytes, any::<bool>()).prop_map(|(arg, entry, bytes, cut)| {
        let at = if entry { Moment::Entry } else { Moment::Exit };
        ArgData { arg, at, bytes, cut }
    })
}

const ROWS: u32 = 6;

fn window_call() -> impl Strategy<Value = WindowCall> {
    let place = (0..ROWS, number(), prop::array::uniform6(number()), prop::collection::vec(data(), 0..4));
    let outcome =
        (prop::option::of(prop_oneof![-40i64..40, any::<i64>()]), number(), prop::option::of(number()), 0u32..3);
    let fd = prop::option::of(prop::sample::select(vec!["/etc/localtime", "socket:[1]", "/", ""]));
    (place, outcome, fd).prop_map(|((row, nth, args, data), (result, ns, waited_ns, signals_before), fd)| WindowCall {
        row: RowId(row),
        nth,
        args,
        data,
        fd: fd.map(Arc::from),
        result,
        entry_ns: ns,
        elapsed_ns: ns,
        waited_ns,
        signals_before,
        faults: (nth % 3 != 0).then_some(ns),
        stack: None,
        before: systoll_model::Before::Unknown,
        request: None,
    })
}

fn row() -> impl Strategy<Value = Row> {
    let figures = (number(), prop::option::of(number()), prop::option::of(number()), number(), number(), number());
    let api = prop::option::of(prop::sample::select(vec!["localtime", "swapcontext", "syscall", "longjmp"]));
    (sysno(), 0u32..2, api, figures).prop_map(
        |(syscall, process, api, (calls, toll_ns, waited_ns, elapsed_ns, s, w))| Row {
            context: StackId(1),
            api: api.map(Arc::from),
            user: Some(FrameId(0)),
            ..Row::new(
                ProcessId(process),
                syscall,
                Counts {
                    calls,
                    toll_ns,
                    waited_ns,
                    elapsed_ns,
                    max_ns: elapsed_ns,
                    startup_calls: s,
                    startup_waited_ns: w,
                    histogram: Histogram::from_buckets(vec![w; (s % 70) as usize]),
                    ..Counts::default()
                },
            )
        },
    )
}

prop_compose! {
    fn any_recording()(
        rows in prop::collection::vec(row(), ROWS as usize),
        windows in prop::collection::vec((0u32..2, 0u32..3, 0..ROWS, any::<u8>(), prop::collection::vec(window_call(), 1..40)), 0..12),
        longest in prop::collection::vec((0..ROWS, number(), any::<bool>()), 0..6),
        cpu in number(), wall in number(), startup in number(),
        price in prop_oneof![Just(0.0), Just(-1.0), Just(f64::NAN), Just(f64::INFINITY), Just(97.0)],
        main in prop::option::of(number()), class in prop::sample::select(vec![FrameClass::Vdso, FrameClass::Loader, FrameClass::Libc]),
    ) -> Recording {
        let location = Location { function: "f".into(), file: None, line: None };
        let process = Process { exe: "/bin/x".into(), main_at_ns: main, startup_cpu_ns: startup, ..Process::default() };
        let mut recording = Recording {
            processes: vec![process.clone(), process],
            frames: vec![Frame { class, locations: vec![location], ..Frame::default() }],
            stacks: vec![Stack::default(), Stack { frames: vec![FrameId(0)], complete: true }],
            rows,
            windows: windows.into_iter().map(|(process, thread, row, octave, calls)| Window {
                process: ProcessId(process), thread, row: RowId(row), octave, calls,
            }).collect(),
            longest: longest.into_iter().map(|(row, ns, startup)| LongCall {
                row: RowId(row), ns, at_ns: 0, thread: "t".into(), startup,
            }).collect(),
            ..Recording::default()
        };
        recording.header.own_cpu_ns = Some(cpu).filter(|ns| ns % 5 > 0);
        recording.header.wall_ns = wall;
        recording.header.observer_wall_ns_per_call = price;
        recording.prices.crossing_before.min = price;
        recording
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, max_shrink_iters: 10_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn judging_returns_and_makes_sense(recording in any_recording()) {
        prop_assert_eq!(recording.check(), Ok(()));
        // All thresholds are zero, so that every claim is reported.
        let all = Options { min_calls: 0, min_price: 0.0, min_ns: 0, low_calls: 0, low_ns: 0, min_agreeing: 0, min_windows: 0,
            min_octaves: 0, min_low_share: 0.0, min_row_share: 0.0, min_agreeing_waits: 0, min_waits: 0, ..Options::default() };
        for options in [Options::default(), all] {
            let judgement = judge(&recording, &Catalogue::builtin(), &options);
            // As text, in which a price that is no number equals itself.
            let again = judge(&recording, &Catalogue::builtin(), &options);
            prop_assert_eq!(format!("{judgement:?}"), format!("{again:?}"));
            for f in judgement.findings.iter().chain(&judgement.also) {
                prop_assert!(f.needless.low <= f.needless.estimate && f.needless.estimate <= f.needless.high, "{:?}", f);
                prop_assert!(f.needless.high <= f.calls, "{:?}", f);
                prop_assert!(f.evidence.agree <= f.evidence.windows && f.evidence.claimed <= f.evidence.calls, "{:?}", f);
                for share in [f.share_of_cpu, f.share_of_wall, Some(f.share_of_calls)].into_iter().flatten() {
                    prop_assert!((0.0..=1.0).contains(&share), "{:?}", f);
                }
                prop_assert!(!f.rows.is_empty() && !f.why.is_empty() && !f.stop().is_empty() && !f.prove.is_empty(), "{:?}", f);
            }
        }
    }
}
