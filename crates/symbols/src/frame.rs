//! Addresses as backends hand them in, before they have names.

/// A file, or the vDSO, that was seen mapped executable: index into the modules of [`crate::Symbols`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ModuleKey(pub(crate) u32);

/// An address of a stack, independent of where its file was mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RawFrame {
    /// The file the address lies in; `None` where nothing known is mapped.
    pub module: Option<ModuleKey>,
    /// ELF virtual address within `module`; absolute where there is none.
    pub address: u64,
    /// Whether `address` is a return address, that is, one past the call that is meant.
    pub is_return: bool,
}

impl RawFrame {
    /// An address inside the instruction that is meant.
    pub(crate) fn lookup(self) -> u64 {
        self.address.wrapping_sub(u64::from(self.is_return))
    }
}

/// A frame, and where it was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlacedFrame {
    /// The frame.
    pub frame: RawFrame,
    /// Its address in memory.
    pub ip: u64,
    /// The stack pointer in it; a return address lies in the word below.
    pub sp: u64,
    /// Whether the code that was called from here has this frame at the same distance from its own
    /// stack pointer whenever it is at the same instruction.
    pub constant: bool,
    /// Where it does not: the frame pointer by which it lies at a constant distance, if it does by one.
    pub pointer: Option<FramePointer>,
}

/// A register that points into a frame, as a function with an array of varying size has one to find its caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FramePointer {
    /// Where those called from there have saved it; none: it is still in rbp.
    pub saved_at: Option<u64>,
    /// Where it points.
    pub value: u64,
}

/// General registers of a stopped thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the processor's own names")]
pub struct Registers {
    pub ip: u64,
    pub sp: u64,
    pub bp: u64,
    pub ax: u64,
    pub bx: u64,
    pub cx: u64,
    pub dx: u64,
    pub si: u64,
    pub di: u64,
    pub r8: u64,
    pub r9: u64,
    pub r10: u64,
    pub r11: u64,
    pub r12: u64,
    pub r13: u64,
    pub r14: u64,
    pub r15: u64,
}

impl Registers {
    /// In DWARF's order (System V ABI, AMD64 supplement, figure 3.36): 0–15, then the return address.
    pub(crate) fn in_dwarf_order(&self) -> [u64; 17] {
        [
            self.ax, self.dx, self.cx, self.bx, self.si, self.di, self.bp, self.sp, self.r8, self.r9, self.r10,
            self.r11, self.r12, self.r13, self.r14, self.r15, self.ip,
        ]
    }
}

/// How far to unwind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// Up to and including the first frame of class `User` or `Unknown`.
    UserFrame,
    /// The whole stack, at most [`crate::MAX_FRAMES`] frames.
    Root,
}
