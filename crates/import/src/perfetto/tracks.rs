//! Finds the thread of the track that an event is on, and the names that a trace's numbers stand
//! for.

use super::wire::{Fields, fields};
use crate::hash::Map;
use crate::strace::named;
use std::sync::Arc;
use systoll_model::Sysno;

/// Largest number of tracks kept.
const MOST_TRACKS: usize = 1 << 18;
/// Largest number of names kept that numbers stand for.
const MOST_NAMES: usize = 1 << 16;
/// Names that systing gives a thread's track of system calls: 1.0 and later, and before.
const OF_CALLS: [&[u8]; 2] = [b"syscalls", b"Syscalls"];
/// Largest number of bytes kept of a name.
const MOST_BYTES: usize = 256;
const MOST_WORDS: usize = 16;

/// Facts that a trace tells of a process or thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Member {
    pub(super) pid: u32,
    pub(super) tid: u32,
    /// The process's command line, or its name if there is none; nothing for threads.
    pub(super) words: Vec<Arc<str>>,
}

#[derive(Clone, Copy, Debug)]
struct Track {
    parent: u64,
    /// The thread that the track belongs to.
    tid: Option<u32>,
    of_calls: bool,
}

/// The meaning of a name: a call, or something unknown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Name {
    Call(Sysno),
    Other(Vec<u8>),
}

impl Name {
    /// Returns the meaning of a name.
    pub(super) fn of(name: &[u8]) -> Self {
        named(name)
            .map_or_else(|| Self::Other(name.get(..name.len().min(MOST_BYTES)).unwrap_or(name).into()), Self::Call)
    }
}

/// All tracks and names that the trace has described.
#[derive(Default)]
pub(super) struct Tracks {
    tracks: Map<u64, Track>,
    /// The names by sequence, then by number, so that all names of a sequence are forgotten at
    /// once, however often the file asks for it.
    names: Map<u64, Map<u64, Name>>,
    /// Number of the names of all sequences.
    named: usize,
}

impl Tracks {
    /// Takes in a track's description (`TrackDescriptor`). Returns the process or thread that it
    /// describes.
    pub(super) fn describe(&mut self, descriptor: &[u8]) -> Option<Member> {
        let (mut uuid, mut track, mut member) = (0, Track { parent: 0, tid: None, of_calls: false }, None);
        for field in fields(descriptor) {
            match field.number {
                1 => uuid = field.value.number(),
                5 => track.parent = field.value.number(),
                2 | 10 => track.of_calls |= OF_CALLS.contains(&field.value.bytes()),
                3 => member = Some(process_descriptor(field.value.bytes())),
                4 => member = Some(thread_descriptor(field.value.bytes())),
                _ => {}
            }
        }
        track.tid = member.as_ref().map(|m: &Member| m.tid);
        if self.tracks.len() < MOST_TRACKS || self.tracks.contains_key(&uuid) {
            self.tracks.insert(uuid, track);
        }
        member
    }

    /// Returns the thread whose calls are on a track; `None` if the track holds something else.
    pub(super) fn of_calls(&self, uuid: u64) -> Option<u32> {
        let track = self.tracks.get(&uuid).filter(|track| track.of_calls)?;
        let parent = self.tracks.get(&track.parent);
        Some(track.tid.or_else(|| parent?.tid).unwrap_or(0))
    }

    /// Takes in names of a sequence (`InternedData`).
    pub(super) fn intern(&mut self, sequence: u64, data: &[u8]) {
        for entry in fields(data).filter(|field| field.number == 2) {
            let (number, name) = two(fields(entry.value.bytes()));
            let known = self.name(sequence, number).is_some();
            if known || self.named < MOST_NAMES {
                self.names.entry(sequence).or_default().insert(number, Name::of(name));
                self.named += usize::from(!known);
            }
        }
    }

    /// Forgets the names of a sequence.
    pub(super) fn forget(&mut self, sequence: u64) {
        self.named -= self.names.remove(&sequence).map_or(0, |names| names.len());
    }

    /// Returns the name that a number stands for.
    pub(super) fn name(&self, sequence: u64, number: u64) -> Option<&Name> {
        self.names.get(&sequence)?.get(&number)
    }
}

/// Returns the members of a process tree (`ProcessTree`), which Perfetto's own recorder writes.
pub(super) fn process_tree(tree: &[u8]) -> impl Iterator<Item = Member> {
    fields(tree).filter_map(|field| match field.number {
        1 => {
            let mut member = Member::default();
            for told in fields(field.value.bytes()) {
                match told.number {
                    1 => member.pid = told.value.number() as u32,
                    3 => add_word(&mut member.words, told.value.bytes()),
                    _ => {}
                }
            }
            member.tid = member.pid;
            Some(member)
        }
        2 => {
            let mut member = Member::default();
            for told in fields(field.value.bytes()) {
                match told.number {
                    1 => member.tid = told.value.number() as u32,
                    3 => member.pid = told.value.number() as u32,
                    _ => {}
                }
            }
            Some(member)
        }
        _ => None,
    })
}

fn process_descriptor(descriptor: &[u8]) -> Member {
    let (mut member, mut name) = (Member::default(), Vec::new());
    for field in fields(descriptor) {
        match field.number {
            1 => member.pid = field.value.number() as u32,
            2 => add_word(&mut member.words, field.value.bytes()),
            6 => add_word(&mut name, field.value.bytes()),
            _ => {}
        }
    }
    member.tid = member.pid;
    if member.words.is_empty() {
        member.words = name;
    }
    member
}

fn thread_descriptor(descriptor: &[u8]) -> Member {
    let mut member = Member::default();
    for field in fields(descriptor) {
        match field.number {
            1 => member.pid = field.value.number() as u32,
            2 => member.tid = field.value.number() as u32,
            _ => {}
        }
    }
    member
}

fn add_word(words: &mut Vec<Arc<str>>, word: &[u8]) {
    if words.len() < MOST_WORDS && !word.is_empty() {
        words.push(Arc::from(String::from_utf8_lossy(word.get(..word.len().min(MOST_BYTES)).unwrap_or(word))));
    }
}

/// Returns the number of the first field and the bytes of the second.
fn two(all: Fields<'_>) -> (u64, &[u8]) {
    all.fold((0, &[]), |(number, name), field| match field.number {
        1 => (field.value.number(), name),
        2 => (number, field.value.bytes()),
        _ => (number, name),
    })
}
