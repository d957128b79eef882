//! Targets for a run's ledger, from both sides: the rows of a stranger's file, and the looks that a
//! ledger is made of.

use crate::seeds;
use std::sync::Arc;
use systoll_judge::Catalogue;
use systoll_model::{
    ArgData, Before, Between, Ledger, LedgerObject, Looked, Moment, Notes, Question, QuestionAsked, Recording, RowId,
    Sysno,
};

/// Limit of the object names that an input's looks ask about: enough to make the notes forget some.
const MOST_ASKED: u64 = 70_000;

/// An input as words, followed by zeros without end.
struct Words<'a>(std::slice::Chunks<'a, u8>);

impl<'a> Words<'a> {
    fn of(data: &'a [u8]) -> Self {
        Self(data.chunks(8))
    }

    fn is_empty(&self) -> bool {
        self.0.len() == 0
    }

    fn next(&mut self) -> u64 {
        let bytes = self.0.next().unwrap_or_default();
        bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte))
    }
}

/// Builds a ledger from an input's looks at calls, and reads a recording whose ledgers hold
/// arbitrary figures.
pub fn ledger(data: &[u8]) {
    let notes = looked_at(data);
    for made in notes.ledgers() {
        let known = made.repeats.saturating_add(made.other_way).saturating_add(made.changes);
        assert!(known <= made.calls && made.once + made.twice <= made.objects, "more than there was: {made:?}");
        assert!(made.top.iter().all(|object| object.same <= object.looks), "more than was looked at: {made:?}");
        holds(&made, made.calls);
    }
    let mut recording = seeds::run();
    recording.ledgers = said(data);
    let knows = [Before::Unknown, Before::Same, Before::OtherWay];
    for (n, call) in recording.windows.iter_mut().flat_map(|window| &mut window.calls).enumerate() {
        let of = data.get(n % data.len().max(1)).map_or(0, |byte| usize::from(*byte));
        call.before = knows[of % knows.len()];
    }
    if recording.check().is_err() {
        return;
    }
    for said in &recording.ledgers {
        holds(said, recording.row(said.row).counts.calls);
    }
    let mut file = Vec::new();
    recording.write(&mut file).expect("what is whole can be written");
    let read = Recording::read(file.as_slice()).expect("what was written can be read");
    assert_eq!(read.ledgers, recording.ledgers, "ledgers survive");
    crate::told(&read, &Catalogue::builtin());
}

/// Asserts that a ledger's figures are finite and its bounds in order.
fn holds(ledger: &Ledger, calls: u64) {
    let ordered = |b: Between| b.low <= b.estimate && b.estimate <= b.high && b.high.is_finite();
    let known = ledger.known_share(calls);
    assert!(ordered(known) && known.low >= 0.0 && known.high <= 1.0, "{known:?} of {ledger:?}");
    assert!((0.0..=1.0).contains(&ledger.changed_share()), "{ledger:?}");
    let objects = ledger.objects_in_all(calls);
    assert!(ordered(objects), "{objects:?} of {ledger:?}");
    assert!(ledger.observations() >= 0.0, "{ledger:?}");
}

/// Makes a look from every six words: the row, the process and the call; the first name; the number
/// of further names; the answer; the time; the number of calls.
fn looked_at(data: &[u8]) -> Notes {
    let (mut notes, mut words, mut asked) = (Notes::default(), Words::of(data), 0);
    let calls = ["newfstatat", "openat", "readlink", "statx"].map(|name| Sysno::from_name(name).expect("a call"));
    while !words.is_empty() && asked < MOST_ASKED {
        let [who, first, more, answer, at_ns, stands_for] = std::array::from_fn(|_| words.next());
        let syscall = calls[(who >> 16) as usize % calls.len()];
        let signature = syscall.signature().expect("one that is known");
        for n in 0..=(more % MOST_ASKED).min(MOST_ASKED - asked) {
            asked += 1;
            let path = format!("{}{}", if first & 1 == 0 { "/" } else { "" }, first.wrapping_add(n));
            let piece = |arg, at, bytes: Vec<u8>| ArgData { arg, at, bytes, cut: false };
            let data: Vec<ArgData> = (0..2u8)
                .map(|arg| piece(arg, Moment::Entry, path.clone().into_bytes()))
                .chain([2, 4].map(|arg| piece(arg, Moment::Exit, answer.to_le_bytes().repeat(32))))
                .collect();
            let args = [(-100i64) as u64, 0, 0, answer, 0, 0];
            let result = if answer & 1 == 0 { 0 } else { -2 };
            let question = Question::of(signature, &args, &data, None, Some(result));
            let Some(question) = question else { continue };
            let (process, row) = ((who >> 8) as u32 & 3, who as u32 & 0xff);
            let at_ns = at_ns.wrapping_add(n);
            notes.add(Looked { process, row, syscall, question: &question, at_ns, stands_for });
            let _ = notes.before(&QuestionAsked::new(process, &question), at_ns);
        }
    }
    notes
}

/// Makes a ledger from every fourteen words.
fn said(data: &[u8]) -> Vec<Ledger> {
    let (mut words, mut all) = (Words::of(data), Vec::new());
    while !words.is_empty() && all.len() < 64 {
        let row = RowId(words.next() as u32 % 3);
        let [looks, calls, squares, repeats, other_way] = std::array::from_fn(|_| words.next());
        let [changes, objects, once, twice, level] = std::array::from_fn(|_| words.next());
        let [named, seen, same] = std::array::from_fn(|_| words.next());
        let object = |n: u64| LedgerObject {
            name: Arc::from(format!("/srv/{}", named ^ n)),
            looks: seen,
            calls: seen.rotate_left(n as u32),
            same,
            also: vec![Sysno(named as u32 % 500); n as usize],
        };
        let (relative, top) = (level & 0x100 != 0, (0..named % 6).map(object).collect());
        let level = level as u8;
        all.push(Ledger {
            row,
            looks,
            calls,
            squares,
            repeats,
            other_way,
            changes,
            objects,
            once,
            twice,
            level,
            relative,
            top,
        });
    }
    all
}

/// Returns inputs to start from: ordinary ledgers, and looks at few names and at more than are
/// kept.
pub fn ledgers() -> Vec<Vec<u8>> {
    let bytes = |words: &[u64]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
    let plain = [0, 512, 4096, 8 * 4096, 4000, 50, 3, 12, 4, 2, 0, 4, 300, 290];
    let thinned = [1, 3, 3, 3, 1, 0, 0, 2, 2, 0, 3, 2, 1, 0];
    let none = [0; 14];
    let few = [[1, 2, 40, 6, 100, 8], [1, 2, 40, 6, 900, 8], [0x1_0001, 2, 40, 7, 1_000, 1]].concat();
    let many = [[7, 1_000_001, 67_000, 2, 5, 1], [7, 1_000_001, 2_000, 2, 500_000, 4]].concat();
    let beyond = [u64::MAX; 28];
    [[plain, thinned].concat(), none.to_vec(), few, many, beyond.to_vec()].iter().map(|words| bytes(words)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Seeds that are refused at once or contain nothing would test nothing.
    #[test]
    fn seeds_get_all_the_way() {
        let [plain, none, few, many, beyond] = ledgers().try_into().expect("five");
        let told = |data: &[u8]| looked_at(data).ledgers();
        let few = told(&few);
        assert!(few.iter().any(|ledger| ledger.repeats > 0 && ledger.changes == 0), "{few:?}");
        let many = told(&many);
        assert!(many.iter().any(|ledger| ledger.level > 0 && ledger.repeats > 0), "some were forgotten: {many:?}");
        assert_eq!([&plain, &none, &beyond].map(|data| said(data).len()), [2, 1, 2]);
        let mut recording = Recording { ledgers: said(&plain), ..seeds::run() };
        assert_eq!(recording.check(), Ok(()));
        recording.ledgers[0].row = RowId(2);
        assert!(recording.check().is_err(), "a row that is not there");
    }
}
