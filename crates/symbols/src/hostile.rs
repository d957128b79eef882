//! Tests with damaged files, truncated or with changed bytes, given to every reader.

use crate::fuzzing::use_file;
use proptest::prelude::*;
use std::process::Command;
use std::sync::OnceLock;

const PROGRAM: &str = "#include <time.h>\n#include <stdlib.h>\n#include <stdio.h>\n\
    static inline int inner(time_t t) { return localtime(&t)->tm_hour; }\n\
    int compare(const void *a, const void *b) { return inner(*(int *)a) - inner(*(int *)b); }\n\
    int main(int argc, char **argv) { int v[2] = {argc, 1}; qsort(v, 2, 4, compare); return puts(argv[0]); }\n";

/// Form in which a program has its debug information.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Plain,
    Compressed,
    /// Symbols only, packed by xz into a section of a stripped program.
    Packed,
}

const KINDS: [Kind; 3] = [Kind::Plain, Kind::Compressed, Kind::Packed];

/// Returns a program with all kinds of sections; empty if there is no compiler.
fn program(kind: Kind) -> &'static [u8] {
    static PLAIN: OnceLock<Vec<u8>> = OnceLock::new();
    static COMPRESSED: OnceLock<Vec<u8>> = OnceLock::new();
    static PACKED: OnceLock<Vec<u8>> = OnceLock::new();
    let (bytes, debug) = match kind {
        Kind::Plain => (&PLAIN, "-gz=none"),
        Kind::Compressed => (&COMPRESSED, "-gz=zlib"),
        Kind::Packed => (&PACKED, "-g0"),
    };
    bytes.get_or_init(|| {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("p.c"), PROGRAM).unwrap();
        let gcc = Command::new("gcc").args(["-g", debug, "-O2", "-o", "p", "p.c"]).current_dir(dir.path()).status();
        let xz = Command::new("xz").arg("--version").stdout(std::process::Stdio::null()).status();
        match gcc.and_then(|status| if matches!(kind, Kind::Packed) { xz.map(|_| status) } else { Ok(status) }) {
            Ok(status) => {
                assert!(status.success());
                if matches!(kind, Kind::Packed) {
                    let pack = "xz -k p && strip p && objcopy --add-section .gnu_debugdata=p.xz p";
                    let packed = Command::new("sh").args(["-c", pack]).current_dir(dir.path()).status();
                    assert!(packed.unwrap().success());
                }
                std::fs::read(dir.path().join("p")).unwrap()
            }
            Err(_) => {
                assert!(std::env::var_os("SYSTOLL_TEST_STRICT").is_none_or(|v| v != "1"), "gcc or xz is not installed");
                Vec::new()
            }
        }
    })
}

/// Returns positions of bytes to change: those in the headers, at either end, come as often as all
/// others.
fn place(len: usize) -> impl Strategy<Value = usize> {
    let len = len.max(1);
    prop_oneof![0..len.min(1024), len.saturating_sub(2400)..len, 0..len, 0..len]
}

fn change(len: usize) -> impl Strategy<Value = (usize, u8)> {
    (place(len), prop_oneof![any::<u8>(), Just(0), Just(0xff), Just(0x7f), Just(1)])
}

fn damaged() -> impl Strategy<Value = Damaged> {
    proptest::sample::select(&KINDS[..]).prop_flat_map(|kind| {
        let len = program(kind).len();
        let cut = prop_oneof![4 => Just(len), 1 => 0..=len];
        (proptest::collection::vec(change(len), 0..48), cut).prop_map(move |(changes, cut)| {
            let mut bytes = program(kind).to_vec();
            for (at, value) in &changes {
                if let Some(byte) = bytes.get_mut(*at) {
                    *byte = *value;
                }
            }
            bytes.truncate(cut);
            Damaged { bytes, kind, changes }
        })
    })
}

/// A damaged file, which is not printed byte by byte when a case fails.
struct Damaged {
    bytes: Vec<u8>,
    kind: Kind,
    changes: Vec<(usize, u8)>,
}

impl std::fmt::Debug for Damaged {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} bytes, {:?}, changed {:?}", self.bytes.len(), self.kind, self.changes)
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn damaged_files_do_no_harm(damaged in damaged(), seed in any::<u64>()) {
        use_file(damaged.bytes, seed);
    }
}

#[test]
fn an_undamaged_file_is_used() {
    for kind in KINDS {
        let bytes = program(kind).to_vec();
        assert!(bytes.is_empty() || use_file(bytes, 1));
    }
}
