//! The initial contents of a tree of contexts.

use super::node;
use systoll_model::Sysno;

/// Returns true if a positive result of system call `number` counts bytes moved.
#[must_use]
pub fn transfers(number: u32) -> bool {
    Sysno(number).signature().is_some_and(|s| s.transfers)
}

/// Returns the words of a root without contexts, as (offset in the node, value). `offset` is the distance of the
/// return address from rsp at the hook.
#[must_use]
pub fn root_words(address: u64, record: u64, offset: u64, transfers: bool) -> [(u64, u64); 8] {
    [
        (node::WORD, node::NO_WORD),
        (node::RECORD, record),
        (node::OFFSET, offset),
        (node::CHILD, address),
        (node::SIBLING, 0),
        (node::ROOT, address),
        (node::TRANSFERS, if transfers { node::MOVES } else { 0 }),
        (node::WINDOW_AT, 0),
    ]
}
