//! Reads program files, and a process's mappings of them, within bounds.
//!
//! Two crates read the same files: `systoll-symbols` names their functions, `systoll-hooks` plans
//! hooks in them. Both read them by this crate, so that the planner never sees a function that the
//! namer does not. Nothing is opened here, and nothing is trusted: each table has its bound.
//!
//! - [`elf`]: the headers, segments and sections of an ELF file for x86-64, and its symbols;
//! - [`cfi`]: where call frame information says that functions begin and end;
//! - [`pclntab`]: the functions of Go programs, which have no call frame information;
//! - [`maps`]: lines of `/proc/PID/maps`.
//!
//! Functions of this very program, by its symbols and by its call frame information:
//!
//! ```
//! use systoll_binfile::{cfi, elf};
//!
//! let file = std::fs::read("/proc/self/exe")?;
//! let headers = elf::Headers::read(file.as_slice()).expect("an ELF file for x86-64");
//! let frames = headers.section(".eh_frame").expect("call frame information");
//! let functions = cfi::Functions::of_eh_frame(frames.addr, frames.data(&file).unwrap(), None);
//! assert!(functions.all().iter().any(|f| f.start <= headers.entry && headers.entry < f.end));
//! # Ok::<(), std::io::Error>(())
//! ```
#![forbid(unsafe_code)]

mod bytes;
pub mod cfi;
pub mod elf;
pub mod maps;
pub mod pclntab;

pub use bytes::{Bytes, c_str, half, word};
