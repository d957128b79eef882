//! Tests of the number of a finding's calls on each request, connection, …: it is reported if windows and exact
//! counts agree, and nowhere else.

use crate::common::*;
use systoll_judge::{Finding, PerUnit, WorkUnit};

const BUSY: u64 = 20_000_000;
const PEER: &str = "TCP:[127.0.0.1:80->127.0.0.1:4711]";

fn takes(fd: &'static str, got: i64) -> Call {
    call("read", "read:serve", &[5, 0x1000, 4096], got).fd(fd)
}

fn answers(fd: &'static str) -> Call {
    call("write", "write:serve", &[5, 0x2000, 600], 600).fd(fd)
}

fn asks() -> Call {
    call("getpid", "getpid:serve", &[], 4711)
}

fn told(trace: &[Call]) -> Option<PerUnit> {
    only(judged(trace, BUSY)).per_unit
}

#[test]
fn a_servers_calls_are_told_by_request() {
    let found = told(&rounds(6_000, |_| vec![takes(PEER, 80), asks(), asks(), answers(PEER)])).unwrap();
    assert_eq!((found.per, found.rounds, found.calls, found.needless), (WorkUnit::Request, 6_000, 2, 2));
    assert!(found.looked_at >= 8 && found.agree == found.looked_at, "{found:?}");
}

#[test]
fn of_several_calls_a_round_some_may_be_needed() {
    let again = || call("recvfrom", "recv:serve", &[5, 0x1000, 4096], -11).fd(PEER).toll(300);
    let got = || call("recvfrom", "recv:serve", &[5, 0x1000, 4096], 80).fd(PEER).toll(300);
    let wakes = || call("epoll_wait", "epoll_wait:serve", &[3, 0x3000, 8, u64::MAX], 1).waited(40_000);
    let found = told(&rounds(6_000, |_| vec![wakes(), got(), again(), answers(PEER)])).unwrap();
    // The finding is about the calls that take requests, so the wake-up marks the round.
    assert_eq!((found.per, found.rounds, found.calls, found.needless), (WorkUnit::WakeUp, 6_000, 2, 1));
}

#[test]
fn a_connection_is_a_round_where_it_brings_one_request() {
    let accepts = || call("accept4", "accept4:serve", &[3, 0, 0, 0], 5).fd("TCP:[0.0.0.0:80]").toll(3_000);
    let closes = || call("close", "close:serve", &[5], 0);
    let trace = rounds(6_000, |_| vec![accepts(), asks(), asks(), answers(PEER), closes()]);
    let found = told(&trace).unwrap();
    assert_eq!((found.per, found.rounds, found.needless), (WorkUnit::Connection, 6_000, 2));
}

#[test]
fn where_rounds_differ_nothing_is_told() {
    let trace = rounds(6_000, |i| {
        let some = (0..=i % 3).map(|_| asks());
        std::iter::once(takes(PEER, 80)).chain(some).chain([answers(PEER)]).collect()
    });
    assert_eq!(told(&trace), None);
}

#[test]
fn windows_alone_are_not_believed() {
    // The rounds in windows are alike, but no window shows the calls that are made elsewhere.
    let trace = rounds(6_000, |_| vec![takes(PEER, 80), asks(), answers(PEER)]);
    let mut rec = recording(&trace, BUSY);
    let getpid = systoll_model::Sysno::from_name("getpid").unwrap();
    rec.rows.iter_mut().filter(|r| r.syscall == getpid).for_each(|r| r.counts.calls += 3_000);
    let judgement = systoll_judge::judge(&rec, &systoll_judge::Catalogue::builtin(), &Default::default());
    let all: Vec<&Finding> = judgement.findings.iter().chain(&judgement.also).collect();
    assert!(!all.is_empty() && all.iter().all(|f| f.per_unit.is_none()), "{all:#?}");
}

#[test]
fn who_only_listens_has_no_requests() {
    let found = told(&rounds(6_000, |_| vec![takes(PEER, 80), asks(), asks()]));
    assert_eq!(found, None);
}

#[test]
fn a_filters_calls_are_told_by_item() {
    let writes = || call("write", "write:filter", &[1, 0x2000, 900], 900).fd("pipe:[8]");
    let trace = rounds(6_000, |_| vec![takes("pipe:[7]", 4096), asks(), asks(), writes()]);
    let found = told(&trace).unwrap();
    assert_eq!((found.per, found.rounds, found.needless), (WorkUnit::Item, 6_000, 2));
}
