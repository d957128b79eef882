//! The statement that an operation is of, as Perl's own messages find it (`closest_cop` of util.c).
//!
//! `PL_curcop` is the last statement that was begun. That of a block of one statement is optimised away, and what is
//! left of it stands in the tree of operations: it is looked for between the statement begun and the operation.

use crate::script::memory::Memory;

/// `OP`: the next, the sibling, what a nulled one was, its type and a bit for siblings, its flags, its first child.
const NEXT: u64 = 0;
const SIBLING: u64 = 8;
const WAS: u64 = 24;
const KIND: u64 = 32;
const KIND_MASK: u32 = 0x1ff;
const MORE_SIBLINGS: u32 = 1 << 14;
const HAS_CHILDREN: u32 = 4 << 16;
const FIRST: u64 = 40;
/// Most operations of a statement that are looked through.
const MOST: usize = 4096;

/// The operation a statement is looked for by.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Sought {
    /// The one that is executed.
    At(u64),
    /// The one before this.
    Before(u64),
}

/// Returns the statement that an operation within `begun` is of: `begun` itself where no other is found.
pub(crate) fn closest(memory: &mut Memory<'_, '_>, begun: u64, sought: Sought) -> u64 {
    find(memory, begun, sought).unwrap_or(begun)
}

/// Returns the type of an operation, by which its name is known.
pub(crate) fn kind(memory: &mut Memory<'_, '_>, operation: u64) -> Option<u32> {
    Some(memory.half(operation.checked_add(KIND)?)? & KIND_MASK)
}

fn find(memory: &mut Memory<'_, '_>, begun: u64, sought: Sought) -> Option<u64> {
    let head = memory.half(begun.wrapping_add(KIND))?;
    let statement = head & KIND_MASK;
    // While a file is compiled it is none.
    (statement != 0).then_some(())?;
    let root = sibling(memory, begun, head)??;
    // What is still to be looked at, the next one last; with each the statement it is of.
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
        // Its siblings are of the same statement, those of the root of others.
        if at != root {
            open.extend(sibling(memory, at, head)?.map(|next| (next, of)));
        }
        if head & HAS_CHILDREN != 0 {
            open.push((memory.pointer(at.wrapping_add(FIRST))?, of));
        }
    }
    None
}

/// Returns the sibling that follows an operation; `Some(None)` where there is none.
fn sibling(memory: &mut Memory<'_, '_>, operation: u64, head: u32) -> Option<Option<u64>> {
    if head & MORE_SIBLINGS == 0 {
        return Some(None);
    }
    Some(Some(memory.pointer(operation.wrapping_add(SIBLING))?))
}
