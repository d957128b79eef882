//! Handles of watched things: distinct types for numbers that must not be confused.

use systoll_hooks::layout::{IMAGE, image, slot};

/// A watched program, identified by the number of its image file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ProgramId(pub(crate) u32);

impl ProgramId {
    /// Returns a slot of the program's image.
    pub(crate) fn slot(self, index: u64) -> SlotRef {
        SlotRef { program: self, index }
    }
}

/// A slot of a program's image, in which one thread counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SlotRef {
    pub(crate) program: ProgramId,
    pub(crate) index: u64,
}

impl SlotRef {
    /// Returns the slot's offset in its image.
    pub(crate) fn offset(self) -> u64 {
        Self::offset_of(self.index)
    }

    /// Returns the offset of slot `index` in any image.
    pub(crate) fn offset_of(index: u64) -> u64 {
        image::SLOTS + index * slot::SIZE
    }

    /// Returns the word by which the slot's thread proves which slot it has.
    pub(crate) fn tag(self) -> u64 {
        u64::from(self.program.0) << 16 | (self.index + 1)
    }

    /// Returns true for the last slot, which is shared by all threads that found no free one.
    pub(crate) fn is_last(self) -> bool {
        self.index + 1 >= image::SLOT_COUNT
    }
}

/// A site of a program: the index of its file, and the site's index in that file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SiteRef {
    pub(crate) file: usize,
    pub(crate) site: usize,
}

/// Address of a node that counts, a site's root or a context. It is the same in all processes of its program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct NodeAddr(pub(crate) u64);

impl NodeAddr {
    /// Returns the node's offset in the image; an offset beyond any image if the address is no node's.
    pub(crate) fn offset(self) -> u64 {
        self.0.wrapping_sub(IMAGE)
    }
}
