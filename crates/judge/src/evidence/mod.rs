//! Claimed calls, and the share of a row that they stand for.

pub(crate) mod claim;
pub(crate) mod extrapolate;
pub(crate) mod ledger;
pub(crate) mod phases;
pub(crate) mod survey;
