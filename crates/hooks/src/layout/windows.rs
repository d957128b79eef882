//! The party that opens windows: values of [`super::image::WINDOWS`].

/// The thread asks the launcher when a window is due, and at each call of it.
pub const ASKED: u32 = 0;
/// The thread asks the launcher when a window is due, and may write its calls by itself, see [`super::slot::WANT`].
pub const ASKED_ONCE: u32 = 1;
/// The thread opens the window and writes its calls.
pub const OWN: u32 = 2;
/// No window opens.
pub const NONE: u32 = 3;
