//! Everything this crate does with a file, with bytes of the caller's: for tests and fuzzing.
//!
//! Invariant: whatever the bytes are, names come back, one for each frame asked for.

use crate::elf::Image;
use crate::maps::Mapped;
use crate::module::Module;
use crate::source::Source;
use crate::{AddressSpace, RawFrame, Registers, Symbols, Until};

/// Asks of a file with these bytes everything that is ever asked of one; `seed` chooses addresses in
/// it. False if it is no ELF file for x86-64.
///
/// # Panics
/// If an answer breaks a promise of this crate: that is what it looks for.
pub fn use_file(bytes: Vec<u8>, seed: u64) -> bool {
    asked(bytes, seed).is_some()
}

fn asked(bytes: Vec<u8>, seed: u64) -> Option<()> {
    let whole = bytes.len() as u64;
    let image = Image::parse(Source::Memory(bytes.into()))?;
    let entry = image.entry;
    let mut symbols = Symbols::new();
    let key = symbols.push(Module::new("/tmp/p", image).into())?;
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
