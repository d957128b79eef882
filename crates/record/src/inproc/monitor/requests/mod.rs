//! Answers questions that threads of watched programs ask while they run.

pub(crate) mod answer;
pub(crate) mod context;
pub(crate) mod doomed;
pub(crate) mod end_of_watching;
pub(crate) mod exec_asked;
pub(crate) mod generated;
pub(crate) mod identity;
pub(crate) mod late_code;
pub(crate) mod leave;
pub(crate) mod leave_alone;
pub(crate) mod mapper_roles;
pub(crate) mod open_windows;
pub(crate) mod queue;
pub(crate) mod received;
pub(crate) mod request;
pub(crate) mod serve;
pub(crate) mod short_threads;
pub(crate) mod slots;
pub(crate) mod stack_memory;
pub(crate) mod tickets;
pub(crate) mod translators;
pub(crate) mod trunk;
pub(crate) mod unchanged_ids;
pub(crate) mod unwind;
pub(crate) mod waiter;
pub(crate) mod windows;
