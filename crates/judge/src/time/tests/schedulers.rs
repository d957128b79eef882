//! Threads of run-times' own schedulers, locks of Java, and shells that poll their children.

use super::*;

#[test]
fn a_schedulers_idle_thread_waits_for_what_its_poller_waits_for() {
    let idle =
        |calls: &[&str]| {
            let wait = |span: &mut WaitSpan| span.args[1] = 128;
            let run = Run::of(100).process(1, None, (0, 100)).wait((1, 1), "futex", (10, 90), wait);
            let mut run = run
                .wait((1, 2), "futex", (50, 100), wait)
                .wait((1, 2), "epoll_pwait", (0, 50), nothing)
                .wait((1, 3), "epoll_pwait", (50, 100), nothing);
            run.called_by("runtime.findRunnable", calls);
            run.classes().0
        };
    assert_eq!(idle(&["futex", "epoll_pwait"]), [(WaitClass::Clock, 80)]);
    // The futex wait had begun before the process was watched.
    assert_eq!(idle(&["epoll_pwait"]), [(WaitClass::Clock, 80)]);
    assert_eq!(idle(&[]), [(WaitClass::Thread, 80)]);
}

#[test]
fn what_a_schedulers_idle_thread_waits_for_another_thread_may_run() {
    let idle = |function: &str| {
        let mut run = Run::of(100).process(1, None, (0, 100));
        run.recording.processes[0].cpu_ns = Some(100 * MS);
        let run = run.wait((1, 1), "epoll_pwait", (10, 90), nothing).wait((1, 2), "futex", (10, 30), nothing);
        let run = run.wait((1, 3), "ppoll", (10, 90), nothing);
        let mut run = run.wait((1, 2), "futex", (70, 80), |span| span.args[1] = 128);
        run.called_by(function, &["epoll_pwait"]);
        run.classes()
    };
    // Thread 2 is not known to be there after 80 ms.
    assert_eq!(idle("runtime.findRunnable"), (vec![(WaitClass::Clock, 40)], 60));
    assert_eq!(idle("main.wait"), (vec![(WaitClass::Clock, 80)], 20));
}

#[test]
fn a_lock_of_java_whose_holder_reads_is_held_too_long() {
    // Two threads by turns: each waits at a word of its own while the other reads.
    let run = |function: &str| {
        let mut run = Run::of(220).process(1, None, (0, 220));
        for at in 0..20 {
            let (waiter, begin) = (1 + at as u32 % 2, 10 * at);
            let word = if waiter == 1 {
                |span: &mut WaitSpan| span.args[0] = 1
            } else {
                |span: &mut WaitSpan| span.args[0] = 2
            };
            run = run.wait((1, waiter), "futex", (begin, begin + 10), word);
            run = run.wait((1, 3 - waiter), "recvfrom", (begin, begin + 9), nothing);
        }
        run.called_by(function, &["futex"]);
        run.judged().needless
    };
    let needless = run("os::PlatformEvent::park");
    let [held] = &needless[..] else { panic!("{needless:?}") };
    assert_eq!((held.kind, held.calls, held.ns), (NeedlessKind::LockHeld, 20, 90 * MS));
    assert_eq!(run("java.lang.Object.wait0"), []);
}

#[test]
fn a_child_that_is_asked_about_by_its_id_is_seen_late() {
    // A shell finds the program that sleeps between the question and the sleep.
    let run = |asked: u64| {
        let mut run = Run::of(600).process(1, None, (0, 600));
        for at in 0..10 {
            let (child, begin) = (100 + at, 60 * u64::from(at));
            run = run.process(child, Some(0), (begin, begin + 5)).process(200 + at, Some(0), (begin, begin + 50));
            let sleeper = run.recording.processes.last_mut().unwrap();
            sleeper.exe = "/usr/bin/sleep".into();
            run = run.wait((200 + at, 200 + at), "nanosleep", (begin + 1, begin + 49), nothing);
            run = run.wait((1, 1), "wait4", (begin, begin + 50), |span| {
                span.result = Some(200 + (span.begin_ns / MS / 60) as i64)
            });
        }
        let mut run = run.window(1, &[("kill", 0, None, 1), ("getpid", 1, None, 1)]);
        run.recording.windows[0].calls[0].args[0] = asked;
        run.judged().needless
    };
    let needless = run(103);
    let [late] = &needless[..] else { panic!("{needless:?}") };
    assert_eq!((late.kind, late.calls, late.ns), (NeedlessKind::ChildSeenLate, 10, 450 * MS));
    // A question about somebody else's process shows nothing.
    let seen_late = |needless: Vec<NeedlessWaits>| needless.iter().any(|late| late.kind == NeedlessKind::ChildSeenLate);
    assert!(!seen_late(run(1)));
}

#[test]
fn pollers_that_poll_together_are_followed_to_a_bound() {
    // No scheduler has two pollers at a time; a damaged recording may.
    let mut run = Run::of(100).process(1, None, (0, 100)).wait((1, 1), "futex", (10, 90), |span| span.args[1] = 128);
    for tid in 2..400 {
        run = run.wait((1, tid), "epoll_pwait", (0, 100), nothing);
    }
    run.called_by("runtime.findRunnable", &["futex", "epoll_pwait"]);
    assert_eq!(run.classes().0, [(WaitClass::Clock, 80)]);
}

#[test]
fn an_event_loop_with_a_timer_does_not_poll() {
    let of = |look: &str| {
        let mut run = Run::of(600).process(1, None, (0, 600));
        for at in 0..10 {
            run = run.wait((1, 1), "epoll_wait", (60 * at, 60 * at + 50), nothing);
        }
        let (none, some) = ((look, -11, Some("anon_inode:inotify"), 1), (look, 1, Some("anon_inode:inotify"), 1));
        let timer = ("epoll_wait", 0, None, 50 * MS);
        let calls = [none, timer, some, none, timer, some, none, timer, some];
        let needless = run.window(1, &calls).window(1, &calls).judged().needless;
        needless.iter().map(|late| late.kind).collect::<Vec<_>>()
    };
    assert!(!of("read").contains(&NeedlessKind::AskedAgain));
    // A lock is asked for by time alone.
    assert!(of("flock").contains(&NeedlessKind::AskedAgain));
}
