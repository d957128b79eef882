//! Prepares a new program at its `execve`, before it runs: plans its files, maps code and memory, and writes jumps.

pub(crate) mod bootstrap;
pub(crate) mod call_free_files;
pub(crate) mod confinement;
pub(crate) mod context_reuse;
pub(crate) mod file_notes;
pub(crate) mod files;
pub(crate) mod filter_program;
pub(crate) mod hand_over;
pub(crate) mod kept_contexts;
pub(crate) mod kept_names;
pub(crate) mod no_calls;
pub(crate) mod on_exec;
pub(crate) mod own_filters;
pub(crate) mod place;
pub(crate) mod plan_ahead;
pub(crate) mod prefetched;
pub(crate) mod preload;
pub(crate) mod provision;
pub(crate) mod read_ahead;
pub(crate) mod ready;
pub(crate) mod rseq_areas;
pub(crate) mod seccomp;
