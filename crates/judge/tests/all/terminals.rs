//! A test of a terminal whose program is stopped while it is watched; others are in `cases/text/terminals.md`.

use crate::common::{Call, call, only, recording, rounds};
use systoll_judge::{Catalogue, Judgement, Options, judge};

const BUSY: u64 = 100_000_000;
const TERMINAL: &str = "/dev/pts/3";

fn write(text: &str) -> Call {
    let bytes = text.len();
    call("write", "write", &[1, 0x1000, bytes as u64], bytes as i64).input(1, text.as_bytes()).fd(TERMINAL).toll(1_500)
}

fn read(asked: u64, got: i64) -> Call {
    call("read", "read", &[0, 0x1000, asked], got).fd(TERMINAL).toll(900)
}

/// Judges the trace with `apart_ns` from each call to the next, where watching adds `observer_ns` to a call.
fn at_pace(trace: &[Call], apart_ns: u64, observer_ns: f64) -> Judgement {
    let mut recording = recording(trace, BUSY);
    recording.header.observer_wall_ns_per_call = observer_ns;
    for window in &mut recording.windows {
        for (n, call) in (0u64..).zip(&mut window.calls) {
            (call.elapsed_ns, call.entry_ns) = (1_500 + call.waited_ns.unwrap_or(0), n * apart_ns);
        }
    }
    judge(&recording, &Catalogue::builtin(), &Options::default())
}

#[test]
fn what_is_shown_can_be_answered_while_the_program_is_stopped() {
    let echoed = rounds(20_000, |n| vec![read(1, 1), write(&format!("{}", n % 10))]);
    let slowly = at_pace(&echoed, 2_000, 12_000.0);
    assert!(slowly.findings.is_empty(), "{slowly:#?}");
    assert_eq!(only(at_pace(&echoed, 2_000, 20.0)).cause.as_deref(), Some("terminal-by-byte"));
}
