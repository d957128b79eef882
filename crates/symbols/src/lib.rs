//! Names for the addresses of a running program, and the stacks of its stopped threads.
//!
//! An observer passes in what it sees of a process (`/proc/PID/maps`, registers, memory). It gets back the callers:
//! stacks of addresses that outlive the process ([`RawFrame`]) and, once the run is over, their functions, source lines
//! and the public API behind each system call.
//!
//! 1. [`AddressSpace`] has the mappings of one process and unwinds its threads.
//! 2. [`Symbols`] has all files of a run, opened while they are mapped: one for all processes.
//! 3. [`Symbols::resolve`] names frames, and [`Symbols::api`] returns the public function by which the user's code
//!    entered the C library.
//!
//! Invariant: no operation here fails. A frame without a name is `Unknown`, or a [`systoll_model::Problem`] says why;
//! data of a file or a target is checked before it is used.
//!
//! The name of a function of this process, with its source line if the compiler has recorded one:
//!
//! ```
//! use systoll_symbols::{AddressSpace, Symbols};
//!
//! #[unsafe(no_mangle)]
//! pub extern "C" fn named_by_its_address() {}
//!
//! let (mut symbols, mut space) = (Symbols::new(), AddressSpace::new());
//! space.update(&mut symbols, std::process::id() as i32);
//! let frame = space.frame(named_by_its_address as *const () as u64, false);
//! let resolved = symbols.resolve(&[frame]);
//! assert_eq!(resolved.frames[0].function(), "named_by_its_address");
//! assert_eq!(symbols.path(frame.module.unwrap()).as_deref(), std::env::current_exe()?.to_str());
//! # Ok::<(), std::io::Error>(())
//! ```
#![forbid(unsafe_code)]

mod code;
mod elf;
mod frame;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
#[cfg(test)]
mod hostile;
mod lines;
mod mapped;
mod module;
mod names;
mod naming;
mod script;
mod stack;
mod symbols;
mod unwind;

pub use code::MOST_REACH;
pub use frame::{FramePointer, ModuleKey, PlacedFrame, RawFrame, Until};
pub use lines::Spawn;
pub use mapped::FileState;
pub use module::{
    FrameAnswers, FrameQuestion, KeptAnswers, LineAnswers, MOST_LAST_JUMPS, NameAnswer, NameAnswers, NameCounts,
    NameQuestion, Preloaded, PreloadedFile, libraries_of, make_decoder_ready,
};
pub use names::Function;
pub use naming::{Lines, Resolved};
pub use script::{ReadMemory, Thread};
pub use stack::{AddressSpace, Idle, MappedFile};
pub use symbols::Symbols;
pub use unwind::Registers;

/// Frames of a stack unwound, at most.
pub const MAX_FRAMES: usize = 256;
