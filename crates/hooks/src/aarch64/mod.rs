//! Counting code for aarch64: finds the `svc` instructions of a mapped file, and writes the code that counts their calls.
//!
//! An instruction and a jump have the same size, so that a jump replaces exactly one instruction: the one before an `svc`
//! and the one behind it. The `svc` remains in its place, because C libraries compare its address when a thread is cancelled.
//!
//! ```text
//!   the file's code                   a site's own code            code for all sites
//!   mov x8, #63     ◄── jump ──────►  mov x8, #63
//!                                     adr x17; b ────────────────► key of the context; its entry; the clock
//!   svc #0          ◄───────────────  b         ◄──────────────── br x17
//!   cmn x0, #4095   ◄── jump ──────►  adr x17; b ────────────────► time, result, errors of the entry
//!                                     cmn x0, #4095 ◄──────────── br x17
//!   …               ◄───────────────  b
//! ```
//!
//! A thread counts in its slot, whose address is the second word behind its thread pointer: C libraries leave that word
//! unused. The slot has an entry for each context that the thread's tracer knows: the system call and the return addresses
//! that lead to it, by frame records. For a call of any other context the thread sends itself a signal, at which the tracer
//! takes the call over: it stops the thread at the call's entry and exit, and may add an entry for its context. A thread
//! without a slot passes through the code as if it were not there, and its tracer stops it at each call.
//!
//! The code needs no lock, because a thread makes no call of a signal handler with its slot: the tracer sees each signal
//! first, and takes the slot away while a handler runs.

mod code;
mod effects;
pub mod layout;
mod sites;
mod words;

pub use code::{Ask, Asked, Jump, Written, key, size, write};
pub use sites::{Declined, Site, sites};
