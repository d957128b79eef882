//! One address space: what is mapped where.

use crate::{RawFrame, Registers, Symbols, Until};

/// What is mapped executable in one address space. Clone it for a fork.
#[derive(Clone, Debug, Default)]
pub struct AddressSpace {}

impl AddressSpace {
    /// An address space with nothing in it.
    pub fn new() -> Self {
        Self::default()
    }

    /// Rereads `/proc/PID/maps` and loads files not seen before, while they are mapped.
    pub fn update(&mut self, _symbols: &mut Symbols, _pid: i32) {}

    /// Whether `address` lies in an executable mapping, as of the last update.
    pub fn maps_executable(&self, _address: u64) -> bool {
        false
    }

    /// Appends the frames of a stopped thread to `out`, leaf first. `read` reads a word of its
    /// memory. True if the stack's root was reached.
    pub fn unwind(
        &mut self,
        _symbols: &mut Symbols,
        regs: &Registers,
        _read: &mut dyn FnMut(u64) -> Option<u64>,
        _until: Until,
        out: &mut Vec<RawFrame>,
    ) -> bool {
        out.push(RawFrame { module: None, address: regs.ip, is_return: false });
        false
    }
}
