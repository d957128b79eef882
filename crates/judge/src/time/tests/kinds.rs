//! Waits at two ends, for locks, and in turn.

use super::*;
use systoll_model::{ArgData, FrameId, Moment};

fn kinds(run: &Run) -> Vec<(NeedlessKind, u64)> {
    run.judged().needless.iter().map(|late| (late.kind, late.calls)).collect()
}

/// Returns a run in which two threads take turns at a word of a lock, while the other one makes this call.
fn in_process(call: &str, value: u64, apart: u64) -> Run {
    let mut run = Run::of(400).process(1, None, (0, 400));
    for at in 0..10u64 {
        let (waiter, holder) = if at % 2 == 0 { (1, 2) } else { (2, 1) };
        run = run.wait((1, waiter), "futex", (20 * at + 1, 20 * at + 10), |span| {
            (span.args[0], span.args[1]) = (0x5000, 128);
        });
        run = run.wait((1, holder), call, (20 * at, 20 * at + 10 - apart), nothing);
    }
    run.recording.wait_spans.spans.iter_mut().filter(|span| span.args[0] != 0).for_each(|span| span.args[2] = value);
    run
}

#[test]
fn a_lock_of_threads_whose_holder_waits_is_held_too_long() {
    assert_eq!(kinds(&in_process("fsync", 2, 1)), [(NeedlessKind::LockHeld, 10)]);
    // The holder went on with its work for long after its wait.
    assert_eq!(kinds(&in_process("fsync", 2, 7)), []);
}

#[test]
fn a_corked_stream_sends_when_the_kernels_timer_runs_out() {
    let of = |ms: u64| {
        let (here, there) = ("TCP:[127.0.0.1:5->127.0.0.1:80]", "TCP:[127.0.0.1:80->127.0.0.1:5]");
        let mut run = Run::of(3_000).process(1, None, (0, 3_000)).process(2, Some(0), (0, 3_000));
        for at in 0..10 {
            run = run.wait((1, 1), "recvfrom", (300 * at, 300 * at + ms), |span| {
                span.object = Some("TCP:[127.0.0.1:5->127.0.0.1:80]".into());
            });
            run = run.wait((2, 2), "epoll_wait", (300 * at + 2, 300 * at + 290), |span| span.result = Some(1));
        }
        kinds(&run.window(1, &[("recvfrom", 5, Some(here), 9)]).window(2, &[("write", 5, Some(there), 9)]))
    };
    assert_eq!(of(205), [(NeedlessKind::Corked, 10)]);
    assert_eq!(of(150), []);
}

#[test]
fn peers_that_are_asked_in_turn_could_be_asked_together() {
    let of = |peers: usize| {
        let mut run = Run::of(600).process(1, None, (0, 600));
        for nth in 0..peers {
            let peer = format!("TCP:[127.0.0.1:5->10.0.0.{}:80]", nth + 1);
            run = run.window(1, &[("write", 9, Some(&peer), 1), ("read", 9, Some(&peer), 2 * MS)]);
        }
        let read = run.row(1, "read");
        let counts = &mut run.recording.rows[read.0 as usize].counts;
        (counts.calls, counts.waited_ns) = (200, Some(400 * MS));
        kinds(&run)
    };
    assert_eq!(of(3), [(NeedlessKind::PeersInTurn, 200)]);
    // Who asks many has a list to work off.
    assert_eq!(of(20), []);
}

#[test]
fn a_server_that_asks_is_a_client_while_it_serves_none() {
    let of = |between: &[(&str, i64, Option<&str>, u64)], connects: bool| {
        let peer = Some("TCP:[127.0.0.1:5->127.0.0.1:80]");
        let asks = [&[("write", 9, peer, 1), ("read", 9, peer, 2 * MS)], between].concat();
        let all: Vec<_> = asks.iter().copied().cycle().take(3 * asks.len()).collect();
        let mut run = Run::of(600).process(1, None, (0, 600)).window(1, &[("connect", 0, None, 1)]).window(1, &all);
        run.row(1, "accept4");
        let bytes = [2, 0, 0, 80, 127, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0].to_vec();
        let called = ArgData { arg: 1, at: Moment::Entry, bytes, cut: false };
        run.recording.windows[0].calls[0].data.extend(connects.then_some(called));
        let read = run.row(1, "read");
        let counts = &mut run.recording.rows[read.0 as usize].counts;
        (counts.calls, counts.waited_ns) = (200, Some(400 * MS));
        kinds(&run)
    };
    assert_eq!(of(&[("getpid", 1, None, 1)], true), [(NeedlessKind::InTurn, 200)]);
    assert_eq!(of(&[("getpid", 1, None, 1)], false), [], "the peer may be a client");
    // A request is made for the client that was taken up before it.
    assert_eq!(of(&[("accept4", 4, None, 1)], true), []);
    assert_eq!(of(&[("recvfrom", 9, Some("TCP:[127.0.0.1:70->127.0.0.1:8]"), 1)], true), []);
}

#[test]
fn a_request_that_repeats_what_the_answer_before_it_said_needs_it() {
    let peer = Some("TCP:[127.0.0.1:5->10.0.0.1:80]");
    let of = |token: fn(usize) -> String| {
        let asks = [("write", 9, peer, 1), ("read", 9, peer, 2 * MS)];
        let all: Vec<_> = asks.iter().copied().cycle().take(12).collect();
        let mut run = Run::of(600).process(1, None, (0, 600)).window(1, &all);
        for (at, call) in run.recording.windows[0].calls.iter_mut().enumerate() {
            let (moment, text) = match at % 2 {
                0 => (Moment::Entry, format!("GET /page?after={}", token(at / 2))),
                _ => (Moment::Exit, format!("200 OK, next is {}", token(at / 2 + 1))),
            };
            call.data.push(ArgData { arg: 1, at: moment, bytes: text.into_bytes(), cut: false });
        }
        let read = run.row(1, "read");
        let counts = &mut run.recording.rows[read.0 as usize].counts;
        (counts.calls, counts.waited_ns) = (200, Some(400 * MS));
        kinds(&run)
    };
    assert_eq!(of(|nth| format!("k{}", nth * 7919 + 100_000)), []);
    assert_eq!(of(|_| "the same".to_owned()), [(NeedlessKind::InTurn, 200)]);
    // A number of a few digits may be the next one by chance.
    assert_eq!(of(|nth| nth.to_string()), [(NeedlessKind::InTurn, 200)]);
}

#[test]
fn the_line_of_another_threads_waits_is_not_that_of_a_needless_wait() {
    let (here, there) = ("TCP:[127.0.0.1:5->127.0.0.1:80]", "TCP:[127.0.0.1:80->127.0.0.1:5]");
    let of = |sampled: u32| {
        let mut run = Run::of(3_000).process(1, None, (0, 3_000)).process(2, Some(0), (0, 3_000));
        for at in 0..10 {
            run = run.wait((1, 1), "recvfrom", (300 * at, 300 * at + 205), |span| {
                span.object = Some("TCP:[127.0.0.1:5->127.0.0.1:80]".into());
            });
            run =
                run.wait((1, 3), "recvfrom", (300 * at, 300 * at + 100), |span| span.object = Some("pipe:[7]".into()));
            run = run.wait((1, 1), "recvfrom", (300 * at + 210, 300 * at + 230), nothing);
            run = run.wait((2, 2), "epoll_wait", (300 * at + 2, 300 * at + 290), |span| span.result = Some(1));
        }
        let spans = &mut run.recording.wait_spans.spans;
        let lined = spans.iter_mut().filter(|span| span.pid == 1 && span.tid == sampled && span.ns != 205 * MS);
        lined.for_each(|span| span.line = Some(FrameId(7)));
        run = run.window(1, &[("recvfrom", 5, Some(here), 9)]).window(2, &[("write", 5, Some(there), 9)]);
        let judged = run.judged();
        let needless: Vec<_> =
            judged.needless.iter().map(|late| (late.kind, late.lines.keys().copied().collect())).collect();
        // Nor is it that of a part of the elapsed time.
        (needless, judged.wall.unwrap().parts.iter().any(|part| part.unsampled))
    };
    assert_eq!(of(3), (vec![(NeedlessKind::Corked, vec![])], true));
    assert_eq!(of(1), (vec![(NeedlessKind::Corked, vec![FrameId(7)])], false));
}

#[test]
fn waits_that_only_the_clock_ends_are_a_remark_of_their_share() {
    let waits = |run: Run| {
        (0..10).fold(run, |run, at| {
            run.wait((1, 1), "futex", (100 * at, 100 * at + 60), |span| (span.args[1], span.result) = (128, Some(-110)))
        })
    };
    let run = waits(Run::of(1_000).process(1, None, (0, 1_000)));
    let needless = run.judged().needless;
    let [late] = &needless[..] else { panic!("{needless:?}") };
    assert_eq!((late.kind, late.calls, late.ns), (NeedlessKind::RanOut, 10, 600 * MS));
    // A server waits for clients, and looks after its own things meanwhile.
    let server = waits(Run::of(1_000).process(1, None, (0, 1_000)).window(1, &[("accept4", 4, None, 9)]));
    assert_eq!(kinds(&server), []);
    assert_eq!(kinds(&waits(Run::of(10_000).process(1, None, (0, 10_000)))), [], "6 % are little");
}

#[test]
fn children_that_idle_could_be_started_together() {
    let waiting = |step: u64, (call, idle): (&'static str, u64)| {
        let mut run = Run::of(700).process(1, None, (0, 700));
        for at in 0..7u32 {
            let start = step * u64::from(at);
            run = run.process(100 + at, Some(0), (start, start + 60));
            run = run.wait((1, 1), "wait4", (start.max(60 * u64::from(at)), start + 60), |_| {});
            run.recording
                .wait_spans
                .spans
                .iter_mut()
                .filter(|span| span.result == Some(0) && span.pid == 1)
                .for_each(|span| span.result = Some(100 + at as i64));
            run = run.wait((100 + at, 100 + at), call, (start, start + idle), |span| span.result = Some(0));
        }
        // Each asks for the same lock, as the windows show.
        let lockers = (100..107).map(|pid| (pid, [("flock", 9, None, 0)])).filter(|_| call == "flock");
        run = lockers.fold(run, |run, (pid, calls)| run.window(pid, &calls));
        run.in_vain().iter().map(|waits| (waits.kind, waits.calls)).collect::<Vec<_>>()
    };
    let of = |step: u64, idle: u64| waiting(step, ("nanosleep", idle));
    assert_eq!(of(60, 55), [(NeedlessKind::ChildrenInTurn, 7)]);
    assert_eq!(of(60, 20), [], "children that work take their time");
    assert_eq!(waiting(60, ("flock", 55)), [], "a lock lets one go on at a time");
}

#[test]
fn threads_that_idle_could_be_started_together() {
    let of = |step: u64, ends: bool| {
        let (mut run, mut until) = (Run::of(700).process(1, None, (0, 700)), 0);
        for at in 0..7u32 {
            let (tid, start) = (100 + at, step * u64::from(at));
            run = run.wait((1, tid), "read", (start + 1, start + 56), |span| span.result = Some(8));
            if ends {
                run = run.wait((1, tid), "exit", (start + 57, start + 58), |span| span.result = None);
            }
            let joined = (start.max(until), start + 58);
            until = joined.1;
            run = run.wait((1, 1), "futex", joined, |span| span.result = Some(0));
            let spans = run.recording.wait_spans.spans.iter_mut();
            spans.filter(|span| span.tid == 1 && span.args[2] == 0).for_each(|span| span.args[2] = u64::from(tid));
        }
        run.in_vain().iter().map(|waits| (waits.kind, waits.calls)).collect::<Vec<_>>()
    };
    assert_eq!(of(60, true), [(NeedlessKind::ThreadsInTurn, 7)]);
    assert_eq!(of(60, false), [], "threads of a pool live on");
    assert_eq!(of(2, true), [], "they were started together");
}
