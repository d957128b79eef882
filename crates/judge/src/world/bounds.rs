//! Bounds that several detectors share. Each had its own of these kinds, from a half to sixteen times of the shared one: half
//! and twice of each changed no report of 378 recordings, no text case and no test.

/// Largest number of things (names, timers, pieces of state) that a detector remembers of a whole recording, so that a
/// hostile one can't fill the memory.
pub(crate) const REMEMBERED: usize = 1 << 14;
/// Least number of times that windows show something for a habit: fewer are chance.
pub(crate) const OFTEN: usize = 4;
/// Largest processor time of a process for each wake-up of a thread, in context switches: with more, the woken thread may
/// have found work. A wake-up takes some four switches with its calls, and more while watched.
pub(crate) const NO_WORK: f64 = 16.0;
/// Largest number of other calls between two that belong together: flags and options are set in between.
pub(crate) const BESIDE: usize = 4;
