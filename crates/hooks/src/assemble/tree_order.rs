//! Brings frequent contexts to the front of their levels while threads walk the tree.
//!
//! Threads compare the nodes of a level one after the other, each in a line of the cache of its own. New nodes come first,
//! which suits a start; of a program that runs already the most frequent contexts are met first, and came last.

use super::tree_writer::{Tree, TreeError};
use crate::layout::node;
use std::sync::atomic::AtomicU64;

/// Nodes of a level that are brought to its front, at most.
const MOST: usize = 8;
/// Nodes of a tree, and levels below each other, at most; a larger tree is not one of ours.
const LARGEST: (usize, usize) = (1 << 16, 256);

/// Brings the most frequent nodes of each level below `root` to its front, by the number of calls that `calls` returns for
/// the offset of a node's record.
///
/// A thread that walks a level meanwhile may miss the node that is moved, and asks as for a new one. Where it would not ask
/// ([`node::SIBLING`]), nothing is moved. Each node is taken out before it is put in, so no walk is endless.
///
/// # Errors
///
/// If the tree is damaged.
pub fn sort(words: &[AtomicU64], root: u64, calls: &dyn Fn(u64) -> u64) -> Result<(), TreeError> {
    Sorting { tree: Tree { words }, root, calls, nodes: 0 }.below(root, 0).map(drop)
}

struct Sorting<'a> {
    tree: Tree<'a>,
    root: u64,
    calls: &'a dyn Fn(u64) -> u64,
    nodes: usize,
}

impl Sorting<'_> {
    /// Sorts the levels below a node. Returns the calls that count there.
    fn below(&mut self, parent: u64, depth: usize) -> Result<u64, TreeError> {
        let first = self.tree.get(parent, node::CHILD)?;
        // A root may be its own first level, and a leaf has none.
        if first == 0 || first == self.root {
            return Ok(0);
        }
        let (mut level, mut at) = (Vec::new(), first);
        while at > node::OTHERS {
            self.nodes += 1;
            if self.nodes > LARGEST.0 || depth > LARGEST.1 {
                return Err(TreeError::Damaged(self.root));
            }
            let record = self.tree.get(at, node::RECORD)?;
            let own = if record == 0 { 0 } else { (self.calls)(record) };
            level.push((at, own.saturating_add(self.below(at, depth + 1)?)));
            at = self.tree.get(at, node::SIBLING)?;
        }
        let all = level.iter().fold(0, |sum: u64, (_, calls)| sum.saturating_add(*calls));
        let mut wanted: Vec<(u64, u64)> = level.iter().copied().filter(|(_, calls)| *calls > 0).collect();
        wanted.sort_by_key(|(_, calls)| std::cmp::Reverse(*calls));
        wanted.truncate(MOST);
        if at == 0 && !level.starts_with(&wanted) {
            let mut order: Vec<u64> = level.iter().map(|(at, _)| *at).collect();
            for (moved, _) in wanted.iter().rev() {
                self.bring(parent, &mut order, *moved)?;
            }
        }
        Ok(all)
    }

    /// Brings one node of a level to its front; `order` has the level's nodes.
    fn bring(&self, parent: u64, order: &mut Vec<u64>, moved: u64) -> Result<(), TreeError> {
        let Some(place) = order.iter().position(|at| *at == moved).filter(|place| *place > 0) else { return Ok(()) };
        let next = self.tree.get(moved, node::SIBLING)?;
        self.tree.set(order[place - 1], node::SIBLING, next)?;
        self.tree.set(moved, node::SIBLING, order[0])?;
        self.tree.set(parent, node::CHILD, moved)?;
        order.remove(place);
        order.insert(0, moved);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::room::Room;
    use super::super::tree_writer::{Step, grow};
    use super::*;
    use crate::layout::{NODE_SIZE, image, root_words};
    use std::collections::HashMap;

    #[test]
    fn frequent_contexts_come_first_and_none_is_lost() {
        let words: Vec<AtomicU64> = (0..(image::NODES + 64 * NODE_SIZE) / 8).map(|_| AtomicU64::new(0)).collect();
        let (tree, mut room) = (Tree { words: &words }, Room::default());
        let (root, record) = room.take_root(&words).unwrap();
        for (field, word) in root_words(root, record, 0, false) {
            tree.set(root, field, word).unwrap();
        }
        let none = |_| 0;
        assert_eq!(sort(&words, root, &none), Ok(()), "a root without contexts");
        let step = |word, next| Step { word, next, pointer: None };
        let paths: Vec<[Step; 2]> = (0..24).map(|n| [step(1 + n % 6, 8), step(100 + n, 0)]).collect();
        let made: Vec<u64> = paths.iter().map(|path| grow(&words, &mut room, root, path).unwrap()).collect();
        let calls: HashMap<u64, u64> = made
            .iter()
            .zip(0..)
            .map(|(at, n): (&u64, u64)| (tree.get(*at, node::RECORD).unwrap(), n * n % 23))
            .collect();
        let order = |parent: u64| -> Vec<u64> {
            let next = |at: &u64| Some(tree.get(*at, node::SIBLING).unwrap()).filter(|at| *at > node::OTHERS);
            std::iter::successors(Some(tree.get(parent, node::CHILD).unwrap()), next).collect()
        };
        let before = order(root);
        sort(&words, root, &none).unwrap();
        assert_eq!(order(root), before, "nothing has calls");
        sort(&words, root, &|record| calls[&record]).unwrap();
        let again: Vec<u64> = paths.iter().map(|path| grow(&words, &mut room, root, path).unwrap()).collect();
        assert_eq!(again, made);
        let sums: Vec<u64> = order(root)
            .into_iter()
            .map(|inner| {
                let below: Vec<u64> =
                    order(inner).iter().map(|at| calls[&tree.get(*at, node::RECORD).unwrap()]).collect();
                assert!(below.is_sorted_by(|a, b| a >= b), "{below:?}");
                below.iter().sum()
            })
            .collect();
        assert!(sums.len() == 6 && sums.is_sorted_by(|a, b| a >= b), "{sums:?}");
        // Where threads don't ask, nothing moves.
        let last = *order(root).last().unwrap();
        tree.set(last, node::SIBLING, node::OTHERS).unwrap();
        let before = order(root);
        sort(&words, root, &|record| 100 - calls[&record]).unwrap();
        assert_eq!(order(root), before);
        // A program that makes a circle of its tree is found out.
        tree.set(last, node::SIBLING, before[0]).unwrap();
        assert_eq!(sort(&words, root, &none), Err(TreeError::Damaged(root)));
    }
}
