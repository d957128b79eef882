//! Runs made up of long waits, with what must be said of them.

mod classes;
mod kinds;
mod schedulers;

use super::*;
use systoll_model::{
    Counts, Errno, Exit, Header, Process, ProcessId, Row, RowId, Stack, Sysno, Thread, ThreadCalls, Until, WaitSpan,
    WaitSpans, Window, WindowCall,
};

const MS: u64 = 1_000_000;

/// A run whose processes have a row of each call.
#[derive(Default)]
struct Run {
    recording: Recording,
}

impl Run {
    fn of(wall_ms: u64) -> Self {
        let header = Header { wall_ns: wall_ms * MS, ..Header::default() };
        let wait_spans = WaitSpans { kept: true, ..WaitSpans::default() };
        Self { recording: Recording { header, wait_spans, stacks: vec![Stack::default()], ..Recording::default() } }
    }

    /// Adds a process that lives between two times, ms.
    fn process(mut self, pid: u32, parent: Option<u32>, (start, end): (u64, u64)) -> Self {
        self.recording.processes.push(Process {
            pid,
            parent: parent.map(ProcessId),
            instances: 1,
            start_ns: start * MS,
            end_ns: end * MS,
            exit: Some(Exit::Code(0)),
            ..Process::default()
        });
        self
    }

    fn row(&mut self, pid: u32, call: &str) -> RowId {
        let process = self.recording.processes.iter().position(|p| p.pid == pid).unwrap();
        let (process, syscall) = (ProcessId(process as u32), Sysno::from_name(call).unwrap());
        let known = self.recording.rows.iter().position(|row| row.process == process && row.syscall == syscall);
        let at = known.unwrap_or_else(|| {
            let counts = Counts { calls: 1_000, ..Counts::default() };
            self.recording.rows.push(Row::new(process, syscall, counts));
            self.recording.rows.len() - 1
        });
        RowId(at as u32)
    }

    /// Adds a wait of a thread between two times, ms.
    fn wait(mut self, (pid, tid): (u32, u32), call: &str, (from, to): (u64, u64), more: fn(&mut WaitSpan)) -> Self {
        let row = self.row(pid, call);
        let (begin_ns, ns) = (from * MS, (to - from) * MS);
        let mut span = WaitSpan { row, pid, tid, begin_ns, ns, result: Some(0), ..WaitSpan::default() };
        more(&mut span);
        self.recording.wait_spans.spans.push(span);
        self.recording.wait_spans.spans.sort_by_key(|span| span.begin_ns);
        self
    }

    /// Adds a window of a process: calls with their results, descriptors and elapsed times.
    fn window(mut self, pid: u32, calls: &[(&str, i64, Option<&str>, u64)]) -> Self {
        let call = |run: &mut Self, &(name, result, fd, elapsed_ns): &(&str, i64, Option<&str>, u64)| WindowCall {
            row: run.row(pid, name),
            result: Some(result),
            fd: fd.map(Into::into),
            elapsed_ns,
            waited_ns: (elapsed_ns >= MS).then_some(elapsed_ns),
            // WNOHANG and LOCK_EX | LOCK_NB.
            args: [0, if name == "flock" { 6 } else { 0 }, u64::from(name == "wait4" && elapsed_ns < MS), 0, 0, 0],
            ..WindowCall::default()
        };
        let calls: Vec<WindowCall> = calls.iter().map(|one| call(&mut self, one)).collect();
        let row = calls[0].row;
        let process = self.recording.row(row).process;
        self.recording.windows.push(Window { process, thread: 0, row, octave: 0, calls });
        self
    }

    fn judged(&self) -> JudgedTime {
        judged(&self.recording, &Semantics::new())
    }

    /// Returns the waits for which something shows that they are in vain.
    fn in_vain(&self) -> Vec<NeedlessWaits> {
        let needless = self.judged().needless.into_iter();
        needless.filter(|waits| waits.kind != NeedlessKind::RanOut).collect()
    }

    /// Returns the time of each class of waits, ms, and that of the rest.
    /// Has a function make these calls.
    fn called_by(&mut self, function: &str, calls: &[&str]) {
        self.recording.frames = vec![systoll_model::Frame {
            locations: vec![systoll_model::Location { function: function.into(), file: None, line: None }],
            ..systoll_model::Frame::default()
        }];
        self.recording.stacks.push(Stack { frames: vec![systoll_model::FrameId(0)], complete: true });
        for row in
            self.recording.rows.iter_mut().filter(|row| row.syscall.name().is_some_and(|name| calls.contains(&name)))
        {
            row.context = systoll_model::StackId(1);
        }
    }

    fn classes(&self) -> (Vec<(WaitClass, u64)>, u64) {
        let wall = self.judged().wall.unwrap();
        let classes: Vec<_> = wall.by_class().into_iter().map(|(class, ns)| (class, ns / MS)).collect();
        assert_eq!(wall.parts.iter().map(|part| part.ns).sum::<u64>() + wall.other_ns, wall.wall_ns);
        (classes, wall.other_ns / MS)
    }
}

fn nothing(_: &mut WaitSpan) {}

#[test]
fn a_wait_for_a_child_is_the_childs_time() {
    let run = Run::of(100).process(1, None, (0, 100)).process(2, Some(0), (10, 90));
    let run = run.wait((1, 1), "wait4", (20, 91), |span| span.result = Some(2));
    let run = run.wait((2, 2), "nanosleep", (30, 80), nothing);
    // The child sleeps 50 ms and runs otherwise; 1 ms passes after its end.
    assert_eq!(run.classes(), (vec![(WaitClass::Clock, 50), (WaitClass::Process, 1)], 49));
}

#[test]
fn a_futex_is_ended_by_the_only_thread_that_is_awake() {
    let run = Run::of(100).process(1, None, (0, 100));
    let run = run.wait((1, 1), "futex", (10, 60), |span| span.args[1] = 128);
    let run = run.wait((1, 2), "fsync", (15, 55), nothing);
    // Thread 3 waits all the time, so thread 2 woke the first one.
    let run = run.wait((1, 3), "futex", (5, 99), |span| (span.args[1], span.result) = (128, Some(-110)));
    assert_eq!(run.classes(), (vec![(WaitClass::Disk, 40)], 60));
    // If two threads are awake, the wait is for one of them.
    let run = run.wait((1, 4), "fsync", (70, 75), nothing);
    assert_eq!(run.classes(), (vec![(WaitClass::Thread, 50)], 50));
}

#[test]
fn a_thread_that_waits_to_the_end_has_woken_nobody() {
    let ends = |span: &mut WaitSpan| (span.args[1], span.result) = (128, None);
    // Thread 2 ends the process, in which the others wait.
    let run = Run::of(100).process(1, None, (0, 100)).wait((1, 1), "futex", (10, 100), ends);
    let run = run.wait((1, 2), "nanosleep", (20, 90), nothing).wait((1, 3), "futex", (50, 100), ends);
    assert_eq!(run.classes(), (vec![(WaitClass::Clock, 70)], 30));
}

#[test]
fn a_join_waits_for_the_thread_whose_id_it_names() {
    let joins = |tid: u64| {
        let run = Run::of(100).process(1, None, (0, 100));
        let mut run = run.wait((1, 1), "futex", (10, 90), |span| span.args[1] = 265);
        run.recording.wait_spans.spans[0].args[2] = tid;
        // Two threads are awake at the end, so that nothing else tells which of them woke the first one.
        run.wait((1, 2), "fsync", (15, 55), nothing).wait((1, 3), "nanosleep", (15, 25), nothing).classes()
    };
    assert_eq!(joins(2), (vec![(WaitClass::Disk, 40)], 60));
    assert_eq!(joins(7), (vec![(WaitClass::Thread, 80)], 20));
}

#[test]
fn a_write_into_a_full_pipe_waits_for_who_reads_from_it() {
    let of = |queued_most_ns: u64, queued_ns: Option<u64>| {
        let run = Run::of(100).process(1, None, (0, 100)).process(2, Some(0), (0, 100));
        let run = run.window(2, &[("read", 10, Some("pipe:[7]"), 9)]);
        let mut run = run.wait((1, 1), "write", (10, 60), |span| span.object = Some("pipe:[7]".into()));
        run.recording.wait_spans.spans[0].queued_most_ns = Some(queued_most_ns);
        run.recording.processes[0].queued_ns = queued_ns;
        run.classes()
    };
    assert_eq!(of(0, None), (vec![(WaitClass::Process, 50)], 50));
    assert_eq!(of(50 * MS, None), (vec![(WaitClass::Processor, 50)], 50));
    // In all its life the thread was ready for less than the bounds of its waits allow.
    assert_eq!(of(50 * MS, Some(26 * MS)), (vec![(WaitClass::Processor, 50)], 50));
    assert_eq!(of(50 * MS, Some(24 * MS)), (vec![(WaitClass::Process, 50)], 50));
}

#[test]
fn a_poll_is_ended_by_the_clock_only_if_it_came_back() {
    let of = |result: Option<i64>| {
        let mut run = Run::of(100).process(1, None, (0, 100)).wait((1, 1), "poll", (10, 60), nothing);
        run.recording.wait_spans.spans[0].result = result;
        run.classes()
    };
    assert_eq!(of(Some(0)), (vec![(WaitClass::Clock, 50)], 50));
    assert_eq!(of(None), (vec![(WaitClass::Unknown, 50)], 50));
}

#[test]
fn who_reads_from_a_pipe_without_a_name_waits_for_its_children() {
    let run = Run::of(100).process(1, None, (0, 100)).process(2, Some(0), (10, 90));
    let run = run.wait((1, 1), "read", (20, 90), nothing);
    let class = |run: &Run| run.classes().0.into_iter().map(|(class, _)| class).collect::<Vec<_>>();
    assert_eq!(class(&run), [WaitClass::Unknown]);
    assert_eq!(class(&run.window(1, &[("read", 10, Some("pipe:[7]"), 9)])), [WaitClass::Process]);
}

#[test]
fn threads_that_wait_for_each_other_are_not_followed_without_end() {
    let mut run = Run::of(400).process(1, None, (0, 400));
    for at in 0..100 {
        run = run.wait((1, 1), "futex", (4 * at, 4 * at + 3), |span| span.args[1] = 128);
        run = run.wait((1, 2), "futex", (4 * at + 2, 4 * at + 5), |span| span.args[1] = 128);
    }
    let (classes, _) = run.classes();
    assert!(classes.iter().all(|(class, _)| *class == WaitClass::Thread), "{classes:?}");
}

#[test]
fn ends_are_told_by_call_result_and_object() {
    let class = |call: &str, more: fn(&mut WaitSpan)| {
        let run = Run::of(100).process(1, None, (0, 100)).wait((1, 1), call, (10, 90), more);
        run.classes().0[0].0
    };
    let object = |call: &str, name: fn(&mut WaitSpan)| class(call, name);
    assert_eq!(class("clock_nanosleep", nothing), WaitClass::Clock);
    assert_eq!(class("poll", nothing), WaitClass::Clock);
    assert_eq!(class("poll", |span| span.result = Some(1)), WaitClass::Unknown);
    assert_eq!(class("nanosleep", |span| span.result = Some(-4)), WaitClass::Signal);
    assert_eq!(class("futex", |span| span.result = Some(-110)), WaitClass::Clock);
    assert_eq!(class("fdatasync", nothing), WaitClass::Disk);
    assert_eq!(object("read", |span| span.object = Some("/var/lib/data".into())), WaitClass::Disk);
    assert_eq!(object("read", |span| span.object = Some("/dev/pts/3".into())), WaitClass::Terminal);
    assert_eq!(object("read", |span| span.object = Some("TCP:[10.0.0.1:5->10.0.0.2:80]".into())), WaitClass::Peer);
    assert_eq!(object("read", |span| span.object = Some("pipe:[7]".into())), WaitClass::Unknown);
    assert_eq!(class("flock", nothing), WaitClass::Unknown);
}

#[test]
fn a_pipe_is_filled_by_the_process_that_writes_into_it() {
    let pipe = Some("pipe:[7]");
    let run = Run::of(100).process(1, None, (0, 100)).process(2, Some(0), (0, 100));
    let run = run.wait((1, 1), "read", (10, 90), |span| span.object = Some("pipe:[7]".into()));
    let run = run.wait((2, 2), "nanosleep", (20, 80), nothing);
    let run = run.window(1, &[("read", 5, pipe, 9)]).window(2, &[("write", 5, pipe, 9)]);
    assert_eq!(run.classes(), (vec![(WaitClass::Clock, 60)], 40));
    // It is not known who makes room in a pipe.
    let full = Run::of(100).process(1, None, (0, 100)).window(1, &[("write", 5, pipe, 9)]);
    let full = full.wait((1, 1), "write", (10, 90), |span| span.object = Some("pipe:[7]".into()));
    assert_eq!(full.classes(), (vec![(WaitClass::Unknown, 80)], 20));
}

#[test]
fn a_wait_for_any_descriptor_ends_by_those_from_which_the_process_receives() {
    let (here, there) = (Some("TCP:[127.0.0.1:80->127.0.0.1:5]"), Some("TCP:[127.0.0.1:5->127.0.0.1:80]"));
    let server = || {
        let run = Run::of(100).process(1, None, (0, 100)).process(2, Some(0), (0, 100));
        run.wait((1, 1), "epoll_wait", (10, 90), |span| span.result = Some(1))
    };
    let talks = |run: Run| run.window(1, &[("accept4", 4, Some("TCP:[127.0.0.1:80]"), 9), ("read", 5, here, 9)]);
    assert_eq!(server().classes().0, [(WaitClass::Unknown, 80)]);
    assert_eq!(talks(server()).classes().0, [(WaitClass::Peer, 80)]);
    // The client is watched, but none of its threads is known by its id.
    let watched = talks(server()).window(2, &[("write", 5, there, 9)]);
    assert_eq!(watched.classes().0, [(WaitClass::Process, 80)]);
}

/// Returns a run that sleeps 50 ms ten times after each of these calls.
fn polling(look: (&str, i64, Option<&str>, u64), found: (&str, i64, Option<&str>, u64)) -> Run {
    let sleep = ("nanosleep", 0, None, 50 * MS);
    let mut run = Run::of(600).process(1, None, (0, 600));
    for at in 0..10 {
        run = run.wait((1, 1), "nanosleep", (60 * at, 60 * at + 50), nothing);
    }
    let calls = [look, sleep, found, look, sleep, found, look, sleep, found];
    run.window(1, &calls).window(1, &calls)
}

#[test]
fn a_child_that_ended_is_seen_late() {
    let mut run = polling(("wait4", 0, None, 1), ("wait4", 9, None, 1));
    for at in 0..10 {
        run = run.process(100 + at, Some(0), (60 * u64::from(at), 60 * u64::from(at) + 5));
    }
    let needless = run.judged().needless;
    let [late] = &needless[..] else { panic!("{needless:?}") };
    assert_eq!((late.kind, late.calls, late.ns), (NeedlessKind::ChildSeenLate, 10, 450 * MS));
    assert!((late.share_of_wall - 0.75).abs() < 0.01, "{late:?}");
    // Another thread's sleeps are not what the child's end waits for.
    let beside = run.wait((1, 7), "clock_nanosleep", (0, 600), nothing);
    assert_eq!(beside.judged().needless.iter().map(|late| late.ns).collect::<Vec<_>>(), [450 * MS]);
    let mut run = beside;
    // A child that ends after the sleep is not seen late.
    run.recording.processes.iter_mut().skip(1).for_each(|child| child.end_ns += 46 * MS);
    assert_eq!(run.in_vain(), []);
}

#[test]
fn a_sleep_that_goes_on_after_the_signal_of_a_childs_end_is_late() {
    let interrupted = |span: &mut WaitSpan| span.result = Some(-4);
    let mut run = Run::of(600).process(1, None, (0, 600));
    for at in 0..10 {
        run = run.wait((1, 1), "ppoll", (60 * at, 60 * at + 6), interrupted);
        run = run.wait((1, 1), "ppoll", (60 * at + 6, 60 * at + 50), |span| span.result = Some(0));
        run = run.process(100 + at as u32, Some(0), (60 * at, 60 * at + 5));
    }
    // Windows show some of the sleeps, and a pace at another line that shares their row.
    let (look, pace) =
        ([("wait4", 0, None, 1), ("ppoll", -4, None, 5 * MS)], [("getpid", 1, None, 1), ("ppoll", 0, None, 20 * MS)]);
    let all = [&look[..], &look[..], &pace[..], &pace[..], &pace[..], &[("getpid", 1, None, 1)]].concat();
    let needless = run.window(1, &all).judged().needless;
    let [late] = &needless[..] else { panic!("{needless:?}") };
    assert_eq!((late.kind, late.calls, late.ns), (NeedlessKind::ChildSeenLate, 10, 440 * MS));
}

#[test]
fn half_of_a_sleep_before_a_question_is_asked_again_is_in_vain() {
    let run = polling(("flock", -11, Some("/run/lock"), 1), ("flock", 0, Some("/run/lock"), 1));
    let needless = run.judged().needless;
    let [asked] = &needless[..] else { panic!("{needless:?}") };
    assert_eq!((asked.kind, asked.calls, asked.ns), (NeedlessKind::AskedAgain, 10, 250 * MS));
    // A process that still runs, a name that is taken and a server that does not listen yet are asked for as well.
    for (call, not_yet) in [("kill", 0), ("mkdir", -17), ("connect", -111)] {
        let found = if not_yet == 0 { -3 } else { 0 };
        let needless = polling((call, not_yet, None, 1), (call, found, None, 1)).judged().needless;
        assert_eq!(needless.iter().map(|late| late.kind).collect::<Vec<_>>(), [NeedlessKind::AskedAgain], "{call}");
    }
    // Sleeps after a question about something else, or that is not asked again, are nobody's loss.
    let run = polling(("access", -2, Some("/run/one"), 1), ("access", 0, Some("/run/other"), 1));
    assert_eq!(run.in_vain(), []);
}

/// Adds threads of the first process, each with the only call that it makes.
fn with_threads(mut run: Run, threads: &[(u32, &str)]) -> Run {
    let of = |(tid, call): &(u32, &str)| Thread {
        process: ProcessId(0),
        tid: *tid,
        name: "".into(),
        calls: vec![ThreadCalls {
            syscall: Sysno::from_name(call).unwrap(),
            calls: 9,
            failed: 0,
            toll_ns: None,
            waited_ns: None,
        }],
    };
    run.recording.threads = threads.iter().map(of).collect();
    run
}

#[test]
fn a_thread_that_makes_no_waking_call_woke_nobody() {
    let run = |beside: &str| {
        let run = Run::of(100).process(1, None, (0, 100)).wait((1, 1), "futex", (10, 60), |span| span.args[1] = 128);
        with_threads(run, &[(1, "futex"), (2, "futex"), (3, beside)])
    };
    // The time is that of thread 2, which ran.
    assert_eq!(run("getpid").classes(), (vec![], 100));
    assert_eq!(run("futex").classes(), (vec![(WaitClass::Thread, 50)], 50));
}

#[test]
fn a_waker_may_sleep_again_before_its_waiter_gets_a_processor() {
    let run = |slept_from: u64| {
        let run = Run::of(100).process(1, None, (0, 100)).wait((1, 1), "futex", (10, 60), |span| span.args[1] = 128);
        let (mut run, at) = (run, slept_from);
        run.recording.header.wall_ns = 100 * MS;
        run = run.wait((1, 2), "nanosleep", (at, 90), nothing);
        with_threads(run, &[(1, "futex"), (2, "futex")])
    };
    assert_eq!(run(55).classes(), (vec![(WaitClass::Clock, 5)], 95));
    // A thread that has slept for long woke nobody.
    assert_eq!(run(40).classes(), (vec![(WaitClass::Thread, 50)], 50));
}

#[test]
fn a_counter_of_events_wakes_the_loop_that_reads_nothing_else() {
    let counter = Some("anon_inode:[eventfd:7]");
    let run = || {
        let run = Run::of(100).process(1, None, (0, 100)).wait((1, 1), "epoll_wait", (10, 60), |span| {
            (span.result, span.object) = (Some(1), Some("anon_inode:[eventpoll]".into()));
        });
        with_threads(run, &[(1, "read"), (2, "write")]).window(1, &[("write", 8, counter, 1), ("read", 8, counter, 1)])
    };
    assert_eq!(run().classes(), (vec![], 100));
    let with_socket = run().window(1, &[("recvfrom", 5, Some("TCP:[127.0.0.1:5->10.0.0.1:80]"), 1)]);
    assert_eq!(with_socket.classes(), (vec![(WaitClass::Peer, 50)], 50));
}

#[test]
fn a_start_has_its_searches_by_who_searched() {
    let mut run = Run::of(100).process(1, None, (0, 100));
    run.recording.processes[0].exe = "/usr/bin/python3.11".into();
    assert_eq!(run.judged().start, None);
    run.recording.header.until = Some(Until { sign: "port:80".into(), seen: true });
    let stat = run.row(1, "newfstatat");
    let counts = &mut run.recording.rows[stat.0 as usize].counts;
    (counts.calls, counts.toll_ns) = (100, Some(1_000));
    counts.errors.insert(Errno::ENOENT, 75);
    run.row(1, "openat");
    let start = run.judged().start.unwrap();
    let by = Searcher::Language(crate::CodeLanguage::Python);
    assert_eq!(start.searched, [Searched { by, asked: 1_100, missing: 75, ns: 750 }]);
    assert_eq!((start.opened, start.missing(), start.search_ns()), (1_000, 75, 750));
}

#[test]
fn sleeps_that_nothing_shows_to_be_for_something_serve() {
    for calls in [("write", 5, Some("pipe:[7]"), 1), ("read", 5, Some("/proc/loadavg"), 1)] {
        assert_eq!(polling(calls, calls).in_vain(), []);
    }
    let (sent, got) = (("write", 5, Some("UNIX:[1->2]"), 1), ("read", 5, Some("UNIX:[1->2]"), 1));
    let needless = polling(sent, got).judged().needless;
    assert_eq!(needless.iter().map(|late| late.kind).collect::<Vec<_>>(), [NeedlessKind::AnswerSeenLate]);
    // An answer for which the read waited had not come.
    assert_eq!(polling(sent, ("read", 5, Some("UNIX:[1->2]"), 2 * MS)).in_vain(), []);
}

/// Returns a run of two processes, of which one waits for a lock ten times while the other makes this call.
fn locking(call: &str) -> Run {
    let mut run = Run::of(200).process(1, None, (0, 200)).process(2, Some(0), (0, 200));
    run.row(2, "flock");
    for at in 0..10 {
        run = run.wait((1, 1), "flock", (20 * at, 20 * at + 10), nothing);
        run = run.wait((2, 2), call, (20 * at, 20 * at + 9), nothing);
    }
    run
}

#[test]
fn a_lock_whose_holder_sleeps_is_held_too_long() {
    let needless = locking("nanosleep").judged().needless;
    let [held] = &needless[..] else { panic!("{needless:?}") };
    assert_eq!((held.kind, held.calls, held.ns), (NeedlessKind::LockHeld, 10, 90 * MS));
    // A holder that does not wait does its work.
    let mut works = locking("nanosleep");
    works.recording.wait_spans.spans.retain(|span| span.pid == 1);
    assert_eq!(works.in_vain(), []);
}

#[test]
fn data_that_come_while_their_sender_sleeps_were_held_back() {
    let (here, there) = ("TCP:[127.0.0.1:5->127.0.0.1:80]", "TCP:[127.0.0.1:80->127.0.0.1:5]");
    let of = |sender_sleeps: u64, sender_wakes: u64| {
        let mut run = Run::of(500).process(1, None, (0, 500)).process(2, Some(0), (0, 500));
        for at in 0..10 {
            run = run.wait((1, 1), "recvfrom", (50 * at, 50 * at + 41), |span| {
                span.object = Some("TCP:[127.0.0.1:5->127.0.0.1:80]".into());
            });
            run = run.wait((2, 2), "epoll_wait", (50 * at + sender_sleeps, 50 * at + sender_wakes), |span| {
                span.result = Some(1)
            });
        }
        run.window(1, &[("recvfrom", 5, Some(here), 9)]).window(2, &[("write", 5, Some(there), 9)])
    };
    let run = of(2, 45);
    let needless = run.judged().needless;
    assert_eq!(needless.iter().map(|late| (late.kind, late.calls)).collect::<Vec<_>>(), [(NeedlessKind::HeldBack, 10)]);
    let senders = needless[0].senders.keys().map(|id| run.recording.row(*id).syscall.name());
    assert_eq!(senders.collect::<Vec<_>>(), [Some("write")]);
    // A server that works for 40 ms answers when it is done.
    assert_eq!(of(2, 3).judged().needless, []);
    // So does one that keeps a pace, if its client gets no processor at once.
    assert_eq!(of(38, 45).judged().needless, []);
}

#[test]
fn data_held_back_between_two_threads_are_found() {
    let stream = "TCP:[127.0.0.1:5->127.0.0.1:80]";
    let of = |other_wakes: u64| {
        let mut run = Run::of(500).process(1, None, (0, 500));
        for at in 0..10 {
            run = run.wait((1, 1), "read", (50 * at, 50 * at + 41), |span| {
                span.object = Some("TCP:[127.0.0.1:5->127.0.0.1:80]".into());
            });
            run = run.wait((1, 2), "read", (50 * at + 1, 50 * at + other_wakes), |span| span.result = Some(1));
        }
        let other = Some("TCP:[127.0.0.1:80->127.0.0.1:5]");
        run.window(1, &[("read", 5, Some(stream), 9), ("write", 5, other, 9)])
    };
    let needless = of(45).judged().needless;
    let [held] = &needless[..] else { panic!("{needless:?}") };
    assert_eq!((held.kind, held.calls), (NeedlessKind::HeldBack, 10));
    // Both threads wait at the same time, and neither goes on.
    assert!((held.share_of_wall - 0.82).abs() < 0.01, "{held:?}");
    assert_eq!(of(39).judged().needless, []);
}

#[test]
fn a_peer_that_never_answers_is_waited_for_in_vain() {
    let peer = Some("UDP:[127.0.0.1:5->127.0.0.1:53]");
    let of = |answer: i64| {
        let mut run = Run::of(600);
        run = run.process(1, None, (0, 600));
        for at in 0..10 {
            run = run.wait((1, 1), "poll", (60 * at, 60 * at + 50), nothing);
        }
        let asks = [("sendto", 9, peer, 1), ("poll", 0, None, 50 * MS), ("recvfrom", answer, peer, 1)];
        run.window(1, &asks).window(1, &asks)
    };
    let needless = of(-11).judged().needless;
    let [late] = &needless[..] else { panic!("{needless:?}") };
    assert_eq!((late.kind, late.calls, late.ns), (NeedlessKind::Unanswered, 10, 500 * MS));
    assert_eq!(of(9).in_vain(), []);
}

#[test]
fn requests_in_turn_are_found_where_each_waits_for_the_answer_before_it() {
    let peer = Some("TCP:[127.0.0.1:5->10.0.0.1:80]");
    let of = |between: &'static str| {
        let mut run = Run::of(600).process(1, None, (0, 600));
        let asks = [("write", 9, peer, 1), (between, 0, None, 1), ("read", 9, peer, 2 * MS)];
        run = run.window(1, &asks).window(1, &asks);
        let read = run.row(1, "read");
        let counts = &mut run.recording.rows[read.0 as usize].counts;
        (counts.calls, counts.waited_ns) = (200, Some(400 * MS));
        run.judged().needless
    };
    let needless = of("getpid");
    let [turn] = &needless[..] else { panic!("{needless:?}") };
    assert_eq!((turn.kind, turn.calls, turn.ns), (NeedlessKind::InTurn, 200, 398 * MS));
    // A read of a stream to which nothing was sent waits for whatever comes.
    let mut run = Run::of(600).process(1, None, (0, 600));
    run = run.window(1, &[("read", 9, peer, 2 * MS), ("read", 9, peer, 2 * MS)]);
    let read = run.row(1, "read");
    run.recording.rows[read.0 as usize].counts.waited_ns = Some(400 * MS);
    assert_eq!(run.in_vain(), []);
}

#[test]
fn a_shell_sleeps_by_a_child() {
    let sleeps = |program: &str, call: &'static str| {
        let mut run = Run::of(600).process(1, None, (0, 600));
        for at in 0..10 {
            run = run.process(100 + at as u32, Some(0), (60 * at, 60 * at + 50));
            run.recording.processes.last_mut().unwrap().exe = program.into();
            run = run.wait((1, 1), "wait4", (60 * at, 60 * at + 50), nothing);
            run.recording
                .wait_spans
                .spans
                .iter_mut()
                .rev()
                .take(1)
                .for_each(|span| span.result = Some(100 + at as i64));
            let of_child = (100 + at as u32, 100 + at as u32);
            run = run.wait(of_child, call, (60 * at + 1, 60 * at + 49), nothing);
        }
        let asks = [("kill", 0, None, 1), ("wait4", 100, None, 50 * MS), ("kill", -3, None, 1)];
        run.window(1, &asks).window(1, &asks).judged().needless
    };
    let late = sleeps("/usr/bin/sleep", "nanosleep");
    assert_eq!(late.iter().map(|late| late.kind).collect::<Vec<_>>(), [NeedlessKind::AskedAgain]);
    // The rows of the children's own sleeps, and of the waits for them, are one wait.
    assert_eq!(late.iter().map(|late| late.calls).sum::<u64>(), 10);
    // A child that stores its data does work.
    assert_eq!(sleeps("/usr/bin/sync", "fsync"), []);
}

#[test]
fn a_damaged_recording_is_judged_without_harm() {
    let mut run = locking("nanosleep");
    for (at, span) in run.recording.wait_spans.spans.iter_mut().enumerate() {
        (span.ns, span.result) = (u64::MAX - at as u64, Some(i64::MIN));
        span.object = Some("TCP:[->->]".into());
    }
    run.recording.header.wall_ns = u64::MAX;
    assert!(run.judged().wall.is_some());
    run.recording.wait_spans.kept = false;
    assert!(run.judged().wall.is_none());
}
