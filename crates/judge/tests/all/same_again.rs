//! Two runs of one program measure slightly different figures; their reports must not differ.

use crate::common::{call, judged, only, rounds};

#[test]
fn a_timer_is_late_where_others_have_the_processor() {
    let send = || call("write", "write", &[5, 0x1000, 40], 40).fd("TCP:[127.0.0.1:5000->127.0.0.1:80]").toll(2_000);
    let answered_after = |late: fn(u64) -> bool| {
        rounds(60, move |n| {
            let waited = if late(n) { 55_000_000 } else { 41_000_000 };
            vec![
                send(),
                send(),
                call("read", "read", &[5, 0x2000, 64], 64)
                    .fd("TCP:[127.0.0.1:5000->127.0.0.1:80]")
                    .toll(900)
                    .waited(waited),
            ]
        })
    };
    let some = only(judged(&answered_after(|n| n % 5 == 4), 1_000_000));
    let none = only(judged(&answered_after(|_| false), 1_000_000));
    assert_eq!((some.cause.as_deref(), none.cause.as_deref()), (Some("nagle-delay"), Some("nagle-delay")));
    assert_eq!((some.needless.estimate, some.evidence.claimed), (none.needless.estimate, none.evidence.claimed));
    // A program whose waits are always this long waits for something else.
    assert!(judged(&answered_after(|_| true), 1_000_000).findings.is_empty());
    let half = judged(&answered_after(|n| n % 2 == 0), 1_000_000);
    assert!(half.findings.iter().all(|f| f.needless.estimate < f.calls * 6 / 10), "{half:#?}");
}

#[test]
fn of_callers_that_cost_about_the_same_the_same_one_leads() {
    let leads = |here: u64, there: u64| {
        let asks = |api, toll| call("getpid", api, &[], 4711).toll(toll);
        let trace = rounds(8_000, move |_| vec![asks("here:getpid", here), asks("there:getpid", there)]);
        let found = only(judged(&trace, 5_000_000));
        found.rows.first().map(|row| row.0)
    };
    assert_eq!(leads(200, 230), leads(230, 200));
    assert_ne!(leads(200, 600), leads(600, 200));
}

#[test]
fn many_calls_make_up_for_a_price_just_short() {
    let found = |calls: u64, toll: u64, other: u64| {
        let judgement = judged(&rounds(calls, |_| vec![call("getpid", "getpid", &[], 4711).toll(toll)]), other);
        (judgement.findings.len(), judgement.also.len())
    };
    // The price of the calls is 0.96 ms, then 1.02 ms: both are findings.
    assert_eq!(found(6_000, 160, 15_000_000), (1, 0));
    assert_eq!(found(6_000, 170, 15_000_000), (1, 0));
    assert_eq!(found(3_000, 300, 20_000_000), (0, 1));
    // The price depends on the length of the run, the share does not: 5.7 %.
    assert_eq!(found(3_000, 300, 15_000_000), (1, 0));
    assert_eq!(found(900, 300, 4_500_000), (1, 0));
    // In a run that short, 90 us are too little.
    assert_eq!(found(300, 300, 1_500_000), (0, 0));
    // The calls cost 90 µs and 105 µs.
    assert_eq!(found(600, 150, 5_000_000), (0, 1));
    assert_eq!(found(600, 175, 5_000_000), (0, 1));
    assert_eq!(found(400, 150, 3_000_000), (0, 0));
}
