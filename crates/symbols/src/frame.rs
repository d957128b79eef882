//! Addresses from the backends, before they are named.

/// Index, among the modules of [`crate::Symbols`], of a file or the vDSO that was mapped executable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ModuleKey(pub(crate) u32);

/// An address on a stack, independent of where its file was mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RawFrame {
    /// The file that the address lies in; `None` if no known file is mapped there.
    pub module: Option<ModuleKey>,
    /// ELF virtual address within `module`; an address in memory if `module` is `None`.
    pub address: u64,
    /// True if `address` is a return address: one past the call instruction.
    pub is_return: bool,
}

impl RawFrame {
    /// Returns an address inside the instruction that the frame runs.
    pub(crate) fn lookup(self) -> u64 {
        self.address.wrapping_sub(u64::from(self.is_return))
    }
}

/// A frame with its position on the stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlacedFrame {
    /// The frame itself.
    pub frame: RawFrame,
    /// Instruction pointer of the frame: its address in memory.
    pub ip: u64,
    /// Stack pointer in the frame. If `ip` is a return address, it lies in the word below.
    pub sp: u64,
    /// True if the function called from here has this frame at a fixed distance from its own stack pointer whenever it
    /// is at the same instruction.
    pub constant: bool,
    /// Frame pointer from which this frame is at a fixed distance, if its distance from the stack pointer varies and
    /// there is one.
    pub pointer: Option<FramePointer>,
}

/// A register that points into a frame. A function with an array of varying size uses one to find its caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FramePointer {
    /// Address at which a called function has saved the register; `None` if it is still in rbp.
    pub saved_at: Option<u64>,
    /// Value of the register: an address in the frame.
    pub value: u64,
}

/// The place on a stack at which unwinding ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// The first frame of class `User` or `Unknown`, which is included.
    UserFrame,
    /// The root of the stack, or the point after [`crate::MAX_FRAMES`] frames.
    Root,
}
