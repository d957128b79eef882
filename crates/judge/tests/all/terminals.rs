//! Tests of terminals: waiting for a person's input and output is healthy; input that is there already, and output
//! without a pause, in small pieces is not.

use crate::common::{Call, call, judged, no_finding, only, recording, rounds};
use systoll_judge::{Catalogue, Judgement, Kind, Options, judge};

const BUSY: u64 = 100_000_000;
const TERMINAL: &str = "/dev/pts/3";

fn write(text: &str) -> Call {
    let bytes = text.len();
    call("write", "write", &[1, 0x1000, bytes as u64], bytes as i64).input(1, text.as_bytes()).fd(TERMINAL).toll(1_500)
}

fn read(asked: u64, got: i64) -> Call {
    call("read", "read", &[0, 0x1000, asked], got).fd(TERMINAL).toll(900)
}

/// Returns a read of a key, for which the program waits 30 ms.
fn key() -> Call {
    read(1, 1).waited(30_000_000)
}

fn cell(n: u64) -> Call {
    write(&format!("\x1b[{};{}H{}", n % 24, n % 80, n % 7))
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
fn a_write_a_cell_is_one_too_many() {
    let finding = only(judged(&rounds(20_000, |n| vec![cell(n)]), BUSY));
    assert_eq!((finding.kind, finding.cause.as_deref()), (Kind::SmallIo, Some("screen-in-pieces")));
    // The program waits for a key between screens.
    let screens = rounds(100, |_| (0..200).map(cell).chain([key()]).collect());
    assert_eq!(only(judged(&screens, BUSY)).cause.as_deref(), Some("screen-in-pieces"));
    // One write for each screen is healthy.
    no_finding(&rounds(20_000, |_| vec![write(&"\x1b[1;1Hscreen".repeat(40)), key()]), BUSY);
}

#[test]
fn a_line_in_pieces_could_have_been_one_write() {
    let line = |n: u64| ["row", " ", &n.to_string(), "\n"].map(write).to_vec();
    let finding = only(judged(&rounds(5_000, line), BUSY));
    assert_eq!(finding.cause.as_deref(), Some("screen-in-pieces"));
    let share = finding.needless.estimate as f64 / finding.calls as f64;
    assert!((0.7..=0.8).contains(&share), "{share}: three of four");
}

#[test]
fn a_line_a_write_is_as_it_should_be() {
    no_finding(&rounds(20_000, |n| vec![write(&format!("line {n}\n"))]), BUSY);
    // A percentage may be drawn over the one before.
    no_finding(&rounds(20_000, |n| vec![write(&format!("\r{n} %"))]), BUSY);
    no_finding(&rounds(20_000, |n| vec![write(&format!("{n} %\r"))]), BUSY);
    no_finding(&rounds(20_000, |n| vec![write(["\x08|", "\x08/", "\x08-"][n as usize % 3])]), BUSY);
    // A prompt may be written in parts before each line that is typed.
    let prompt = |_| vec![write("\x1b[1m"), write("$ "), write("\x1b[0m"), key()];
    no_finding(&rounds(10_000, prompt), BUSY);
    // The written bytes are unknown.
    let unknown = |_| vec![call("write", "write", &[1, 0x1000, 8], 8).fd(TERMINAL).toll(1_500)];
    no_finding(&rounds(20_000, unknown), BUSY);
}

#[test]
fn what_the_program_worked_for_is_told_when_it_is_known() {
    let dots = rounds(20_000, |_| vec![write(".")]);
    let counts = rounds(20_000, |n| vec![write(&format!("{n} "))]);
    let quiet = |judgement: Judgement| assert!(judgement.findings.is_empty(), "{judgement:#?}");
    // The program works for 30 µs before each dot.
    quiet(at_pace(&dots, 30_000, 20.0));
    quiet(at_pace(&counts, 30_000, 20.0));
    // 5 µs of work: the same output again is still a sign of life, another number is not.
    quiet(at_pace(&dots, 5_000, 20.0));
    assert_eq!(only(at_pace(&counts, 5_000, 20.0)).cause.as_deref(), Some("screen-in-pieces"));
}

#[test]
fn pasted_text_can_be_read_at_once() {
    let finding = only(judged(&rounds(20_000, |_| vec![read(1, 1)]), BUSY));
    assert_eq!((finding.kind, finding.cause.as_deref()), (Kind::SmallIo, Some("terminal-by-byte")));
    // readline waits for each key, which is there already.
    let look = || call("pselect6", "rl_getc", &[1, 0x1000, 0, 0, 0, 0x2000], 1).toll(700);
    let finding = only(judged(&rounds(20_000, |_| vec![look(), read(1, 1)]), BUSY));
    assert_eq!(finding.cause.as_deref(), Some("terminal-by-byte"));
    assert!(finding.calls > 35_000, "the looks as well: {}", finding.calls);
    // Pasted lines: each is waited for and then read byte by byte.
    let lines = rounds(500, |_| std::iter::once(key()).chain((0..40).map(|_| read(1, 1))).collect());
    assert_eq!(only(judged(&lines, BUSY)).cause.as_deref(), Some("terminal-by-byte"));
}

#[test]
fn a_read_a_key_is_as_it_should_be() {
    no_finding(&rounds(20_000, |_| vec![key()]), BUSY);
    // An arrow key sends three bytes.
    no_finding(&rounds(5_000, |_| vec![key(), read(1, 1), read(1, 1)]), BUSY);
    // A read gets all that is there: a line, or less than was asked for.
    no_finding(&rounds(20_000, |_| vec![read(4096, 30)]), BUSY);
    no_finding(&rounds(20_000, |_| vec![read(16, 3)]), BUSY);
    // The call before has waited.
    let wait = || call("poll", "poll", &[0x1000, 1, u64::MAX], 1).toll(700).waited(30_000_000);
    no_finding(&rounds(20_000, |_| vec![wait(), read(1, 1)]), BUSY);
}

#[test]
fn keys_between_which_the_mode_is_set_are_pasted_or_typed() {
    // bash's `read -n1` makes nine calls about the terminal's mode around each key.
    let mode = |n: u64| call("ioctl", "tcsetattr", &[1, 0x5403, 0x1000 + n], 0).fd(TERMINAL).toll(700);
    let around = |key: Call| (0..9).map(mode).chain(std::iter::once(key)).collect::<Vec<_>>();
    let causes = |trace: &[Call]| -> Vec<String> {
        judged(trace, BUSY).findings.iter().filter_map(|f| f.cause.as_ref().map(ToString::to_string)).collect()
    };
    assert_eq!(causes(&rounds(20_000, |_| around(read(1, 1)))), ["terminal-by-byte"]);
    assert!(causes(&rounds(20_000, |_| around(key()))).is_empty());
    // An arrow key sends three bytes.
    let arrow = |_| [key(), read(1, 1), read(1, 1)].into_iter().flat_map(around).collect();
    assert!(causes(&rounds(5_000, arrow)).is_empty());
}

#[test]
fn what_is_shown_can_be_answered_while_the_program_is_stopped() {
    let echoed = rounds(20_000, |n| vec![read(1, 1), write(&format!("{}", n % 10))]);
    let slowly = at_pace(&echoed, 2_000, 12_000.0);
    assert!(slowly.findings.is_empty(), "{slowly:#?}");
    assert_eq!(only(at_pace(&echoed, 2_000, 20.0)).cause.as_deref(), Some("terminal-by-byte"));
}

#[test]
fn others_at_the_other_end_are_no_persons() {
    // Files and pipes are judged as elsewhere: one write a line is too many.
    for to in ["/tmp/lines", "pipe:[7]"] {
        let line = |n: u64| vec![write(&format!("line {n}\n")).fd(to)];
        assert_eq!(only(judged(&rounds(20_000, line), BUSY)).cause.as_deref(), Some("unbuffered-output"));
    }
}
