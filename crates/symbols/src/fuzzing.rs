//! Runs every operation of this crate on given bytes, for tests and fuzzing.
//!
//! Invariant: whatever the bytes are, every requested frame gets a name.

use crate::elf::ElfFile;
use crate::mapped::{self, FileBytes, MapsEntry};
use crate::module::Module;
use crate::{AddressSpace, RawFrame, Registers, Symbols, Until};

/// Asks a file with these bytes every question that the crate answers; `seed` chooses addresses in it. Returns false
/// if the bytes are not an ELF file for x86-64.
///
/// # Panics
///
/// If an answer breaks a promise of this crate: the fuzzer searches for such cases.
pub fn use_file(bytes: Vec<u8>, seed: u64) -> bool {
    asked(bytes, seed).is_some()
}

/// Reads the heap of an interpreter from these bytes.
pub fn use_heap(bytes: &[u8], seed: u64) {
    crate::script::fuzzing::use_heap(bytes, seed);
}

/// Reads a map of compiled code from these bytes.
///
/// # Panics
/// If a returned name is not in the map.
pub fn use_perf_map(bytes: &[u8], seed: u64) {
    crate::script::fuzzing::use_perf_map(bytes, seed);
}

/// Reads the text of a `maps` file.
pub fn use_maps(text: &[u8]) {
    let _ = mapped::maps::executable_in(text);
}

/// Unwinds through these bytes as code, with their call frame information if there is any, over a stack made of the
/// same bytes.
pub fn use_stack(bytes: &[u8], seed: u64) {
    let mut space = AddressSpace::new();
    let mut symbols = Symbols::new();
    let elf = ElfFile::parse(FileBytes::Memory(bytes.to_vec().into()));
    let entry = elf.as_ref().map_or(0, |elf| elf.entry());
    let mapped = MapsEntry { start: 0x10_0000, end: 0x10_0000 + bytes.len() as u64, ..MapsEntry::default() };
    if let Some(key) = elf.and_then(|elf| symbols.push(Module::new("/tmp/p", elf))) {
        space.map_for_test(key, &mapped, symbols.bias(key, &mapped).unwrap_or(0x10_0000));
    }
    for (n, sp) in [0, 8, 0x7f00_0000, u64::MAX - 7, 1 << 63, 0x10_0000].into_iter().enumerate() {
        let ip = 0x10_0000 + entry.wrapping_add(seed.rotate_left(n as u32 * 7) % 0x800) % (bytes.len() as u64).max(1);
        let regs = Registers::at(ip, sp, sp.wrapping_add(seed % 64 * 8));
        let mut reads = 0u64;
        let mut word = |at: u64| {
            reads += 1;
            let from = at as usize % bytes.len().max(1);
            let word = bytes.get(from..).and_then(|b| b.first_chunk::<8>()).map(|b| u64::from_le_bytes(*b));
            // Every other word is the address of code.
            word.map(|w| if at & 8 == 0 { w } else { 0x10_0000 + w % (bytes.len() as u64).max(1) })
        };
        let mut frames = Vec::new();
        space.unwind(&mut symbols, &regs, &mut word, Until::Root, &mut frames);
        assert!(frames.len() <= crate::MAX_FRAMES && reads < 1 << 20, "an unwinding without end");
    }
}

fn asked(bytes: Vec<u8>, seed: u64) -> Option<()> {
    let whole = bytes.len() as u64;
    let elf = ElfFile::parse(FileBytes::Memory(bytes.into()))?;
    let entry = elf.entry();
    let (names, folders) = elf.needed(64);
    assert!(names.len() <= 64 && folders.len() <= 64);
    let mut symbols = Symbols::new();
    let key = symbols.push(Module::new("/tmp/p", elf))?;
    let mapped = MapsEntry { start: 0x10_0000, end: 0x10_0000 + whole, ..MapsEntry::default() };
    let mut space = AddressSpace::new();
    space.map_for_test(key, &mapped, symbols.bias(key, &mapped).unwrap_or(0x10_0000));
    let frame = |address, is_return| RawFrame { module: Some(key), address, is_return };
    let mut frames = vec![frame(entry, false), frame(u64::MAX, true), frame(0, true)];
    let spread = |n: u64| seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(n.wrapping_mul(0x0123_4567_89ab_cdef));
    for n in 0..40 {
        let inside = 0x1000 + spread(n) % 0x800;
        frames.push(frame(inside, n % 2 == 0));
        let regs = Registers::at(0x10_0000 + inside, 0x7f00_0000, 0x7f00_0040);
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
