//! Plans damaged files: whatever they contain, planning does not panic, ends soon, and returns a
//! valid plan.

use crate::elf::program;
use crate::files::{ld_so, vdso};
use proptest::prelude::*;
use std::time::{Duration, Instant};
use systoll_hooks::plan::plan;

/// Upper limit of the time to plan one file; an unoptimized build on a busy machine takes far less.
const LIMIT: Duration = Duration::from_secs(20);

fn survive(elf: &[u8]) {
    let start = Instant::now();
    if let Ok(plan) = plan(elf) {
        crate::check(&plan, elf);
    }
    assert!(start.elapsed() < LIMIT, "{:?}", start.elapsed());
}

fn mutate(elf: &[u8], changes: &[(usize, u8)], len: usize) -> Vec<u8> {
    let mut elf = elf.to_vec();
    for (at, byte) in changes {
        let at = at % elf.len();
        elf[at] = *byte;
    }
    elf.truncate(len.min(elf.len()));
    elf
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..512)) {
        survive(&bytes);
    }

    #[test]
    fn any_code(code in prop::collection::vec(any::<u8>(), 0..256), data in prop::collection::vec(any::<u8>(), 0..64)) {
        survive(&program(&code, &data));
    }

    /// Plans code with many calls close together.
    #[test]
    fn dense_code(parts in prop::collection::vec(prop::sample::select(PARTS), 1..40)) {
        survive(&program(&parts.concat(), &[]));
    }

    #[test]
    fn damaged_headers(changes in prop::collection::vec((0usize..176, any::<u8>()), 1..6)) {
        let elf = program(&[0xb8, 39, 0, 0, 0, 0x0f, 0x05, 0xc3], &[0; 64]);
        survive(&mutate(&elf, &changes, usize::MAX));
    }
}

const PARTS: &[&[u8]] = &[
    &[0x0f, 0x05],
    &[0xb8, 39, 0, 0, 0],
    &[0x89, 0xc5],
    &[0xc3],
    &[0x90],
    &[0xeb, 0xfc],
    &[0x75, 0x03],
    &[0x49, 0x89, 0xca],
    &[0xe8, 0, 0, 0, 0],
    &[0x48, 0x8d, 0x05, 1, 0, 0, 0],
    &[0x85, 0xff],
    &[0xcc],
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_damaged_vdso(
        changes in prop::collection::vec((any::<usize>(), any::<u8>()), 1..40),
        len in prop::sample::select(&[usize::MAX, 4096, 100][..]),
    ) {
        if let Some(elf) = vdso() {
            survive(&mutate(&elf, &changes, len));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    /// Plans a real file whose section headers, frame information and symbols are damaged.
    #[test]
    fn a_damaged_loader(
        head in prop::collection::vec((0usize..1024, any::<u8>()), 0..3),
        changes in prop::collection::vec((any::<usize>(), any::<u8>()), 1..400),
    ) {
        if let Some(path) = ld_so() {
            let elf = mutate(&std::fs::read(path).unwrap(), &changes, usize::MAX);
            let elf = mutate(&elf, &head, usize::MAX);
            survive(&elf);
        }
    }
}

#[test]
fn sections_that_map_the_file_over_and_over_are_refused() {
    // Every program header maps the whole file, each at another address.
    let mut elf = program(&[0x0f, 0x05], &[0; 1 << 16]);
    let size = elf.len() as u64;
    let at = elf.len();
    for n in 0..1000u64 {
        elf.extend(1u32.to_le_bytes());
        elf.extend(5u32.to_le_bytes());
        for word in [0, n << 24, n << 24, size, size, 1] {
            elf.extend(word.to_le_bytes());
        }
    }
    elf[32..40].copy_from_slice(&(at as u64).to_le_bytes());
    elf[56..58].copy_from_slice(&1000u16.to_le_bytes());
    assert!(plan(&elf).is_err());
}
