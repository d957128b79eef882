//! Tests the recording's file: a written recording is read back unchanged, and no other bytes are
//! accepted.

use crate::common::{program, recordings};
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use proptest::prelude::*;
use std::io::{Read, Write};
use std::time::{Duration, Instant};
use systoll_model::{FileError, Machine, Problem, ProblemKind, Recording, StackId};

fn written(rec: &Recording) -> Vec<u8> {
    let mut file = Vec::new();
    rec.write(&mut file).expect("write");
    file
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    gzip.write_all(bytes).expect("gzip");
    gzip.finish().expect("gzip")
}

fn gunzip(file: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    GzDecoder::new(file).read_to_end(&mut bytes).expect("gunzip");
    bytes
}

fn error(file: &[u8]) -> FileError {
    Recording::read(file).expect_err("a bad file")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn written_recordings_are_read_back(rec in recordings::recording()) {
        rec.check().expect("generated recordings are whole");
        let file = written(&rec);
        prop_assert_eq!(Recording::read(file.as_slice()).expect("read"), rec);
    }

    #[test]
    fn arbitrary_bytes_are_no_recording(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        prop_assert!(Recording::read(bytes.as_slice()).is_err());
        // The same bytes are refused inside a good gzip file, where a profile is expected.
        prop_assert!(Recording::read(gzip(&bytes).as_slice()).is_err());
    }

    /// Checks that the result is a whole recording or an error.
    #[test]
    fn changed_bytes_never_panic(
        rec in recordings::recording(),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        end in any::<prop::sample::Index>(),
        cut in any::<bool>(),
    ) {
        let mut bytes = gunzip(&written(&rec));
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if cut {
            bytes.truncate(end.index(bytes.len()));
        }
        if let Ok(read) = Recording::read(gzip(&bytes).as_slice()) {
            prop_assert_eq!(read.check(), Ok(()));
        }
    }
}

#[test]
fn every_truncation_is_an_error() {
    let file = written(&program::recording(3, 2));
    for end in 0..file.len() {
        match (end, error(&file[..end])) {
            (0, FileError::Empty) | (1.., FileError::Truncated) => {}
            (end, other) => panic!("cut at {end}: {other:?}"),
        }
    }
}

#[test]
fn every_flipped_bit_of_the_gzip_is_survived() {
    let file = written(&program::recording(2, 1));
    for bit in 0..file.len() * 8 {
        let mut bad = file.clone();
        bad[bit / 8] ^= 1 << (bit % 8);
        // Some bits of gzip's own header (time, system) change nothing.
        match Recording::read(bad.as_slice()) {
            Ok(rec) => assert_eq!(rec.check(), Ok(())),
            Err(e) => assert!(!e.to_string().is_empty()),
        }
    }
}

#[test]
fn errors_name_their_cause() {
    assert!(matches!(error(b""), FileError::Empty));
    assert!(matches!(error(b"\x7fELF and so on"), FileError::NotGzip));
    assert!(error(b"plain text").to_string().contains("not gzip"));
    assert!(matches!(error(&gzip(b"")), FileError::Foreign(_)));
    assert!(matches!(error(&gzip(b"no protobuf at all")), FileError::Damaged(_)));
    // A profile of Go has the strings "", "cpu" and "nanoseconds", and one sample type made of
    // these.
    let go = [&b"\x0a\x04\x08\x01\x10\x02\x32\x00\x32\x03cpu\x32\x0b"[..], b"nanoseconds"].concat();
    let text = error(&gzip(&go)).to_string();
    assert!(text.contains("cpu/nanoseconds"), "{text}");
    // Field 7001, of two bytes, has version 9.
    let newer = error(&gzip(b"\xca\xb5\x03\x02\x08\x09"));
    assert!(matches!(newer, FileError::Newer { file: 9, ours: 1 }), "{newer:?}");
    assert!(newer.to_string().contains("newer systoll"));
    assert!(matches!(error(&gzip(b"\xca\xb5\x03\x02\x08\x01")), FileError::Damaged(_)));
}

#[test]
fn a_machine_is_kept_and_an_unknown_one_is_refused_by_name() {
    let mut recording = program::recording(2, 1);
    for machine in [None, Some(Machine::X86_64), Some(Machine::Aarch64)] {
        recording.header.machine = machine;
        assert_eq!(Recording::read(written(&recording).as_slice()).expect("read").header.machine, machine);
    }
    // Field 7001 with version 1 and a header (field 4): the backend (field 3) ptrace, and the machine (field 40).
    let file = |machine: &[u8]| {
        let machine = if machine.is_empty() { vec![] } else { [&[0xc2, 0x02, machine.len() as u8], machine].concat() };
        let header = [&b"\x1a\x06ptrace"[..], &machine].concat();
        let message = [&[0x08, 1, 0x22, header.len() as u8], &header[..]].concat();
        gzip(&[&[0xca, 0xb5, 0x03, message.len() as u8], &message[..]].concat())
    };
    let refused = error(&file(b"riscv64"));
    assert!(
        matches!(&refused, FileError::Machine(name) if name == "riscv64") && refused.to_string().contains("riscv64")
    );
    assert_eq!(
        Recording::read(file(b"").as_slice()).expect("read").header.machine,
        Some(Machine::X86_64),
        "older files name no machine"
    );
}

struct Broken;

impl Read for Broken {
    fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
        Err(std::io::Error::from(std::io::ErrorKind::UnexpectedEof))
    }
}

#[test]
fn io_errors_do_not_blame_the_file() {
    let file = written(&program::recording(2, 1));
    let half = &file[..file.len() / 2];
    assert!(matches!(Recording::read(half.chain(Broken)), Err(FileError::Io(_))));
    assert!(matches!(program::recording(2, 1).write(Full), Err(FileError::Io(_))));
    let mut bad = program::recording(2, 1);
    bad.rows[0].context = StackId(99);
    assert!(matches!(bad.write(Vec::new()), Err(FileError::Invalid(_))));
}

struct Full;

impl Write for Full {
    fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
        Err(std::io::Error::from(std::io::ErrorKind::StorageFull))
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn decompression_bombs_are_refused() {
    // These are 100 MiB of zeros in 100 KiB.
    assert!(matches!(error(&gzip(&vec![0; 100 << 20])), FileError::TooLarge(_)));
    // These are a million empty samples, and a million empty windows in field 7001.
    assert!(matches!(error(&gzip(&b"\x12\x00".repeat(1 << 20))), FileError::TooLarge(_)));
    let windows = b"\x52\x00".repeat(1 << 20);
    let private = [&b"\xca\xb5\x03\x80\x80\x80\x01"[..], &windows].concat();
    assert!(matches!(error(&gzip(&private)), FileError::TooLarge(_)));
}

#[test]
fn endless_arguments_are_refused() {
    let mut rec = program::recording(1, 1);
    let big = vec![7; 512 << 10];
    let call = rec.windows[0].calls[0].clone();
    rec.windows[0].calls = (0..200)
        .map(|_| {
            let mut call = call.clone();
            call.data[0].bytes.clone_from(&big);
            call
        })
        .collect();
    assert!(matches!(error(&written(&rec)), FileError::TooLarge(_)));
}

#[test]
fn a_large_recording_keeps_the_first_and_the_latest_windows() {
    let rec = program::recording(100, 4000);
    let read = Recording::read(written(&rec).as_slice()).expect("read");
    assert!(read.windows.len() < rec.windows.len() && read.windows.len() >= 200, "{}", read.windows.len());
    for row in 0..100 {
        let of = |rec: &Recording| rec.windows.iter().filter(|w| w.row.0 == row).cloned().collect::<Vec<_>>();
        let (all, kept) = (of(&rec), of(&read));
        assert!(kept.first() == all.first() && kept.last() == all.last(), "row {row}");
    }
    assert!(read.rows == rec.rows);
    let told: Vec<_> = read.problems.iter().filter(|p| p.kind == ProblemKind::Bounded).collect();
    assert!(matches!(told[..], [Problem { text, .. }] if text.contains("of 4000 windows")), "{told:?}");
    // Once thinned, the recording fits: nothing more is lost, and nothing is reported twice.
    assert!(Recording::read(written(&read).as_slice()).expect("read") == read);
}

#[test]
fn counts_are_kept_whatever_the_size() {
    // The table alone exceeds the bound: some windows have room all the same.
    let rec = program::recording(8000, 4000);
    let read = Recording::read(written(&rec).as_slice()).expect("read");
    assert!(read.rows == rec.rows);
    assert!((100..4000).contains(&read.windows.len()), "{}", read.windows.len());
    let told: Vec<_> = read.problems.iter().filter(|p| p.kind == ProblemKind::Bounded).collect();
    assert!(matches!(told[..], [Problem { text, .. }] if text.contains("of 4000 windows")), "{told:?}");
    assert!(Recording::read(written(&read).as_slice()).expect("read") == read);
}

#[test]
#[expect(clippy::print_stdout, reason = "the figures are shown with --nocapture")]
fn a_real_size_is_small_and_quick() {
    let rec = program::recording(300, 500);
    let mut best = Duration::MAX;
    let mut file = Vec::new();
    for _ in 0..5 {
        let start = Instant::now();
        file = written(&rec);
        Recording::read(file.as_slice()).expect("read");
        best = best.min(start.elapsed());
    }
    println!("{} bytes, {} before gzip; written and read in {best:?}", file.len(), gunzip(&file).len());
    assert!(file.len() < 300_000, "{} bytes", file.len());
    // This takes some 20 ms on an idle box. The bound fails only if the time is out of proportion.
    let limit = Duration::from_secs(5);
    assert!(best < limit, "{best:?}");
    assert!(Recording::read(file.as_slice()).expect("read") == rec, "500 windows need no thinning");
}
