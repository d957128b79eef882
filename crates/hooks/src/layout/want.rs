//! What becomes of each call of a thread beside being counted: values of [`super::slot::WANT`].

/// No window is open.
pub const NOTHING: u64 = 0;
/// The launcher is handed every call, on entry and return.
pub const HAND_SHAKE: u64 = 1;
/// The thread is to open a window that it writes, at this call.
pub const RING: u64 = 2;
/// It has, and writes every call.
pub const WRITING: u64 = 3;
/// It writes this one call beside windows, see [`super::look`].
pub const LOOK: u64 = 4;
