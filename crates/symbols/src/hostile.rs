//! Files nobody should have made: cut, or with bytes changed, through everything that reads them.

use crate::elf::Image;
use crate::maps::Mapped;
use crate::module::Module;
use crate::source::Source;
use crate::{AddressSpace, RawFrame, Registers, Symbols, Until};
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

/// Everything that is ever asked of a file.
fn use_it(bytes: Vec<u8>, seed: u64) -> Option<()> {
    let whole = bytes.len() as u64;
    let image = Image::parse(Source::Memory(bytes.into()))?;
    let entry = image.entry;
    let mut symbols = Symbols::new();
    let key = symbols.push(Module::new("/tmp/p", image))?;
    let mapped = Mapped { start: 0x10_0000, end: 0x10_0000 + whole, ..Mapped::default() };
    let mut space = AddressSpace::new();
    space.map_for_test(key, &mapped, symbols.bias(key, &mapped).unwrap_or(0x10_0000));
    let frame = |address, is_return| RawFrame { module: Some(key), address, is_return };
    let mut frames = vec![frame(entry, false), frame(u64::MAX, true), frame(0, true)];
    let spread = |n: u64| seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(n.wrapping_mul(0x0123_4567_89ab_cdef));
    for n in 0..40 {
        let inside = 0x1000 + spread(n) % 0x800;
        frames.push(frame(inside, n % 2 == 0));
        let regs = Registers { ip: 0x10_0000 + inside, sp: 0x7f00_0000, bp: 0x7f00_0040, ..Registers::default() };
        let mut read = |at: u64| (at < 0x7f00_1000).then(|| 0x10_0000 + 0x1000 + spread(at) % 0x800);
        let mut stack = Vec::new();
        space.unwind(&mut symbols, &regs, &mut read, Until::Root, &mut stack);
        symbols.api(&stack);
        frames.extend(stack);
    }
    symbols.reaches_main(&frames);
    let resolved = symbols.resolve(&frames);
    assert_eq!(resolved.frames.len(), frames.len());
    assert!(resolved.frames.iter().all(|f| !f.locations.is_empty()));
    for pair in frames.chunks(2) {
        symbols.api(pair);
    }
    Some(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn damaged_files_do_no_harm(damaged in damaged(), seed in any::<u64>()) {
        use_it(damaged.bytes, seed);
    }
}

#[test]
fn an_undamaged_file_is_used() {
    for compressed in [false, true] {
        let bytes = program(compressed).to_vec();
        assert!(bytes.is_empty() || use_it(bytes, 1).is_some());
    }
}
