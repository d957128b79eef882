//! What the judge returns of each finding.

pub(crate) mod cure_kind;
pub(crate) mod finding;
