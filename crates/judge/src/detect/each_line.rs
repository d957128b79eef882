//! Tests of all lines of the tables: each line makes a sequence of calls that a detector must claim, and its nearest
//! healthy neighbours, which it must not claim.

use super::claims;
use crate::evidence::claim::Judged;
use crate::results::finding::Kind;
use crate::semantics::{
    Act, CHEAPER, Handle, How, RANGED, RangeFrom, Ranged, SEQUELS, STATE_LINES, Semantics, Sequel, Source, Spare,
    StateLine, THINGS, Thing, Tie, When,
};
use std::sync::Arc;
use systoll_model::constants::AT_FDCWD;
use systoll_model::*;

/// The descriptor that test calls use.
const FD: u64 = 5;
const POINTER: u64 = 0x7000_0000;
const LENGTH: u64 = 65_536;
/// Number of rounds in a test's window.
const ROUNDS: u64 = 12;

/// A call made from a line.
#[derive(Clone)]
struct Made {
    name: &'static str,
    args: [u64; 6],
    data: Vec<(u8, Moment, Vec<u8>)>,
    result: i64,
    waited: u64,
}

impl Made {
    fn new(name: &'static str) -> Self {
        Self { name, args: [0; 6], data: Vec::new(), result: 0, waited: 0 }
    }

    fn set(&mut self, arg: u8, value: u64) {
        self.args[usize::from(arg)] = value;
    }

    /// Makes the argument point to these bytes.
    fn put(&mut self, arg: u8, at: Moment, bytes: Vec<u8>) {
        if self.args[usize::from(arg)] == 0 {
            self.set(arg, POINTER);
        }
        self.data.retain(|(other, of, _)| (*other, *of) != (arg, at));
        self.data.push((arg, at, bytes));
    }

    fn has(&self, arg: u8, at: Moment) -> bool {
        self.data.iter().any(|(other, of, _)| (*other, *of) == (arg, at))
    }

    /// Makes the conditions hold for the call.
    fn when(mut self, tests: &[When]) -> Self {
        let none_of = |test: &When| matches!(test, When::NoneOf(..) | When::NoBits(..));
        for test in tests.iter().filter(|test| !none_of(test)).chain(tests.iter().filter(|test| none_of(test))) {
            let word = |word: u32| [&word.to_le_bytes()[..], &[0; 28]].concat();
            match *test {
                When::Is(arg, value) => self.set(arg, value.into()),
                When::OneOf(arg, values) => self.set(arg, values[0].into()),
                When::NoneOf(arg, values) => {
                    let now = self.args[usize::from(arg)];
                    let free = std::iter::once(now as u32).chain(1..).find(|value| !values.contains(value));
                    self.set(arg, free.unwrap().into());
                }
                When::Null(arg) => self.set(arg, 0),
                When::NotNull(arg) if self.args[usize::from(arg)] == 0 => self.set(arg, POINTER),
                When::AnyBits(arg, bits) | When::AllBits(arg, bits) => {
                    self.set(arg, self.args[usize::from(arg)] | u64::from(bits));
                }
                When::NoBits(arg, bits) => self.set(arg, self.args[usize::from(arg)] & !u64::from(bits)),
                When::Above(arg, least) => self.set(arg, u64::from(least) + 1),
                When::InZero(arg) | When::InZeros(arg) => self.put(arg, Moment::Entry, vec![0; 32]),
                When::InShort(arg) => self.put(arg, Moment::Entry, [[0; 8], 1_000_u64.to_le_bytes()].concat()),
                When::InTimes(arg) => self.put(arg, Moment::Entry, vec![1; 32]),
                When::Negative(arg) => self.set(arg, u64::MAX),
                When::InNoBits(arg, bits) => self.put(arg, Moment::Entry, word(1 & !bits)),
                When::InAnyBits(arg, bits) | When::MayHaveBits(arg, bits) => self.put(arg, Moment::Entry, word(bits)),
                When::InControl(arg) => self.put(arg, Moment::Entry, vec![1; 56]),
                When::OutZero(arg) => self.put(arg, Moment::Exit, vec![0; 4]),
                When::EmptyPath(arg) => self.put(arg, Moment::Entry, Vec::new()),
                When::Zero => self.result = 0,
                When::NotNull(_) | When::AtOnce | When::OfBytes => {}
            }
        }
        self
    }

    /// Makes the sources readable, with content made from `n`.
    fn sources(mut self, sources: &[Source], n: u64) -> Self {
        let bytes = |len: usize| n.to_le_bytes().into_iter().cycle().take(len).collect::<Vec<u8>>();
        for source in sources {
            match *source {
                Source::In(arg) | Source::InAbsolute(arg) | Source::ArgAndIn(_, arg)
                    if !self.has(arg, Moment::Entry) =>
                {
                    self.put(arg, Moment::Entry, [b"/", &bytes(32)[..]].concat());
                }
                Source::Out(arg) | Source::OutBut(arg, ..) | Source::OutStart(arg, _) | Source::OutStr(arg)
                    if !self.has(arg, Moment::Exit) =>
                {
                    self.put(arg, Moment::Exit, bytes(160));
                }
                Source::Result | Source::ResultMask(_) | Source::ArgAndResult(_) => {
                    self.result = n as i64 * 1024;
                }
                Source::Fd(arg) => self.set(arg, FD),
                Source::Path { at, path } => {
                    if let Some(at) = at {
                        self.set(at, AT_FDCWD as u32 as u64);
                    }
                    if !self.has(path, Moment::Entry) {
                        self.put(path, Moment::Entry, format!("/srv/box/{n}").into_bytes());
                    }
                }
                _ => {}
            }
        }
        self
    }
}

/// Returns a recording with one window of one thread that shows these calls.
fn recording(calls: &[Made]) -> Recording {
    let mut recording = Recording::default();
    recording.header.own_cpu_ns = Some(1_000_000);
    recording.processes.push(Process {
        exe: "/bin/app".into(),
        instances: 1,
        main_at_ns: Some(1),
        ..Process::default()
    });
    recording.stacks.push(Stack::default());
    let mut shown = Vec::new();
    for (at, made) in calls.iter().enumerate() {
        let syscall = Sysno::from_name(made.name).unwrap();
        let place = recording.rows.iter().position(|row| row.syscall == syscall).unwrap_or_else(|| {
            let counts = Counts { toll_ns: Some(0), waited_ns: Some(0), ..Counts::default() };
            let (process, context, outer) = (ProcessId(0), StackId(0), StackId(0));
            let row = Row { context, outer, ..Row::new(process, syscall, counts) };
            recording.rows.push(row);
            recording.rows.len() - 1
        });
        recording.rows[place].counts.calls += 1;
        let data =
            |(arg, at, bytes): &(u8, Moment, Vec<u8>)| ArgData { arg: *arg, at: *at, bytes: bytes.clone(), cut: false };
        shown.push(WindowCall {
            row: RowId(place as u32),
            // The number is not 1: a detector leaves out the first call of a window, not the first of its row.
            nth: recording.rows[place].counts.calls + 1,
            args: made.args,
            data: made.data.iter().map(data).collect(),
            fd: Some(Arc::from("/srv/box/file")),
            result: Some(made.result),
            entry_ns: 1_000 * (at as u64 + 1),
            elapsed_ns: 100,
            waited_ns: Some(made.waited),
            ..WindowCall::default()
        });
    }
    recording.rows.iter_mut().for_each(|row| row.counts.calls += 1);
    recording.windows.push(Window { process: ProcessId(0), thread: 0, row: RowId(0), octave: 4, calls: shown });
    recording
}

/// Returns for each call the kind of its claim, and true if the claim is weak.
fn claimed(calls: &[Made]) -> Vec<Option<(Kind, bool)>> {
    let recording = recording(calls);
    let claims = claims(&recording, &Semantics::new(), &crate::Options::default());
    let kind = |judged| if let Judged::Claimed(claim) = judged { Some((claim.kind, claim.weak)) } else { None };
    claims.iter().map(kind).collect()
}

/// Returns the number of calls of that name with a strong claim of one of the kinds.
fn sure(calls: &[Made], name: &str, kinds: &[Kind]) -> usize {
    let is = |(made, kind): &(&Made, Option<(Kind, bool)>)| {
        made.name == name && kind.is_some_and(|(kind, weak)| !weak && kinds.contains(&kind))
    };
    calls.iter().zip(claimed(calls)).filter(is).count()
}

/// Returns the number of calls of that name with a claim of one of the kinds.
fn count(calls: &[Made], name: &str, kinds: &[Kind]) -> usize {
    let is = |(made, kind): &(&Made, Option<(Kind, bool)>)| {
        made.name == name && kind.is_some_and(|(kind, _)| kinds.contains(&kind))
    };
    calls.iter().zip(claimed(calls)).filter(is).count()
}

/// Returns a line's call and conditions with the test's calls, for a message.
fn told(call: &str, when: &[When], calls: &[Made]) -> String {
    let of = |made: &Made| format!("{}{:x?} = {}", made.name, made.args, made.result);
    format!("{call} where {when:?}: {:#?}", calls.iter().map(of).collect::<Vec<_>>())
}

fn rounds(round: impl Fn(u64) -> Vec<Made>) -> Vec<Made> {
    (0..ROUNDS).flat_map(round).collect()
}

const HALF: usize = ROUNDS as usize / 2;
const ASKED: &[Kind] = &[Kind::Repeat, Kind::Failing, Kind::SlowPath];
/// Kinds of claim on a repeated set. A repeated flush is claimed as a wait for the disk.
const SET: &[Kind] = &[Kind::NoOp, Kind::Toggle, Kind::Blocking];

/// Returns a call that fits a line, with an answer or value made from `n`; a refused call for a line
/// of attempts.
fn asks(line: &StateLine, n: u64) -> Made {
    let made = Made::new(line.call).when(line.when).sources(line.key, 7);
    match line.act {
        Act::Ask(answer) => made.sources(answer, n),
        Act::Try => Made { result: -13 - n as i64, ..made },
        Act::Set { value, old, how, .. } => {
            let mut made = made.sources(&[value], n);
            if let Source::Arg(arg) | Source::ArgMask(arg, _) = value
                && !line.when.iter().any(|test| matches!(test, When::Is(of, _) | When::Null(of) if *of == arg))
            {
                made.set(arg, n);
                // The result of setting a position is the position.
                made.result = if line.call == "lseek" { n as i64 } else { 0 };
            }
            if let Some(Source::Result) = old {
                made.result = n as i64;
            }
            if let (Some(Source::Out(out)), Source::In(arg)) = (old, value) {
                let was = made.data.iter().find(|(of, at, _)| (*of, *at) == (arg, Moment::Entry)).unwrap().2.clone();
                // Bits that the call removes were not set before.
                let was = if how == How::Remove { vec![0; was.len()] } else { was };
                made.put(out, Moment::Exit, was);
            }
            made
        }
    }
}

#[test]
fn a_question_asked_again_is_claimed_and_one_whose_answer_changes_is_not() {
    for line in STATE_LINES.iter().filter(|line| matches!(line.act, Act::Ask(_))) {
        let again = rounds(|_| vec![asks(line, 1)]);
        assert!(count(&again, line.call, ASKED) >= HALF, "{}", told(line.call, line.when, &again));
        let changes = rounds(|n| vec![asks(line, n + 1)]);
        assert_eq!(count(&changes, line.call, ASKED), 0, "changes: {}", told(line.call, line.when, &changes));
        assert_eq!(count(&[asks(line, 1)], line.call, ASKED), 0, "once: {}", line.call);
    }
}

/// Returns the call of [`asks`] about another object; `None` if there is only one.
fn another(line: &StateLine, n: u64) -> Option<Made> {
    let mut made = asks(line, 2);
    let mut differs = false;
    for source in line.key {
        match *source {
            Source::Fd(arg) => made.set(arg, FD + n),
            Source::Arg(arg) if !line.when.iter().any(|test| is_of(test, arg)) => made.set(arg, LENGTH * (n + 1)),
            Source::Path { path, .. } => made.put(path, Moment::Entry, format!("/srv/box/{n}").into_bytes()),
            _ => continue,
        }
        differs = true;
    }
    differs.then_some(made)
}

#[test]
fn what_is_set_to_something_else_or_of_something_else_or_in_vain_changes_something() {
    let no_change = &[Kind::NoOp];
    let sets = |line: &&StateLine| matches!(line.act, Act::Set { value, .. } if !matches!(value, Source::Unread));
    for line in STATE_LINES.iter().filter(sets).filter(|line| !tells_old(line)) {
        let Act::Set { value, .. } = line.act else { continue };
        let is_named = |arg: u8| !line.when.iter().any(|test| is_of(test, arg));
        let varies = match value {
            Source::In(arg) => !is_told(line, arg),
            Source::InAbsolute(_) => true,
            Source::Arg(arg) => is_named(arg),
            _ => false,
        };
        if varies {
            let others = rounds(|n| vec![asks(line, n + 2)]);
            assert_eq!(count(&others, line.call, no_change), 0, "others: {}", told(line.call, line.when, &others));
        }
        if another(line, 0).is_some() {
            let things = rounds(|n| another(line, n).into_iter().collect());
            assert_eq!(count(&things, line.call, no_change), 0, "things: {}", told(line.call, line.when, &things));
        }
        let fails = rounds(|_| vec![Made { result: -13, ..asks(line, 2) }]);
        assert_eq!(count(&fails, line.call, no_change), 0, "fails: {}", told(line.call, line.when, &fails));
    }
}

#[test]
fn what_is_set_to_what_it_is_is_claimed_and_what_is_set_to_something_else_is_not() {
    let sets = |line: &&StateLine| matches!(line.act, Act::Set { value, .. } if !matches!(value, Source::Unread));
    for line in STATE_LINES.iter().filter(sets) {
        let again = rounds(|_| vec![asks(line, 2)]);
        if always_changes(line) {
            assert_eq!(count(&again, line.call, SET), 0, "{}", told(line.call, line.when, &again));
            continue;
        }
        assert!(count(&again, line.call, SET) >= HALF, "{}", told(line.call, line.when, &again));
        assert_eq!(
            count(&[asks(line, 2)], line.call, &[Kind::NoOp]).min(1),
            usize::from(tells_old(line)),
            "{}",
            line.call
        );
    }
}

/// Returns true if a condition of the line describes the data that an argument points to.
fn is_told(line: &StateLine, arg: u8) -> bool {
    line.when.iter().any(|test| {
        matches!(test, When::InNoBits(of, _) | When::InAnyBits(of, _) | When::InZeros(of) | When::InTimes(of) if *of == arg)
    })
}

/// Returns true if the call succeeds only if it changes something.
fn always_changes(line: &StateLine) -> bool {
    matches!(line.act, Act::Set { old: Some(Source::Unread | Source::Nothing), .. })
}

/// Returns true if a single call shows the value from before, so that one call is enough for a
/// claim.
fn tells_old(line: &StateLine) -> bool {
    matches!(line.act, Act::Set { old, value, .. } if old.is_some() || matches!(value, Source::Arg(1)) && line.call == "rt_sigprocmask")
}

/// Returns calls that make a thing and end it; its description is made from `n`.
fn life(thing: &Thing, n: u64, handle: u64) -> Vec<Made> {
    let mut makes = Made::new(thing.makes).sources(thing.sort, n).when(thing.when);
    for source in thing.sort {
        match *source {
            Source::Arg(arg) if !thing.when.iter().any(|test| is_of(test, arg)) => makes.set(arg, LENGTH * n),
            Source::Args(args) => makes.set(args - 1, makes.args[usize::from(args) - 1] + n),
            _ => {}
        }
    }
    if let Some(arg) = thing.file {
        makes.set(arg, FD);
    }
    match thing.handle {
        Handle::Result => makes.result = handle as i64,
        Handle::Out32(arg) => makes.put(arg, Moment::Exit, (handle as u32).to_le_bytes().to_vec()),
        Handle::Out64(arg) => makes.put(arg, Moment::Exit, handle.to_le_bytes().to_vec()),
        Handle::OutTwo(arg) => {
            makes.put(arg, Moment::Exit, [handle as u32, handle as u32 + 1].map(u32::to_le_bytes).concat());
        }
        Handle::Arg(arg) => makes.set(arg, handle),
    }
    let mut ends = Made::new(thing.ends.call).when(thing.ends.when);
    ends.set(0, makes.args[0]);
    ends.set(thing.ends.handle, handle);
    if let Some((arg, of)) = thing.ends_length {
        ends.set(arg, makes.args[usize::from(of)]);
    }
    let two = matches!(thing.handle, Handle::OutTwo(_)).then(|| {
        let mut other = ends.clone();
        other.set(thing.ends.handle, handle + 1);
        other
    });
    // Some things count only if data went through them: send a datagram.
    let sends = thing.used.then(|| {
        let mut send = Made::new("sendto");
        (send.args, send.result) = ([handle, POINTER, 2000, 0, 0, 0], 2000);
        send
    });
    // A thing with a path is written, read back and unlinked.
    let named = thing.unnamed_by.first().map(|unlink| {
        let path = if thing.makes == "open" { 0 } else { 1 };
        let name = format!("/srv/box/scratch{handle}").into_bytes();
        makes.put(path, Moment::Entry, name.clone());
        let moves = |call| {
            let mut moved = Made::new(call);
            (moved.args, moved.result) = ([handle, POINTER, 2000, 0, 0, 0], 2000);
            moved
        };
        let mut away = Made::new(unlink);
        away.put(0, Moment::Entry, name);
        vec![moves("write"), moves("read"), away]
    });
    std::iter::once(makes).chain(sends).chain(named.into_iter().flatten()).chain([ends]).chain(two).collect()
}

fn is_of(test: &When, arg: u8) -> bool {
    matches!(test, When::Is(of, _) | When::OneOf(of, _) | When::AnyBits(of, _) | When::AllBits(of, _) | When::NoBits(of, _)
        if *of == arg)
}

/// Returns a call that is unrelated to all others.
fn work(n: u64) -> Made {
    let mut write = Made::new("pwrite64");
    (write.args, write.result) = ([77, POINTER, LENGTH, LENGTH * 3 * n, 0, 0], LENGTH as i64);
    write
}

#[test]
fn what_is_made_and_given_up_again_and_again_is_claimed_and_what_is_kept_or_differs_is_not() {
    let again = &[Kind::Toggle];
    for thing in THINGS {
        let both = |calls: &[Made]| count(calls, thing.makes, again) + count(calls, thing.ends.call, again);
        let calls = rounds(|_| life(thing, 1, 0x9000));
        assert!(both(&calls) >= 2 * HALF, "{}", told(thing.makes, thing.when, &calls));
        let turns = rounds(|n| life(thing, 1, 0x9000 + n % 3 * 0x1000));
        assert!(both(&turns) >= 2 * HALF, "in turns: {}", told(thing.makes, thing.when, &turns));
        let kept = rounds(|n| life(thing, 1, 0x9000 + n * 0x10_0000)[..1].to_vec());
        assert_eq!(both(&kept), 0, "kept: {}", told(thing.makes, thing.when, &kept));
        let ended = rounds(|n| life(thing, 1, 0x9000 + n * 0x10_0000).split_off(1));
        assert_eq!(both(&ended), 0, "ended: {}", told(thing.makes, thing.when, &ended));
        let other = rounds(|n| life(thing, n + 1, 0x9000));
        let tells =
            thing.sort.iter().any(|s| !matches!(s, Source::Arg(arg) if thing.when.iter().any(|t| is_of(t, *arg))));
        if tells {
            assert_eq!(both(&other), 0, "another each time: {}", told(thing.makes, thing.when, &other));
        }
        let around = |between: Vec<Made>| {
            let mut calls = life(thing, 1, 0x9000);
            calls.splice(1..1, between);
            calls
        };
        let child = rounds(|_| around(vec![Made { result: 4711, ..Made::new("fork") }]));
        assert_eq!(both(&child), 0, "a child has it: {}", told(thing.makes, thing.when, &child));
        let used = rounds(|n| around((0..=thing.life as u64).map(|at| work(n * 100 + at)).collect()));
        // A mapping or an interest that is made anew right after it ended is claimed however long it held.
        assert!(thing.file.is_some() || both(&used) == 0, "used for long: {}", told(thing.makes, thing.when, &used));
    }
}

/// Returns a call for the `n`th range of `length` bytes, `gap` bytes behind the one before.
fn piece(line: &Ranged, n: u64, length: u64, gap: u64) -> Made {
    let mut made = Made::new(line.call).when(line.when);
    let from = n * (length + gap);
    if let Some(file) = line.file {
        made.set(file, FD);
    }
    made.set(line.length, length);
    match line.from {
        RangeFrom::Arg(arg) => made.set(arg, POINTER + from),
        RangeFrom::In(arg) => made.put(arg, Moment::Entry, from.to_le_bytes().to_vec()),
        RangeFrom::Before(arg) => made.set(arg, POINTER + from + length),
        RangeFrom::Size(was, is) => {
            made.set(was, POINTER + from);
            made.set(is, POINTER + from + length);
        }
    }
    made.result = if line.counts { length as i64 } else { 0 };
    made
}

#[test]
fn neighbouring_ranges_in_small_pieces_are_claimed_and_others_are_not() {
    let small = &[Kind::SmallIo];
    for line in RANGED {
        // A line whose `small` is 0 knows no small pieces: it makes remarks only.
        let one = if line.small == 0 { 4096 } else { 4096.min(line.small) };
        let calls = rounds(|n| vec![piece(line, n, one, 0)]);
        // A size that the next call overwrites is claimed as a toggle.
        assert!(
            count(&calls, line.call, &[Kind::SmallIo, Kind::Toggle]) >= HALF,
            "{}",
            told(line.call, line.when, &calls)
        );
        if line.is_of_size() {
            // What a block of memory gains has no place, and is large beside the block alone: a text case has that.
            continue;
        }
        let apart = rounds(|n| vec![piece(line, n, one, 2 * line.small.max(one))]);
        assert_eq!(count(&apart, line.call, small), 0, "apart: {}", told(line.call, line.when, &apart));
        let large = rounds(|n| vec![piece(line, n, line.small + 4096, 0)]);
        assert_eq!(sure(&large, line.call, small), 0, "large: {}", told(line.call, line.when, &large));
        let mut wait = Made::new("poll");
        (wait.args[2], wait.result, wait.waited) = (u64::MAX, 1, 1_000);
        let waits = rounds(|n| vec![piece(line, n, one, 0), wait.clone()]);
        assert_eq!(count(&waits, line.call, small), 0, "waits between: {}", told(line.call, line.when, &waits));
        let few: Vec<Made> = (0..3).map(|n| piece(line, n, one, 0)).collect();
        assert_eq!(count(&few, line.call, small), 0, "few: {}", told(line.call, line.when, &few));
        if line.counts {
            let short = rounds(|n| vec![Made { result: one as i64 / 2, ..piece(line, n, one, 0) }]);
            assert_eq!(count(&short, line.call, small), 0, "took less: {}", told(line.call, line.when, &short));
        }
    }
}

#[test]
fn what_has_a_cheaper_way_is_claimed() {
    for line in CHEAPER {
        let calls = rounds(|_| vec![Made::new(line.call).when(line.when)]);
        assert!(
            count(&calls, line.call, &[Kind::SlowPath, Kind::BusyPoll]) >= HALF,
            "{}",
            told(line.call, line.when, &calls)
        );
        if line.when.iter().any(|test| matches!(test, When::AtOnce)) {
            let waits = rounds(|_| vec![Made { waited: 50_000, ..Made::new(line.call).when(line.when) }]);
            assert_eq!(count(&waits, line.call, &[Kind::SlowPath]), 0, "it waits: {}", line.call);
        }
    }
}

/// Returns a call that breaks the condition `broken` of a line; `None` for a condition that this
/// test can't break.
fn but(line: &[When], call: &'static str, broken: &When) -> Option<Made> {
    let mut made = Made::new(call).when(line);
    match *broken {
        When::Is(arg, value) => made.set(arg, u64::from(value) + 1),
        When::OneOf(arg, _) => made.set(arg, 99),
        When::Null(arg) => made.set(arg, 4_096),
        When::Above(arg, least) => made.set(arg, least.into()),
        When::Negative(arg) => made.set(arg, 99),
        When::AllBits(arg, bits) => made.set(arg, made.args[usize::from(arg)] & !u64::from(bits)),
        When::InZero(arg) => made.put(arg, Moment::Entry, [[0; 8], 40_000_000_u64.to_le_bytes()].concat()),
        _ => return None,
    }
    Some(made)
}

#[test]
fn what_lacks_one_thing_that_makes_another_way_cheaper_is_not_claimed() {
    for line in CHEAPER {
        for made in line.when.iter().filter_map(|broken| but(line.when, line.call, broken)) {
            let calls = rounds(|_| vec![made.clone()]);
            assert_eq!(sure(&calls, line.call, &[Kind::SlowPath]), 0, "{}", told(line.call, line.when, &calls));
        }
    }
}

/// Returns the two calls of a sequel, about the same object if `tied` is true.
fn sequel(line: &Sequel, n: u64, tied: bool) -> Vec<Made> {
    let mut first = Made::new(line.first).when(line.when);
    let mut second = Made::new(line.then[0]).when(line.then_when);
    match line.tie {
        Tie::Descriptor => {
            (first.args[0], second.args[0]) = (FD, if tied { FD } else { FD + 1 });
            (first.result, second.result) = (0, 4096);
            (second.args[1], second.args[2]) = (POINTER, 4096);
            if line.first == "recvfrom" {
                first.args[2] = 4096;
            }
            if line.first == "lseek" {
                (first.args[1], first.result) = (4096 * (7 * n + 3), 4096 * (7 * n as i64 + 3));
            }
        }
        Tie::Process => (first.args[0], second.args[0]) = (100, if tied { 100 } else { 200 }),
        Tie::Interest => (first.args[2], second.args[2]) = (FD, if tied { FD } else { FD + 1 }),
        Tie::Made => {
            first.result = 9;
            second.args[0] = if tied { 9 } else { 8 };
        }
        Tie::Path | Tie::Question => {
            let name = |made: &mut Made, n: u64| {
                let arg = Sysno::from_name(made.name).unwrap().signature().unwrap();
                let Some(at) = arg.path_arg() else {
                    made.set(0, made.args[0] + FD + n % 50);
                    return;
                };
                let at = at as u8;
                if at > 0 {
                    made.set(0, AT_FDCWD as u32 as u64);
                }
                made.put(at, Moment::Entry, format!("/srv/box/{n}").into_bytes());
            };
            name(&mut first, n);
            name(&mut second, if tied { n } else { n + 125 });
            second.result = 9;
            if line.tie == Tie::Question {
                first.result = 9;
                (second.args[2], second.args[3]) = (POINTER, 256);
            }
        }
    }
    if let Some(errno) = line.refusal {
        first.result = -i64::from(errno.0);
    }
    vec![first, second]
}

#[test]
fn what_the_next_call_tells_or_does_is_claimed_where_it_is_of_the_same_thing() {
    for line in SEQUELS {
        let spare = if line.spare == Spare::First { line.first } else { line.then[0] };
        let slow = &[Kind::SlowPath];
        let calls = rounds(|n| sequel(line, n, true));
        assert!(count(&calls, spare, slow) >= HALF, "{}", told(line.first, line.when, &calls));
        let apart = rounds(|n| sequel(line, n, false));
        assert_eq!(count(&apart, spare, slow), 0, "not tied: {}", told(line.first, line.when, &apart));
        let alone = rounds(|n| sequel(line, n, true)[..1].to_vec());
        assert_eq!(count(&alone, spare, slow), 0, "alone: {}", told(line.first, line.when, &alone));
    }
}
