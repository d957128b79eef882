//! Tests of Go's own sleeps, of what comes before `main`, and of questions that another one answered.

use crate::common::{BUSY, Call, call, judged, recording, rounds, stat, stat_bytes};

fn fstat(ctime: u64) -> Call {
    call("fstat", "fstat", &[3, 1], 0).output(1, &stat_bytes(ctime, 1)).toll(280)
}

#[test]
fn sleeps_of_gos_run_time_are_nobodys() {
    let time: Vec<u8> = [0u64, 20_000].iter().flat_map(|word| word.to_le_bytes()).collect();
    let sleeps = |of: &'static str| {
        let sleep = || call("nanosleep", of, &[0x1000, 0], 0).input(0, &time).toll(500).waited(80_000);
        let judgement = judged(&rounds(6_000, |_| vec![sleep()]), BUSY);
        judgement.findings.iter().chain(&judgement.also).filter(|f| f.cause.as_deref() == Some("sleep-poll")).count()
    };
    assert_eq!((sleeps("usleep"), sleeps("runtime.usleep")), (1, 0));
}

#[test]
fn what_came_before_an_unknown_main_is_not_told() {
    let stats = rounds(6_000, |_| vec![fstat(1).startup()]);
    let phase = |change: fn(&mut systoll_model::Process)| {
        let mut rec = recording(&stats, BUSY);
        change(&mut rec.processes[0]);
        let said = systoll_judge::judge(&rec, &systoll_judge::Catalogue::builtin(), &systoll_judge::Options::default());
        said.findings.first().map(|f| f.phase)
    };
    assert_eq!(phase(|_| ()), Some(systoll_model::Phase::StartUp));
    assert_eq!(phase(|process| process.main_at_ns = None), Some(systoll_model::Phase::Steady));
}

#[test]
fn whether_a_link_lies_there_is_another_question() {
    let asked = |flags: u64| {
        let ask = |i: u64| {
            let mut ask = stat(&format!("/srv/{i}/file"), "walk", 1, 1);
            ask.args[3] = flags;
            vec![ask]
        };
        let mut rec = recording(&rounds(4_000, ask), BUSY);
        let calls = rec.windows.iter_mut().flat_map(|window| &mut window.calls);
        calls.for_each(|call| call.before = systoll_model::Before::OtherWay);
        let said = systoll_judge::judge(&rec, &systoll_judge::Catalogue::builtin(), &systoll_judge::Options::default());
        said.findings.len() + said.also.len()
    };
    // Whoever saw that there is no link knows what the name leads to, but not the reverse.
    assert_eq!((asked(0), asked(0x100)), (1, 0));
}
