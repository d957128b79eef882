//! Events that a call allows beside its own effect, such as a write by another process. After such an event, facts that were
//! known before may be outdated.
//!
//! `Step::let_happen` is the only place that finds this out. A detector asks a step with one of the masks below; each mask
//! says after what its kind of claim does not hold any more.

use crate::collections::bits::bit_set;

bit_set! {
    /// A set of things that a call let happen.
    Barrier, BarrierBit:
    /// The call made a child.
    FORKED,
    /// A signal came before the call, so that a handler may have run.
    SIGNALLED,
    /// The call waited, or could have waited.
    PAUSED,
    /// The call waited, or could have waited, and moves no bytes.
    SLEPT,
    /// The call is a poll that sleeps.
    POLLED,
    /// The call took or left a lock on a file.
    LOCKED,
    /// The call left a lock on a file, or one that the kernel holds.
    UNLOCKED,
    /// The call takes bytes from something that is no file with a name.
    HEARD,
    /// The call gives bytes to something that is no file with a name.
    SHOWN,
    /// The call carries more than bytes, such as a value or an event of another thread.
    CARRIED,
    /// The call writes.
    WROTE,
    /// The call set a file's size.
    RESIZED,
    /// The call changed what a path leads to, or may have.
    NAMED,
    /// The call changed the working directory.
    FOLDER,
    /// The call changed the process's ids or capabilities.
    IDENTITY,
    /// The call maps a file.
    MAPPED,
    /// The call moved a thing to another place.
    MOVED,
    /// The call brings data to the disk.
    SYNCED,
    /// The call opened a path.
    OPENED,
}

impl Barrier {
    /// Another process may have written to any file, or may from now on.
    pub(crate) const OTHERS_WRITE: Self = Self::FORKED.and(Self::LOCKED).and(Self::SLEPT);
    /// Another process may use a file that the program made, or is meant to find it after a crash.
    pub(crate) const OTHERS_USE: Self = Self::OTHERS_WRITE.and(Self::SYNCED);
    /// Another process may have said something, and worked on a file before.
    pub(crate) const OTHERS_SAY: Self = Self::CARRIED.and(Self::HEARD);
    /// Bytes that were read from a file may be outdated.
    pub(crate) const FILES_CHANGE: Self = Self::OTHERS_WRITE.and(Self::WROTE).and(Self::RESIZED);
    /// The next call may come much later, so that others should have the lock meanwhile.
    pub(crate) const TAKES_LONG: Self = Self::SLEPT.and(Self::POLLED).and(Self::HEARD);
    /// Others may learn that there is something to read, or are waited for.
    pub(crate) const SHOWS: Self = Self::FORKED.and(Self::PAUSED).and(Self::SHOWN);
    /// A child or another process may change what this process asks or sets.
    pub(crate) const OTHERS_ACT: Self = Self::FORKED.and(Self::SLEPT);
    /// As [`Barrier::OTHERS_ACT`], where reading may wait too.
    pub(crate) const WAITS: Self = Self::FORKED.and(Self::PAUSED);
    /// A path may lead to another file, by what the program does.
    pub(crate) const PATHS_MOVE: Self = Self::FORKED.and(Self::NAMED).and(Self::FOLDER);
    /// A missing name may exist: the program may have made it, or others while it waited.
    pub(crate) const NAMES_APPEAR: Self = Self::PATHS_MOVE.and(Self::PAUSED).and(Self::POLLED);
    /// A signal handler or a child may have sent what a thread takes for its own.
    pub(crate) const OTHERS_SEND: Self = Self::FORKED.and(Self::SIGNALLED);
    /// A child that writes, or a mapping, may need a file's size.
    pub(crate) const SIZES_COUNT: Self = Self::FORKED.and(Self::MOVED).and(Self::MAPPED);
    /// Something else begins: another file, or a child.
    pub(crate) const TURNS: Self = Self::FORKED.and(Self::OPENED);
}
