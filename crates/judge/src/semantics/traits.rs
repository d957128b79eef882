//! Traits of calls that need no more words than their name.

use super::vocabulary::When::{self, AllBits, AnyBits, Is, NoBits, OneOf};
use systoll_model::constants::*;

/// A trait of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trait {
    /// The call maps a file's code.
    LoadsCode,
    /// The call asks about a symbolic link itself, not about its target.
    NotFollows,
    /// The call makes a stream send its data at once. A program removes a cork when its message is complete.
    SendsAtOnce,
    /// The call waits until one of several descriptors is ready.
    TellsReady,
    /// The call wakes waiters, of which there may be none.
    Wakes,
}

/// A call with a trait.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TraitLine {
    /// The system call's name.
    pub call: &'static str,
    /// Conditions of the line; all must hold.
    pub when: &'static [When],
    /// The trait.
    pub of: Trait,
}

const fn is(of: Trait, call: &'static str, when: &'static [When]) -> TraitLine {
    TraitLine { call, when, of }
}

/// Operations of futex that wake.
const WAKING: &[u32] =
    &[FUTEX_WAKE, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, FUTEX_WAKE_BITSET, FUTEX_WAKE_BITSET | FUTEX_PRIVATE_FLAG];

/// The calls with traits.
#[rustfmt::skip]
pub(crate) static TRAITS: &[TraitLine] = &[
    is(Trait::LoadsCode, "mmap", &[AllBits(2, PROT_EXEC), NoBits(3, MAP_ANONYMOUS)]),
    is(Trait::NotFollows, "lstat", &[]),
    is(Trait::NotFollows, "readlink", &[]),
    is(Trait::NotFollows, "readlinkat", &[]),
    is(Trait::NotFollows, "lgetxattr", &[]),
    is(Trait::NotFollows, "llistxattr", &[]),
    is(Trait::NotFollows, "newfstatat", &[AnyBits(3, AT_SYMLINK_NOFOLLOW)]),
    is(Trait::NotFollows, "statx", &[AnyBits(2, AT_SYMLINK_NOFOLLOW)]),
    is(Trait::NotFollows, "faccessat2", &[AnyBits(3, AT_SYMLINK_NOFOLLOW)]),
    is(Trait::SendsAtOnce, "setsockopt", &[Is(1, SOL_TCP), OneOf(2, &[TCP_NODELAY, TCP_CORK])]),
    is(Trait::TellsReady, "poll", &[]),
    is(Trait::TellsReady, "ppoll", &[]),
    is(Trait::TellsReady, "select", &[]),
    is(Trait::TellsReady, "pselect6", &[]),
    is(Trait::TellsReady, "epoll_wait", &[]),
    is(Trait::TellsReady, "epoll_pwait", &[]),
    is(Trait::TellsReady, "epoll_pwait2", &[]),
    is(Trait::Wakes, "futex", &[OneOf(1, WAKING)]),
    is(Trait::Wakes, "futex_wake", &[]),
];
