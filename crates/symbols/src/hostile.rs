//! Files nobody should have made: cut, or with bytes changed, through everything that reads them.

use crate::any_file::use_file;
use proptest::prelude::*;
use std::process::Command;
use std::sync::OnceLock;

const PROGRAM: &str = "#include <time.h>\n#include <stdlib.h>\n#include <stdio.h>\n\
    static inline int inner(time_t t) { return localtime(&t)->tm_hour; }\n\
    int compare(const void *a, const void *b) { return inner(*(int *)a) - inner(*(int *)b); }\n\
    int main(int argc, char **argv) { int v[2] = {argc, 1}; qsort(v, 2, 4, compare); return puts(argv[0]); }\n";

/// A program with all kinds of sections; empty where there is no compiler.
fn program(compressed: bool) -> &'static [u8] {
    static PLAIN: OnceLock<Vec<u8>> = OnceLock::new();
    static COMPRESSED: OnceLock<Vec<u8>> = OnceLock::new();
    let (bytes, debug) = if compressed { (&COMPRESSED, "-gz=zlib") } else { (&PLAIN, "-gz=none") };
    bytes.get_or_init(|| {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("p.c"), PROGRAM).unwrap();
        let gcc = Command::new("gcc").args(["-g", debug, "-O2", "-o", "p", "p.c"]).current_dir(dir.path()).status();
        match gcc {
            Ok(status) => {
                assert!(status.success());
                std::fs::read(dir.path().join("p")).unwrap()
            }
            Err(_) => {
                assert!(std::env::var_os("SYSTOLL_TEST_STRICT").is_none_or(|v| v != "1"), "gcc is not installed");
                Vec::new()
            }
        }
    })
}

/// Where to change bytes: in the headers at either end as often as anywhere.
fn place(len: usize) -> impl Strategy<Value = usize> {
    let len = len.max(1);
    prop_oneof![0..len.min(1024), len.saturating_sub(2400)..len, 0..len, 0..len]
}

fn change(len: usize) -> impl Strategy<Value = (usize, u8)> {
    (place(len), prop_oneof![any::<u8>(), Just(0), Just(0xff), Just(0x7f), Just(1)])
}

fn damaged() -> impl Strategy<Value = Damaged> {
    any::<bool>().prop_flat_map(|compressed| {
        let len = program(compressed).len();
        let cut = prop_oneof![4 => Just(len), 1 => 0..=len];
        (proptest::collection::vec(change(len), 0..48), cut).prop_map(move |(changes, cut)| {
            let mut bytes = program(compressed).to_vec();
            for (at, value) in &changes {
                if let Some(byte) = bytes.get_mut(*at) {
                    *byte = *value;
                }
            }
            bytes.truncate(cut);
            Damaged { bytes, compressed, changes }
        })
    })
}

/// Not printed byte by byte when a case fails.
struct Damaged {
    bytes: Vec<u8>,
    compressed: bool,
    changes: Vec<(usize, u8)>,
}

impl std::fmt::Debug for Damaged {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} bytes, compressed {}, changed {:?}", self.bytes.len(), self.compressed, self.changes)
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
    for compressed in [false, true] {
        let bytes = program(compressed).to_vec();
        assert!(bytes.is_empty() || use_file(bytes, 1));
    }
}
