//! A recording with many rows and windows gets the same answers as a small one.

use crate::common::large::{LOOPS, large};
use std::collections::BTreeSet;
use systoll_judge::{Catalogue, Options, judge};
use systoll_model::Sysno;

#[test]
fn what_is_found_does_not_depend_on_how_much_there_is() {
    let sick: BTreeSet<&str> = LOOPS.iter().filter_map(|(cause, _)| *cause).collect();
    for (rows, events) in [(2_000, 40_000), (20_000, 200_000)] {
        let recording = large(rows, events);
        let seen: usize = recording.windows.iter().map(|w| w.calls.len()).sum();
        assert!(recording.rows.len() >= rows && seen >= events * 9 / 10, "{} {seen}", recording.rows.len());
        let judgement = judge(&recording, &Catalogue::builtin(), &Options::default());
        let all = || judgement.findings.iter().chain(&judgement.also);
        let found: BTreeSet<&str> = all().filter_map(|f| f.cause.as_deref()).collect();
        assert_eq!(found, sick, "{rows} rows");
        let unnamed: BTreeSet<_> = all().filter(|f| f.cause.is_none()).map(|f| f.syscalls.clone()).collect();
        assert_eq!(unnamed, BTreeSet::from([vec![Sysno::from_name("fstatfs").unwrap()]]), "{rows} rows");
        for finding in all() {
            let needless = finding.needless;
            assert!(needless.low <= needless.estimate && needless.estimate <= needless.high, "{finding:?}");
            assert!(needless.high <= finding.calls, "{finding:?}");
        }
    }
}
