//! Who opens windows: values of [`super::image::WINDOWS`].

/// The launcher is asked where one is due, and at each call of it.
pub const ASKED: u32 = 0;
/// The launcher is asked where one is due; the thread may write its calls by itself, see
/// [`super::slot::WANT`].
pub const ASKED_ONCE: u32 = 1;
/// The thread opens it and writes its calls.
pub const OWN: u32 = 2;
/// None opens.
pub const NONE: u32 = 3;
