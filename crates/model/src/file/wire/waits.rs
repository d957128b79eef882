//! Messages of long waits.

use prost::Message;

/// A call of a millisecond or more during which its thread was scheduled out.
#[derive(Clone, PartialEq, Message)]
pub(in crate::file) struct WaitSpan {
    #[prost(uint32, tag = "1")]
    pub(in crate::file) row: u32,
    #[prost(uint32, tag = "2")]
    pub(in crate::file) pid: u32,
    #[prost(uint32, tag = "3")]
    pub(in crate::file) tid: u32,
    /// Time from the entry of the wait before it to its own, ns.
    #[prost(uint64, tag = "4")]
    pub(in crate::file) after_ns: u64,
    #[prost(uint64, tag = "5")]
    pub(in crate::file) ns: u64,
    /// The argument registers up to the last that is not 0.
    #[prost(uint64, repeated, tag = "6")]
    pub(in crate::file) args: Vec<u64>,
    #[prost(sint64, optional, tag = "7")]
    pub(in crate::file) result: Option<i64>,
    /// Index of the string with the object's name, if it is known.
    #[prost(uint32, optional, tag = "8")]
    pub(in crate::file) object: Option<u32>,
    /// Index of the frame of the script's line that made the call, if it was sampled.
    #[prost(uint32, optional, tag = "9")]
    pub(in crate::file) line: Option<u32>,
    /// Time for which its thread may have waited for a processor, ns, if it is known.
    #[prost(uint64, optional, tag = "10")]
    pub(in crate::file) queued_most_ns: Option<u64>,
}

/// Sum of a row's long waits that were not kept one by one.
#[derive(Clone, Copy, PartialEq, Message)]
pub(in crate::file) struct DroppedWaits {
    #[prost(uint32, tag = "1")]
    pub(in crate::file) row: u32,
    #[prost(uint64, tag = "2")]
    pub(in crate::file) calls: u64,
    #[prost(uint64, tag = "3")]
    pub(in crate::file) ns: u64,
}
