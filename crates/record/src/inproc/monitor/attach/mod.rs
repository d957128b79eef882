//! Enters processes that run, and leaves processes so that they run on as if nothing had been there.
//!
//! Entering: all is planned and made while the process runs; then every thread is stopped once, memory is mapped by
//! calls that one of the threads makes for us, each thread gets a slot, and jumps are written where no thread stands and
//! where none comes back to. Leaving is the same backwards. Nothing is done to a process of which any of this is in doubt.

pub(crate) mod answering;
pub(crate) mod clean;
pub(crate) mod enter;
pub(crate) mod errands;
pub(crate) mod frames;
pub(crate) mod leave;
pub(crate) mod mapping;
pub(crate) mod ours;
pub(crate) mod places;
pub(crate) mod stop_all;
pub(crate) mod target;
pub(crate) mod threads;
