//! Adding contexts to the trees of an image while its threads walk them.
//!
//! One thread of the launcher writes; a node is linked when all of it, and all below it, stands.

use crate::layout::{
    IMAGE, NODE_SIZE, NUMBERS, image, node, nodes_end, record_offset, root_record_offset, root_words, slot,
    table_entry, transfers,
};
use std::sync::atomic::{AtomicU64, Ordering};
use thiserror::Error;

/// A return address on the way from a site to its context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The address.
    pub word: u64,
    /// Where the next return address lies, from rsp at the hook. Not used of the last step.
    pub next: u64,
}

/// What of an image is given out so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Room {
    /// Nodes.
    pub nodes: u64,
    /// Records of contexts.
    pub records: u64,
    /// Records of roots.
    pub roots: u64,
}

/// Why a context could not be added. The call counts at the site's root.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum TreeError {
    /// No room for more nodes or records.
    #[error("no room for more contexts")]
    Full,
    /// The site takes no more contexts.
    #[error("the site is closed for more contexts")]
    Closed,
    /// The tree ends above or below the last step.
    #[error("the tree disagrees about where this context ends")]
    Depth,
    /// The tree is damaged: the program has written over it.
    #[error("the tree is damaged at {0:#x}")]
    Damaged(u64),
}

/// A level longer than this, or a way deeper, is not one of ours.
const LONGEST: usize = 1 << 16;

/// The node of the context `steps` below `root` (addresses in the watched process), made if it
/// is new.
///
/// # Errors
///
/// When there is no room or no sense in it; nothing has changed then.
pub fn grow(words: &[AtomicU64], room: &mut Room, root: u64, steps: &[Step]) -> Result<u64, TreeError> {
    grow_due(words, room, root, steps, Due::default())
}

/// When the first window of a new node is due.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Due {
    /// At which call of a thread there; zero: at none.
    pub at: u64,
    /// Whether the thread asks the launcher there, even where threads open windows themselves.
    pub asks: bool,
}

/// [`grow`]; in a node that is made, a window is `due`. A thread may be counting there as soon as the node is
/// linked.
///
/// # Errors
///
/// As for [`grow`].
pub fn grow_due(words: &[AtomicU64], room: &mut Room, root: u64, steps: &[Step], due: Due) -> Result<u64, TreeError> {
    let tree = Tree { words };
    let mut found = root;
    for (i, step) in steps.iter().enumerate() {
        let level = tree.get(found, node::CHILD)?;
        if level == 0 {
            return Err(TreeError::Depth);
        }
        let offset = tree.get(level, node::OFFSET)?;
        match tree.find(level, step.word)? {
            Found::Node(at) => found = at,
            Found::Closed => return Err(TreeError::Closed),
            Found::End => {
                let made = tree.chain(room, root, offset, steps.get(i..).unwrap_or_default(), due)?;
                // What a program does last it does for longest, so a new node comes before those that are there. The
                // root stands for a first level that has no node yet.
                if level != root {
                    tree.set(made.first, node::SIBLING, level)?;
                }
                tree.set(found, node::CHILD, made.first)?;
                return Ok(made.last);
            }
        }
    }
    let leaf = found != root && tree.get(found, node::CHILD)? == 0;
    leaf.then_some(found).ok_or(TreeError::Depth)
}

/// The root of `number` in the table at address `table`, made if it is new. `offset` is where
/// return addresses lie there, from rsp at the hook.
///
/// # Errors
///
/// As of [`grow`].
pub fn number_site(
    words: &[AtomicU64],
    room: &mut Room,
    table: u64,
    number: u32,
    offset: u64,
) -> Result<u64, TreeError> {
    let tree = Tree { words };
    let entry = 8 * table_entry(number);
    let known = tree.get(table, entry)?;
    if known != 0 {
        return Ok(known);
    }
    let before = room.clone();
    // Without contexts all of the number's calls are counted there.
    let record = if offset == 0 { room.record() } else { room.root_record() };
    let taken = record.and_then(|record| Ok((room.node(words)?, record)));
    let (at, record) = taken.inspect_err(|_| *room = before)?;
    let moves = transfers(number);
    for (field, word) in root_words(at, record, offset, moves) {
        tree.set(at, field, word)?;
    }
    tree.set(table, entry, at)?;
    Ok(at)
}

impl Default for Room {
    /// All of a new image, which has the roots of numbers.
    fn default() -> Self {
        Self { nodes: 0, records: 0, roots: NUMBERS }
    }
}

impl Room {
    /// Whether there is room for so many more records.
    #[must_use]
    pub fn has(&self, records: u64) -> bool {
        self.records.saturating_add(self.roots).saturating_add(records) <= slot::RECORD_COUNT
    }

    /// Address of a new node.
    fn node(&mut self, words: &[AtomicU64]) -> Result<u64, TreeError> {
        let offset = image::NODES + self.nodes * NODE_SIZE;
        (offset + NODE_SIZE <= nodes_end(words.len())).then_some(()).ok_or(TreeError::Full)?;
        self.nodes += 1;
        Ok(IMAGE + offset)
    }

    /// Offset of a new record of a context.
    fn record(&mut self) -> Result<u64, TreeError> {
        let record = record_offset(self.records).filter(|_| self.has(1)).ok_or(TreeError::Full)?;
        self.records += 1;
        Ok(record)
    }

    /// Offset of a new record of a root.
    fn root_record(&mut self) -> Result<u64, TreeError> {
        let record = root_record_offset(self.roots).filter(|_| self.has(1)).ok_or(TreeError::Full)?;
        self.roots += 1;
        Ok(record)
    }
}

enum Found {
    Node(u64),
    /// Not there.
    End,
    Closed,
}

struct Chain {
    first: u64,
    last: u64,
}

struct Tree<'a> {
    words: &'a [AtomicU64],
}

impl Tree<'_> {
    fn cell(&self, at: u64, field: u64) -> Result<&AtomicU64, TreeError> {
        let offset = at.wrapping_sub(IMAGE).wrapping_add(field);
        let index = usize::try_from(offset / 8).ok().filter(|_| offset.is_multiple_of(8));
        index.and_then(|i| self.words.get(i)).ok_or(TreeError::Damaged(at))
    }

    fn get(&self, at: u64, field: u64) -> Result<u64, TreeError> {
        Ok(self.cell(at, field)?.load(Ordering::Acquire))
    }

    fn set(&self, at: u64, field: u64, word: u64) -> Result<(), TreeError> {
        self.cell(at, field)?.store(word, Ordering::Release);
        Ok(())
    }

    fn find(&self, first: u64, word: u64) -> Result<Found, TreeError> {
        let mut at = first;
        for _ in 0..LONGEST {
            if self.get(at, node::WORD)? == word {
                return Ok(Found::Node(at));
            }
            match self.get(at, node::SIBLING)? {
                0 => return Ok(Found::End),
                node::OTHERS => return Ok(Found::Closed),
                next => at = next,
            }
        }
        Err(TreeError::Damaged(first))
    }

    /// New nodes for `steps`, one below the other.
    fn chain(&self, room: &mut Room, root: u64, offset: u64, steps: &[Step], due: Due) -> Result<Chain, TreeError> {
        let transfers = self.get(root, node::TRANSFERS)?;
        let asks = if due.asks { node::ASKS } else { 0 };
        let before = room.clone();
        let taken: Result<Vec<_>, _> = steps.iter().map(|_| room.node(self.words)).collect();
        let leaf = taken.and_then(|nodes| Ok((nodes, room.record()?)));
        let (taken, record) = leaf.inspect_err(|_| *room = before)?;
        let mut offset = offset;
        for (i, (step, at)) in steps.iter().zip(&taken).enumerate() {
            let child = taken.get(i + 1).copied().unwrap_or(0);
            let fields = [
                (node::WORD, step.word),
                (node::RECORD, if child == 0 { record } else { 0 }),
                (node::OFFSET, offset),
                (node::CHILD, child),
                (node::SIBLING, 0),
                (node::ROOT, root),
                (node::TRANSFERS, transfers | asks),
                (node::WINDOW_AT, if child == 0 { due.at } else { 0 }),
            ];
            for (field, word) in fields {
                self.set(*at, field, word)?;
            }
            offset = step.next;
        }
        match (taken.first(), taken.last()) {
            (Some(first), Some(last)) => Ok(Chain { first: *first, last: *last }),
            _ => Err(TreeError::Depth),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An image of a few nodes, the first of which is a root.
    fn image_with_root() -> (Vec<AtomicU64>, Room, u64) {
        let words: Vec<AtomicU64> = (0..(image::NODES + 64 * NODE_SIZE) / 8).map(|_| AtomicU64::new(0)).collect();
        let root = IMAGE + image::NODES;
        for (field, word) in root_words(root, 0, 0, false) {
            Tree { words: &words }.set(root, field, word).unwrap();
        }
        (words, Room { nodes: 1, ..Room::default() }, root)
    }

    fn level(words: &[AtomicU64], parent: u64) -> Vec<u64> {
        let tree = Tree { words };
        let get = |at, field| tree.get(at, field).unwrap();
        let next = |at: &u64| Some(get(*at, node::SIBLING)).filter(|next| *next > node::OTHERS);
        std::iter::successors(Some(get(parent, node::CHILD)), next).map(|at| get(at, node::WORD)).collect()
    }

    #[test]
    fn the_newest_of_a_level_comes_first_and_none_is_lost() {
        let (words, mut room, root) = image_with_root();
        let path = |inner, outer| [Step { word: inner, next: 8 }, Step { word: outer, next: 0 }];
        let paths = [path(1, 10), path(2, 10), path(1, 11), path(3, 12), path(1, 12)];
        let made = paths.map(|path| grow(&words, &mut room, root, &path).unwrap());
        assert_eq!(level(&words, root), [3, 2, 1]);
        let first = grow(&words, &mut room, root, &[Step { word: 1, next: 8 }]);
        assert_eq!(first, Err(TreeError::Depth), "others lie below it");
        let below_1 = Tree { words: &words }.find(root + NODE_SIZE, 1).map(|found| matches!(found, Found::Node(_)));
        assert_eq!(below_1, Ok(true));
        assert_eq!(level(&words, root + NODE_SIZE), [12, 11, 10]);
        let again = paths.map(|path| grow(&words, &mut room, root, &path).unwrap());
        assert_eq!(again, made, "what is known is found, and not made again");
    }
}
