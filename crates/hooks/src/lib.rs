//! Plans and writes hooks around the `syscall` instructions of x86-64 code.
//!
//! Nothing here touches a process: bytes of an ELF file come in, and out come the bytes of jumps, the
//! code they lead to, and the layout of the memory in which that code counts.
//!
//! 1. [`plan`] finds which instructions around each `syscall` can be replaced by a jump of five bytes. Invariant: what
//!    cannot be shown to be safe is not planned, and the plan says why.
//! 2. [`assemble`] writes the code that those jumps lead to. It counts calls by calling context, times them, and asks a
//!    launcher through shared memory for what it does not know.
//! 3. [`layout`] defines where every word of that memory lies.
//!
//! This example finds what can be hooked in a program:
//!
//! ```
//! let file = std::fs::read("/proc/self/exe")?;
//! let plan = systoll_hooks::plan::plan(&file)?;
//! let hooked = plan.sites.iter().filter(|site| site.spans().next().is_some()).count();
//! println!("{hooked} of {} calls can be hooked", plan.sites.len());
//! for place in &plan.unplanned {
//!     println!("{:#x}: {:?}", place.address, place.why);
//! }
//!
//! // The code, to be mapped 64 MiB below the file, and the jumps to be written into the file.
//! let options = systoll_hooks::assemble::Options { results: true, ..Default::default() };
//! let blob = systoll_hooks::assemble::assemble(&plan, &options, -(64 << 20))?;
//! println!("{} bytes of code, {} jumps", blob.code.len(), blob.patches.len());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

#[cfg(any(test, target_arch = "aarch64"))]
pub mod aarch64;
#[cfg(target_arch = "x86_64")]
pub mod assemble;
pub mod layout;
pub mod numbers;
#[cfg(target_arch = "x86_64")]
pub mod plan;
pub mod ring_reader;
