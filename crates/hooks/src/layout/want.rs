//! The treatment of each call of a thread beside counting: values of [`super::slot::WANT`].

/// No window is open.
pub const NOTHING: u64 = 0;
/// The thread hands every call to the launcher, on entry and return.
pub const HAND_SHAKE: u64 = 1;
/// The thread opens a window, which it writes, at this call.
pub const RING: u64 = 2;
/// The thread has opened a window, and writes every call.
pub const WRITING: u64 = 3;
/// The thread writes this one call beside windows, see [`super::look`].
pub const LOOK: u64 = 4;
