//! Facts that earlier runs found out about a file, kept in the cache as one entry: a section for each kind of fact.

use crate::inproc::cache::{Cache, Key, Kind};
use prost::Message;
use prost::bytes::Bytes;

/// Sections of one kind in an entry, at most: one for each set of hooks or state of the debug files they hold for.
/// The section written longest ago is dropped.
const MOST_ALIKE: usize = 4;

/// A kind of facts about a file.
pub(crate) trait Section: Message + Default {
    /// Number that identifies the kind in an entry.
    const NUMBER: u32;
}

/// All facts that earlier runs found out about one file. A copy shares the payloads.
#[derive(Clone, Debug, Default)]
pub(crate) struct FileNotes {
    entry: WireNotes,
    is_changed: bool,
}

/// Sections in the order in which they were written.
#[derive(Clone, PartialEq, Message)]
struct WireNotes {
    #[prost(message, repeated, tag = "1")]
    sections: Vec<WireSection>,
}

#[derive(Clone, PartialEq, Message)]
struct WireSection {
    /// Kind of the facts: [`Section::NUMBER`].
    #[prost(uint32, tag = "1")]
    number: u32,
    /// The condition under which the facts hold, such as a set of hooks.
    #[prost(fixed64, tag = "2")]
    condition: u64,
    #[prost(bytes = "bytes", tag = "3")]
    payload: Bytes,
}

impl FileNotes {
    /// Reads the entry of the file `id`.
    pub(crate) fn read(cache: &Cache, id: &Key) -> Self {
        let entry = cache.get(Kind::Notes, id).and_then(|bytes| WireNotes::decode(Bytes::from(bytes)).ok());
        Self { entry: entry.unwrap_or_default(), is_changed: false }
    }

    /// Returns the facts of one kind that hold under `condition`. Returns `None` if there are none.
    pub(crate) fn get<S: Section>(&self, condition: u64) -> Option<S> {
        let section = self.entry.sections.iter().find(|section| section.is_of::<S>(condition))?;
        S::decode(section.payload.clone()).ok()
    }

    /// Replaces the facts of one kind that hold under `condition`.
    pub(crate) fn set<S: Section>(&mut self, condition: u64, facts: &S) {
        let sections = &mut self.entry.sections;
        sections.retain(|section| !section.is_of::<S>(condition));
        let alike = sections.iter().filter(|section| section.number == S::NUMBER).count();
        if alike >= MOST_ALIKE
            && let Some(oldest) = sections.iter().position(|section| section.number == S::NUMBER)
        {
            sections.remove(oldest);
        }
        sections.push(WireSection { number: S::NUMBER, condition, payload: facts.encode_to_vec().into() });
        self.is_changed = true;
    }

    /// Writes the entry of the file `id`, unless nothing is new.
    pub(crate) fn write(&mut self, cache: &Cache, id: &Key) {
        if std::mem::take(&mut self.is_changed) {
            cache.put(Kind::Notes, id, &self.entry.encode_to_vec());
        }
    }
}

impl WireSection {
    fn is_of<S: Section>(&self, condition: u64) -> bool {
        self.number == S::NUMBER && self.condition == condition
    }
}

/// Results of `Symbols::fixed` for a file: addresses, shifted left by one, and the result in the lowest bit.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct FixedFrames {
    #[prost(fixed64, repeated, tag = "1")]
    words: Vec<u64>,
}

impl Section for FixedFrames {
    const NUMBER: u32 = 1;
}

impl FixedFrames {
    pub(crate) fn of(results: impl Iterator<Item = (u64, bool)>) -> Self {
        Self { words: results.map(|(address, fixed)| address << 1 | u64::from(fixed)).collect() }
    }

    /// Returns the addresses, each with the result for it.
    pub(crate) fn results(&self) -> Vec<(u64, bool)> {
        self.words.iter().map(|word| (word >> 1, word & 1 == 1)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Clone, PartialEq, Message)]
    struct Other {
        #[prost(string, tag = "1")]
        text: String,
    }

    impl Section for Other {
        const NUMBER: u32 = 99;
    }

    fn fixed(address: u64) -> FixedFrames {
        FixedFrames::of(std::iter::once((address, true)))
    }

    #[test]
    fn sections_stand_beside_each_other() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(folder.path(), 1 << 20);
        let id = cache.key(b"a file").unwrap();
        let mut notes = FileNotes::read(&cache, &id);
        assert_eq!(notes.get::<Other>(1), None);
        notes.write(&cache, &id);
        assert_eq!(cache.get(Kind::Notes, &id), None, "nothing is new");
        notes.set(1, &Other { text: "under one".into() });
        notes.set(2, &Other { text: "under two".into() });
        notes.set(1, &fixed(7));
        notes.write(&cache, &id);
        let mut later = FileNotes::read(&cache, &id);
        assert_eq!(later.get::<Other>(1).unwrap().text, "under one");
        assert_eq!(later.get::<FixedFrames>(1).unwrap().results(), [(7, true)]);
        assert_eq!(later.get::<FixedFrames>(2), None);
        later.set(2, &Other { text: "anew".into() });
        later.write(&cache, &id);
        let last = FileNotes::read(&cache, &id);
        let texts = [1, 2].map(|condition| last.get::<Other>(condition).unwrap().text);
        assert_eq!(texts, ["under one", "anew"]);
        assert_eq!(last.get::<FixedFrames>(1), later.get(1), "what was not written anew stays");
    }

    #[test]
    fn the_section_written_longest_ago_makes_room() {
        let mut notes = FileNotes::default();
        notes.set(0, &Other { text: "stays".into() });
        (0..=MOST_ALIKE as u64).for_each(|condition| notes.set(condition, &fixed(condition)));
        let left: Vec<u64> = (0..=MOST_ALIKE as u64).filter(|c| notes.get::<FixedFrames>(*c).is_some()).collect();
        assert_eq!(left, (1..=MOST_ALIKE as u64).collect::<Vec<_>>());
        assert!(notes.get::<Other>(0).is_some());
    }

    proptest! {
        #[test]
        fn any_entry_is_read_without_harm(bytes: Vec<u8>, payload: Vec<u8>) {
            let _ = WireNotes::decode(bytes.as_slice());
            let section = WireSection { number: FixedFrames::NUMBER, condition: 0, payload: payload.into() };
            let notes = FileNotes { entry: WireNotes { sections: vec![section] }, is_changed: false };
            let _ = notes.get::<FixedFrames>(0).map(|facts| facts.results());
        }
    }
}
