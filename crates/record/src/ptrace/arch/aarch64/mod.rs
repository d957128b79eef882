//! Processes that count their calls themselves, by the code of [`systoll_hooks::aarch64`]: a preview.
//!
//! A process begins as every traced one: each call stops its thread twice. Once it has made some calls in its `main`, its
//! tracer writes the counting code into it, and its threads run free. A thread counts a call by itself if its slot has an
//! entry for the call's context; otherwise it asks, and the tracer handles the call as ever and may add an entry.
//!
//! Invariant: a thread either runs free and has its slot, or stops at its calls and has none. So each call is counted once.
//! The tracer takes the slot away while a call makes a child, while a handler runs, and while the kernel restarts a call.

mod calls;
mod counts;
mod enter;
pub(crate) mod state;
