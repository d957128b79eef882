//! Finds callers by the contents of the stack, for code of which nothing is known.

use super::space::AddressSpace;
use crate::Symbols;
use crate::code::calls::call_before;
use crate::unwind::{FP, LINKS, RA, REGISTERS, SP, return_to, strip};

/// Words of the stack searched for a return address, at most.
const MAX_SCAN: u64 = 64;
/// Distance from the stack pointer to a frame pointer that is believed, at most, bytes.
const MAX_FRAME: u64 = 1 << 20;

/// Function that returns the 8-byte word at an address, if it is mapped.
pub(super) type Read<'r> = dyn FnMut(u64) -> Option<u64> + 'r;

impl AddressSpace {
    /// Returns true if the instruction before `address` is a call.
    pub(super) fn returns_to(&self, address: u64, read: &mut Read<'_>) -> bool {
        if !self.maps_executable(address.wrapping_sub(1)) {
            return false;
        }
        let mut bytes = [0; 16];
        for (half, at) in bytes.chunks_exact_mut(8).zip([16, 8]) {
            // The first half can lie before the mapping.
            if let Some(word) = read(address.wrapping_sub(at)) {
                half.copy_from_slice(&word.to_le_bytes());
            }
        }
        call_before(&bytes, address).is_some()
    }

    /// Finds the caller without knowledge of the code: at the stack pointer, in a leaf function that pushed nothing;
    /// else by the frame pointer; else by the nearest word that is the return address of a call that may have led
    /// here.
    pub(super) fn guess(
        &self,
        symbols: &Symbols,
        regs: &mut [u64; REGISTERS],
        read: &mut Read<'_>,
        is_return: bool,
    ) -> Option<()> {
        let (sp, bp) = (regs[SP], regs[FP]);
        if LINKS && !is_return && self.accept_link(symbols, regs, read).is_some() {
            return Some(());
        }
        if !LINKS && !is_return && self.accept(regs, sp, bp, read).is_some() {
            return Some(());
        }
        if bp.wrapping_sub(sp) < MAX_FRAME && bp.is_multiple_of(8) {
            let outer = read(bp)?;
            if self.accept(regs, bp.checked_add(8)?, outer, read).is_some() {
                return Some(());
            }
        }
        self.scan(symbols, regs, read, is_return, false)
    }

    /// Searches the stack for the return address of a call that may have led here. If `sure`, only calls whose known
    /// target is the function here count.
    pub(super) fn scan(
        &self,
        symbols: &Symbols,
        regs: &mut [u64; REGISTERS],
        read: &mut Read<'_>,
        is_return: bool,
        sure: bool,
    ) -> Option<()> {
        let (sp, bp) = (regs[SP], regs[FP]);
        let here = self.frame(regs[RA], is_return);
        (0..MAX_SCAN).find_map(|n| {
            let slot = sp.checked_add(8 * n)?;
            let caller = self.frame(strip(read(slot)?), true);
            let led = caller.module.and_then(|_| symbols.leads(caller, here));
            if led.unwrap_or(!sure) { self.accept(regs, slot, bp, read) } else { None }
        })
    }

    /// Takes the register with the return address as that of a leaf function, unless it leads to a place from which the
    /// function here was not called: then the function has made calls of its own.
    fn accept_link(&self, symbols: &Symbols, regs: &mut [u64; REGISTERS], read: &mut Read<'_>) -> Option<()> {
        let mut next = *regs;
        return_to(&mut next);
        let here = self.frame(regs[RA], false);
        let caller = self.frame(next[RA], true);
        let led = caller.module.and_then(|_| symbols.leads(caller, here));
        if led == Some(false) || !self.returns_to(next[RA], read) {
            return None;
        }
        *regs = next;
        Some(())
    }

    /// Takes the word at `slot` as the return address, if it can be one.
    fn accept(&self, regs: &mut [u64; REGISTERS], slot: u64, bp: u64, read: &mut Read<'_>) -> Option<()> {
        let address = strip(read(slot)?);
        if !self.returns_to(address, read) {
            return None;
        }
        (regs[RA], regs[SP], regs[FP]) = (address, slot.checked_add(8)?, bp);
        Some(())
    }
}
