//! What earlier runs have asked of files' symbols, kept in the cache by the file and by its separate debug files.

use crate::inproc::cache::{Cache, Key, Kind};
use prost::Message;
use std::collections::BTreeMap;
use systoll_symbols::{Function, NameAnswers, NameCounts, NameQuestion};

/// Entries. Another version where symbols' names come to be picked in another way.
const NAMES: Kind = Kind { name: "names", version: 1 };

/// Answers kept of one file.
const MOST: usize = 8192;

#[derive(Clone, PartialEq, Message)]
struct WireAnswers {
    #[prost(message, repeated, tag = "1")]
    answers: Vec<WireAnswer>,
}

#[derive(Clone, PartialEq, Message)]
struct WireAnswer {
    /// Which of [`NameQuestion`]'s, from 1.
    #[prost(uint32, tag = "1")]
    question: u32,
    /// What it is asked with.
    #[prost(uint64, tag = "2")]
    address: u64,
    #[prost(string, tag = "3")]
    asked: String,
    /// The function, if there is one.
    #[prost(message, optional, tag = "4")]
    function: Option<WireFunction>,
}

#[derive(Clone, PartialEq, Message)]
struct WireFunction {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(uint64, tag = "2")]
    start: u64,
    #[prost(uint64, tag = "3")]
    size: u64,
    #[prost(uint64, optional, tag = "4")]
    next: Option<u64>,
}

/// What earlier runs have asked of a file whose debug files are in this state; `None` where nothing is kept.
pub(crate) fn read(cache: &Cache, id: &Key, debug_files: u64) -> Option<NameAnswers> {
    let wire = WireAnswers::decode(cache.get(NAMES, &key(id, debug_files))?.as_slice()).ok()?;
    Some(wire.answers.into_iter().filter_map(WireAnswer::read).collect())
}

/// Whether the entry is to be written anew: that takes a millisecond, and to read a large library's tables for one
/// answer twenty.
pub(crate) fn is_worth_keeping(NameCounts { asked, kept }: NameCounts) -> bool {
    asked > kept && kept < MOST
}

/// Keeps what was asked.
pub(crate) fn keep(cache: &Cache, id: &Key, debug_files: u64, asked: NameAnswers) {
    // In an order, so that of too many the same are kept.
    let ordered: BTreeMap<_, _> = asked.into_iter().collect();
    let answers = ordered.into_iter().take(MOST).map(|(question, function)| WireAnswer::of(question, function));
    cache.put(NAMES, &key(id, debug_files), &WireAnswers { answers: answers.collect() }.encode_to_vec());
}

fn key(id: &Key, debug_files: u64) -> Key {
    id.with(&format!("{debug_files:x}"))
}

impl WireAnswer {
    fn of(question: NameQuestion, function: Option<Function>) -> Self {
        let none = || String::new();
        let (question, address, asked) = match question {
            NameQuestion::Around(address) => (1, address, none()),
            NameQuestion::StartsAt(address) => (2, address, none()),
            NameQuestion::ExportedAt(address) => (3, address, none()),
            NameQuestion::Exported(name) => (4, 0, name.to_string()),
            NameQuestion::Named(name) => (5, 0, name.to_string()),
            NameQuestion::AlsoCalled(address, name) => (6, address, name.to_string()),
            NameQuestion::FirstOfLibc(address) => (7, address, none()),
            NameQuestion::Any => (8, 0, none()),
            NameQuestion::Main => (9, 0, none()),
        };
        let function =
            function.map(|f| WireFunction { name: f.name.to_string(), start: f.start, size: f.size, next: f.next });
        Self { question, address, asked, function }
    }

    fn read(self) -> Option<(NameQuestion, Option<Function>)> {
        let (address, name) = (self.address, self.asked.as_str().into());
        let question = match self.question {
            1 => NameQuestion::Around(address),
            2 => NameQuestion::StartsAt(address),
            3 => NameQuestion::ExportedAt(address),
            4 => NameQuestion::Exported(name),
            5 => NameQuestion::Named(name),
            6 => NameQuestion::AlsoCalled(address, name),
            7 => NameQuestion::FirstOfLibc(address),
            8 => NameQuestion::Any,
            9 => NameQuestion::Main,
            _ => return None,
        };
        let function = |f: WireFunction| Function { name: f.name.into(), start: f.start, size: f.size, next: f.next };
        Some((question, self.function.map(function)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn questions() -> [NameQuestion; 9] {
        use NameQuestion::*;
        let name = || "open".into();
        [
            Around(1),
            StartsAt(2),
            ExportedAt(3),
            Exported(name()),
            Named(name()),
            AlsoCalled(4, name()),
            FirstOfLibc(5),
            Any,
            Main,
        ]
    }

    #[test]
    fn what_was_asked_is_known_in_the_next_run() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(folder.path(), 1 << 20);
        let id = cache.key(b"a file").unwrap();
        let function = |start| Function { name: "f".into(), start, size: 3, next: Some(start + 7) };
        let asked: NameAnswers =
            questions().into_iter().zip(0u64..).map(|(q, n)| (q, (n % 2 == 0).then(|| function(n)))).collect();
        assert_eq!(read(&cache, &id, 0), None);
        keep(&cache, &id, 0, asked.clone());
        assert_eq!(read(&cache, &id, 0).as_ref(), Some(&asked));
        assert_eq!(read(&cache, &id, 1), None, "what another debug file says");
        let worth = |asked, kept| is_worth_keeping(NameCounts { asked, kept });
        let told = [worth(0, 0), worth(1, 0), worth(320, 320), worth(321, 320), worth(20_000, MOST)];
        assert_eq!(told, [false, true, false, true, false]);
        // Of too many the same are kept.
        let many: NameAnswers = (0..2 * MOST as u64).map(|at| (NameQuestion::Around(at), None)).collect();
        keep(&cache, &id, 0, many);
        let kept = read(&cache, &id, 0).unwrap();
        assert!(kept.len() == MOST && kept.contains_key(&NameQuestion::Around(0)));
    }

    proptest! {
        #[test]
        fn whatever_was_kept_is_read_without_harm(bytes: Vec<u8>, question: u32, address: u64, asked: String) {
            let _ = WireAnswers::decode(bytes.as_slice());
            let wire = WireAnswer { question, address, asked, function: None };
            prop_assert_eq!(wire.clone().read().is_some(), (1..=9).contains(&question));
            if let Some((question, function)) = wire.read() {
                let again = WireAnswer::of(question.clone(), function.clone());
                prop_assert_eq!(again.read(), Some((question, function)));
            }
        }
    }
}
