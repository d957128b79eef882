//! Adds contexts to the trees of an image while its threads walk them.
//!
//! One thread of the launcher writes; a node is linked when it, and everything below it, is complete.

use super::room::Room;
use crate::layout::{IMAGE, NODE_SIZE, node, root_words, table_entry, transfers, trunk};
use std::sync::atomic::{AtomicU64, Ordering};
use thiserror::Error;

/// A return address on the stack of a context.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Step {
    /// Return address.
    pub word: u64,
    /// Distance of the next return address from rsp at the hook, bytes; unused in the last step.
    pub next: u64,
    /// Frame pointer on which `next` depends, if the frame between varies in size: the next return address is
    /// expected at `next` if this pointer has the same distance as now.
    pub pointer: Option<FramePointer>,
}

/// A function's frame pointer at the hook: its place and its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FramePointer {
    /// Distance from rsp at the hook of the place where the pointer was saved; `None` if it is in rbp.
    pub saved: Option<u64>,
    /// Distance from rsp at the hook of the address to which it points.
    pub distance: u64,
}

impl FramePointer {
    /// Returns the offset word of a level that compares this frame pointer.
    fn offset(self) -> u64 {
        node::FRAME | self.saved.unwrap_or(node::IN_RBP)
    }
}

/// A return address above a context.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Above {
    /// Distance of the address's place from rsp at the hook, or from rbp as [`Trunk::from_rbp`] says.
    pub place: u64,
    /// Return address.
    pub word: u64,
}

/// The return addresses above a context, from the inside outwards, see [`crate::layout::trunk`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trunk {
    /// True if places are relative to rbp.
    pub from_rbp: bool,
    /// The addresses, at most [`trunk::MOST`].
    pub above: Vec<Above>,
}

impl Trunk {
    /// Returns the words that lie behind the node.
    pub fn words(&self) -> impl Iterator<Item = u64> {
        let from = if self.from_rbp { trunk::FROM_RBP } else { 0 };
        let size = (self.above.len() as u64 * trunk::PAIR) | from;
        std::iter::once(size).chain(self.above.iter().flat_map(|above| [above.place, above.word]))
    }
}

/// Frame sizes told apart at one level, at most: a program that changes a frame's size at every call would fill the
/// tree. A start of `gcc`, behind the C library's `setlocale`, has more than four.
const MOST_FRAMES: usize = 16;
/// Frame sizes known from elsewhere, at most, which leaves some for those that a program itself reaches.
const MOST_KNOWN_FRAMES: usize = 12;

/// The reason why a context could not be added. Its calls count at the site's root.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum TreeError {
    /// There is no room for more nodes or records.
    #[error("no room for more contexts")]
    Full,
    /// The site takes no more contexts.
    #[error("the site is closed for more contexts")]
    Closed,
    /// The context has no step, or one at an impossible place.
    #[error("nothing on the stack distinguishes this context")]
    Depth,
    /// Threads can't find the context beyond some callers: a frame's size varies too much, or the tree has other places
    /// there, or ends there. The callers up to that point are known.
    #[error("threads can't distinguish the callers behind {callers} of them")]
    Varies {
        /// Address of the node that counts all such calls.
        node: u64,
        /// Number of steps that lead to the node.
        callers: usize,
    },
    /// The tree is damaged: the program has written over it.
    #[error("the tree is damaged at {0:#x}")]
    Damaged(u64),
}

/// Nodes of a level, or levels of a tree, at most; a longer one is not one of ours.
const LONGEST: usize = 1 << 16;

/// Returns the node of the context `steps` below `root` (addresses in the watched process); makes it if it is new.
///
/// # Errors
///
/// If there is no room, or the tree makes no sense; then nothing has changed.
pub fn grow(words: &[AtomicU64], room: &mut Room, root: u64, steps: &[Step]) -> Result<u64, TreeError> {
    grow_seen(words, room, root, steps, None)
}

/// Stops all questions about a tree: at each level, calls with an unknown return address are counted at the root from
/// now on.
///
/// # Errors
///
/// If the tree is damaged.
pub fn close(words: &[AtomicU64], root: u64) -> Result<(), TreeError> {
    let tree = Tree { words };
    let mut levels = vec![tree.get(root, node::CHILD)?];
    let mut nodes = 0;
    while let Some(mut at) = levels.pop() {
        while at > node::OTHERS {
            nodes += 1;
            if nodes > LONGEST {
                return Err(TreeError::Damaged(root));
            }
            // A root may be its own first level, and a leaf has none.
            let child = tree.get(at, node::CHILD)?;
            if child != 0 && at != root {
                levels.push(child);
            }
            match tree.get(at, node::SIBLING)? {
                0 => {
                    tree.set(at, node::SIBLING, node::OTHERS)?;
                    break;
                }
                next => at = next,
            }
        }
    }
    Ok(())
}

/// Does the same as [`grow`] for a context whose whole stack was seen; `trunk` is the part above it.
///
/// # Errors
///
/// The errors of [`grow`].
pub fn grow_seen(
    words: &[AtomicU64],
    room: &mut Room,
    root: u64,
    steps: &[Step],
    trunk: Option<&Trunk>,
) -> Result<u64, TreeError> {
    TreeGrowth { tree: Tree { words }, room, root, due: Due::default(), trunk, new: New::Own }.grow(steps)
}

/// Does the same as [`grow`] for a context that is not worth looking up. If it is new, all contexts that differ from the
/// known ones at the same level count at one node from now on, until its [`node::SIBLING`] is zero again. The first
/// context of a tree is made nevertheless.
///
/// # Errors
///
/// The errors of [`grow`].
pub fn grow_known(words: &[AtomicU64], room: &mut Room, root: u64, steps: &[Step]) -> Result<u64, TreeError> {
    TreeGrowth { tree: Tree { words }, room, root, due: Due::default(), trunk: None, new: New::Shared }.grow(steps)
}

/// The moment at which the first window of a new node is due.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Due {
    /// Number of the thread's call at which it is due; zero if none is.
    pub at: u64,
    /// True if the thread asks the launcher there, even where threads open windows themselves.
    pub asks: bool,
}

/// Does the same as [`grow`] for a context that is known from elsewhere; in a new node, a window is `due`. A thread
/// may count there as soon as the node is linked.
///
/// # Errors
///
/// The errors of [`grow`], also if frames vary in more than a few ways.
pub fn grow_due(
    words: &[AtomicU64],
    room: &mut Room,
    root: u64,
    steps: &[Step],
    due: Due,
    trunk: Option<&Trunk>,
) -> Result<u64, TreeError> {
    TreeGrowth { tree: Tree { words }, room, root, due, trunk, new: New::Foreign }.grow(steps)
}

/// Returns the root of `number` in the table at address `table`; makes it if it is new. `offset` is the distance of
/// the return address from rsp at the hook.
///
/// # Errors
///
/// The errors of [`grow`].
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
    // Without contexts all calls of the number are counted at the root.
    let taken = if offset == 0 { room.take_whole_root(words) } else { room.take_root(words) };
    let (at, record) = taken.ok_or(TreeError::Full)?;
    let moves = transfers(number);
    for (field, word) in root_words(at, record, offset, moves) {
        tree.set(at, field, word)?;
    }
    tree.set(table, entry, at)?;
    Ok(at)
}

/// A node on the path to a context.
#[derive(Clone, Copy)]
struct Level {
    word: u64,
    /// Offset of the level below.
    next: u64,
    /// Number of steps above the level.
    callers: usize,
    /// True if the level compares frame pointers.
    by_frame: bool,
}

/// Returns the levels of a path; `None` if a place on it is impossible.
fn levels(steps: &[Step]) -> Option<Vec<Level>> {
    let mut levels = Vec::with_capacity(steps.len());
    for (callers, step) in steps.iter().enumerate() {
        let Step { word, next, pointer } = *step;
        let saved = pointer.and_then(|p| p.saved).unwrap_or(0);
        if (next | saved) & node::NO_OFFSET != 0 {
            return None;
        }
        let below = pointer.map_or(next, FramePointer::offset);
        levels.push(Level { word, next: below, callers, by_frame: false });
        if let Some(pointer) = pointer.filter(|_| callers + 1 < steps.len()) {
            levels.push(Level { word: pointer.distance, next, callers: callers + 1, by_frame: true });
        }
    }
    Some(levels)
}

enum SearchResult {
    Node(u64),
    /// The node does not exist. The values are the last node of the level, and the number of its nodes.
    End(u64, usize),
    /// The node does not exist, but the one that counts the rest of the level does.
    Rest(u64),
    Closed,
}

struct Chain {
    first: u64,
    last: u64,
}

pub(super) struct Tree<'a> {
    pub(super) words: &'a [AtomicU64],
}

impl Tree<'_> {
    fn cell(&self, at: u64, field: u64) -> Result<&AtomicU64, TreeError> {
        let offset = at.wrapping_sub(IMAGE).wrapping_add(field);
        let index = usize::try_from(offset / 8).ok().filter(|_| offset.is_multiple_of(8));
        index.and_then(|i| self.words.get(i)).ok_or(TreeError::Damaged(at))
    }

    pub(super) fn get(&self, at: u64, field: u64) -> Result<u64, TreeError> {
        Ok(self.cell(at, field)?.load(Ordering::Acquire))
    }

    pub(super) fn set(&self, at: u64, field: u64, word: u64) -> Result<(), TreeError> {
        self.cell(at, field)?.store(word, Ordering::Release);
        Ok(())
    }

    fn find(&self, first: u64, word: u64) -> Result<SearchResult, TreeError> {
        let mut at = first;
        for n in 1..=LONGEST {
            if self.get(at, node::WORD)? == word {
                return Ok(SearchResult::Node(at));
            }
            match self.get(at, node::SIBLING)? {
                0 => return Ok(SearchResult::End(at, n)),
                node::REST => return Ok(SearchResult::Rest(at)),
                node::OTHERS => return Ok(SearchResult::Closed),
                next => at = next,
            }
        }
        Err(TreeError::Damaged(first))
    }
}

/// A tree to which a context is added.
struct TreeGrowth<'a, 'r> {
    tree: Tree<'a>,
    room: &'r mut Room,
    root: u64,
    due: Due,
    trunk: Option<&'r Trunk>,
    new: New,
}

/// Treatment of a context that is not in a tree yet.
#[derive(Clone, Copy, PartialEq, Eq)]
enum New {
    /// The context was seen in the program, and gets nodes.
    Own,
    /// The context was seen elsewhere, and gets nodes unless it contradicts the tree.
    Foreign,
    /// The context counts together with all others of its level.
    Shared,
}

impl TreeGrowth<'_, '_> {
    fn grow(mut self, steps: &[Step]) -> Result<u64, TreeError> {
        let levels = levels(steps).filter(|levels| !levels.is_empty()).ok_or(TreeError::Depth)?;
        let mut found = self.root;
        // Threads read a level's words at one offset, so a context with a word elsewhere can't be found there.
        let mut place = None;
        for (i, level) in levels.iter().enumerate() {
            let first = self.tree.get(found, node::CHILD)?;
            if first == 0 {
                return self.counted_at(found, level.callers);
            }
            let offset = self.tree.get(first, node::OFFSET)?;
            if place.is_some_and(|place| place != offset) {
                return self.others_at(first, level.callers);
            }
            place = Some(level.next);
            match self.tree.find(first, level.word)? {
                SearchResult::Node(at) => found = at,
                SearchResult::Rest(node) => return Err(TreeError::Varies { node, callers: level.callers }),
                SearchResult::Closed => return Err(TreeError::Closed),
                SearchResult::End(_, known) if level.by_frame && known >= self.most_frames() => {
                    return self.others_at(first, level.callers);
                }
                SearchResult::End(..) if self.new == New::Shared && first != self.root => {
                    return self.others_at(first, level.callers);
                }
                SearchResult::End(..) => {
                    let made = self.chain(offset, levels.get(i..).unwrap_or_default(), self.trunk)?;
                    // A program's newest contexts are usually its most frequent ones, so a new node comes before the
                    // others. The root stands for a first level that has no node yet.
                    if first != self.root {
                        self.tree.set(made.first, node::SIBLING, first)?;
                    }
                    self.tree.set(found, node::CHILD, made.first)?;
                    return Ok(made.last);
                }
            }
        }
        match self.tree.get(found, node::CHILD)? {
            0 => Ok(found),
            below => self.others_at(below, steps.len()),
        }
    }

    /// Returns the number of frame sizes that are distinguished at a level.
    fn most_frames(&self) -> usize {
        if self.new == New::Foreign { MOST_KNOWN_FRAMES } else { MOST_FRAMES }
    }

    /// Returns the error for a context that is counted at a leaf, which ends after so many callers.
    fn counted_at(&self, leaf: u64, callers: usize) -> Result<u64, TreeError> {
        if leaf == self.root { Err(TreeError::Depth) } else { Err(TreeError::Varies { node: leaf, callers }) }
    }

    /// Makes all further contexts of the level that begins with the node `first` count at one node; makes this node if
    /// it is new. Returns the error that names it.
    fn others_at(&mut self, first: u64, callers: usize) -> Result<u64, TreeError> {
        if self.new == New::Foreign {
            return Err(TreeError::Depth);
        }
        let node = match self.tree.find(first, node::NO_WORD)? {
            SearchResult::Node(node) | SearchResult::Rest(node) => {
                self.tree.set(node, node::SIBLING, node::REST)?;
                node
            }
            SearchResult::Closed => return Err(TreeError::Closed),
            SearchResult::End(last, _) => {
                let offset = self.tree.get(first, node::OFFSET)?;
                let rest = Level { word: node::NO_WORD, next: 0, callers, by_frame: false };
                let rest = self.chain(offset, std::slice::from_ref(&rest), None)?.first;
                self.tree.set(rest, node::SIBLING, node::REST)?;
                self.tree.set(last, node::SIBLING, rest)?;
                rest
            }
        };
        Err(TreeError::Varies { node, callers })
    }

    /// Makes new nodes for `levels`, one below the other, and the trunk behind the last one.
    fn chain(&mut self, offset: u64, levels: &[Level], trunk: Option<&Trunk>) -> Result<Chain, TreeError> {
        let trunk = trunk.filter(|trunk| (1..=trunk::MOST).contains(&trunk.above.len()));
        let transfers = self.tree.get(self.root, node::TRANSFERS)?;
        let asks = if self.due.asks { node::ASKS } else { 0 };
        let count = levels.len() as u64;
        let behind = trunk.map_or(0, |trunk| trunk::nodes(trunk.above.len()));
        let taken = self.room.take_context(self.tree.words, count, behind, self.root);
        let (first, record) = taken.ok_or(TreeError::Full)?;
        for (word, nth) in trunk.iter().flat_map(|trunk| trunk.words()).zip(0..) {
            self.tree.set(first + count * NODE_SIZE, 8 * nth, word)?;
        }
        let (mut offset, mut last) = (offset, first);
        for (level, nth) in levels.iter().zip(1..) {
            let at = last;
            let child = if nth < count { at + NODE_SIZE } else { 0 };
            let above = if child == 0 && trunk.is_some() { node::TRUNK } else { 0 };
            let fields = [
                (node::WORD, level.word),
                (node::RECORD, if child == 0 { record } else { 0 }),
                (node::OFFSET, offset),
                (node::CHILD, child),
                (node::SIBLING, 0),
                (node::ROOT, self.root),
                (node::TRANSFERS, transfers | asks | above),
                (node::WINDOW_AT, if child == 0 { self.due.at } else { 0 }),
            ];
            for (field, word) in fields {
                self.tree.set(at, field, word)?;
            }
            offset = level.next;
            last = if child == 0 { at } else { child };
        }
        Ok(Chain { first, last })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::image;

    /// Returns an image of a few nodes, the first of which is a root.
    fn image_with_root() -> (Vec<AtomicU64>, Room, u64) {
        let words: Vec<AtomicU64> = (0..(image::NODES + 64 * NODE_SIZE) / 8).map(|_| AtomicU64::new(0)).collect();
        let mut room = Room::default();
        let (root, record) = room.take_root(&words).unwrap();
        for (field, word) in root_words(root, record, 0, false) {
            Tree { words: &words }.set(root, field, word).unwrap();
        }
        (words, room, root)
    }

    fn step(word: u64, next: u64) -> Step {
        Step { word, next, pointer: None }
    }

    fn level(words: &[AtomicU64], parent: u64) -> Vec<u64> {
        let tree = Tree { words };
        let get = |at, field| tree.get(at, field).unwrap();
        let next = |at: &u64| Some(get(*at, node::SIBLING)).filter(|next| *next > node::OTHERS);
        std::iter::successors(Some(get(parent, node::CHILD)), next).map(|at| get(at, node::WORD)).collect()
    }

    #[test]
    fn the_newest_node_of_a_level_comes_first_and_none_is_lost() {
        let (words, mut room, root) = image_with_root();
        let path = |inner, outer| [step(inner, 8), step(outer, 0)];
        let paths = [path(1, 10), path(2, 10), path(1, 11), path(3, 12), path(1, 12)];
        let made = paths.map(|path| grow(&words, &mut room, root, &path).unwrap());
        assert_eq!(level(&words, root), [3, 2, 1]);
        let below_1 =
            Tree { words: &words }.find(root + NODE_SIZE, 1).map(|found| matches!(found, SearchResult::Node(_)));
        assert_eq!(below_1, Ok(true));
        assert_eq!(level(&words, root + NODE_SIZE), [12, 11, 10]);
        let again = paths.map(|path| grow(&words, &mut room, root, &path).unwrap());
        assert_eq!(again, made, "what is known is found, and not made again");
    }
    #[test]
    fn frames_are_told_apart_by_size_up_to_a_limit() {
        let (words, mut room, root) = image_with_root();
        let most = MOST_FRAMES as u64;
        let by = |distance| {
            let pointer = Some(FramePointer { saved: Some(16), distance });
            [Step { word: 1, next: distance + 8, pointer }, step(10, 0)]
        };
        let known: Vec<_> = (0..MOST_KNOWN_FRAMES as u64)
            .map(|n| grow_due(&words, &mut room, root, &by(n), Due::default(), None).unwrap())
            .collect();
        let more = grow_due(&words, &mut room, root, &by(most), Due::default(), None);
        assert_eq!(more, Err(TreeError::Depth), "what is known from elsewhere leaves room");
        let own: Vec<_> =
            (MOST_KNOWN_FRAMES as u64..most).map(|n| grow(&words, &mut room, root, &by(n)).unwrap()).collect();
        let again: Vec<_> = (0..most).map(|n| grow(&words, &mut room, root, &by(n)).unwrap()).collect();
        assert_eq!(again, [known, own].concat());
        let varies = grow(&words, &mut room, root, &by(most));
        let Err(TreeError::Varies { node, callers: 1 }) = varies else { panic!("{varies:?}") };
        let before = room.clone();
        for distance in [most, most + 1] {
            assert_eq!(grow(&words, &mut room, root, &by(distance)), varies);
            assert_eq!(grow_due(&words, &mut room, root, &by(distance), Due::default(), None), varies);
        }
        assert_eq!(room, before);
        let tree = Tree { words: &words };
        let field = |field| tree.get(node, field).unwrap();
        assert_eq!([field(node::OFFSET), field(node::CHILD), field(node::SIBLING)], [node::FRAME | 16, 0, node::REST]);
        assert_ne!(field(node::RECORD), 0);
        // A path without this frame is not in this tree.
        assert_eq!(grow(&words, &mut room, root, &[step(1, 8), step(10, 0)]), varies);
        // Other frames beside it have nodes of their own.
        let in_rbp = Some(FramePointer { saved: None, distance: 40 });
        let other = grow(&words, &mut room, root, &[Step { word: 2, next: 48, pointer: in_rbp }, step(10, 0)]).unwrap();
        assert_eq!(tree.get(other, node::OFFSET), Ok(48));
    }

    /// Returns the node at which a context counts that threads find only up to some callers, and their number.
    fn shorter(grown: Result<u64, TreeError>) -> (u64, usize) {
        match grown {
            Err(TreeError::Varies { node, callers }) => (node, callers),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn contexts_that_threads_cannot_find_count_at_the_callers_that_they_find() {
        let (words, mut room, root) = image_with_root();
        let tree = Tree { words: &words };
        let mut grown = |steps: &[Step]| grow(&words, &mut room, root, steps);
        let known = grown(&[step(1, 8), step(10, 0)]).unwrap();
        let leaf = grown(&[step(2, 0)]).unwrap();
        // Threads read the second word at 8, so they would not find these at 16, and ask again and again.
        let (others, callers) = shorter(grown(&[step(1, 16), step(11, 0)]));
        assert_eq!((callers, tree.get(others, node::SIBLING)), (1, Ok(node::REST)));
        assert_ne!(tree.get(others, node::RECORD), Ok(0));
        for same in [&[step(1, 16), step(12, 0)][..], &[step(1, 0)], &[step(1, 8), step(13, 0)]] {
            assert_eq!(shorter(grown(same)), (others, 1), "{same:?}");
        }
        // A level that is opened again makes new nodes, and others count where they did when it is closed again.
        tree.set(others, node::SIBLING, 0).unwrap();
        let new = grow(&words, &mut room, root, &[step(1, 8), step(14, 0)]).unwrap();
        assert_eq!(tree.get(new, node::SIBLING), Ok(known));
        let known_only = |room: &mut Room, word| grow_known(&words, room, root, &[step(1, 8), step(word, 0)]);
        assert_eq!((known_only(&mut room, 14), shorter(known_only(&mut room, 15))), (Ok(new), (others, 1)));
        assert_eq!(tree.get(others, node::SIBLING), Ok(node::REST));
        let mut grown = |steps: &[Step]| grow(&words, &mut room, root, steps);
        // A context goes on beyond a leaf.
        assert_eq!(shorter(grown(&[step(2, 8), step(20, 0)])), (leaf, 1));
        // A contradiction by a context of another program changes nothing.
        let before = room.clone();
        let foreign = grow_due(&words, &mut room, root, &[step(2, 8), step(20, 0)], Due::default(), None);
        assert_eq!((foreign, &room), (Err(TreeError::Varies { node: leaf, callers: 1 }), &before));
        let mut grown = |steps: &[Step]| grow(&words, &mut room, root, steps);
        // The nodes that were known are still found.
        assert_eq!((grown(&[step(1, 8), step(10, 0)]), grown(&[step(2, 0)])), (Ok(known), Ok(leaf)));
        assert_eq!(grown(&[]), Err(TreeError::Depth));
    }

    #[test]
    fn a_closed_tree_has_no_level_at_which_threads_ask() {
        let (words, mut room, root) = image_with_root();
        let tree = Tree { words: &words };
        assert_eq!(close(&words, root), Ok(()));
        assert_eq!(grow(&words, &mut room, root, &[step(1, 0)]), Err(TreeError::Closed));
        tree.set(root, node::SIBLING, 0).unwrap();
        let known = [(1, 10), (1, 11), (2, 20)].map(|(inner, outer)| {
            grow(&words, &mut room, root, &[step(inner, 8), step(outer, 16), step(outer, 0)]).unwrap()
        });
        close(&words, root).unwrap();
        for path in [[3, 1, 1], [1, 12, 1], [1, 10, 11], [2, 20, 1]] {
            let steps = [step(path[0], 8), step(path[1], 16), step(path[2], 0)];
            assert_eq!(grow(&words, &mut room, root, &steps), Err(TreeError::Closed), "{path:?}");
        }
        let again = grow(&words, &mut room, root, &[step(1, 8), step(11, 16), step(11, 0)]);
        assert_eq!(again, Ok(known[1]));
        // A program that makes a circle of its tree is found out.
        tree.set(known[0], node::CHILD, root + NODE_SIZE).unwrap();
        assert!(close(&words, root).is_err());
    }

    #[test]
    fn places_that_look_like_marks_are_refused() {
        let (words, mut room, root) = image_with_root();
        let pointer = |saved| Some(FramePointer { saved: Some(saved), distance: 0 });
        for bad in [node::FRAME, node::IN_RBP, u64::MAX] {
            for step in [Step { word: 1, next: bad, pointer: None }, Step { word: 1, next: 8, pointer: pointer(bad) }] {
                assert_eq!(grow(&words, &mut room, root, &[step, self::step(10, 0)]), Err(TreeError::Depth));
            }
        }
        assert_eq!(room.nodes(), 1);
    }
}
