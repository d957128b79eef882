//! Stacks of raw addresses, each stored once.

use hashbrown::HashTable;
use std::hash::BuildHasher;
use std::ops::Deref;
use systoll_symbols::RawFrame;

/// Distinct stacks stored, at most; further whole stacks are dropped.
const MAX_STACKS: usize = 60_000;
/// Frames of all stacks that are stored, at most: a program may make its stacks as deep as it likes.
const MAX_FRAMES: usize = 1 << 21;

/// A calling context or a whole stack.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RawStack {
    pub(crate) frames: Box<[RawFrame]>,
    pub(crate) complete: bool,
}

/// Stacks by number. A lookup compares frames in place; std's map would need an owned copy of the stack for each
/// lookup.
#[derive(Clone, Default)]
pub(crate) struct Stacks {
    all: Vec<RawStack>,
    index: HashTable<u32>,
    hasher: foldhash::fast::RandomState,
    /// Number of frames of all stacks.
    frames: usize,
}

impl Stacks {
    /// Returns true if further whole stacks may be stored.
    pub(crate) fn has_room(&self) -> bool {
        self.all.len() < MAX_STACKS && self.frames < MAX_FRAMES
    }

    /// Returns the number of the stack made of `frames`, if it is stored.
    pub(crate) fn find(&self, frames: &[RawFrame], complete: bool) -> Option<u32> {
        self.find_by(self.hasher.hash_one((frames, complete)), frames, complete)
    }

    /// Returns the number of the stack made of `frames`; stores it if it is new.
    pub(crate) fn add(&mut self, frames: &[RawFrame], complete: bool) -> u32 {
        let hash = self.hasher.hash_one((frames, complete));
        if let Some(id) = self.find_by(hash, frames, complete) {
            return id;
        }
        let id = self.all.len() as u32;
        self.frames += frames.len();
        self.all.push(RawStack { frames: frames.into(), complete });
        let Self { all, index, hasher, .. } = self;
        let hash_of = |id: &u32| all.get(*id as usize).map_or(0, |s| hasher.hash_one((&*s.frames, s.complete)));
        index.insert_unique(hash, id, hash_of);
        id
    }

    fn find_by(&self, hash: u64, frames: &[RawFrame], complete: bool) -> Option<u32> {
        let is_it = |id: &u32| {
            let stack = self.all.get(*id as usize);
            stack.is_some_and(|stack| stack.complete == complete && *stack.frames == *frames)
        };
        self.index.find(hash, is_it).copied()
    }
}

impl Deref for Stacks {
    type Target = [RawStack];

    fn deref(&self) -> &[RawStack] {
        &self.all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_kept_once_and_found_by_its_frames() {
        let frame = |address| RawFrame { module: None, address, is_return: true };
        let mut stacks = Stacks::default();
        let all: Vec<Vec<RawFrame>> = (0..1000).map(|n| (0..n % 7).map(|f| frame(n + f)).collect()).collect();
        let ids: Vec<[u32; 2]> = all.iter().map(|f| [false, true].map(|complete| stacks.add(f, complete))).collect();
        for (frames, [part, whole]) in all.iter().zip(&ids) {
            assert_eq!(stacks.find(frames, false), Some(*part));
            assert_eq!(stacks.add(frames, true), *whole);
            assert_eq!(*stacks[*part as usize].frames, **frames);
        }
        assert_eq!(stacks.find(&[frame(5000)], false), None);
        // All stacks without frames are the same stack.
        let empty = 1000usize.div_ceil(7);
        assert_eq!(stacks.len(), 2 * (1000 - empty) + 2);
    }
}
