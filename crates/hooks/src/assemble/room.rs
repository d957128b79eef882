//! The nodes and records of an image that are in use, and their purpose.

use crate::layout::{
    GLOBAL, IMAGE, NODE_SIZE, NUMBERS, global, image, nodes_end, record_at, record_offset, root_record_offset, slot,
};
use std::sync::atomic::AtomicU64;

/// A place where calls are counted: a site's root, or a context below it. Addresses are those in the watched process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CountingPlace {
    /// Address of the node.
    pub node: u64,
    /// Address of the root of its tree; the node itself if it is a root.
    pub root: u64,
}

/// Nodes and records of an image that are in use so far, and their purpose.
///
/// The launcher keeps this to itself. It therefore knows what is counted at a record without reading the trees, which
/// the program may have overwritten.
///
/// ```
/// use systoll_hooks::assemble::Room;
/// use systoll_hooks::layout::{IMAGE, NODE_SIZE, image, record_at, root_record_offset};
///
/// let mut room = Room::default();
/// let (region, first) = (IMAGE + image::ROOTS, room.roots());
/// room.give_roots(region, 3);
/// let third = root_record_offset(first + 2).and_then(record_at).and_then(|record| room.place(record));
/// assert_eq!(third.map(|place| place.root), Some(region + 2 * NODE_SIZE));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Room {
    nodes: u64,
    /// Contexts by their records. Their nodes ascend too, since both are assigned in turn.
    contexts: Vec<CountingPlace>,
    /// Roots by rising record.
    roots: Vec<Roots>,
}

/// Adjacent roots with adjacent records, in the same order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Roots {
    first: u64,
    count: u64,
    /// Address of the first root.
    at: u64,
}

impl Roots {
    fn end(self) -> u64 {
        self.first + self.count
    }
}

impl Default for Room {
    /// Returns the room of a new image, which has the roots of numbers.
    fn default() -> Self {
        let of_numbers = Roots { first: 0, count: NUMBERS, at: GLOBAL + global::NUMBER_ROOTS };
        Self { nodes: 0, contexts: Vec::new(), roots: vec![of_numbers] }
    }
}

impl Room {
    /// Returns the number of nodes in use.
    #[must_use]
    pub fn nodes(&self) -> u64 {
        self.nodes
    }

    /// Returns the number of records assigned to contexts.
    #[must_use]
    pub fn contexts(&self) -> u64 {
        self.contexts.len() as u64
    }

    /// Returns the number of records assigned to roots.
    #[must_use]
    pub fn roots(&self) -> u64 {
        self.roots.last().map_or(0, |last| last.end())
    }

    /// Returns true if there is room for `records` more records.
    #[must_use]
    pub fn has(&self, records: u64) -> bool {
        self.contexts().saturating_add(self.roots()).saturating_add(records) <= slot::RECORD_COUNT
    }

    /// Assigns records to `count` roots, the first of which lies at `at` (address in the watched process): the
    /// records that [`super::Blob::roots`] has written, from [`Room::roots`] on.
    pub fn give_roots(&mut self, at: u64, count: u64) {
        self.roots.push(Roots { first: self.roots(), count, at });
    }

    /// Returns the place that is counted at a record (see [`crate::layout::record_at`]), if the record was assigned.
    #[must_use]
    pub fn place(&self, record: u64) -> Option<CountingPlace> {
        if let Some(place) = self.contexts.get(usize::try_from(record).ok()?) {
            return Some(*place);
        }
        let root = slot::RECORD_COUNT.checked_sub(record)?.checked_sub(1)?;
        let roots = self.roots.get(self.roots.partition_point(|roots| roots.end() <= root))?;
        let node = roots.at.wrapping_add((root - roots.first) * NODE_SIZE);
        Some(CountingPlace { node, root: node })
    }

    /// Returns the record at which a node counts, if one was assigned to it.
    #[must_use]
    pub fn record_of(&self, node: u64) -> Option<u64> {
        if let Ok(context) = self.contexts.binary_search_by_key(&node, |place| place.node) {
            return Some(context as u64);
        }
        let root = self.roots.iter().find_map(|roots| {
            let distance = node.checked_sub(roots.at).filter(|distance| distance.is_multiple_of(NODE_SIZE))?;
            Some(distance / NODE_SIZE).filter(|nth| *nth < roots.count).map(|nth| roots.first + nth)
        });
        root_record_offset(root?).and_then(record_at)
    }

    /// Takes `count` new nodes of an image of so many words, and a record for the last one, below `root`; memory for
    /// `behind` more nodes follows. Returns the address of the first node and the record's offset. Returns `None` and
    /// takes nothing if there is no room for all of it.
    pub(super) fn take_context(
        &mut self,
        words: &[AtomicU64],
        count: u64,
        behind: u64,
        root: u64,
    ) -> Option<(u64, u64)> {
        let (first, record) = self.take_record(words, count + behind)?;
        self.contexts.push(CountingPlace { node: first + count.saturating_sub(1) * NODE_SIZE, root });
        Some((first, record))
    }

    /// Takes a root that belongs to no file.
    pub(super) fn take_root(&mut self, words: &[AtomicU64]) -> Option<(u64, u64)> {
        let record = root_record_offset(self.roots()).filter(|_| self.has(1))?;
        let node = self.take_nodes(words, 1)?;
        self.give_roots(node, 1);
        Some((node, record))
    }

    /// Takes a root that tells no contexts apart, at which all calls of a number are counted.
    pub(super) fn take_whole_root(&mut self, words: &[AtomicU64]) -> Option<(u64, u64)> {
        let (node, record) = self.take_record(words, 1)?;
        self.contexts.push(CountingPlace { node, root: node });
        Some((node, record))
    }

    /// Takes `count` nodes, and the record of the next context. Returns the address and the record's offset.
    fn take_record(&mut self, words: &[AtomicU64], count: u64) -> Option<(u64, u64)> {
        let record = record_offset(self.contexts()).filter(|_| self.has(1))?;
        Some((self.take_nodes(words, count)?, record))
    }

    fn take_nodes(&mut self, words: &[AtomicU64], count: u64) -> Option<u64> {
        let offset = image::NODES + self.nodes * NODE_SIZE;
        (offset + count * NODE_SIZE <= nodes_end(words.len())).then_some(())?;
        self.nodes += count;
        Some(IMAGE + offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(offset: Option<(u64, u64)>) -> u64 {
        record_at(offset.unwrap().1).unwrap()
    }

    #[test]
    fn assigned_records_are_found_by_record_and_by_node() {
        let words: Vec<AtomicU64> = (0..(image::NODES + 8 * NODE_SIZE) / 8).map(|_| AtomicU64::new(0)).collect();
        let (mut room, nodes, region) = (Room::default(), IMAGE + image::NODES, IMAGE + image::ROOTS);
        room.give_roots(region, 5);
        let context = record(room.take_context(&words, 3, 0, region + NODE_SIZE));
        let whole = record(room.take_whole_root(&words));
        let root = record(room.take_root(&words));
        let last = record(room.take_context(&words, 1, 0, nodes + 4 * NODE_SIZE));
        let of_file = record_at(root_record_offset(NUMBERS + 4).unwrap()).unwrap();
        let of_number = record_at(root_record_offset(7).unwrap()).unwrap();
        let number_root = GLOBAL + global::NUMBER_ROOTS + 7 * NODE_SIZE;
        let all = [
            (context, nodes + 2 * NODE_SIZE, region + NODE_SIZE),
            (whole, nodes + 3 * NODE_SIZE, nodes + 3 * NODE_SIZE),
            (root, nodes + 4 * NODE_SIZE, nodes + 4 * NODE_SIZE),
            (last, nodes + 5 * NODE_SIZE, nodes + 4 * NODE_SIZE),
            (of_file, region + 4 * NODE_SIZE, region + 4 * NODE_SIZE),
            (of_number, number_root, number_root),
        ];
        for (record, node, root) in all {
            assert_eq!(room.place(record), Some(CountingPlace { node, root }));
            assert_eq!(room.record_of(node), Some(record));
        }
        for node in [0, nodes, region + 5 * NODE_SIZE, region + 8, nodes + 6 * NODE_SIZE, u64::MAX] {
            assert_eq!(room.record_of(node), None, "{node:#x}");
        }
        let next_root = slot::RECORD_COUNT - 1 - room.roots();
        for record in [3, next_root, slot::RECORD_COUNT, u64::MAX] {
            assert_eq!(room.place(record), None, "{record}");
        }
    }

    #[test]
    fn without_room_nothing_is_assigned() {
        let words: Vec<AtomicU64> = (0..(image::NODES + 2 * NODE_SIZE) / 8).map(|_| AtomicU64::new(0)).collect();
        let mut room = Room::default();
        let before = room.clone();
        assert_eq!(room.take_context(&words, 3, 0, 0), None);
        assert_eq!(room, before);
        room.give_roots(IMAGE + image::ROOTS, slot::RECORD_COUNT - NUMBERS - 1);
        assert!(room.has(1) && !room.has(2) && room.take_root(&words).is_some() && !room.has(1));
        let before = room.clone();
        assert_eq!(
            [room.take_root(&words), room.take_context(&words, 1, 0, 0), room.take_whole_root(&words)],
            [None; 3]
        );
        assert_eq!(room, before);
    }
}
