//! Turns counters in shared memory into rows and a recording.

pub(crate) mod clock;
pub(crate) mod collect;
pub(crate) mod count_limits;
pub(crate) mod cpu_time;
pub(crate) mod estimate;
pub(crate) mod images;
pub(crate) mod in_place;
pub(crate) mod local_memory;
pub(crate) mod losses;
pub(crate) mod overhead;
pub(crate) mod own_cpu;
pub(crate) mod recording;
pub(crate) mod ring_take;
pub(crate) mod rows;
pub(crate) mod run_stats;
pub(crate) mod sites;
pub(crate) mod tally;
pub(crate) mod turns;
pub(crate) mod twins;
