//! Tests that calls which earlier programs of a file have made are sampled less often. The test has a file of its own,
//! because a backend waits for all children of its process.

use std::collections::BTreeMap;
use std::time::Duration;
use systoll_record::inproc::InprocBackend;
use systoll_record::{Backend, Launch, Quiet};

#[test]
fn calls_seen_in_earlier_programs_of_a_file_are_sampled_more_rarely() {
    let list = |files: usize| "/etc/group ".repeat(files);
    let (some, many) = (list(400), list(8_000));
    let script = format!("i=0; while [ $i -lt 40 ]; do ls {some}; i=$((i+1)); done; ls {many}");
    let mut launch =
        Launch { command: ["sh", "-c", &script].map(Into::into).to_vec(), discard_output: true, ..Launch::default() };
    launch.how.windows.allowance = Duration::from_secs(10);
    let recording = InprocBackend::new().run(&launch, &mut Quiet).unwrap();
    let mut looks = BTreeMap::new();
    let mut stood_for = BTreeMap::new();
    for ledger in &recording.ledgers {
        let row = recording.row(ledger.row);
        if row.syscall.name() == Some("statx") {
            *looks.entry(row.process).or_insert(0) += ledger.looks;
            *stood_for.entry(row.process).or_insert(0) += ledger.calls;
        }
    }
    let looks: Vec<u64> = looks.into_values().collect();
    assert_eq!(looks.len(), 41, "{looks:?}");
    assert!(looks[..8].iter().all(|looks| *looks >= 400), "{looks:?}");
    // The calls of the ninth program are known, but only after those of the programs before it have been collected.
    let later = looks[20..40].iter().sum::<u64>();
    assert!(later < 20 * 100, "{looks:?}");
    // The samples still stand for all calls, and a program that makes twenty times as many is sampled closely again.
    let stood_for: Vec<u64> = stood_for.into_values().collect();
    assert!(stood_for.iter().all(|calls| *calls >= 350), "{stood_for:?}");
    assert!(looks[40] > 1_500, "{looks:?}");
}
