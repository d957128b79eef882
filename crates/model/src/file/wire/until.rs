//! The message of the moment that a run was watched until.

use prost::Message;

/// The moment that a run was watched until.
#[derive(Clone, PartialEq, Message)]
pub(in crate::file) struct Until {
    #[prost(string, tag = "1")]
    pub(in crate::file) sign: String,
    #[prost(bool, tag = "2")]
    pub(in crate::file) seen: bool,
}
