//! Ranges in which a thread may read its stack: at a hook, the stack pointer may point to no memory.
//!
//! A thread that has unmapped its own stack still makes its last call, and assembler code may have anything in rsp.
//! Therefore a walk reads a word only between [`super::slot::STACK_LOW`] and [`super::slot::STACK_HIGH`], where memory
//! is known to be readable; for a word outside, it asks the kernel first.
//!
//! Only a thread that holds the lock of its hand-shake changes the bounds, with the upper one zero meanwhile, and the
//! upper one becomes zero again when a handler ends: a walk that was interrupted by a handler never combines an old and
//! a new bound. Calls that unmap memory forget the bounds that they overlap before they are made. Calls of another
//! thread do not: unmapping a stack in use ends the program anyway. A thread may call `exit` when another thread has
//! its stack already; there the kernel copies each word.
//!
//! Calls into the vDSO have bounds of their own ([`super::slot::VDSO_LOW`]): Go makes them on the thread's stack and all
//! other calls on goroutines', in turns, and each change of bounds costs a walk by the hand-shake's code.

/// Bytes of an entry of [`super::slot::STACKS`]: bounds like [`super::slot::STACK_LOW`] and
/// [`super::slot::STACK_HIGH`].
pub const ENTRY: u64 = 16;
/// Entries of [`super::slot::STACKS`], a power of two: enough for a thread's own stack, its signal stack, and 14 stacks
/// of coroutines.
pub const LEN: u64 = 16;
/// Entries of [`super::slot::OWN_MEMORY`], a power of two.
pub const OWN_LEN: u64 = 4;
/// Bytes of a word behind its first byte: a word that begins so far before the end of a page still fits.
pub const LAST: u64 = 7;
/// Pages between the words of one walk about which the kernel is asked, at most; beyond, only the first word's page is
/// remembered.
pub const MOST_PAGES: u64 = 512;
/// Number of stacks at which a thread first asks the launcher for the bounds of a stack's mapping; it doubles each
/// time. The launcher tells a whole mapping at once, and thousands of Go's stacks lie in one.
pub const ASK_FROM: u64 = 64;
