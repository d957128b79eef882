//! Lines of a Go program at which goroutines let time pass, for a thread of Go's scheduler that waits because none of them
//! can go on.
//!
//! A goroutine is no thread, so no stack of a thread tells what such a wait is for. The run-time keeps a list of all
//! goroutines, and with each one that waits the place at which it goes on (src/runtime/proc.go, src/runtime/runtime2.go).
//! Where the list's variables have no names (`go build -ldflags=-s`), no line is found.

use super::interpreter::Candidate;
use super::memory::Memory;
use crate::elf::ElfFile;
use std::ops::Range;

/// Function from which a thread waits that has no goroutine to run.
pub(crate) const IDLE: &str = "runtime.findRunnable";
/// Function in which a goroutine waits.
pub(crate) const PARKED: &str = "runtime.gopark";
/// Function that calls it for a sleep.
pub(crate) const SLEEP: &str = "time.Sleep";
/// Functions that call it for channels, on which timers and tickers send as well.
pub(crate) const CHANNELS: [&str; 3] = ["runtime.chanrecv1", "runtime.chanrecv2", "runtime.selectgo"];
/// Goroutines of which a list is read, at most: with more of them it takes too long.
const MOST: u64 = 256;

/// Offsets in a goroutine's description (`runtime.g`), bytes. Go 1.26 has them; that `sched.g` leads back shows it of others.
mod offset {
    /// `stack.lo` and `stack.hi`, the bounds of its stack.
    pub(super) const STACK: [u64; 2] = [0, 8];
    /// `m`, the thread that runs it.
    pub(super) const THREAD: u64 = 48;
    /// `sched.sp`, `sched.pc` and `sched.g`, by which it goes on.
    pub(super) const SP: u64 = 56;
    pub(super) const PC: u64 = 64;
    pub(super) const SELF: u64 = 72;
}

/// Addresses of the variables by which the goroutines are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct List {
    /// `runtime.allgptr`, which holds the list's address.
    first: u64,
    /// `runtime.allglen`, the number of goroutines.
    len: u64,
}

/// Place at which a goroutine goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Parked {
    pub(crate) pc: u64,
    pub(crate) sp: u64,
    /// True for the goroutine that runs `main`.
    pub(crate) is_main: bool,
}

impl List {
    /// Returns the variables of a Go program; `None` if they have no names.
    pub(crate) fn of(elf: &ElfFile, path: &str) -> Option<Self> {
        let file = Candidate { elf, path };
        let is_word = |extent: &Range<u64>| extent.end - extent.start == 8;
        let variable = |name: &str| Some(file.own_data(name, &is_word)?.start);
        Some(Self { first: variable("runtime.allgptr")?, len: variable("runtime.allglen")? })
    }

    /// Returns the goroutines that wait, of a program that is mapped with `bias`; `None` if they are too many, or can't be
    /// read.
    pub(crate) fn parked(self, memory: &mut Memory<'_, '_>, bias: u64) -> Option<Vec<Parked>> {
        let len = memory.word(self.len.wrapping_add(bias)).filter(|len| *len <= MOST)?;
        let first = memory.pointer(self.first.wrapping_add(bias))?;
        let mut parked = Vec::new();
        for n in 0..len {
            let goroutine = memory.pointer(first.wrapping_add(8 * n))?;
            let mut field = |offset: u64| memory.word(goroutine.wrapping_add(offset));
            if field(offset::SELF)? != goroutine {
                return None;
            }
            let [low, high] = offset::STACK.map(&mut field);
            let (pc, sp) = (field(offset::PC)?, field(offset::SP)?);
            // One that has ended has no stack.
            if field(offset::THREAD)? == 0 && (low?..high?).contains(&sp) {
                parked.push(Parked { pc, sp, is_main: n == 0 });
            }
        }
        Some(parked)
    }
}

#[cfg(test)]
mod tests {
    use super::super::memory::in_turn;
    use super::*;
    use proptest::prelude::*;

    const BASE: u64 = 0x10_000;
    const LIST: List = List { first: BASE, len: BASE + 8 };

    fn parked(words: &[u64]) -> Option<Vec<Parked>> {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let mut read = in_turn(|address, buffer: &mut [u8]| {
            let from = address.checked_sub(BASE).map_or(bytes.len(), |from| (from as usize).min(bytes.len()));
            let there = &bytes[from..bytes.len().min(from + buffer.len())];
            buffer[..there.len()].copy_from_slice(there);
            there.len()
        });
        LIST.parked(&mut Memory::new(&mut read), 0)
    }

    /// Returns the words of a goroutine at `at`, with the thread that runs it.
    fn goroutine(at: u64, thread: u64, sp: u64) -> [u64; 10] {
        [0x9000, 0xa000, 0, 0, 0, 0, thread, sp, 0x40_1000, at]
    }

    #[test]
    fn goroutines_that_no_thread_runs_and_that_have_a_stack_are_parked() {
        let at = |n: u64| BASE + 8 * (5 + 10 * n);
        let mut words = vec![BASE + 16, 3, at(0), at(1), at(2)];
        words.extend(goroutine(at(0), 0, 0x9800));
        words.extend(goroutine(at(1), 0x7000, 0x9800));
        words.extend(goroutine(at(2), 0, 0));
        assert_eq!(parked(&words), Some(vec![Parked { pc: 0x40_1000, sp: 0x9800, is_main: true }]));
        // Another layout of the description, or too many.
        words[5 + 9] = 0;
        assert_eq!(parked(&words), None);
        words[1] = MOST + 1;
        assert_eq!(parked(&words), None);
    }

    proptest! {
        #[test]
        fn any_memory_yields_goroutines_or_none(words in proptest::collection::vec(prop_oneof![
            4 => (0u64..128).prop_map(|at| BASE + 8 * at), 1 => 0u64..300, 1 => any::<u64>()], 128)) {
            prop_assert!(parked(&words).is_none_or(|all| all.len() as u64 <= MOST));
        }
    }
}
