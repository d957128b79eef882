//! The statement to which an operation belongs, found as Perl's own messages find it (`closest_cop` of util.c).
//!
//! `PL_curcop` is the last statement that was begun. The statement of a block of only one is optimised away, but its
//! remains are in the tree of operations: they are searched between the statement begun and the operation.

use crate::script::memory::Memory;

/// Offset in `OP` of the operation executed next.
const NEXT: u64 = 0;
/// Offset in `OP` of the next sibling.
const SIBLING: u64 = 8;
/// Offset in `OP` of the type that a nulled operation had.
const WAS: u64 = 24;
/// Offset in `OP` of a word with the type, the bit for siblings and the flags.
const KIND: u64 = 32;
/// Bits of that word that hold the type.
const KIND_MASK: u32 = 0x1ff;
/// Bit of that word that is set if another sibling follows.
const MORE_SIBLINGS: u32 = 1 << 14;
/// Flag in that word of an operation with children.
const HAS_CHILDREN: u32 = 4 << 16;
/// Offset in `OP` of the first child.
const FIRST: u64 = 40;
/// Operations of a statement looked through, at most.
const MOST: usize = 4096;

/// The operation whose statement is searched.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Sought {
    /// The operation at this address, which is being executed.
    At(u64),
    /// The operation whose next operation is the one at this address.
    Before(u64),
}

/// Returns the statement within `begun` to which an operation belongs; `begun` itself if no other is found.
pub(crate) fn closest(memory: &mut Memory<'_, '_>, begun: u64, sought: Sought) -> u64 {
    find(memory, begun, sought).unwrap_or(begun)
}

/// Returns the type of an operation, which is the index of its name.
pub(crate) fn kind(memory: &mut Memory<'_, '_>, operation: u64) -> Option<u32> {
    Some(memory.half(operation.checked_add(KIND)?)? & KIND_MASK)
}

fn find(memory: &mut Memory<'_, '_>, begun: u64, sought: Sought) -> Option<u64> {
    let head = memory.half(begun.wrapping_add(KIND))?;
    let statement = head & KIND_MASK;
    // While a file is being compiled, the current statement has no type and no tree.
    (statement != 0).then_some(())?;
    let root = sibling(memory, begun, head)??;
    // Operations still to be visited, the next one last, each with its statement.
    let mut open = vec![(root, begun)];
    for _ in 0..MOST {
        let (at, mut of) = open.pop()?;
        let head = memory.half(at.wrapping_add(KIND))?;
        if head & KIND_MASK == 0 && memory.word(at.wrapping_add(WAS))? == u64::from(statement) {
            of = at;
        }
        let is_it = match sought {
            Sought::At(operation) => at == operation,
            Sought::Before(next) => memory.word(at.wrapping_add(NEXT))? == next && head & KIND_MASK != 0,
        };
        if is_it {
            return Some(of);
        }
        // Siblings belong to the same statement, except those of the root.
        if at != root {
            open.extend(sibling(memory, at, head)?.map(|next| (next, of)));
        }
        if head & HAS_CHILDREN != 0 {
            open.push((memory.pointer(at.wrapping_add(FIRST))?, of));
        }
    }
    None
}

/// Returns the sibling that follows an operation; `Some(None)` if there is none.
fn sibling(memory: &mut Memory<'_, '_>, operation: u64, head: u32) -> Option<Option<u64>> {
    if head & MORE_SIBLINGS == 0 {
        return Some(None);
    }
    Some(Some(memory.pointer(operation.wrapping_add(SIBLING))?))
}
