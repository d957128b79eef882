//! Reads an image's trees: the call and the callers that each record counts.
//!
//! The launcher knows these because it builds the trees. The tests read them back, so that building is tested too.
//! They read undamaged trees only.

#![allow(dead_code, reason = "each of those who share this use a part of it")]

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use systoll_hooks::assemble::{Blob, Losses, MadeInPlace, SlotCounts, Thread, Words, read_slot};
use systoll_hooks::layout::{
    GLOBAL, IMAGE, NODE_SIZE, NUMBERS, TABLE_LEN, call_of_entry, global, image, node, record_at, root_record_offset,
};

/// All counts of an image.
#[derive(Debug, Default)]
pub(crate) struct Reading {
    /// Rows with counts, by site and context, in the order of the trees.
    pub(crate) rows: Vec<Row>,
    pub(crate) threads: Vec<Thread>,
    pub(crate) losses: Losses,
    pub(crate) in_place: MadeInPlace,
}

/// Calls from one site in one context.
#[derive(Debug)]
pub(crate) struct Row {
    /// Index in [`Blob::sites`]; `None` for calls counted by number alone.
    pub(crate) site: Option<usize>,
    pub(crate) number: Option<u32>,
    /// Return addresses of the context, innermost first.
    pub(crate) path: Vec<u64>,
    /// Counts of each thread, by its slot.
    pub(crate) threads: Vec<(u64, SlotCounts)>,
}

/// A node with a record, and its row.
struct Leaf {
    address: u64,
    record: u64,
    row: Row,
}

/// Reads an image with one file, whose roots begin at `region`.
pub(crate) fn read(words: &[AtomicU64], region: u64, blob: &Blob) -> Reading {
    let leaves = leaves(words, region, blob);
    let records: BTreeMap<u64, usize> = leaves.iter().enumerate().map(|(i, leaf)| (leaf.record, i)).collect();
    let record_of = |at| leaves.iter().find(|leaf| leaf.address == at).map(|leaf| leaf.record);
    let mut out = Reading { losses: Losses::of_image(words), ..Reading::default() };
    let slots = (0..image::SLOT_COUNT).filter_map(|index| Some((index, read_slot(words, index, record_of)?)));
    let mut counted: Vec<Vec<(u64, SlotCounts)>> = leaves.iter().map(|_| Vec::new()).collect();
    for (index, slot) in slots {
        out.losses.add(&slot.losses);
        out.in_place.add(&slot.in_place);
        out.threads.extend(slot.thread);
        for (record, counts) in slot.counts(words) {
            counted[records[&record]].push((index, counts));
        }
    }
    let rows = leaves.into_iter().zip(counted).filter(|(_, threads)| !threads.is_empty());
    out.rows = rows.map(|(leaf, threads)| Row { threads, ..leaf.row }).collect();
    out
}

fn leaves(words: &[AtomicU64], region: u64, blob: &Blob) -> Vec<Leaf> {
    let mut out = Vec::new();
    for (index, (site, root)) in blob.sites.iter().zip((region..).step_by(NODE_SIZE as usize)).enumerate() {
        tree(words, Some(index), site.number, root, &mut out);
        let table = site.table.map(|table| region + u64::from(table) - IMAGE);
        for (entry, at) in table.into_iter().flat_map(|table| (0..TABLE_LEN).map(move |n| (n, table + 8 * n))) {
            if words.word(at) != 0 {
                tree(words, Some(index), Some(call_of_entry(entry).0), words.word(at), &mut out);
            }
        }
    }
    for number in 0..NUMBERS {
        let (address, offset) = (GLOBAL + global::NUMBER_ROOTS + number * NODE_SIZE, root_record_offset(number));
        let row = Row { site: None, number: Some(call_of_entry(number).0), path: Vec::new(), threads: Vec::new() };
        out.push(Leaf { address, record: offset.and_then(record_at).unwrap(), row });
    }
    out
}

/// Adds the nodes with a record of one tree to `out`, the root included.
fn tree(words: &[AtomicU64], site: Option<usize>, number: Option<u32>, root: u64, out: &mut Vec<Leaf>) {
    let get = |at: u64, field| words.word(at - IMAGE + field);
    let mut open = vec![(root, Vec::new())];
    while let Some((at, above)) = open.pop() {
        let mut path = above.clone();
        if at != root && get(at, node::OFFSET) & node::FRAME == 0 {
            path.push(get(at, node::WORD));
        }
        if let Some(record) = record_at(get(at, node::RECORD)) {
            let row = Row { site, number, path: path.clone(), threads: Vec::new() };
            out.push(Leaf { address: at, record, row });
        }
        // A node may refer to the root itself, with which the first level may begin.
        let below = [(get(at, node::SIBLING), above), (get(at, node::CHILD), path)];
        open.extend(below.into_iter().filter(|(next, _)| *next > node::OTHERS && *next != root));
    }
}
