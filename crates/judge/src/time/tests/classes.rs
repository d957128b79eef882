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
