//! The meaning of system calls: the state that they ask for or set, and their side effects.
//!
//! The tables are data, one file for each subject. [`registry`] lists them and sorts their lines by system call.
//! Detectors read lines and name no call themselves.

mod alternatives;
mod call_pairs;
mod effects;
mod errors;
mod events;
mod in_windows;
mod io;
mod locks;
mod memory;
mod names;
mod ranges;
mod read;
mod registry;
#[cfg(test)]
mod shapes;
pub(crate) mod signs;
mod state;
mod state_lines;
mod stores;
#[cfg(test)]
mod tests;
mod things;
mod threads;
mod traits;
mod vocabulary;
mod waits;

#[cfg(test)]
pub(crate) use {
    alternatives::CHEAPER,
    call_pairs::SEQUELS,
    ranges::{From as RangeFrom, RANGED},
    state_lines::STATE_LINES,
    things::{Handle, THINGS},
};

pub(crate) use alternatives::Cheaper;
pub(crate) use call_pairs::{Sequel, Spare, Tie};
pub(crate) use effects::{Effect, Effects};
pub(crate) use errors::{Attribute, HOPELESS, Hopeless, MISSING};
pub(crate) use io::{
    COUNTERS, DATAGRAMS, Enter, Look, MADE_UP, MOVES_UNSEEN, NETWORK_STREAMS, ON_THIS_BOX, PIPES, RANDOM_FILES,
    TERMINALS, TIMERS, Transfer, Unit, WAKE_COUNTERS, Way, connection, is_device, is_stored, may_pass_descriptors,
};
pub(crate) use locks::{FileLock, KernelLock};
pub(crate) use memory::{Amount, Frees};
pub(crate) use names::{asks_to_run, removes_name};
pub(crate) use ranges::{Between, Ranged};
pub(crate) use read::{Generations, Key, Known, ObservedCall, Value, answer, first_word, value, word_at};
pub(crate) use registry::{Followed, Line, Lines, Semantics};
pub(crate) use state::{
    ADVICE, ATTEMPT, ATTRIBUTES, Across, CREDENTIALS, CWD, FD_FLAGS, FILE_STATUS, FOLDER, INTEREST, MAKING, NAME,
    OF_IDENTITY, PATH, POSITION, PROTECTION, ROOM, SCHEDULES, SETTLED, SETTLED_OPEN, SIGNAL_MASK, SIZE, SOCKET_OPTION,
    STATUS_FLAGS, SYNCED, Scope, Shared, State, StateId, TIMES, Undone, names_one,
};
pub(crate) use state_lines::StateLine;
pub(crate) use stores::{Store, UsedBy};
pub(crate) use things::{EPOLL, IN_MEMORY, SCRATCH, TOKENS, Thing};
pub(crate) use threads::{ThreadSetup, shares_memory};
pub(crate) use traits::Trait;
pub(crate) use vocabulary::{Act, How, Source, When};
pub use waits::Sleep;
pub(crate) use waits::{ARMS, Arm, OwnWait, SuspectWait, WAITING_PROGRAMS, Where};
