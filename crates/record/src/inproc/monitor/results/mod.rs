//! From counters in shared memory to rows and a recording.

pub(crate) mod clock;
pub(crate) mod cpu_time;
pub(crate) mod in_place;
pub(crate) mod local_memory;
pub(crate) mod overhead;
pub(crate) mod own_cpu;
pub(crate) mod plausible;
pub(crate) mod recording;
pub(crate) mod rows;
pub(crate) mod sites;
pub(crate) mod tally;
