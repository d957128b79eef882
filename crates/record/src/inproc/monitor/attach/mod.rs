//! Enters running processes, and leaves them so that they run on as if nothing had been there.
//!
//! To enter a process, everything is planned and made while it runs. Then every thread is stopped once: one of them
//! maps our memory by calls that it makes for us, each gets a slot, and jumps are written where no thread stands and no
//! handler returns to. Leaving takes the same steps backwards. If any step is in doubt, the process is left alone.

pub(crate) mod answering;
pub(crate) mod clean;
pub(crate) mod enter;
pub(crate) mod errands;
pub(crate) mod frames;
pub(crate) mod leave;
pub(crate) mod mapping;
pub(crate) mod places;
pub(crate) mod remove_hooks;
pub(crate) mod stop_all;
pub(crate) mod target;
pub(crate) mod threads;
