//! Compares the ledger's figures with the calls that were looked at.

use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use systoll_model::{ArgData, Before, Ledger, Looked, Moment, Notes, Question, QuestionAsked, Random, Sysno};

fn text(arg: u8, bytes: &[u8]) -> ArgData {
    ArgData { arg, at: Moment::Entry, bytes: bytes.to_vec(), cut: false }
}

/// Returns the question of a call; `status` has the bytes of the answer's buffer.
fn asked(name: &str, args: [u64; 6], path: &str, status: &[u8], result: i64) -> Option<Question<'static>> {
    let signature = Sysno::from_name(name)?.signature()?;
    let (at, out) = match name {
        "stat" | "lstat" => (0, 1),
        "statx" => (1, 4),
        "newfstatat" => (1, 2),
        _ => (0, 1),
    };
    let answer = ArgData { arg: out, at: Moment::Exit, bytes: status.to_vec(), cut: false };
    let data = [text(at, path.as_bytes()), answer];
    let given = |arg, at| data.iter().find(|d| (d.arg, d.at) == (arg, at)).map(|d| d.bytes.clone().into());
    let question = Question::by(signature, &args, given, None, Some(result));
    assert_eq!(question, Question::of(signature, &args, &data, None, Some(result)));
    question
}

fn missing(path: &str) -> Question<'static> {
    asked("stat", [1, 2, 0, 0, 0, 0], path, &[], -2).unwrap()
}

fn add(notes: &mut Notes, row: u32, question: &Question<'_>, at_ns: u64, stands_for: u64) {
    notes.add(Looked { process: 1, row, syscall: Sysno(4), question, at_ns, stands_for });
}

fn ledger(notes: &Notes) -> Ledger {
    notes.ledgers().first().cloned().unwrap()
}

#[test]
fn the_time_of_the_last_access_is_no_answer_and_the_time_of_a_change_is() {
    let mut status = vec![7; 144];
    let of = |status: &[u8]| asked("stat", [1, 2, 0, 0, 0, 0], "/a", status, 0).unwrap();
    let first = of(&status);
    status[80] = 9;
    assert_eq!(of(&status), first);
    status[104] = 9;
    assert_ne!(of(&status), first);
}

#[test]
fn one_question_by_two_ways_is_known_where_the_answer_is_alike() {
    let (follows, stays) = (0, 0x100);
    let of =
        |flags: u64, byte: u8| asked("newfstatat", [-100i64 as u64, 1, 2, flags, 0, 0], "/a", &[byte; 144], 0).unwrap();
    let mut notes = Notes::default();
    add(&mut notes, 0, &of(stays, 1), 10, 1);
    assert_eq!(notes.before(&QuestionAsked::new(1, &of(follows, 1)), 20), Before::OtherWay);
    assert_eq!(notes.before(&QuestionAsked::new(1, &of(stays, 1)), 20), Before::Same);
    assert_eq!(notes.before(&QuestionAsked::new(1, &of(stays, 1)), 10), Before::Unknown, "itself is not before itself");
    assert_eq!(notes.before(&QuestionAsked::new(1, &of(follows, 2)), 20), Before::Unknown, "a link leads elsewhere");
    assert_eq!(notes.before(&QuestionAsked::new(2, &of(stays, 1)), 20), Before::Unknown, "another process");
}

#[test]
fn emptying_and_unanswered_calls_ask_nothing() {
    let open = |flags: u64, result| {
        let signature = Sysno::from_name("open").unwrap().signature().unwrap();
        Question::of(signature, &[1, flags, 0, 0, 0, 0], &[text(0, b"/a")], None, Some(result)).is_some()
    };
    assert!(open(0, 3) && open(0o2000000, -2));
    // A log that is opened for each line is asked for; one that is emptied, or must not exist, is another file each time.
    assert!(open(0o1, 3) && open(0o2102, 3));
    assert!(!open(0o1001, 3) && !open(0o301, 3));
    assert!(!open(0, -4) && !open(0, -14));
    assert!(asked("getpid", [0; 6], "/a", &[], 1).is_none());
}

#[test]
fn a_poller_that_sees_changes_repeats_nothing() {
    let mut notes = Notes::default();
    for n in 0..1_000u64 {
        let status: Vec<u8> = n.to_le_bytes().repeat(18);
        let question = asked("stat", [1, 2, 0, 0, 0, 0], "/log", &status, 0).unwrap();
        add(&mut notes, 0, &question, n, 1);
    }
    let told = ledger(&notes);
    assert_eq!((told.repeats, told.changes, told.objects), (0, 999, 1));
}

#[test]
fn bounded_memory_keeps_the_share() {
    let mut notes = Notes::default();
    let (objects, rounds) = (200_000u64, 3);
    for n in 0..objects * rounds {
        add(&mut notes, 0, &missing(&format!("/some/where/{}", n % objects)), n, 1);
    }
    let told = ledger(&notes);
    assert!(told.level >= 2 && told.objects < 1 << 16, "{told:?}");
    let share = told.known_share(objects * rounds);
    assert!(share.low <= 2.0 / 3.0 && 2.0 / 3.0 <= share.high && share.high - share.low < 0.05, "{share:?}");
    let all = told.objects_in_all(objects * rounds);
    assert!((all.estimate / objects as f64 - 1.0).abs() < 0.05, "{all:?}");
}

#[test]
fn objects_looked_at_once_are_all_objects() {
    let mut notes = Notes::default();
    for n in 0..50_000u64 {
        if n % 16 == n / 16 % 16 {
            add(&mut notes, 0, &missing(&format!("/{n}")), n, 16);
        }
    }
    let told = ledger(&notes);
    let all = told.objects_in_all(50_000);
    assert_eq!((told.repeats, told.calls), (0, 50_000));
    assert!((all.estimate - 50_000.0).abs() < 500.0 && all.high >= all.estimate, "{all:?}");
    assert!(told.known_share(50_000).low == 0.0 && told.known_share(50_000).high < 0.01);
}

#[test]
fn calls_that_no_look_stands_for_may_have_been_anything() {
    let mut notes = Notes::default();
    for n in 0..4_000u64 {
        add(&mut notes, 0, &missing(&format!("/{}", n % 2)), n, 1);
    }
    let told = ledger(&notes);
    let all = told.known_share(4_000);
    assert!(all.low > 0.999 && all.low == all.high, "{all:?}");
    let half = told.known_share(8_000);
    assert!(half.low > 0.48 && half.low < 0.5 && half.estimate > 0.999 && half.high > 0.999, "{half:?}");
}

proptest! {
    /// Checks the figures. If every call is looked at, they equal the figures of the calls. If only
    /// some calls are, repeats are not overestimated except by chance, and objects are not
    /// underestimated.
    #[test]
    fn figures_are_those_of_the_calls(seed in any::<u64>(), objects in 1u64..400, calls in 64u64..6_000, shift in 0u32..5) {
        let mut random = Random::new(seed);
        let (mut whole, mut sampled) = (Notes::default(), Notes::default());
        let mut seen: BTreeMap<u64, u64> = BTreeMap::new();
        let mut repeats = 0;
        let gap = 1u64 << shift;
        for n in 0..calls {
            // Some objects are drawn much more often than others.
            let bound = 1 + random.below(objects);
            let object = random.below(bound);
            let times = seen.entry(object).or_default();
            repeats += u64::from(*times > 0);
            *times += 1;
            let question = missing(&format!("/{object}"));
            add(&mut whole, 3, &question, n, 1);
            if random.below(gap) == 0 {
                add(&mut sampled, 3, &question, n, gap);
            }
        }
        let told = ledger(&whole);
        prop_assert!(told.whole(calls));
        prop_assert_eq!((told.looks, told.repeats, told.objects), (calls, repeats, seen.len() as u64));
        prop_assert_eq!(told.top[0].calls, *seen.values().max().unwrap());
        let share = told.known_share(calls);
        prop_assert_eq!((share.low, share.high), (share.estimate, share.estimate));
        if let Some(part) = sampled.ledgers().first() {
            let truth = repeats as f64 / calls as f64;
            let low = part.known_share(calls).low;
            prop_assert!(low <= truth + 0.1, "{low} of {truth}");
            let all = part.objects_in_all(calls);
            prop_assert!(all.low <= seen.len() as f64 && all.low <= all.estimate && all.estimate <= all.high);
        }
    }

    /// Checks that arbitrary fields, as a file may have them, give finite figures.
    #[test]
    fn nonsense_has_shares_too(looks in any::<u64>(), calls in any::<u64>(), squares in any::<u64>(), repeats in any::<u64>(),
        objects in any::<u64>(), once in any::<u64>(), twice in any::<u64>(), level in any::<u8>(), all in any::<u64>()) {
        let ledger = Ledger { looks, calls, squares, repeats, objects, once, twice, level, ..Ledger::default() };
        for b in [ledger.known_share(all), ledger.objects_in_all(all)] {
            prop_assert!(b.low.is_finite() && b.estimate.is_finite() && b.high.is_finite(), "{b:?}");
            prop_assert!(b.low <= b.estimate && b.estimate <= b.high, "{b:?}");
        }
    }
}

#[test]
fn the_most_frequent_objects_are_named_with_their_other_calls() {
    let mut notes = Notes::default();
    let names: BTreeSet<String> = (0..40).map(|n| format!("/{n}")).collect();
    for (n, name) in names.iter().cycle().take(200).enumerate() {
        add(&mut notes, 0, &missing(name), n as u64, 1);
        add(&mut notes, 0, &missing("/often"), n as u64, 1);
    }
    let link = asked("readlink", [1, 2, 0, 0, 0, 0], "/often", b"", -22).unwrap();
    notes.add(Looked { process: 1, row: 1, syscall: Sysno(89), question: &link, at_ns: 500, stands_for: 1 });
    let told = ledger(&notes);
    let top = &told.top[0];
    assert_eq!((&*top.name, top.looks, top.same, &top.also[..]), ("/often", 200, 199, &[Sysno(4), Sysno(89)][..]));
    assert_eq!(told.objects, 41);
}

#[test]
fn accepting_cached_answers_is_the_same_question_and_forcing_new_ones_is_not() {
    let (older_will_do, ask_the_server) = (0x4000, 0x2000);
    let of = |flags: u64| asked("statx", [-100i64 as u64, 1, flags, 2, 3, 0], "/a", &[7; 256], 0).unwrap();
    let mut notes = Notes::default();
    add(&mut notes, 0, &of(older_will_do), 10, 1);
    assert_eq!(notes.before(&QuestionAsked::new(1, &of(0)), 20), Before::Same);
    assert_eq!(notes.before(&QuestionAsked::new(1, &of(0x100)), 20), Before::OtherWay);
    assert_eq!(notes.before(&QuestionAsked::new(1, &of(ask_the_server)), 20), Before::Unknown);
}
