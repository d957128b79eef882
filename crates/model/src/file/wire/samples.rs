//! Messages of sampled stacks.

use prost::Message;

/// Sampled calls of a row about one object, by one whole stack.
#[derive(Clone, Copy, PartialEq, Message)]
pub(in crate::file) struct ObjectSample {
    #[prost(uint32, tag = "1")]
    pub(in crate::file) row: u32,
    /// Index of the string with the object's name, if it has one.
    #[prost(uint32, optional, tag = "2")]
    pub(in crate::file) object: Option<u32>,
    /// Index of the script line's frame, if there is one.
    #[prost(uint32, optional, tag = "3")]
    pub(in crate::file) line: Option<u32>,
    /// Index of the stack above the row's context.
    #[prost(uint32, tag = "4")]
    pub(in crate::file) above: u32,
    /// Index of the stack, from the system call outwards.
    #[prost(uint32, tag = "5")]
    pub(in crate::file) whole: u32,
    #[prost(uint64, tag = "6")]
    pub(in crate::file) looks: u64,
    #[prost(uint64, tag = "7")]
    pub(in crate::file) weight: u64,
    #[prost(uint64, tag = "8")]
    pub(in crate::file) squares: u64,
}

/// A sampled whole stack of a row with all of its frames.
#[derive(Clone, Copy, PartialEq, Message)]
pub(in crate::file) struct WholeStack {
    #[prost(uint32, tag = "1")]
    pub(in crate::file) row: u32,
    /// Index of the stack, from the system call outwards.
    #[prost(uint32, tag = "2")]
    pub(in crate::file) stack: u32,
    #[prost(uint64, tag = "3")]
    pub(in crate::file) weight: u64,
    #[prost(uint64, tag = "4")]
    pub(in crate::file) looks: u64,
}

/// One of several whole stacks of a row.
#[derive(Clone, Copy, PartialEq, Message)]
pub(in crate::file) struct RowTrunk {
    #[prost(uint32, tag = "1")]
    pub(in crate::file) row: u32,
    /// Index of the stack above the row's context.
    #[prost(uint32, tag = "2")]
    pub(in crate::file) stack: u32,
    #[prost(uint64, tag = "3")]
    pub(in crate::file) weight: u64,
    #[prost(uint64, tag = "4")]
    pub(in crate::file) looks: u64,
}
