//! A test of connections that are longer than a window; others are in `cases/text/sockets.md`.

use crate::common::*;
use systoll_judge::Finding;

const BUSY: u64 = 1_000_000;

#[test]
fn calls_on_a_connection_of_which_no_window_shows_the_peer_count_neither_way() {
    let address: Vec<u8> =
        [2u16.to_le_bytes(), 8_080u16.to_be_bytes()].concat().into_iter().chain([127, 0, 0, 1]).collect();
    // A connection is longer than a window.
    let trace = rounds(600, |n| {
        let name: &'static str = format!("socket:[{n}]").leak();
        let on = |call_name: &'static str, args: &[u64], result: i64| {
            call(call_name, call_name, args, result).fd(name).toll(900)
        };
        let talk = [on("sendto", &[5, 0x1000, 3_000, 0, 0, 0], 3_000), on("recvfrom", &[5, 0x1000, 9_000], 8_000)];
        let begin =
            [call("socket", "socket", &[2, 1, 0], 5).toll(900), on("connect", &[5, 0x1000, 16], 0).input(1, &address)];
        let talks = std::iter::repeat_n(talk, 20).flatten();
        begin
            .into_iter()
            .chain(talks)
            .chain([on("setsockopt", &[5, 6, 1, 0x1000, 4], 0), on("close", &[5], 0)])
            .collect()
    });
    let judgement = judged(&trace, BUSY);
    let all: Vec<&Finding> = judgement.findings.iter().chain(&judgement.also).collect();
    let found = all.iter().find(|f| f.cause.as_deref() == Some("connection-per-request")).expect("connections");
    assert!(found.needless.estimate >= found.calls - found.calls / 50, "{found:#?}");
}
