//! Where a thread may read its stack: hooks meet stack pointers behind which there is no memory.
//!
//! A thread that has unmapped its own stack still makes its last call, and code written in assembler may have
//! anything in rsp. So a walk reads a word only between [`super::slot::STACK_LOW`] and [`super::slot::STACK_HIGH`], where memory is
//! known to be readable; where a word lies outside, the kernel is asked about it first.
//!
//! Both bounds are changed only by a thread that has the lock of its hand-shake, the upper one being zero meanwhile, and
//! it becomes zero again where a handler ends: a walk that a handler has interrupted never takes one bound from before
//! and one from behind. Calls that take memory away forget what they overlap before they are made. Another thread's
//! calls do not: who takes the stack from a thread that uses it ends the program. `exit` is what a thread may call when
//! another has its stack already; there the kernel copies each word.

/// Bytes of an entry of [`super::slot::STACKS`]: bounds like [`super::slot::STACK_LOW`] and [`super::slot::STACK_HIGH`].
pub const ENTRY: u64 = 16;
/// Entries: a program's stack, one for its signals, and as many as there is room for of functions that run beside each
/// other. A power of two.
pub const LEN: u64 = 16;
/// Entries of [`super::slot::OWN_MEMORY`], a power of two.
pub const OWN_LEN: u64 = 4;
/// Bytes that a word at the last place of a page has behind its begin.
pub const LAST: u64 = 7;
/// Pages between the words of one walk about which the kernel is asked, at most; where there are more, only the first
/// word's page is known.
pub const MOST_PAGES: u64 = 512;
/// The launcher is asked how far a stack's memory reaches when a thread has met so many, and then at twice as many each
/// time: the kernel tells it of all of a mapping at once, and of Go's stacks thousands lie in one.
pub const ASK_FROM: u64 = 64;
