//! Handles of what is watched: numbers that must not be taken for each other.

use systoll_hooks::layout::{IMAGE, image, slot};

/// A program that is watched: the number of its image file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ProgramId(pub(crate) u32);

impl ProgramId {
    /// A slot of the program's image.
    pub(crate) fn slot(self, index: u64) -> SlotRef {
        SlotRef { program: self, index }
    }
}

/// A slot of a program's image, where one thread counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SlotRef {
    pub(crate) program: ProgramId,
    pub(crate) index: u64,
}

impl SlotRef {
    /// Offset of the slot in its image.
    pub(crate) fn offset(self) -> u64 {
        Self::offset_of(self.index)
    }

    /// Offset of slot `index` in any image.
    pub(crate) fn offset_of(index: u64) -> u64 {
        image::SLOTS + index * slot::SIZE
    }

    /// The word by which the thread of the slot proves which one it has.
    pub(crate) fn tag(self) -> u64 {
        u64::from(self.program.0) << 16 | (self.index + 1)
    }

    /// Whether this is the slot that all threads share which found no other.
    pub(crate) fn is_last(self) -> bool {
        self.index + 1 >= image::SLOT_COUNT
    }
}

/// A site of a program: which of its files, and which of that file's sites.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SiteRef {
    pub(crate) file: usize,
    pub(crate) site: usize,
}

/// Address of a node that counts, the same in all processes of its program: a site's root, or a context.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct NodeAddr(pub(crate) u64);

impl NodeAddr {
    /// Its offset in the image; beyond any image for what is no address of a node.
    pub(crate) fn offset(self) -> u64 {
        self.0.wrapping_sub(IMAGE)
    }
}
