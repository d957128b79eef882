//! Tests of rounds: sequences that threads repeat are reported with their calls in order, the properties that vary,
//! and exact counts.

use crate::common::{CWD, Call, call, judged, recording, rounds};
use proptest::prelude::*;
use systoll_judge::{Catalogue, Judgement, Numbers, Options, Round, RoundCall, RoundStep, judge};
use systoll_model::{FrameId, Process, ProcessId, Recording, Row, RowId, Stack, StackId, Window, WindowCall};

/// Returns a round's calls: `openat`, `read x2-5`, `close 40 %`; a sequence that is repeated stands in brackets.
fn shape(round: &Round) -> Vec<String> {
    let call = |c: &RoundCall| {
        let times = match (c.times.least, c.times.most) {
            (1, 1) => String::new(),
            (a, b) if a == b => format!(" x{a}"),
            (a, b) => format!(" x{a}-{b}"),
        };
        let share = if c.share < 0.99 { format!(" {:.0} %", c.share * 100.0) } else { String::new() };
        format!("{}{times}{share}", c.syscall)
    };
    let step = |step: &RoundStep| match step {
        RoundStep::Call(c) => call(c),
        RoundStep::Inner { calls, times } => {
            format!("{}-{}[{}]", times.least, times.most, calls.iter().map(call).collect::<Vec<_>>().join(" "))
        }
    };
    round.steps.iter().map(step).collect()
}

fn only(judgement: &Judgement) -> &Round {
    assert_eq!(judgement.rounds.len(), 1, "{:#?}", judgement.rounds);
    &judgement.rounds[0]
}

/// Returns a random number for each round (splitmix64).
fn drawn(i: u64) -> u64 {
    let mut n = i.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    n = (n ^ n >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    n = (n ^ n >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    (n ^ n >> 31) >> 8
}

fn open(path: &str) -> Call {
    call("openat", "load:open", &[CWD, 1, 0, 0], 3).path(1, path).toll(900)
}

/// Returns the calls that open, map, read and close a file, another one each time.
fn segment(path: &str) -> Vec<Call> {
    vec![
        open(path),
        call("fstat", "load:fstat", &[3, 1], 0).toll(150),
        call("mmap", "load:mmap", &[0, 0x8_0000, 1, 2, 3, 0], 0x7f00_0000_0000).toll(700),
        call("munmap", "load:munmap", &[0x7f00_0000_0000, 0x8_0000], 0).toll(800),
        call("close", "load:close", &[3], 0).toll(120),
    ]
}

#[test]
fn a_rotation_among_four_files_is_one_round() {
    let judgement = judged(&rounds(4_000, |i| segment(&format!("/srv/segment{}", i % 4))), 2_000_000);
    let round = only(&judgement);
    assert_eq!(shape(round), ["openat", "fstat", "mmap", "munmap", "close"]);
    assert_eq!((round.count.estimate, round.count.low, round.count.high), (4_000, 4_000, 4_000));
    assert_eq!((round.calls, round.toll_ns), (20_000, 4_000 * 2_670));
    let of = |at: usize| &round.steps[at].calls()[0];
    let files = of(0).object.as_ref().unwrap();
    assert_eq!((files.pattern.as_str(), files.variety.different), ("/srv/segment?", 4));
    assert_eq!((of(2).size, of(3).size), (Some(Numbers::Same(0x8_0000)), Some(Numbers::Same(0x8_0000))));
    assert!(round.looked_at >= 10 && round.agree == round.looked_at, "{round:?}");
    assert!(round.share_of_cpu.unwrap() > 0.8);
}

#[test]
fn what_grows_step_by_step_is_told_so() {
    let round = |i: u64| {
        let size = 4096 * (i + 1);
        let grow = call("ftruncate", "store:ftruncate", &[3, size], 0).fd("/srv/blob").toll(900);
        vec![grow, call("pwrite64", "store:pwrite", &[3, 1, 4096, 4096 * i], 4096).fd("/srv/blob").toll(700)]
    };
    let judgement = judged(&rounds(6_000, round), 5_000_000);
    let round = only(&judgement);
    assert_eq!((shape(round).join(" "), round.count.low), ("ftruncate pwrite64".to_owned(), 6_000));
    let (grow, write) = (&round.steps[0].calls()[0], &round.steps[1].calls()[0]);
    assert_eq!(
        (grow.size, write.size, write.offset),
        (Some(Numbers::Steps(4096)), Some(Numbers::Same(4096)), Some(Numbers::Steps(4096)))
    );
    assert_eq!(grow.object.as_ref().unwrap().pattern, "/srv/blob");
}

#[test]
fn a_call_that_some_rounds_have_is_told_with_its_share() {
    let round = |i: u64| {
        let mut calls = vec![
            call("epoll_wait", "serve:epoll_wait", &[5, 1, 64, u64::MAX], 1).toll(400),
            call("recvfrom", "serve:recv", &[7, 1, 4096, 0, 0, 0], 60).toll(600),
        ];
        if drawn(i).is_multiple_of(4) {
            calls.push(call("write", "serve:log", &[2, 1, 80], 80).toll(500));
        }
        calls.push(call("sendto", "serve:send", &[7, 1, 300, 0, 0, 0], 300).toll(2_000));
        calls
    };
    let trace = rounds(8_000, round);
    let written = trace.iter().filter(|c| c.name == "write").count() as f64 / 8_000.0;
    let judgement = judged(&trace, 10_000_000);
    let round = only(&judgement);
    let share = format!("write {:.0} %", written * 100.0);
    assert_eq!(shape(round), ["epoll_wait", "recvfrom", share.as_str(), "sendto"]);
    assert_eq!(round.count.low, 8_000);
}

#[test]
fn two_interleaved_habits_are_two_rounds() {
    let round = |i: u64| {
        if drawn(i).is_multiple_of(2) {
            vec![
                call("lseek", "index:lseek", &[4, 64 * (i % 900), 0], 0).toll(800),
                call("read", "index:read", &[4, 1, 64], 64).toll(900),
            ]
        } else {
            vec![
                call("sendto", "tell:send", &[7, 1, 300, 0, 0, 0], 300).toll(1_000),
                call("recvfrom", "tell:recv", &[7, 1, 300, 0, 0, 0], 30).toll(900),
            ]
        }
    };
    let trace = rounds(9_000, round);
    let judgement = judged(&trace, 10_000_000);
    let mut shapes: Vec<String> = judgement.rounds.iter().map(|r| shape(r).join(" ")).collect();
    shapes.sort();
    assert_eq!(shapes, ["lseek read", "sendto recvfrom"], "{:#?}", judgement.rounds);
    let counted: u64 = judgement.rounds.iter().map(|r| r.count.low).sum();
    assert_eq!(counted, 9_000);
}

#[test]
fn a_loop_within_a_round_is_told_within_it() {
    let round = |i: u64| {
        let mut calls = vec![open(&format!("/srv/{i}.log"))];
        calls.extend((0..3 + i % 3).map(|_| call("read", "load:read", &[3, 1, 4096], 4096).toll(700)));
        calls.push(call("close", "load:close", &[3], 0).toll(120));
        calls
    };
    let judgement = judged(&rounds(3_000, round), 3_000_000);
    let found = only(&judgement);
    assert_eq!(shape(found), ["openat", "read x3-5", "close"]);
    let RoundStep::Call(read) = &found.steps[1] else { panic!("{found:?}") };
    assert!((read.times.mean - 4.0).abs() < 0.01, "{read:?}");
    assert_eq!(found.calls, 3_000 * 6);
    // A pair of calls is made four times in each round.
    let pairs = |i: u64| {
        let mut calls = vec![open(&format!("/srv/{i}.log"))];
        for _ in 0..4 {
            calls.push(call("lseek", "load:lseek", &[3, 64 * i, 0], 0).toll(700));
            calls.push(call("read", "load:read", &[3, 1, 4096], 4096).toll(700));
        }
        calls.push(call("close", "load:close", &[3], 0).toll(120));
        calls
    };
    let judgement = judged(&rounds(3_000, pairs), 3_000_000);
    assert_eq!(shape(only(&judgement)), ["openat", "4-4[lseek read]", "close"]);
}

#[test]
fn a_loop_longer_than_a_window_is_put_together_of_two() {
    let round = |i: u64| {
        let mut calls = vec![open(&format!("/srv/{i}.log"))];
        calls.extend((0..100).map(|_| call("read", "load:read", &[3, 1, 4096], 4096).toll(700)));
        calls.push(call("close", "load:close", &[3], 0).toll(120));
        calls
    };
    let judgement = judged(&rounds(600, round), 3_000_000);
    let found = &judgement.rounds[0];
    assert_eq!(found.steps.len(), 3, "{:?}", shape(found));
    let RoundStep::Call(read) = &found.steps[1] else { panic!("{found:?}") };
    assert!((read.times.mean - 100.0).abs() < 0.01, "{read:?}");
    assert_eq!((found.count.low, found.calls), (600, 600 * 102));
}

#[test]
fn threads_that_do_the_same_share_a_round() {
    let round = |i: u64| {
        let mut calls = segment(&format!("/srv/segment{}", i % 4));
        calls.iter_mut().for_each(|c| c.thread = (i / 50 % 4) as u32);
        calls
    };
    let calls = rounds(4_000, round);
    let judgement = judged(&calls, 2_000_000);
    let found = only(&judgement);
    assert_eq!((found.count.low, found.processes(&recording(&calls, 2_000_000))), (4_000, 1));
    assert!(found.threads > 1, "{found:?}");
}

/// Returns the recording of a process with the calls `parent` and of one that it forks, with the calls `child`, of the
/// same functions.
fn forked(parent: &[Call], child: &[Call]) -> Recording {
    let (mut all, one) = (recording(parent, 2_000_000), recording(child, 2_000_000));
    let (rows, stacks) = (all.rows.len() as u32, all.stacks.len() as u32);
    let function = |rec: &Recording, frame: FrameId| rec.frame(frame).function().to_owned();
    let frames: Vec<FrameId> = (0..one.frames.len() as u32)
        .map(FrameId)
        .map(|frame| {
            let name = function(&one, frame);
            let same = (0..all.frames.len() as u32).map(FrameId).find(|of| function(&all, *of) == name);
            same.unwrap_or_else(|| {
                all.frames.push(one.frame(frame).clone());
                FrameId(all.frames.len() as u32 - 1)
            })
        })
        .collect();
    let parent = Some(ProcessId(0));
    all.processes.push(Process { pid: 2, parent, ..one.processes[0].clone() });
    all.stacks.extend(one.stacks.iter().map(|stack| Stack {
        frames: stack.frames.iter().map(|frame| frames[frame.0 as usize]).collect(),
        ..stack.clone()
    }));
    all.rows.extend(one.rows.iter().map(|row| Row {
        process: ProcessId(1),
        context: StackId(row.context.0 + stacks),
        user: row.user.map(|user| frames[user.0 as usize]),
        ..row.clone()
    }));
    let moved = |call: &WindowCall| WindowCall { row: RowId(call.row.0 + rows), ..call.clone() };
    all.windows.extend(one.windows.iter().map(|window| Window {
        process: ProcessId(1),
        row: RowId(window.row.0 + rows),
        calls: window.calls.iter().map(moved).collect(),
        ..window.clone()
    }));
    assert_eq!(all.check(), Ok(()));
    all
}

#[test]
fn a_process_and_those_that_it_forks_have_rounds_of_their_own() {
    let close = || call("close", "load:close", &[3], 0).toll(120);
    let parent = rounds(2_000, |i| segment(&format!("/srv/segment{}", i % 4)));
    let child = rounds(2_000, |i| {
        let status = call("newfstatat", "load:stat", &[CWD, 1, 2, 0], -2).path(1, "/srv/x").toll(900);
        vec![open(&format!("/srv/part{}", i % 8)), status, close()]
    });
    let of = |recording: &Recording| judge(recording, &Catalogue::builtin(), &Options::default());
    let others = forked(&parent, &child);
    let judgement = of(&others);
    let shapes: Vec<_> = judgement.rounds.iter().map(shape).collect();
    assert_eq!(shapes.len(), 2, "{shapes:?}");
    assert!(shapes.concat().iter().all(|call| !call.contains('%')), "{shapes:?}");
    assert!(
        judgement.rounds.iter().all(|round| round.processes(&others) == 1 && round.count.estimate == 2_000),
        "{shapes:?}"
    );
    // Processes that do the same share a round.
    let alike = forked(&parent, &parent);
    let judgement = of(&alike);
    let found = only(&judgement);
    assert_eq!((found.count.low, found.processes(&alike)), (4_000, 2));
}

#[test]
fn reads_of_what_was_read_before_did_not_move_other_data() {
    let read_line = |back: u64| {
        move |i: u64| {
            let mut read = call("read", "lines:read", &[3, 1, 4096], 4096).fd("/srv/list").toll(900);
            read.outs.push((1, i.to_le_bytes().to_vec()));
            let at = (i + 1) * (4096 - back);
            vec![read, call("lseek", "lines:lseek", &[3, 0, 1], at as i64).fd("/srv/list").toll(200)]
        }
    };
    let data = |back| {
        let judgement = judged(&rounds(4_000, read_line(back)), 2_000_000);
        let calls = only(&judgement).steps.iter().flat_map(RoundStep::calls);
        let of: Vec<bool> = calls.filter(|c| c.syscall.name() == Some("read")).map(|c| c.data.is_some()).collect();
        of
    };
    assert_eq!((data(0), data(4_056)), (vec![true], vec![false]));
}

#[test]
fn what_findings_claim_of_a_round_is_told_with_it() {
    let round = |i: u64| {
        vec![
            crate::common::stat("/etc/localtime", "localtime", 1, i),
            call("write", "log:write", &[1, 1, 60], 60).toll(300),
        ]
    };
    let judgement = judged(&rounds(5_000, round), 2_000_000);
    assert!(!judgement.findings.is_empty());
    let found = only(&judgement);
    assert!(found.claimed.calls > 4_900 && found.claimed.toll_ns > found.toll_ns / 2, "{found:?}");
    assert!(!found.is_of_rest, "the finding says most of it");
}

#[test]
fn rounds_are_shown_where_findings_say_little_and_calls_take_much() {
    let round = |i: u64| {
        let path = format!("/srv/{i}.log");
        vec![
            open(&path),
            call("read", "load:read", &[3, 1, 4096], 4096).toll(700),
            call("close", "load:close", &[3], 0),
        ]
    };
    let trace = rounds(5_000, round);
    let dear = judged(&trace, 5_000_000);
    assert!(dear.findings.is_empty());
    assert!(only(&dear).is_of_rest);
    // The calls take a twentieth of its time.
    let cheap = judged(&trace, 180_000_000);
    assert!(cheap.rounds.iter().all(|round| !round.is_of_rest), "{:#?}", cheap.rounds);
    // Sixty rounds are not worth a line.
    let few = judged(&trace[..180], 1_000);
    assert!(few.rounds.iter().all(|round| !round.is_of_rest), "{:#?}", few.rounds);
    assert_eq!(few.rounds.len(), 1);
}

#[test]
fn waiting_counts_where_one_thread_is_all_there_is() {
    let round = |_| {
        let ask = call("sendto", "ask:send", &[7, 1, 300, 0, 0, 0], 300).toll(1_000);
        vec![ask, call("recvfrom", "ask:recv", &[7, 1, 300, 0, 0, 0], 30).toll(900).waited(200_000)]
    };
    let trace = rounds(2_000, round);
    let judgement = judged(&trace, 500_000_000);
    let found = only(&judgement);
    assert!(found.is_of_rest && found.share_of_wall.unwrap() > 0.3, "{found:?}");
    let mut several = recording(&trace, 500_000_000);
    several.header.threads = 4;
    let judgement = judge(&several, &Catalogue::builtin(), &Options::default());
    assert!(judgement.rounds.iter().all(|round| round.share_of_wall.is_none() && !round.is_of_rest));
}

/// Returns the calls of threads, which run in turns of random length; each round of a thread is a list of calls.
fn in_threads(mut threads: Vec<Vec<Call>>) -> Vec<Call> {
    for (thread, calls) in (0u32..).zip(&mut threads) {
        calls.iter_mut().for_each(|call| call.thread = thread);
        calls.reverse();
    }
    let mut all = Vec::new();
    for turn in 0.. {
        threads.retain(|calls| !calls.is_empty());
        let Some(at) = drawn(turn).checked_rem(threads.len() as u64) else { break };
        let calls = &mut threads[at as usize];
        let rest = calls.len().saturating_sub(1 + drawn(turn) as usize / 7 % 9);
        all.extend(calls.split_off(rest).into_iter().rev());
    }
    all
}

/// Returns the names of a round's calls.
fn names(round: &Round) -> Vec<&str> {
    round.steps.iter().flat_map(RoundStep::calls).filter_map(|call| call.syscall.name()).collect()
}

fn lock() -> Call {
    call("futex", "lock:futex", &[0x7000, 129, 1], 1).toll(500)
}

#[test]
fn the_threads_of_a_pool_make_one_round() {
    let task = |i: u64| {
        let mut calls = vec![lock(), call("read", "work:read", &[3, 1, 4096], 4096).toll(700)];
        // Some tasks write what they did.
        if drawn(i).is_multiple_of(3) {
            calls.push(call("write", "work:write", &[4, 1, 4096], 4096).toll(800));
        }
        calls
    };
    for threads in [2u64, 7, 60] {
        let of = |thread: u64| (0..4_000 / threads).flat_map(|i| task(i * threads + thread)).collect();
        let judgement = judged(&in_threads((0..threads).map(of).collect()), 2_000_000);
        let round = only(&judgement);
        let count = 4_000 / threads * threads;
        assert_eq!((names(round), round.count.low), (vec!["futex", "read", "write"], count), "{threads}");
        assert!(round.threads > 1, "{round:?}");
    }
}

#[test]
fn threads_that_share_only_a_lock_make_rounds_of_their_own() {
    let send = (0..3_000).flat_map(|_| vec![lock(), call("write", "put:write", &[4, 1, 99], 99).toll(800)]).collect();
    let take = (0..5_000).flat_map(|_| vec![call("read", "take:read", &[3, 1, 99], 99).toll(700), lock()]).collect();
    let judgement = judged(&in_threads(vec![send, take]), 2_000_000);
    let has = |round: &&Round, name| names(round).contains(&name);
    assert!(!judgement.rounds.iter().any(|round| has(&round, "read") && has(&round, "write")));
    for (name, count) in [("write", 3_000), ("read", 5_000)] {
        let round = judgement.rounds.iter().find(|round| has(round, name)).unwrap();
        assert_eq!((round.count.low, round.count.high, round.threads), (count, count, 1), "{name}");
        let locks = round.steps.iter().flat_map(RoundStep::calls).find(|c| c.syscall.name() == Some("futex"));
        let calls = locks.unwrap().calls;
        assert!(calls.abs_diff(count) < count / 5, "{name}: {calls}");
    }
}

#[test]
fn one_that_accepts_and_threads_that_live_for_one_request_make_rounds_of_their_own() {
    let accept = |_| {
        let accept = call("accept4", "serve:accept", &[3, 0, 0, 0], 5).toll(900);
        vec![lock(), accept, lock(), call("clone3", "serve:clone", &[1, 88], 77).toll(2_000)]
    };
    let request = vec![
        call("gettid", "start:gettid", &[], 77),
        lock(),
        call("recvfrom", "answer:recv", &[5, 1, 4096, 0, 0, 0], 90).toll(700),
        lock(),
        lock(),
        call("sendto", "answer:send", &[5, 1, 900, 0, 0, 0], 900).toll(1_500),
        lock(),
    ];
    let accepting = (0..900).flat_map(accept).collect();
    let threads = std::iter::once(accepting).chain((0..900).map(|_| request.clone())).collect();
    let judgement = judged(&in_threads(threads), 1_000_000);
    for round in &judgement.rounds {
        let names = names(round);
        let of = |all: [&str; 2]| names.iter().any(|name| all.contains(name));
        assert!(!(of(["accept4", "clone3"]) && of(["recvfrom", "sendto"])), "{names:?}");
    }
    let accepts = judgement.rounds.iter().find(|round| names(round).contains(&"accept4")).unwrap();
    assert_eq!((accepts.count.low, accepts.count.high), (900, 900), "{accepts:#?}");
}

/// Returns calls from a few places, in stretches that may repeat.
fn any_trace() -> impl Strategy<Value = Vec<usize>> {
    let piece = (prop::collection::vec(0usize..7, 1..12), 1u64..60);
    let of = |(calls, times): (Vec<usize>, u64)| (0..times).flat_map(|_| calls.clone()).collect::<Vec<_>>();
    prop::collection::vec(piece, 1..12).prop_map(move |pieces| pieces.into_iter().flat_map(of).collect())
}

/// The system calls and functions of the places.
const PLACES: [(&str, &str); 7] = [
    ("openat", "a:open"),
    ("read", "a:read"),
    ("close", "a:close"),
    ("fstat", "b:stat"),
    ("sendto", "b:send"),
    ("recvfrom", "c:recv"),
    ("futex", "c:wait"),
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn rounds_of_any_trace_have_no_call_twice(trace in any_trace()) {
        let place = |at: &usize| call(PLACES[*at].0, PLACES[*at].1, &[3, 1, 64], 64).toll(400);
        let recording = recording(&trace.iter().map(place).collect::<Vec<_>>(), 10_000);
        let judgement = judge(&recording, &Catalogue::builtin(), &Options::default());
        prop_assert!(judgement.rounds.len() <= 64);
        let mut of_rows = std::collections::HashMap::new();
        for round in &judgement.rounds {
            prop_assert!(round.count.low <= round.count.estimate && round.count.estimate <= round.count.high, "{round:?}");
            prop_assert!(round.agree <= round.looked_at && !round.steps.is_empty() && !round.rows.is_empty(), "{round:?}");
            prop_assert_eq!(round.calls, round.rows.iter().map(|row| row.calls).sum::<u64>());
            for share in [round.share_of_cpu, round.share_of_wall].into_iter().flatten() {
                prop_assert!((0.0..=1.0).contains(&share), "{round:?}");
            }
            for call in round.steps.iter().flat_map(RoundStep::calls) {
                prop_assert!((0.0..=1.0).contains(&call.share) && call.times.mean >= 0.99, "{call:?}");
                prop_assert!(call.times.least <= call.times.most, "{call:?}");
            }
            for row in &round.rows {
                *of_rows.entry(row.row).or_insert(0u64) += row.calls;
            }
        }
        // Each share of a row is rounded by itself.
        for (row, calls) in of_rows {
            let all = recording.row(row).counts.calls;
            prop_assert!(calls <= all + judgement.rounds.len() as u64, "{calls} of {all}: {:?}", judgement.rounds);
        }
    }
}

#[test]
fn a_trace_that_is_one_long_window_is_no_burden() {
    // Windows of half a million calls from two dozen places, in an order in which all pairs occur
    // and that hardly repeats.
    const MANY: u64 = 24;
    let apis: Vec<&'static str> = (0..MANY).map(|n| &*Box::leak(format!("f{n}:read").into_boxed_str())).collect();
    let mut state = 7u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % MANY
    };
    let trace: Vec<Call> = (0..2_000).map(|_| call("read", apis[next() as usize], &[3, 1, 64], 64).toll(400)).collect();
    let mut hostile = recording(&trace, 1_000);
    let seen: Vec<WindowCall> = hostile.windows.iter().flat_map(|w| w.calls.clone()).collect();
    let window = Window { calls: seen.iter().cycle().take(500_000).cloned().collect(), ..hostile.windows[0].clone() };
    hostile.windows = vec![window; 3];
    // The judge reads no clock, so the number of calls that it looked at shows its work.
    let judgement = judge(&hostile, &Catalogue::builtin(), &Options::default());
    let looked_at: u64 = judgement.rounds.iter().map(|round| round.looked_at).sum();
    assert!(judgement.rounds.len() <= 64 && looked_at < 64 << 15, "{looked_at}");
}

#[test]
fn threads_that_all_do_other_things_are_no_burden() {
    // Windows of thousands of threads, each of calls from other places in an order that does not repeat.
    const MANY: u64 = 96;
    let apis: Vec<&'static str> = (0..MANY).map(|n| &*Box::leak(format!("f{n}:read").into_boxed_str())).collect();
    let of = |thread: u64| {
        let place = |i: u64| (drawn(thread) % MANY + drawn(thread * 99 + i) % 12 * (1 + drawn(thread) % 7)) % MANY;
        let calls = (0..64).map(|i| call("read", apis[place(i) as usize], &[3, 1, 64], 64).toll(400));
        calls.map(|call| Call { thread: thread as u32, ..call }).collect::<Vec<_>>()
    };
    let trace: Vec<Call> = (0..2_000).flat_map(of).collect();
    let mut hostile = recording(&trace, 1_000);
    let windows = (0u32..8_000).map(|n| {
        let at = n as usize % hostile.windows.len();
        Window { thread: n, ..hostile.windows[at].clone() }
    });
    hostile.windows = windows.collect();
    let judgement = judge(&hostile, &Catalogue::builtin(), &Options::default());
    let looked_at: u64 = judgement.rounds.iter().map(|round| round.looked_at).sum();
    assert!(judgement.rounds.len() <= 64 && looked_at < 64 << 15, "{looked_at}");
}
