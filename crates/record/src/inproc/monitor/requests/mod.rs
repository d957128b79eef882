//! What threads of watched programs ask while they run, and the answers.

pub(crate) mod answer;
pub(crate) mod generated;
pub(crate) mod identity;
pub(crate) mod late_code;
pub(crate) mod mapper_roles;
pub(crate) mod queue;
pub(crate) mod slots;
pub(crate) mod tickets;
pub(crate) mod translators;
pub(crate) mod windows;
