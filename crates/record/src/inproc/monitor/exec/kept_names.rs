//! Answers about files' symbols, lines and frames from earlier runs, kept in the cache for the file and its separate
//! debug files.
//!
//! An entry is read at every start, and only few of its answers are used. It is therefore stored in columns sorted by
//! question, so that nothing need be decoded one by one.

use crate::inproc::monitor::exec::file_notes::{FileNotes, Section};
use prost::Message;
use std::cmp::Ordering;
use std::sync::Arc;
use systoll_model::Location;
use systoll_symbols::{
    FrameAnswers, FrameQuestion, Function, KeptAnswers, LineAnswers, MOST_LAST_JUMPS, MOST_REACH, NameAnswer,
    NameAnswers, NameCounts, NameQuestion,
};

/// Answers about symbols kept for one file, at most; the same holds for lines and for frames.
const MOST: usize = 8192;

/// Answers in the order of their questions: row n of all columns is one answer.
#[derive(Clone, PartialEq, Message)]
struct WireAnswers {
    /// Kinds of [`NameQuestion`], a byte each.
    #[prost(bytes = "vec", tag = "1")]
    questions: Vec<u8>,
    /// Addresses that are asked about; zero if the question has none.
    #[prost(fixed64, repeated, tag = "2")]
    addresses: Vec<u64>,
    /// Names that are asked about; empty if the question has none.
    #[prost(message, required, tag = "3")]
    asked: WireTexts,
    /// Kinds of [`NameAnswer`], a byte each: [`NOTHING`], [`LAST`], [`FOLLOWED`].
    #[prost(bytes = "vec", tag = "4")]
    answers: Vec<u8>,
    /// Names of the functions found; empty, as all other fields are zero, if there is none.
    #[prost(message, required, tag = "5")]
    names: WireTexts,
    #[prost(fixed64, repeated, tag = "6")]
    starts: Vec<u64>,
    #[prost(fixed64, repeated, tag = "7")]
    sizes: Vec<u64>,
    #[prost(fixed64, repeated, tag = "8")]
    nexts: Vec<u64>,
    #[prost(message, required, tag = "9")]
    lines: WireLines,
    #[prost(message, required, tag = "10")]
    frames: WireFrames,
}

/// Results of unwinding for addresses, by rising address; return addresses are separate from the others.
#[derive(Clone, PartialEq, Message)]
struct WireFrames {
    #[prost(message, required, tag = "1")]
    others: WirePlaces,
    #[prost(message, required, tag = "2")]
    returns: WirePlaces,
}

/// Results for addresses, one behind the other.
#[derive(Clone, PartialEq, Message)]
struct WirePlaces {
    #[prost(fixed64, repeated, tag = "1")]
    addresses: Vec<u64>,
    /// Index at which each address's result ends.
    #[prost(fixed32, repeated, tag = "2")]
    ends: Vec<u32>,
    #[prost(bytes = "vec", tag = "3")]
    found: Vec<u8>,
}

/// Source locations of addresses, by rising address.
#[derive(Clone, PartialEq, Message)]
struct WireLines {
    #[prost(fixed64, repeated, tag = "1")]
    addresses: Vec<u64>,
    /// Index at which each address's locations end.
    #[prost(fixed32, repeated, tag = "2")]
    ends: Vec<u32>,
    /// Parts that each location has, as bits: [`FILE`], [`LINE`].
    #[prost(bytes = "vec", tag = "3")]
    parts: Vec<u8>,
    /// Functions of the locations; empty if there is none, as are files, while lines are zero.
    #[prost(message, required, tag = "4")]
    functions: WireTexts,
    #[prost(message, required, tag = "5")]
    files: WireTexts,
    #[prost(fixed32, repeated, tag = "6")]
    lines: Vec<u32>,
}

/// Bit of a location that has a file.
const FILE: u8 = 1;
/// Bit of a location that has a line.
const LINE: u8 = 2;

/// First of the kinds that encode a [`NameQuestion::LastJump`].
const LAST_JUMPS: u8 = 64;

/// Bits of a distance in [`NameQuestion::Reaches`], which is stored in one word with its start address.
const REACH_BITS: u32 = MOST_REACH.ilog2();
const _: () = assert!(MOST_REACH == 1 << REACH_BITS);

/// Kind of an answer: there is no function.
const NOTHING: u8 = 0;
/// Kind of an answer: there is a function, and none is known behind it.
const LAST: u8 = 1;
/// Kind of an answer: there is a function, and another one behind it.
const FOLLOWED: u8 = 2;

/// Texts, stored one behind the other.
#[derive(Clone, PartialEq, Message)]
struct WireTexts {
    #[prost(string, tag = "1")]
    all: String,
    /// Index at which each text ends.
    #[prost(fixed32, repeated, tag = "2")]
    ends: Vec<u32>,
}

impl WireTexts {
    fn push(&mut self, text: &str) {
        self.all.push_str(text);
        self.ends.push(self.all.len() as u32);
    }

    fn get(&self, row: usize) -> Option<&str> {
        let start = row.checked_sub(1).map_or(Some(0), |before| self.ends.get(before).copied())?;
        self.all.get(start as usize..*self.ends.get(row)? as usize)
    }
}

impl WireLines {
    fn push(&mut self, address: u64, locations: &[Location]) {
        for Location { function, file, line } in locations {
            self.parts.push(file.as_ref().map_or(0, |_| FILE) | line.map_or(0, |_| LINE));
            self.functions.push(function);
            self.files.push(file.as_deref().unwrap_or_default());
            self.lines.push(line.unwrap_or(0));
        }
        self.addresses.push(address);
        self.ends.push(self.parts.len() as u32);
    }

    fn location(&self, row: usize) -> Option<Location> {
        let parts = *self.parts.get(row)?;
        Some(Location {
            function: self.functions.get(row)?.into(),
            file: Some(self.files.get(row)?.into()).filter(|_| parts & FILE != 0),
            line: Some(*self.lines.get(row)?).filter(|_| parts & LINE != 0),
        })
    }

    /// Returns the locations of the address with this index.
    fn at(&self, place: usize) -> Option<Arc<[Location]>> {
        let start = place.checked_sub(1).map_or(Some(0), |before| self.ends.get(before).copied())?;
        let end = (*self.ends.get(place)?).min(u32::try_from(self.parts.len()).ok()?);
        (start..end).map(|row| self.location(row as usize)).collect()
    }
}

impl WirePlaces {
    fn push(&mut self, address: u64, found: &[u8]) {
        self.found.extend(found);
        self.addresses.push(address);
        self.ends.push(self.found.len() as u32);
    }

    /// Returns the result for the address with this index.
    fn at(&self, place: usize) -> Option<&[u8]> {
        let start = place.checked_sub(1).map_or(Some(0), |before| self.ends.get(before).copied())?;
        self.found.get(start as usize..*self.ends.get(place)? as usize)
    }

    fn all(&self, is_return: bool) -> impl Iterator<Item = (FrameQuestion, Arc<[u8]>)> {
        let places = self.addresses.iter().enumerate();
        places
            .filter_map(move |(n, address)| Some((FrameQuestion { address: *address, is_return }, self.at(n)?.into())))
    }
}

impl WireFrames {
    fn places(&self, is_return: bool) -> &WirePlaces {
        if is_return { &self.returns } else { &self.others }
    }

    fn of(frames: &FrameAnswers) -> Self {
        let mut wire = Self::default();
        for (FrameQuestion { address, is_return }, found) in frames.iter().take(MOST) {
            let places = if *is_return { &mut wire.returns } else { &mut wire.others };
            places.push(*address, found);
        }
        wire
    }
}

/// A question as it is stored, in sort order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Asked<'a> {
    question: u8,
    address: u64,
    text: &'a str,
}

impl Section for WireAnswers {
    const NUMBER: u32 = 2;
}

/// Returns the answers that earlier runs kept for a file whose debug files are in this state; `None` if there are none.
pub(crate) fn answers(notes: &FileNotes, debug_files: u64) -> Option<Arc<dyn KeptAnswers>> {
    Some(Arc::new(notes.get::<WireAnswers>(debug_files)?))
}

/// Returns true if the entry should be rewritten: that takes a millisecond, and reading a large library's tables for
/// one answer takes twenty.
pub(crate) fn is_worth_keeping(NameCounts { asked, kept }: NameCounts) -> bool {
    asked > kept && kept < MOST
}

/// All answers about a file.
#[derive(Clone, Debug, Default)]
pub(crate) struct AllAsked {
    pub(crate) names: NameAnswers,
    pub(crate) lines: LineAnswers,
    pub(crate) frames: FrameAnswers,
}

/// Notes the answers of this run, for later runs.
pub(crate) fn keep(notes: &mut FileNotes, debug_files: u64, asked: &AllAsked) {
    let mut wire = WireAnswers::of(&asked.names);
    asked.lines.iter().take(MOST).for_each(|(address, locations)| wire.lines.push(*address, locations));
    wire.frames = WireFrames::of(&asked.frames);
    notes.set(debug_files, &wire);
}

impl<'a> Asked<'a> {
    fn of(question: &'a NameQuestion) -> Self {
        let (question, address, text) = match question {
            NameQuestion::Around(address) => (1, *address, ""),
            NameQuestion::StartsAt(address) => (2, *address, ""),
            NameQuestion::ExportedAt(address) => (3, *address, ""),
            NameQuestion::Exported(name) => (4, 0, &**name),
            NameQuestion::Named(name) => (5, 0, &**name),
            NameQuestion::AlsoCalled(address, name) => (6, *address, &**name),
            NameQuestion::FirstOfLibc(address) => (7, *address, ""),
            NameQuestion::Any => (8, 0, ""),
            NameQuestion::Main => (9, 0, ""),
            NameQuestion::CalledBefore(address) => (10, *address, ""),
            NameQuestion::Framed(address) => (11, *address, ""),
            NameQuestion::Runtime => (12, 0, ""),
            NameQuestion::CallBefore(address) => (13, *address, ""),
            NameQuestion::Reaches(start, distance) => (14, start << REACH_BITS | u64::from(*distance), ""),
            NameQuestion::LastJump(address, number) => (LAST_JUMPS.saturating_add(*number), *address, ""),
        };
        Self { question, address, text }
    }

    fn question(self) -> Option<NameQuestion> {
        let (address, name) = (self.address, self.text.into());
        Some(match self.question {
            1 => NameQuestion::Around(address),
            2 => NameQuestion::StartsAt(address),
            3 => NameQuestion::ExportedAt(address),
            4 => NameQuestion::Exported(name),
            5 => NameQuestion::Named(name),
            6 => NameQuestion::AlsoCalled(address, name),
            7 => NameQuestion::FirstOfLibc(address),
            8 => NameQuestion::Any,
            9 => NameQuestion::Main,
            10 => NameQuestion::CalledBefore(address),
            11 => NameQuestion::Framed(address),
            12 => NameQuestion::Runtime,
            13 => NameQuestion::CallBefore(address),
            14 => NameQuestion::Reaches(address >> REACH_BITS, (address & ((1 << REACH_BITS) - 1)) as u16),
            number => {
                let number = number.checked_sub(LAST_JUMPS).filter(|number| *number < MOST_LAST_JUMPS)?;
                NameQuestion::LastJump(address, number)
            }
        })
    }
}

impl WireAnswers {
    /// Sorts the answers by question, so that they can be found, and so that the same ones are kept if there are too
    /// many.
    fn of(names: &NameAnswers) -> Self {
        let mut ordered: Vec<_> = names.iter().collect();
        ordered.sort_unstable_by(|(a, _), (b, _)| Asked::of(a).cmp(&Asked::of(b)));
        let mut wire = Self::default();
        ordered.into_iter().take(MOST).for_each(|(question, answer)| wire.push(question, answer.as_ref()));
        wire
    }

    fn push(&mut self, question: &NameQuestion, answer: Option<&Function>) {
        let Asked { question, address, text } = Asked::of(question);
        self.questions.push(question);
        self.addresses.push(address);
        self.asked.push(text);
        self.answers.push(answer.map_or(NOTHING, |f| if f.next.is_some() { FOLLOWED } else { LAST }));
        self.names.push(answer.map_or("", |f| &*f.name));
        self.starts.push(answer.map_or(0, |f| f.start));
        self.sizes.push(answer.map_or(0, |f| f.size));
        self.nexts.push(answer.and_then(|f| f.next).unwrap_or(0));
    }

    fn asked(&self, row: usize) -> Option<Asked<'_>> {
        let (question, address) = (*self.questions.get(row)?, *self.addresses.get(row)?);
        Some(Asked { question, address, text: self.asked.get(row)? })
    }

    fn answer_of(&self, row: usize) -> Option<NameAnswer> {
        let next = match *self.answers.get(row)? {
            NOTHING => return Some(None),
            LAST => None,
            FOLLOWED => Some(*self.nexts.get(row)?),
            _ => return None,
        };
        let (start, size) = (*self.starts.get(row)?, *self.sizes.get(row)?);
        Some(Some(Function { name: self.names.get(row)?.into(), start, size, next }))
    }
}

impl KeptAnswers for WireAnswers {
    fn answer(&self, question: &NameQuestion) -> Option<NameAnswer> {
        let wanted = Asked::of(question);
        let (mut low, mut high) = (0, self.questions.len());
        while low < high {
            let middle = low.midpoint(high);
            match self.asked(middle)?.cmp(&wanted) {
                Ordering::Less => low = middle + 1,
                Ordering::Greater => high = middle,
                Ordering::Equal => return self.answer_of(middle),
            }
        }
        None
    }

    fn lines(&self, address: u64) -> Option<Arc<[Location]>> {
        self.lines.at(self.lines.addresses.binary_search(&address).ok()?)
    }

    fn frame(&self, question: FrameQuestion) -> Option<&[u8]> {
        let places = self.frames.places(question.is_return);
        places.at(places.addresses.binary_search(&question.address).ok()?)
    }

    fn count(&self) -> usize {
        let frames = self.frames.others.addresses.len() + self.frames.returns.addresses.len();
        self.questions.len() + self.lines.addresses.len() + frames
    }

    fn all(&self) -> NameAnswers {
        let pair = |row| Some((self.asked(row)?.question()?, self.answer_of(row)?));
        (0..self.questions.len()).filter_map(pair).collect()
    }

    fn all_lines(&self) -> LineAnswers {
        let lines = self.lines.addresses.iter().enumerate();
        lines.filter_map(|(place, address)| Some((*address, self.lines.at(place)?))).collect()
    }

    fn all_frames(&self) -> FrameAnswers {
        self.frames.others.all(false).chain(self.frames.returns.all(true)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn questions() -> [NameQuestion; 15] {
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
            CalledBefore(6),
            CallBefore(6),
            Reaches((1 << 52) - 1, MOST_REACH - 1),
            Framed(7),
            Runtime,
            LastJump(8, MOST_LAST_JUMPS - 1),
        ]
    }

    #[test]
    fn what_was_asked_is_known_in_the_next_run() {
        let mut notes = FileNotes::default();
        let function = |start| Function { name: "f".into(), start, size: 3, next: Some(start + 7) };
        let asked: NameAnswers =
            questions().into_iter().zip(0u64..).map(|(q, n)| (q, (n % 2 == 0).then(|| function(n)))).collect();
        assert!(answers(&notes, 0).is_none());
        keep(&mut notes, 0, &AllAsked { names: asked.clone(), ..AllAsked::default() });
        let kept = answers(&notes, 0).unwrap();
        assert_eq!((kept.count(), kept.all()), (15, asked.clone()));
        for (question, answer) in asked {
            assert_eq!(kept.answer(&question), Some(answer));
        }
        assert_eq!(kept.answer(&NameQuestion::Around(99)), None, "not asked so far");
        assert!(answers(&notes, 1).is_none(), "what another debug file says");
        let worth = |asked, kept| is_worth_keeping(NameCounts { asked, kept });
        let told = [worth(0, 0), worth(1, 0), worth(320, 320), worth(321, 320), worth(20_000, MOST)];
        assert_eq!(told, [false, true, false, true, false]);
        // If there are too many answers, every run keeps the same ones.
        let names = (0..2 * MOST as u64).map(|at| (NameQuestion::Around(at), None)).collect();
        keep(&mut notes, 0, &AllAsked { names, ..AllAsked::default() });
        let kept = answers(&notes, 0).unwrap();
        assert!(kept.count() == MOST && kept.answer(&NameQuestion::Around(0)) == Some(None));
    }

    fn location(function: &str, file: Option<&str>, line: Option<u32>) -> Location {
        Location { function: function.into(), file: file.map(Into::into), line }
    }

    #[test]
    fn lines_are_known_in_the_next_run() {
        let mut notes = FileNotes::default();
        let inlined = [location("inner", Some("a.c"), Some(3)), location("outer", Some(""), None)];
        let lines: LineAnswers = [
            (7, Arc::from(inlined)),
            (9, Arc::from([])),
            (u64::MAX, Arc::from([location("", None, Some(0)), location("f", None, Some(u32::MAX))])),
        ]
        .into();
        keep(&mut notes, 0, &AllAsked { lines: lines.clone(), ..AllAsked::default() });
        let kept = answers(&notes, 0).unwrap();
        assert_eq!((kept.count(), kept.all_lines(), kept.all()), (3, lines.clone(), NameAnswers::default()));
        for (address, locations) in lines {
            assert_eq!(kept.lines(address), Some(locations), "{address}");
        }
        assert_eq!(kept.lines(8), None, "not asked so far");
        let lines = (0..2 * MOST as u64).map(|at| (at, Arc::from([]))).collect();
        keep(&mut notes, 0, &AllAsked { lines, ..AllAsked::default() });
        assert_eq!(answers(&notes, 0).unwrap().count(), MOST);
    }

    #[test]
    fn ways_from_frame_to_frame_come_back() {
        let mut notes = FileNotes::default();
        let place = |address, is_return| FrameQuestion { address, is_return };
        let frames: FrameAnswers =
            [(place(5, false), [1, 2].into()), (place(5, true), [].into()), (place(u64::MAX, true), [3].into())].into();
        keep(&mut notes, 0, &AllAsked { frames: frames.clone(), ..AllAsked::default() });
        let kept = answers(&notes, 0).unwrap();
        assert_eq!((kept.count(), kept.all_frames()), (3, frames.clone()));
        for (question, found) in &frames {
            assert_eq!(kept.frame(*question), Some(&**found));
        }
        assert_eq!(kept.frame(place(6, true)), None, "did not come there");
    }

    fn any_texts() -> impl Strategy<Value = WireTexts> {
        let ends = proptest::collection::vec(0..40u32, 0..8);
        (".{0,12}", ends).prop_map(|(all, ends)| WireTexts { all, ends })
    }

    proptest! {
        #[test]
        fn what_is_kept_in_any_order_is_found(all: std::collections::HashMap<u64, (String, u64)>) {
            let asked: NameAnswers = all.iter().flat_map(|(at, (name, next))| {
                let next = (next % 2 == 0).then_some(*next);
                let function = Function { name: name.as_str().into(), start: *at, size: 5, next };
                let name: Arc<str> = name.as_str().into();
                [
                    (NameQuestion::AlsoCalled(*at, Arc::clone(&name)), Some(function)),
                    (NameQuestion::Named(name), None),
                    (NameQuestion::Reaches(*at & ((1 << 52) - 1), (at % u64::from(MOST_REACH)) as u16), None),
                    (NameQuestion::LastJump(*at, (at % u64::from(MOST_LAST_JUMPS)) as u8), None),
                ]
            }).collect();
            let wire = WireAnswers::of(&asked);
            for (question, answer) in &asked {
                prop_assert_eq!(wire.answer(question), Some(answer.clone()));
            }
            prop_assert_eq!(wire.all(), asked);
        }

        #[test]
        fn whatever_was_kept_is_read_without_harm(
            bytes: Vec<u8>,
            asked_for: Vec<u8>,
            addresses: Vec<u64>,
            (asked, names) in (any_texts(), any_texts()),
            answers: Vec<u8>,
            starts: Vec<u64>,
            (functions, files) in (any_texts(), any_texts()),
            (parts, ends, lines) in (any::<Vec<u8>>(), any::<Vec<u32>>(), any::<Vec<u32>>()),
        ) {
            let _ = WireAnswers::decode(bytes.as_slice());
            let sizes = starts.clone();
            let places = WirePlaces { addresses: addresses.clone(), ends: ends.clone(), found: parts.clone() };
            let frames = WireFrames { others: places.clone(), returns: places };
            let lines = WireLines { addresses: addresses.clone(), ends, parts, functions, files, lines };
            let nexts = Vec::new();
            let wire =
                WireAnswers { questions: asked_for, addresses, asked, answers, names, starts, sizes, nexts, lines, frames };
            let again = WireAnswers::decode(wire.encode_to_vec().as_slice()).unwrap();
            prop_assert_eq!(&again, &wire);
            prop_assert!(wire.all().len() + wire.all_lines().len() + wire.all_frames().len() <= wire.count());
            for question in wire.all_frames().into_keys() {
                let _ = wire.frame(question);
            }
            for address in &wire.lines.addresses {
                let _ = KeptAnswers::lines(&wire, *address);
            }
            for question in questions() {
                let _ = wire.answer(&question);
            }
        }
    }
}
