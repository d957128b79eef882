//! The verdict on groups: findings, remarks, and calls that neither reports.

pub(crate) mod joined;
pub(crate) mod of_group;
pub(crate) mod silences;
pub(crate) mod unreported;
