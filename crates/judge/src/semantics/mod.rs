//! What system calls mean: which ask about which state, which set it, what they change on the way.
//!
//! The tables are data, a file for each thing they tell; [`registry`] lists them and files their lines by
//! system call. Detectors read lines and name no call themselves.

mod alternatives;
mod call_pairs;
mod effects;
mod errors;
mod io;
mod locks;
mod memory;
mod names;
mod ranges;
mod read;
mod registry;
#[cfg(test)]
mod shapes;
mod shown;
mod state;
mod state_lines;
#[cfg(test)]
mod tests;
mod things;
mod threads;
mod vocabulary;
mod waits;

#[cfg(test)]
pub(crate) use {
    alternatives::CHEAPER,
    call_pairs::SEQUELS,
    ranges::{From as RangeFrom, RANGED},
    state_lines::STATE_LINES,
    things::{Handle, THINGS},
    vocabulary::When,
};

pub(crate) use alternatives::Cheaper;
pub(crate) use call_pairs::{Sequel, Spare, Tie};
pub(crate) use effects::{Effect, Effects};
pub(crate) use errors::{HOPELESS, Hopeless};
pub(crate) use io::{
    COUNTERS, DATAGRAMS, DEVICES, Look, MADE_UP, NETWORK_STREAMS, Nothing, ON_THIS_BOX, PIPES, RANDOM_FILES, TERMINALS,
    Transfer, Unit, WAKE_COUNTERS, Way,
};
pub(crate) use memory::Amount;
pub(crate) use ranges::{Between, Ranged};
pub(crate) use read::{Generations, Key, Known, ObservedCall, Value, answer, value};
pub(crate) use registry::{Followed, Lines, Semantics};
pub(crate) use shown::Shown;
pub(crate) use state::{
    ADVICE, ATTEMPT, ATTRIBUTES, Across, CAPABILITIES, CREDENTIALS, CWD, FD_FLAGS, FILE_STATUS, FOLDER, IDENTITY,
    INTEREST, NAME, PATH, POSITION, PROTECTION, SCHEDULING, SIZE, SOCKET_OPTION, STATUS_FLAGS, SYNCED, Shared, State,
    StateId,
};
pub(crate) use state_lines::StateLine;
pub(crate) use things::Thing;
pub(crate) use vocabulary::{Act, How, Source};
pub(crate) use waits::{Arm, SuspectWait, WAITING_PROGRAMS, Where};
