//! Tests what ends waits, and how the time outside long waits is divided.

use super::*;

fn class(call: &str, more: fn(&mut WaitSpan)) -> WaitClass {
    let run = Run::of(100).process(1, None, (0, 100)).wait((1, 1), call, (10, 90), more);
    run.classes().0[0].0
}

#[test]
fn calls_that_name_a_path_wait_for_the_disk() {
    for call in ["rmdir", "unlinkat", "renameat2", "openat", "statx", "truncate", "link"] {
        assert_eq!(class(call, nothing), WaitClass::Disk, "{call}");
    }
    assert_eq!(class("execve", nothing), WaitClass::Kernel);
}

#[test]
fn calls_that_wait_for_nobody_wait_for_the_kernel_or_a_processor() {
    assert_eq!(class("mremap", nothing), WaitClass::Kernel);
    let socket: fn(&mut WaitSpan) = |span| span.object = Some("TCP:[10.0.0.1:5->10.0.0.2:80]".into());
    assert_eq!(class("close", socket), WaitClass::Kernel);
    assert_eq!(class("sendto", socket), WaitClass::Peer, "its buffer was full");
    // The thread may have been ready for half of the time: nothing shows that a peer or the disk was waited for.
    let queued: fn(&mut WaitSpan) = |span| {
        (span.object, span.queued_most_ns) = (Some("TCP:[10.0.0.1:5->10.0.0.2:80]".into()), Some(50 * MS));
    };
    assert_eq!([class("sendto", queued), class("close", queued)], [WaitClass::Processor; 2]);
    assert_eq!([class("newfstatat", queued), class("mremap", queued)], [WaitClass::Processor; 2]);
    assert_eq!(class("recvfrom", queued), WaitClass::Peer, "it was made to wait");
    let wakes: fn(&mut WaitSpan) = |span| span.args[1] = 129;
    assert_eq!(class("futex", wakes), WaitClass::Processor);
    let hardly: fn(&mut WaitSpan) = |span| span.queued_most_ns = Some(3 * MS);
    assert_eq!(class("newfstatat", hardly), WaitClass::Disk);
}

#[test]
fn the_output_of_a_child_is_waited_for() {
    let run = |(start, end): (u64, u64)| {
        let run = Run::of(100).process(1, None, (0, 100)).process(2, Some(0), (start, end));
        let run = run.wait((1, 1), "read", (10, 60), |span| span.object = Some("pipe:[7]".into()));
        run.wait((2, 2), "nanosleep", (20, 50), nothing).classes()
    };
    // The child's end is the end of the wait: its own time, of which it sleeps 30 ms.
    assert_eq!(run((5, 60)), (vec![(WaitClass::Clock, 30)], 70));
    // A child that ended earlier wrote nothing at the end.
    assert_eq!(run((5, 55)).0, [(WaitClass::Unknown, 50)]);
    // A wait for any of several descriptors; of the child no thread is known.
    let polls = Run::of(100).process(1, None, (0, 100)).process(2, Some(0), (5, 60));
    let polls = polls.wait((1, 1), "poll", (10, 60), |span| span.result = Some(1));
    assert_eq!(polls.window(1, &[("read", 5, Some("pipe:[7]"), 9)]).classes(), (vec![(WaitClass::Process, 50)], 50));
}

#[test]
fn who_starts_programs_and_talks_to_nobody_else_waits_for_their_output() {
    let run = |(start, end): (u64, u64)| {
        let run = Run::of(100).process(1, None, (0, 100)).process(2, Some(0), (start, end));
        run.wait((1, 1), "poll", (10, 60), |span| span.result = Some(1)).wait((2, 2), "nanosleep", (20, 50), nothing)
    };
    // Nothing shows what the wait was about.
    assert_eq!(run((5, 60)).classes(), (vec![(WaitClass::Clock, 30)], 70));
    assert_eq!(run((5, 30)).classes().0, [(WaitClass::Unknown, 50)], "it had ended");
    let socket = Some("TCP:[127.0.0.1:5->127.0.0.1:80]");
    assert_eq!(run((5, 60)).window(1, &[("recvfrom", 5, socket, 9)]).classes().0, [(WaitClass::Peer, 50)]);
}

#[test]
fn time_beside_long_waits_is_running_only_as_far_as_the_processor_time_goes() {
    let mut run = Run::of(1_000).process(1, None, (0, 1_000)).wait((1, 1), "nanosleep", (0, 200), nothing);
    run.recording.rows[0].counts.waited_ns = Some(200 * MS);
    let parts = |run: &Run| {
        let wall = run.judged().wall.unwrap();
        assert_eq!(wall.other_ns, 800 * MS);
        [wall.running_ns, wall.systoll_ns, wall.queued_ns, wall.brief_ns()].map(|ns| ns / MS)
    };
    assert_eq!(parts(&run), [800, 0, 0, 0], "the processor time is not known");
    run.recording.processes[0].cpu_ns = Some(100 * MS);
    assert_eq!(parts(&run), [100, 0, 0, 700]);
    run.recording.header.watching_ns = 300 * MS;
    assert_eq!(parts(&run), [100, 300, 0, 400]);
    // What the calls waited briefly is not known to be time in the queue.
    run.recording.processes[0].queued_ns = Some(390 * MS);
    run.recording.rows[0].counts.waited_ns = Some(250 * MS);
    assert_eq!(parts(&run), [100, 300, 350, 50]);
    run.recording.processes[0].queued_ns = Some(90 * MS);
    assert_eq!(parts(&run), [100, 300, 90, 310]);
}

#[test]
fn waits_for_other_processes_are_shown_without_the_time_for_which_systoll_held_these_up() {
    let run = Run::of(1_000).process(1, None, (0, 1_000)).wait((1, 1), "nanosleep", (0, 200), nothing);
    let mut run = run.wait((1, 1), "wait4", (300, 800), nothing).wait((1, 1), "wait4", (850, 950), nothing);
    run.recording.processes[0].cpu_ns = Some(100 * MS);
    let mut parts = |watching_ms: u64| {
        run.recording.header.watching_ns = watching_ms * MS;
        let wall = run.judged().wall.unwrap();
        let waits: Vec<_> = wall.parts.iter().map(|part| (part.class, part.ns / MS, part.corrected)).collect();
        assert_eq!(wall.waited_ns() + wall.other_ns, wall.wall_ns);
        (waits, [wall.running_ns, wall.systoll_ns].map(|ns| ns / MS))
    };
    let (slept, waited) = ((WaitClass::Clock, 200, false), |ms, less| (WaitClass::Process, ms, less));
    // 100 of the 200 ms beside long waits were its own.
    assert_eq!(parts(60), (vec![waited(600, false), slept], [100, 60]));
    assert_eq!(parts(400), (vec![waited(300, true), slept], [100, 400]));
    assert_eq!(parts(2_000), (vec![slept, waited(0, true)], [100, 700]));
}

#[test]
fn who_made_more_processes_than_are_known_waits_for_one_of_them() {
    let reads = |calls: u64| {
        let run = Run::of(100).process(1, None, (0, 100)).process(2, Some(0), (5, 6)).process(3, Some(1), (5, 6));
        let mut run = run.wait((1, 1), "read", (10, 60), |span| span.object = Some("pipe:[7]".into()));
        let row = run.row(1, "clone");
        run.recording.rows[row.0 as usize].counts.calls = calls;
        // Of a program that a child ran at first, and its parent afterwards.
        run.recording.processes[2].instances = 50;
        run.classes().0
    };
    assert_eq!(reads(9), [(WaitClass::Process, 50)]);
    assert_eq!(reads(1), [(WaitClass::Unknown, 50)]);
}

#[test]
fn lines_that_share_a_call_have_their_parts_of_its_waits() {
    // Ten sleeps of 40 ms; so many of the first ones have a known line, of two or of one.
    let of = |known: usize, lines: u32| {
        let mut run = Run::of(500).process(1, None, (0, 500));
        for at in 0..10 {
            run = run.wait((1, 1), "nanosleep", (50 * at, 50 * at + 40), nothing);
        }
        for (at, span) in run.recording.wait_spans.spans.iter_mut().enumerate().take(known) {
            span.line = Some(FrameId(7 + at as u32 % lines));
        }
        let wall = run.judged().wall.unwrap();
        wall.parts
            .iter()
            .map(|part| (part.line.map(|line| line.0), part.calls, part.ns / MS, part.shared))
            .collect::<Vec<_>>()
    };
    assert_eq!(of(10, 2), [(Some(7), 5, 200, false), (Some(8), 5, 200, false)]);
    assert_eq!(of(4, 2), [(Some(7), 5, 200, true), (Some(8), 5, 200, true)]);
    assert_eq!(of(4, 1), [(Some(7), 10, 400, false)]);
    // A fifth stands for none of two lines.
    assert_eq!(of(2, 2), [(None, 10, 400, false)]);
}

#[test]
fn a_thread_that_was_ready_to_run_waited_for_no_disk() {
    let of = |object: &'static str, queued_ms: u64| {
        let mut run = Run::of(100).process(1, None, (0, 100)).wait((1, 1), "pread64", (10, 50), nothing);
        let span = &mut run.recording.wait_spans.spans[0];
        (span.object, span.queued_most_ns, span.result) = (Some(object.into()), Some(queued_ms * MS), Some(64));
        run.classes().0
    };
    assert_eq!(of("/srv/data", 1), [(WaitClass::Disk, 40)]);
    assert_eq!(of("/srv/data", 39), [(WaitClass::Processor, 40)]);
    assert_eq!(of("/dev/shm/data", 39), [(WaitClass::Processor, 40)]);
}
