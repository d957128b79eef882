//! Tests of state that calls set by a number that may be the process's own: after a set by one call, the next set by another
//! is useful. The other calls that set the same state are in `cases/text/settings.md`.

use crate::common::*;
use systoll_judge::Kind;

fn limits(soft: u64) -> Vec<u8> {
    [soft, 4096].map(u64::to_le_bytes).as_flattened().to_vec()
}

fn setrlimit(soft: u64) -> Call {
    call("setrlimit", "setrlimit", &[7, 0x7fff_0000], 0).input(1, &limits(soft))
}

fn prlimit(pid: u64, soft: u64) -> Call {
    call("prlimit64", "prlimit", &[pid, 7, 0x7fff_0000, 0], 0).input(2, &limits(soft))
}

#[test]
fn what_is_set_by_number_in_between_is_set_again_for_good_reason() {
    let nice = |which: u64, who: u64, value: u64| call("setpriority", "setpriority", &[which, who, value], 0);
    let cpus =
        |pid: u64, mask: u8| call("sched_setaffinity", "affinity", &[pid, 8, 0x7fff_0000], 0).input(2, &[mask; 8]);
    let sets = [
        ("prlimit64 by one's number", setrlimit(100), prlimit(77, 200)),
        ("prlimit64 by one's number, first", prlimit(77, 100), prlimit(0, 200)),
        ("setpriority of a group", nice(0, 0, 5), nice(1, 0, 6)),
        ("sched_setaffinity by number", cpus(0, 1), cpus(77, 2)),
    ];
    for (name, one, other) in sets {
        let judgement = judged(&rounds(20_000, |_| vec![one.clone(), other.clone()]), BUSY);
        let no_op = judgement.findings.iter().chain(&judgement.also).find(|f| f.kind == Kind::NoOp);
        assert!(no_op.is_none(), "{name}: {no_op:?}");
    }
}
