//! Feeds the caller's bytes to everything in this crate that reads a target's memory: for fuzzing.
//!
//! Invariant: for any bytes, each function returns without a panic, and its results are bounded.

use crate::arguments::argument_data;
#[cfg(target_arch = "x86_64")]
use crate::ring_windows::{self, Names};
#[cfg(target_arch = "x86_64")]
use std::ops::Range;
#[cfg(target_arch = "x86_64")]
use systoll_hooks::ring_reader::WrittenCall;
use systoll_model::{Moment, Sysno};

/// Address at which the target's memory holds the caller's bytes.
const BASE: u64 = 0x10_000;
/// Bytes kept of one argument in a window, at most.
const BOUND: usize = 4096;

/// Reads the memory to which the arguments of every call point, from a memory that holds `bytes`.
///
/// # Panics
/// If it keeps more than the bounds allow.
pub fn use_arguments(bytes: &[u8], seed: u64) {
    let read = |address: u64, buffer: &mut [u8]| {
        let start = address.checked_sub(BASE).and_then(|o| usize::try_from(o).ok()).unwrap_or(usize::MAX);
        let rest = bytes.get(start..).unwrap_or_default();
        let n = rest.len().min(buffer.len());
        if let (Some(to), Some(from)) = (buffer.get_mut(..n), rest.get(..n)) {
            to.copy_from_slice(from);
        }
        n
    };
    let word = |n: usize| bytes.get(8 * n..).and_then(|b| b.first_chunk::<8>()).map_or(0, |b| u64::from_le_bytes(*b));
    for number in 0..Sysno::NATIVE {
        let Some(signature) = Sysno(number).signature() else { continue };
        for shift in [0, 1, 7] {
            let args = std::array::from_fn(|n| match (seed >> (3 * n + shift)) & 3 {
                0 => BASE + (seed >> n) % (bytes.len() as u64 + 64),
                1 => word(n),
                2 => seed.rotate_left(n as u32 * 11) & 0xffff,
                _ => u64::MAX - (seed & 15),
            });
            for (at, result) in [(Moment::Entry, None), (Moment::Exit, Some(seed as i64)), (Moment::Exit, Some(64))] {
                let data = argument_data(signature, at, &args, result, BOUND, &read);
                assert!(data.len() <= 16 && data.iter().all(|d| d.bytes.len() <= 1 << 16), "{number}: {args:x?}");
            }
        }
    }
}

/// Reads a call that a thread wrote into its ring, as if it were each of the system calls.
///
/// # Panics
/// If it keeps more than the bounds allow.
#[cfg(target_arch = "x86_64")]
pub fn use_written(call: &WrittenCall<'_>) {
    let mut names = Names::new(call.nth.is_multiple_of(2));
    for number in 0..Sysno::NATIVE {
        let Some(signature) = Sysno(number).signature() else { continue };
        let data = ring_windows::data(call, signature, BOUND);
        assert!(data.iter().all(|d| d.bytes.len() <= 1 << 16), "{number}: {call:?}");
        let asked = ring_windows::question(call, signature, BOUND);
        assert!(asked.is_none_or(|asked| !asked.path.is_empty()), "{number}: {call:?}");
        names.name_of(call, signature);
    }
}

/// Reads an image that its program has overwritten, as a launcher does: questions, used slots, and counts. `parts` are
/// the byte ranges that are filled, with the words that `word` returns. Returns true if this machine could set up such
/// an image.
///
/// # Panics
///
/// If the recording made from the image fails its own check.
#[must_use]
#[cfg(target_arch = "x86_64")]
pub fn use_image(parts: &[Range<u64>], word: &dyn Fn(u64) -> u64) -> bool {
    crate::inproc::use_image(parts, word)
}

/// Parses `text` as each of the files that we read from a process's folder in /proc.
#[cfg(target_arch = "x86_64")]
pub fn use_proc(text: &[u8]) {
    crate::inproc::use_proc(text);
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;
    use systoll_hooks::layout::{image, slot};

    #[test]
    fn an_image_of_anything_makes_a_recording() {
        let slots = image::SLOTS..image::SLOTS + 0xc000;
        for word in [|_| 0, |at| at, |_| u64::MAX, |at: u64| at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (at % 61)] {
            let parts = [0..0x8000, image::ROOTS..image::ROOTS + 0x4000, slots.clone()];
            assert!(use_image(&parts, &word), "it can be tried");
        }
        let waits = |at: u64| u64::from(at == image::SLOTS + slot::STATE || at == image::TICKET);
        assert!(use_image(&[image::TICKET..image::TICKET + 8, slots], &waits));
    }
}
