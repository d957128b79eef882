//! Writes the code that counts: turns a [`Plan`] into bytes that are mapped into a process, and the jumps to them.
//!
//! The path of a call through a hook, if its number is known and nothing has to be asked:
//!
//! ```text
//!   the file's code                      code of ours
//!   mov eax, 0      ┐ entry span: jmp ──► mov eax, 0           displaced instruction
//!   (padding)       ┘                    walk the tree        tree_walk: return addresses → node
//!                                        count at the node    entry: ENTERED of its record
//!                                        read the clock       entry: START of the slot
//!   syscall         ◄─────────────────── jmp back             the call is made at its own place
//!   cmp rax, -4095  ┐ return span: jmp ─► read the clock       on_return: time, errors, bytes
//!   ja …            ┘                    cmp rax, -4095       displaced
//!   …               ◄─────────────────── jmp back
//! ```
//!
//! A thread that reaches a new context leaves this path at the walk, asks by a hand-shake (`handshake`), and continues
//! with the node that the launcher answers.
//!
//! The code uses rcx and r11, which the `syscall` destroys anyway, and the thread's slot behind gs: no stack, no
//! thread-local storage, no lock. Invariant: between any two of its instructions a signal handler may make hooked calls
//! of its own, or never return.

mod asking_site;
mod blob;
mod call_kinds;
mod early_signal;
mod elide_ids;
mod elide_masks;
mod elision;
mod emitter;
mod encoding;
mod entry;
pub mod errand;
mod faults_served;
mod find_fde;
mod frame_info;
mod handshake;
mod handshake_time;
mod hook;
mod long_reader;
mod look;
mod new_image;
mod no_calls;
mod no_program;
mod on_return;
mod own_memory;
mod private_memory;
mod process_calls;
mod relocate;
mod ring;
mod ring_buffer;
mod ring_data;
mod room;
mod rseq_areas;
mod sampling;
mod shared_slot;
mod signal_exits;
mod site;
mod slot_reader;
mod stack_bounds;
mod stack_walk;
mod start;
mod tree_order;
mod tree_walk;
mod tree_writer;
mod trunk;
mod who;
mod write_blob;

pub use blob::{Base, Blob, CountedPlace, Patch, Refused, Unhooked};
pub use call_kinds::is_heeded;
pub use elide_ids::{elided_calls, must_be_seen};
pub use emitter::Origin;
pub use encoding::{SIZE as CODE_SIZE_LEN, code_size};
pub use find_fde::origins_table;
pub use long_reader::{LongCall, LongCalls, long_calls};
pub use new_image::{new_image, number_roots, own_words};
pub use room::{CountingPlace, Room};
pub use sampling::start_of_pending;
pub use slot_reader::{
    Failure, Losses, MadeInPlace, Sampled, SlotCounts, SlotReading, Thread, TrunkLooks, Words, read_slot, slots_drawn,
};
pub use tree_order::sort as sort_tree;
pub use tree_writer::{
    Above, Due, FramePointer, Step, TreeError, Trunk, close, grow, grow_due, grow_known, grow_seen, number_site,
};
pub use write_blob::assemble;

use thiserror::Error;

/// Features of the code besides counting calls by context.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// True if calls' returns are hooked, for errors and bytes.
    pub results: bool,
    /// True if calls are timed by the time stamp counter, which must run at a constant rate (constant_tsc and
    /// nonstop_tsc). Implies `results`.
    pub time: bool,
    /// True if waiting is told apart from working, by the thread's rseq area. Implies `time`.
    pub waited: bool,
    /// True if one call of each block is timed where that is enough, see [`crate::layout::timing`]. Implies `waited`.
    pub sampled: bool,
    /// True if calls are counted by system call alone, where a table of totals is all that is wanted: no stack is read,
    /// no context is asked for, and calls into the vDSO are not counted.
    pub totals: bool,
    /// True if calls of windows are handed to the launcher.
    pub windows: bool,
    /// True if calls that may receive from a socket are sampled one by one. Needs `windows`.
    pub receives: bool,
    /// True if calls that write to a descriptor can be handed to the launcher one by one. Needs `windows`.
    pub writes: bool,
    /// True if getpid, gettid, getuid, geteuid and `rt_sigprocmask` are answered in place where the answer is known
    /// and `image::ELIDE` allows it. Implies `results`; uses the thread's rseq area.
    pub elide: bool,
    /// Cycles from which on calls are kept one by one, as a power of two below 2^31, see [`crate::layout::long`];
    /// `None` if none is kept. Implies `time`.
    pub long: Option<u8>,
}

impl Options {
    /// Calls are counted by context, and nothing else.
    pub const COUNT: Self = Self {
        results: false,
        time: false,
        waited: false,
        sampled: false,
        totals: false,
        windows: false,
        receives: false,
        writes: false,
        elide: false,
        long: None,
    };
}

/// Largest value of [`Options::long`] that fits an instruction.
pub const LONGEST_POWER: u8 = 30;

impl Options {
    /// Returns the options with everything that they imply.
    fn completed(self) -> Self {
        let waited = self.waited || self.sampled;
        let time = self.time || waited || self.long.is_some();
        let long = self.long.map(|power| power.min(LONGEST_POWER));
        Self { time, waited, results: self.results || time || self.elide, long, ..self }
    }
}

/// The reason why a plan could not be assembled.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum AssembleError {
    /// The code would lie too far from the file for a jump of 32 bits.
    #[error("the code would lie {0:#x} bytes from the file: too far for a jump")]
    TooFar(i64),
    /// The region's address is not one of an image's regions.
    #[error("no region for roots at {0:#x}")]
    Region(u64),
    /// The plan needs this many records more than a slot has.
    #[error("no room for {0} more records")]
    Records(u64),
    /// An instruction could not be written, in the assembler's words: a mistake of ours, or an instruction of the file
    /// that can't be moved so far.
    #[error("can't assemble: {0}")]
    Instruction(String),
}

impl From<iced_x86::IcedError> for AssembleError {
    fn from(error: iced_x86::IcedError) -> Self {
        Self::Instruction(error.to_string())
    }
}
