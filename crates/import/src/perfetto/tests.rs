//! Tests of traces as systing's source writes them, and as Perfetto's own recorder does.

use super::message::{Message, file, message};
use crate::{Format, Import};
use proptest::prelude::*;
use std::io::Write;
use systoll_model::{Machine, ProblemKind, Recording};

fn process(uuid: u64, pid: u64, words: &[&str]) -> Message {
    let words = words.iter().fold(message().number(1, pid), |all, word| all.text(2, word));
    message().message(60, message().number(1, uuid).message(3, words.text(6, "comm")))
}

fn thread(uuid: u64, pid: u64, tid: u64) -> Message {
    message().message(60, message().number(1, uuid).message(4, message().number(1, pid).number(2, tid)))
}

fn track(uuid: u64, parent: u64, name: &str) -> Message {
    message().message(60, message().number(1, uuid).text(2, name).number(5, parent))
}

/// Returns the two events of a slice of a track from `from` to `to`, whose name is given as text or
/// as a number.
fn slice(track: u64, name: Result<&str, u64>, from: u64, to: u64) -> [Message; 2] {
    let begins = message().number(9, 1).number(11, track);
    let begins = match name {
        Ok(name) => begins.text(23, name).text(22, "syscall").message(4, message().text(10, "nr").number(4, 0)),
        Err(number) => begins.number(10, number),
    };
    let packet = |at: u64, event| message().number(8, at).message(11, event).number(10, 7);
    [packet(from, begins), packet(to, message().number(9, 2).number(11, track))]
}

const SECOND: u64 = 1_000_000_000;

/// Returns the packets of systing 1.3 and later: processes, threads, tracks, and slices of one
/// sequence with their names, in the order in which calls returned.
fn systings() -> Vec<Message> {
    let mut all = vec![
        process(1, 100, &["/usr/bin/app", "-x"]),
        thread(2, 100, 101),
        track(3, 1, "syscalls"),
        track(4, 2, "syscalls"),
        track(5, 2, "markers"),
    ];
    all.extend(slice(3, Ok("read"), 9 * SECOND, 9 * SECOND + 2_000));
    all.extend(slice(4, Ok("futex"), 8 * SECOND, 9 * SECOND + 3_000));
    all.extend(slice(3, Ok("read"), 10 * SECOND, 10 * SECOND + 1_000));
    all.extend(slice(3, Ok("syscall_9999"), 11 * SECOND, 11 * SECOND));
    all.extend(slice(5, Ok("read"), 11 * SECOND, 11 * SECOND + 5));
    all
}

fn read(bytes: &[u8]) -> Recording {
    let mut import = Import::new(1);
    import.read("trace.pb", bytes).unwrap();
    assert_eq!(import.formats(), [Format::Perfetto]);
    let recording = import.finish().unwrap();
    assert_eq!(recording.check(), Ok(()));
    recording
}

fn counts(recording: &Recording) -> Vec<(String, u32, u64, u64)> {
    let row = |row: &systoll_model::Row| {
        (row.syscall.to_string(), recording.process(row.process).pid, row.counts.calls, row.counts.elapsed_ns)
    };
    let mut all: Vec<_> = recording.rows.iter().map(row).collect();
    all.sort();
    all
}

fn tells(recording: &Recording, kind: ProblemKind, words: &str) -> bool {
    recording.problems.iter().any(|p| p.kind == kind && p.text.contains(words))
}

#[test]
fn systings_slices_are_calls() {
    let recording = read(&file(systings()));
    assert_eq!(
        counts(&recording),
        [
            ("futex".into(), 100, 1, SECOND + 3_000),
            ("read".into(), 100, 2, 3_000),
            ("unknown_syscall".into(), 100, 1, 0),
        ]
    );
    // The earliest call is not the first one written.
    assert_eq!((recording.header.wall_ns, recording.longest[0].at_ns), (3 * SECOND, 0));
    assert_eq!((recording.header.command.join(" "), recording.header.threads), ("/usr/bin/app -x".into(), 2));
    assert_eq!((recording.processes.len(), recording.processes[0].threads), (1, 2));
    assert!(recording.windows.is_empty() && tells(&recording, ProblemKind::Partial, "names and times only"));
    assert!(tells(&recording, ProblemKind::Note, "syscall_9999 (1)"));
}

#[test]
fn names_by_number_are_those_of_their_sequence() {
    let name = |number, name| message().message(2, message().number(1, number).text(2, name));
    let mut all = vec![process(1, 100, &[]), track(3, 1, "Syscalls")];
    all.push(message().message(12, name(9, "openat")).number(10, 7).number(13, 3));
    all.push(message().message(12, name(9, "write")).number(10, 8));
    all.extend(slice(3, Err(9), 5, 9));
    all.push(message().number(10, 7).number(13, 1));
    all.extend(slice(3, Err(9), 15, 19));
    let recording = read(&file(all));
    assert_eq!(counts(&recording), [("openat".into(), 100, 1, 4), ("unknown_syscall".into(), 100, 1, 4)]);
}

/// Returns an event of a processor's bundle.
fn kernels(at: u64, tid: u64, field: u64, event: Message) -> Message {
    message().number(1, at).number(2, tid).message(field, event)
}

/// Returns the packets of Perfetto's own recorder: one processor after the other, so that a thread
/// that moved returns before it enters.
fn recorders() -> Vec<Message> {
    let enter = |id, args: [u64; 6]| args.iter().fold(message().number(1, id), |all, word| all.number(2, *word));
    let exit = |id, result: i64| message().number(1, id).number(2, result as u64);
    let bundle = |events: Vec<Message>| {
        message().message(1, events.into_iter().fold(message().number(1, 0), |all, event| all.message(2, event)))
    };
    let tree = message()
        .message(1, message().number(1, 200).text(3, "/bin/cat"))
        .message(2, message().number(1, 201).number(3, 200));
    vec![
        message().message(2, tree),
        bundle(vec![kernels(50, 201, 330, exit(0, 12)), kernels(60, 200, 329, enter(3, [7, 0, 0, 0, 0, 0]))]),
        bundle(vec![kernels(40, 201, 329, enter(0, [3, 0x7f00, 512, 0, 0, 0])), kernels(70, 200, 330, exit(3, -9))]),
    ]
}

#[test]
fn events_of_the_kernel_have_registers_and_results() {
    let recording = read(&file(recorders()));
    assert_eq!(counts(&recording), [("close".into(), 200, 1, 10), ("read".into(), 200, 1, 10)]);
    let told = |call: &systoll_model::WindowCall| (call.args[0], call.args[2], call.result, call.entry_ns);
    let mut calls: Vec<_> = recording.windows.iter().flat_map(|window| &window.calls).map(told).collect();
    calls.sort();
    assert_eq!(calls, [(3, 512, Some(12), 0), (7, 0, Some(-9), 20)]);
    assert!(tells(&recording, ProblemKind::Partial, "registers only"));
}

#[test]
fn numbers_of_another_machine_are_no_calls_of_ours() {
    let of = |name| {
        let system = message().message(45, message().message(1, message().text(4, name)));
        read(&file(std::iter::once(system).chain(recorders())))
    };
    assert!(counts(&of("mips64")).iter().all(|(name, ..)| name == "unknown_syscall"));
    let arm = of("aarch64");
    // Numbers 0 and 3 of the kernel of an aarch64 machine.
    assert_eq!(counts(&arm), [("io_cancel".into(), 200, 1, 10), ("io_setup".into(), 200, 1, 10)]);
    assert_eq!((arm.header.machine, of("x86_64").header.machine), (Some(Machine::Aarch64), Some(Machine::X86_64)));
    assert_eq!(read(&file(recorders())).header.machine, None);
}

#[test]
fn compressed_packets_are_read() {
    let mut packed = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
    packed.write_all(&file(systings())).unwrap();
    let packed = packed.finish().unwrap();
    let whole = counts(&read(&file(systings())));
    assert_eq!(counts(&read(&file([message().bytes(50, &packed)]))), whole);
    let cut = message().bytes(50, &packed[..packed.len() / 2]);
    let broken = Message(vec![0x5a, 9, 1]);
    for bad in [cut, broken] {
        let recording = read(&file(systings().into_iter().chain([bad])));
        assert!(tells(&recording, ProblemKind::Lost, "1 packets"), "{:?}", recording.problems);
    }
}

#[test]
fn names_forgotten_again_and_again_do_not_take_for_ever() {
    let name = |number| message().message(2, message().number(1, number).text(2, "read"));
    let mut all = message();
    for number in 0..60_000 {
        all = all.message(1, message().message(12, name(number)).number(10, 7));
    }
    for _ in 0..400_000 {
        all = all.message(1, message().number(10, 8).number(41, 1));
    }
    let mut import = Import::new(1);
    import.read("names", all.0.as_slice()).expect("a trace");
}

#[test]
fn what_is_lost_is_told() {
    let mut bytes = file(systings().into_iter().chain([message().number(42, 1)]));
    assert!(tells(&read(&bytes), ProblemKind::Lost, "it lost events"));
    bytes.truncate(bytes.len() - 3);
    assert!(tells(&read(&bytes), ProblemKind::CutShort, "ends in the middle"));
}

#[test]
fn other_files_are_told_apart() {
    let error = |bytes: &[u8]| Import::new(1).read("x", bytes).unwrap_err().to_string();
    assert!(error(b"BZh91AY&SY").contains("bzip2 -dc"));
    assert!(error(b"\x01\x02\x03\x04\x05\x06\x07\x08DUCK").contains("DuckDB"));
    assert!(error(b"PAR1....").contains("Parquet"));
    let mut import = Import::new(1);
    import.read("x", &file([message().number(8, 1)])[..]).unwrap();
    assert!(import.finish().is_err(), "a trace without calls");
}

#[test]
fn text_that_begins_with_an_empty_line_is_text() {
    let trace = b"\n12 openat(AT_FDCWD, \"/etc/passwd\", O_RDONLY) = 3\n12 close(3) = 0\n".repeat(40);
    let mut import = Import::new(1);
    import.read("x", &trace[..]).unwrap();
    assert_eq!(import.formats(), [Format::Strace]);
}

proptest! {
    #[test]
    fn any_change_of_a_trace_is_read_to_its_end(
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..12),
        kernels in any::<bool>(),
    ) {
        let mut bytes = file(if kernels { recorders() } else { systings() });
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let mut import = Import::new(1);
        if import.read("trace.pb", &bytes[..]).is_ok() && let Ok(recording) = import.finish() {
            prop_assert_eq!(recording.check(), Ok(()));
        }
    }
}
