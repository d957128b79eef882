//! Detects many small transfers where one would do (missed coalescing).

use super::awake::{Bells, Rung, Within};
use super::mapped::File;
use super::terminal::{at_once, ends_line, is_news, is_piece, is_terminal};
use crate::causes::fact::{Fact, Facts};
use crate::collections::hash::{Map, Set};
use crate::evidence::claim::{Claim, Claims, Detector, leave_out_later, put};
use crate::reasons::ReasonId;
use crate::results::finding::Kind;
use crate::semantics::{
    Act, COUNTERS, DATAGRAMS, FileLock, Lines, ObservedCall, PIPES, POSITION, RANDOM_FILES, SYNCED, Semantics, Unit,
    Way, is_stored,
};
use crate::world::barrier::Barrier;
use crate::world::replay::{Moved, Step};
use std::sync::Arc;
use systoll_model::{Class, Recording, Sysno, WindowCall};

/// Largest mean size of a small transfer, bytes.
const SMALL: u64 = 512;
/// Size of a buffer that one transfer could well have moved, bytes.
const BUFFER: u64 = 4096;
/// Number of messages that one call can move.
const BATCH: u64 = 64;
/// Size of a pool of random bytes, bytes: getrandom returns up to 256 uninterrupted (man 2).
const POOL: u64 = 256;
/// Largest request for random bytes that counts as small, bytes: an id of 128 bits and some more. What asks for a key (32
/// bytes and more) may not want it to wait in memory.
const FEW: u64 = 24;
/// Least number of transfers in a long run.
const LONG: usize = 8;
/// Least number of transfers in a run that an edge of the window cuts, so that it may be longer.
const LONG_CUT: usize = 4;
/// Least number of reads of a terminal in a run that goes on beyond both ends of the window. Other calls may stand
/// around each read, as in a shell that sets the terminal's mode for every key.
const LONG_ACROSS: usize = 3;
/// Least number of short runs in a window for a habit.
const SHORT_RUNS: usize = 3;
/// Least number of short runs seen whole.
const WHOLE: usize = 2;
/// Largest number of transfers in a short run.
const SHORT: usize = 7;

/// Least time in which another process answers, ns.
const ANSWER_NS: f64 = 2_000.0;

/// Standard output and error, which the program's parent opened.
const GIVEN: std::ops::RangeInclusive<i32> = 1..=2;

/// Claims transfers that could have been joined with the one before.
pub(super) struct SmallIo<'a> {
    bells: Bells<'a>,
    /// True if watching stops the program for so long that a reader may answer its output in the meantime.
    stops: bool,
    /// Processes that ended themselves by a signal: their last write to a file may be the only trace of it.
    killed: Set<u32>,
    /// Processes with one thread, in which no other thread waits for what the process writes to itself.
    single: &'a Set<u32>,
    /// Processes to which others send signals all the time: what these write into a pipe may be the answer to one.
    signalled: &'a Set<u32>,
    /// Files that the program maps: it may read there what it writes.
    mapped: &'a Set<File>,
    /// Pipes that several processes read.
    shared: Set<&'a str>,
}

impl<'a> SmallIo<'a> {
    pub(super) fn new(
        rung: &Rung<'a>,
        (recording, semantics): (&'a Recording, &Semantics),
        mapped: &'a Set<File>,
        signalled: &'a Set<u32>,
        single: &'a Set<u32>,
    ) -> Self {
        let stops = recording.header.observer_wall_ns_per_call > ANSWER_NS;
        let shared = read_by_several(recording, semantics);
        Self { bells: Bells::new(rung), stops, single, killed: killed(recording), signalled, mapped, shared }
    }

    /// Returns true if a write to a terminal may have been answered before the program could read on.
    fn answered(&self, step: &Step<'_>, stream: Stream) -> bool {
        let shows = step.moved.is_some_and(|m| m.line.way == Way::Out) && is_terminal(step);
        stream.terminal && stream.way == Way::In && shows && (self.stops || step.observed.call.waited_ns.is_none())
    }
}

/// Returns the processes that sent a signal which none of their threads survived: a call that sends one did not return.
fn killed(recording: &Recording) -> Set<u32> {
    let sends = |syscall: Sysno| {
        let signature = syscall.signature().filter(|signature| !signature.never_returns);
        signature.is_some_and(|signature| {
            [Class::Signal, Class::Process].iter().all(|class| signature.classes.contains(*class))
        })
    };
    let counted = recording.rows.iter().filter(|row| row.counts.unreturned > 0 && sends(row.syscall));
    // Other tools' traces count no calls that don't return, and show the last one.
    let fatal = |call: &WindowCall| call.result.is_none() && sends(recording.row(call.row).syscall);
    let last = recording.windows.iter().filter(|window| window.calls.last().is_some_and(fatal));
    counted.map(|row| row.process.0).chain(last.map(|window| window.process.0)).collect()
}

/// Returns the pipes from which several processes read, as windows show.
fn read_by_several<'a>(recording: &'a Recording, semantics: &Semantics) -> Set<&'a str> {
    let mut readers: Map<&str, u32> = Map::default();
    let mut several = Set::default();
    if recording.processes.len() < 2 {
        return several;
    }
    let reads = |observed: &ObservedCall<'_>| {
        let moved = semantics.lines_of(observed.syscall).transfer(observed);
        moved.is_some_and(|line| line.way == Way::In) && observed.call.result.is_some_and(|got| got > 0)
    };
    for observed in semantics.calls_in_windows(recording, Lines::transfers_in).filter(reads) {
        let Some(pipe) = observed.call.fd.as_deref().filter(|name| name.starts_with(PIPES)) else { continue };
        if *readers.entry(pipe).or_insert(observed.window.process.0) != observed.window.process.0 {
            several.insert(pipe);
        }
    }
    several
}

/// Transfers in one direction through one descriptor, with nothing in between that requires them to be separate.
#[derive(Default)]
struct Run {
    steps: Vec<usize>,
    bytes: u64,
    message: bool,
    /// The offset at which the next transfer would begin, if the calls give offsets.
    next: Option<u64>,
    /// True if the window begins within the run.
    cut: bool,
    /// Number of inputs opened before the last transfer.
    inputs: usize,
    /// Number of transfers before which an input was opened.
    results: usize,
    /// True if another thread of the process is at the other end.
    within: bool,
    /// True if the transfers are datagrams between programs of this box, which may count them.
    local: bool,
    /// True if the run writes to a file, from a process that ended itself.
    last_words: bool,
    /// True if the last transfer ended a line.
    line: bool,
    /// True if data went the other way after the run's last transfer.
    answered: bool,
}

impl Run {
    /// Returns true if the step reads, through another descriptor, the file that the run writes: the reader wants each
    /// piece as soon as it is there.
    fn is_read_by(&self, stream: Stream, step: &Step<'_>, steps: &[Step<'_>]) -> bool {
        let reads =
            step.moved.is_some_and(|moved| moved.line.way == Way::In && moved.fd != stream.fd && moved.got > Some(0));
        let file = |step: &Step<'_>| step.observed.call.fd.clone().filter(|_| is_file(step));
        let written = || self.steps.last().and_then(|at| steps.get(*at)).and_then(file);
        reads && stream.way == Way::Out && file(step).is_some_and(|file| written().as_ref() == Some(&file))
    }
}

/// One direction through one descriptor.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Stream {
    fd: Option<i32>,
    way: Way,
    /// True if a terminal is at the other end.
    terminal: bool,
    /// True if the transfers read a stored file, of which one transfer can get what later ones would, whatever happens in between.
    stored: bool,
}

impl Stream {
    fn of(step: &Step<'_>, moved: &Moved) -> Self {
        let (way, terminal) = (moved.line.way, is_terminal(step));
        Self {
            fd: moved.fd,
            way,
            terminal,
            stored: way == Way::In && !terminal && step.observed.call.fd.as_deref().is_some_and(is_stored),
        }
    }

    /// Returns true if short runs, again and again, are a habit worth changing. On a terminal only the pieces of a
    /// line are: a key may be several bytes, and a prompt several writes.
    fn counts(self, run: &Run, cut: bool) -> bool {
        !self.terminal || self.way == Way::Out && (run.line || cut)
    }
}

impl Detector for SmallIo<'_> {
    fn window(&mut self, steps: &[Step<'_>], claims: &mut Claims) {
        let mut runs: Map<Stream, Run> = Map::default();
        let mut habits: Map<Stream, Habit> = Map::default();
        let mut end = |stream: Stream, run: Run, cut: bool, claims: &mut Claims| {
            let claimed = run.claim(stream, cut, steps, claims);
            if stream.counts(&run, cut) {
                habits.entry(stream).or_default().add(run, cut, claimed);
            }
        };
        let mut inputs = 0;
        // The good reasons for which the newest runs ended.
        let mut apart: Map<Stream, ReasonId> = Map::default();
        // Descriptors by which a file is locked.
        let mut locked: Set<i32> = Set::default();
        for (at, step) in steps.iter().enumerate() {
            let lock = step.line::<FileLock>().filter(|_| step.observed.call.errno().is_none());
            if lock.is_some_and(|lock| !lock.leaves) {
                locked.insert(step.observed.descriptor(0));
            }
            // Closing the file leaves the lock too.
            let unlocked = step.descriptor().is_some_and(|fd| step.lets_go(fd) && locked.remove(&fd));
            inputs += usize::from(step.opened.as_ref().is_some_and(|opened| !opened.writes));
            // Mostly there is no run that the step could end.
            if !runs.is_empty() {
                let answered = runs.keys().filter(|stream| self.answered(step, **stream));
                let answered = answered.map(|stream| (*stream, None));
                let outputs = runs.keys().filter(|stream| unlocked && stream.way == Way::Out);
                let outputs = outputs.map(|stream| (*stream, Some(ReasonId::UnlockedBetween)));
                let read_back = runs.iter().filter(|(stream, run)| run.is_read_by(**stream, step, steps));
                let read_back = read_back.map(|(stream, _)| (*stream, Some(ReasonId::ReadBack)));
                let more: Vec<_> = answered.chain(outputs).chain(read_back).collect();
                let (why, streams) = ended(step, runs.keys());
                let all = streams.into_iter().map(|stream| (stream, why)).chain(more);
                for (stream, why) in all.collect::<Vec<_>>() {
                    let is_off = why.is_some_and(|why| claims.is_off(why));
                    if let Some(mut run) = if is_off { None } else { runs.remove(&stream) } {
                        run.answered = why == Some(ReasonId::DataBetween);
                        apart.extend(why.map(|why| (stream, why)));
                        end(stream, run, false, claims);
                    }
                }
            }
            let Some(moved) = &step.moved else { continue };
            if let Some(claim) = random(step, moved) {
                put(claims, step.index, claim);
            } else if ordinary(step, moved) {
                let within = self.bells.carried(&step.observed);
                if claims.excuse(at, ReasonId::WakesThread, within == Some(Within::Wakes)) {
                    continue;
                }
                let stream = Stream::of(step, moved);
                let file = || step.observed.call.fd.clone().map(|name| (step.observed.window.process.0, name));
                let is_answer = || !is_file(step) && self.signalled.contains(&step.observed.window.process.0);
                let is_out = stream.way == Way::Out;
                let is_mapped = is_out && file().is_some_and(|file| self.mapped.contains(&file));
                if claims.excuse(at, ReasonId::MappedFile, is_mapped) || is_out && is_answer() {
                    continue;
                }
                let pipe = step.observed.call.fd.as_deref().filter(|_| !is_out);
                if claims.excuse(at, ReasonId::ReadOn, pipe.is_some_and(|pipe| self.shared.contains(pipe))) {
                    continue;
                }
                if let Some(why) = apart.remove(&stream) {
                    claims.excuse(at, why, moved.got.is_some_and(|got| got <= SMALL));
                }
                let position = moved.line.at.map(|a| step.observed.arg(a));
                let over = |r: &Run| {
                    r.next != position || came_later(step, moved) || stream.terminal && r.is_over(step, steps)
                };
                if runs.get(&stream).is_some_and(over) {
                    let run = runs.remove(&stream);
                    run.into_iter().for_each(|run| end(stream, run, false, claims));
                }
                // A run whose first step is the window's may continue one from before the window.
                let new = || Run { message: is_message(step, moved), cut: at == 0, inputs, ..Run::default() };
                let run = runs.entry(stream).or_insert_with(new);
                let file = is_file(step);
                run.within |= within.is_some() && !self.single.contains(&step.observed.window.process.0);
                run.local |= step.observed.call.fd.as_deref().is_some_and(|name| name.starts_with("UNIX"));
                run.last_words |= file && self.killed.contains(&step.observed.window.process.0);
                run.line = stream.terminal && ends_line(step, moved);
                run.add(at, moved, position, inputs);
            }
        }
        let mut left: Vec<(Stream, Run)> = runs.drain().collect();
        left.sort_by_key(|(_, run)| run.steps.first().copied());
        for (stream, run) in left {
            end(stream, run, true, claims);
        }
        for (stream, habit) in habits {
            habit.claim(stream, steps, claims);
        }
    }
}

/// Short runs through one descriptor.
#[derive(Default)]
struct Habit {
    /// Runs that have no claims yet; the window's edge may cut them.
    runs: Vec<Run>,
    /// Number of runs seen whole.
    whole: usize,
    /// Number of runs of two or more transfers seen in part.
    part: usize,
    /// Number of runs that are one transfer.
    ones: usize,
    /// Number of runs of two or more transfers after which data went the other way.
    answered: usize,
}

impl Habit {
    /// Adds a run that ended, by the window's end if `cut`; `claimed` is true if its claims are made.
    fn add(&mut self, run: Run, cut: bool, claimed: bool) {
        let (n, in_part) = (run.steps.len(), run.cut || cut);
        match n {
            1 => self.ones += usize::from(!in_part),
            2..=SHORT if run.small() && in_part => self.part += 1,
            2..=SHORT if run.small() => self.whole += 1,
            _ => return,
        }
        self.answered += usize::from(n > 1 && run.answered);
        if !claimed && (n > 1 || run.cut) {
            self.runs.push(run);
        }
    }

    fn claim(&self, stream: Stream, steps: &[Step<'_>], claims: &mut Claims) {
        let all = self.whole + self.part;
        if self.whole < WHOLE || all < SHORT_RUNS || all < 9 * self.ones {
            return;
        }
        // A buffer that held more than one message would keep its reader from answering.
        let in_parts = stream.way == Way::Out && 2 * self.answered >= all;
        for run in &self.runs {
            for at in run.steps.iter().skip(1) {
                let weak = run.weak(*at, stream, claims);
                put_small(*at, (weak, in_parts), stream, steps, claims);
            }
            // The window does not show whether the run's first transfer is really its first.
            if let Some(step) = run.steps.first().filter(|_| run.cut).and_then(|at| steps.get(*at)) {
                leave_out_later(step, claims);
            }
        }
    }
}

/// Returns the runs that the step ends, since its data or its question separates the transfers
/// before it from those after it; and the good reason for that, if it is one.
fn ended<'p>(step: &Step<'_>, streams: impl Iterator<Item = &'p Stream> + Clone) -> (Option<ReasonId>, Vec<Stream>) {
    let every = |test: &dyn Fn(&Stream) -> bool| streams.clone().filter(|p| test(p)).copied().collect::<Vec<_>>();
    if step.lets(Barrier::SIGNALLED) || step.pauses && ready_at_once(step) {
        // A signal tells the program something, as data does that was there already: what was written may have been
        // waited for.
        return (Some(ReasonId::SignalBetween), every(&|p| p.way == Way::Out));
    }
    // A program that sleeps before each transfer makes each when it is due.
    if step.lets(Barrier::WAITS) || step.lets(Barrier::POLLED) && step.observed.call.waited_ns != Some(0) {
        return (Some(ReasonId::WaitedBetween), every(&|p| !p.stored));
    }
    if let Some(moved) = &step.moved {
        let outside = !is_file(step);
        let failed = moved.got.is_none();
        // The end of what can be read; a write of nothing to a stream does nothing (man 2 write).
        let empty = moved.got == Some(0) && (moved.line.way == Way::In || is_message(step, moved));
        let own = Stream::of(step, moved);
        let Stream { fd, way, terminal, .. } = own;
        if terminal && way == Way::In && !at_once(step.observed.call) {
            return (Some(ReasonId::WaitedBetween), every(&|p| !p.stored));
        }
        let random = moved.line.unit == Unit::Random;
        return (
            Some(ReasonId::DataBetween),
            every(&|p| match p.terminal {
                _ if moved.line.unit == Unit::Item => true,
                // Data that is read may be what is written next.
                true if *p != own => p.way == Way::Out && way == Way::In && !random,
                true => !is_piece(step, moved),
                false => {
                    (*p == own && (failed || empty))
                        || (!random && outside && p.way != way && !p.stored)
                        || (p.fd == fd && p.way != way)
                }
            }),
        );
    }
    // The process that takes the lock next may look at what was written under it.
    if step.lets(Barrier::UNLOCKED) {
        return (Some(ReasonId::UnlockedBetween), every(&|p| p.way == Way::Out));
    }
    let set = step.meaning.as_ref().filter(|m| matches!(m.line.act, Act::Set { .. })).map(|m| m.line.about);
    let fd = step.observed.descriptor(0);
    if set.is_some_and(|about| about.is(&SYNCED)) {
        return (Some(ReasonId::StoredBetween), every(&|p| p.way == Way::Out));
    }
    if set.is_some_and(|about| about.is(&POSITION)) {
        return (None, every(&|p| p.fd == Some(fd)));
    }
    (None, every(&|p| p.fd.is_some_and(|fd| step.lets_go(fd) || step.seeks(fd))))
}

/// Returns true if the step waited for descriptors and one was ready already.
fn ready_at_once(step: &Step<'_>) -> bool {
    let call = step.observed.call;
    let waited = call.waited_ns.unwrap_or(call.elapsed_ns);
    step.lines.tells_ready() && call.result.is_some_and(|ready| ready > 0) && waited == 0
}

/// Returns true if the transfer before the step at `at` may lie before the window: no step of the window begins the
/// run.
fn goes_back(at: usize, stream: Stream, steps: &[Step<'_>]) -> bool {
    let opens = |s: &Step<'_>| stream.fd.is_some_and(|fd| s.makes_descriptor(fd));
    let moves = |s: &Step<'_>| s.moved.is_some_and(|m| Stream::of(s, &m) == stream);
    let before = steps.get(..at).unwrap_or_default();
    before.iter().all(|s| ended(s, std::iter::once(&stream)).1.is_empty() && !opens(s) && !moves(s))
}

/// Returns true if the transfer moved a message of its own: no buffer can join two messages.
fn is_message(step: &Step<'_>, moved: &Moved) -> bool {
    let name = step.observed.call.fd.as_deref().unwrap_or_default();
    moved.line.unit == Unit::Message || DATAGRAMS.iter().any(|prefix| name.starts_with(prefix))
}

/// Returns true if the transfer could have been joined with others at all.
fn ordinary(step: &Step<'_>, moved: &Moved) -> bool {
    let file = step.observed.call.fd.as_deref().unwrap_or_default();
    moved.got.is_some_and(|got| got > 0)
        && matches!(moved.line.unit, Unit::Stream | Unit::Message)
        && (!is_terminal(step) || is_piece(step, moved))
        && !file.starts_with(COUNTERS)
        // Data that did not exist yet can't be read together with earlier data.
        && (moved.line.way == Way::Out || moved.asked.is_none_or(|asked| moved.got >= Some(asked)))
}

/// Returns true if the step is about a file with a name.
fn is_file(step: &Step<'_>) -> bool {
    step.observed.call.fd.as_deref().is_some_and(|file| file.starts_with('/'))
}

/// Returns true if the data did not exist when it was asked for, so that no earlier transfer could have taken it.
fn came_later(step: &Step<'_>, moved: &Moved) -> bool {
    moved.line.way == Way::In && !is_file(step) && step.observed.call.waited_ns.is_some_and(|ns| ns > 0)
}

/// Returns a claim if the call asks for a few random bytes, unless a pool would have to be filled for them.
fn random(step: &Step<'_>, moved: &Moved) -> Option<Claim> {
    let file = step.observed.call.fd.as_deref();
    let is_random = moved.line.unit == Unit::Random || file.is_some_and(|f| RANDOM_FILES.contains(&f));
    let asked = moved.asked.filter(|a| is_random && (1..=FEW).contains(a))?;
    let before = step.observed.call.nth.checked_sub(1)?;
    let fills = |calls: u64| calls.saturating_mul(asked).div_ceil(POOL);
    (before > 0 && moved.got.is_some() && fills(before) == fills(before + 1)).then(|| Claim {
        object: file.map(Arc::from),
        gives_up: "random bytes wait in the program's memory, which a fork copies",
        ..Claim::of(
            Kind::SmallIo,
            "asks the kernel for a few random bytes at a time",
            "draw a block of 256 bytes and hand it out, or seed a generator once",
        )
    })
}

impl Run {
    fn add(&mut self, at: usize, moved: &Moved, position: Option<u64>, inputs: usize) {
        self.results += usize::from(inputs > self.inputs);
        self.inputs = inputs;
        let got = moved.got.unwrap_or(0);
        self.steps.push(at);
        self.bytes = self.bytes.saturating_add(got);
        self.next = position.map(|p| p.saturating_add(got));
    }

    /// Returns true if the claims are weak. Each transfer may be a message that was taken when it came, so that
    /// taking many at once wins little; another thread of the process may wait for each, or a program of this box
    /// count them; or each is the result of one
    /// input, written as soon as it is known: the process that opened the output may wait for it, or write there too
    /// and rely on whole lines.
    fn weak(&self, at: usize, Stream { fd, way, .. }: Stream, claims: &mut Claims) -> bool {
        let given = fd.is_some_and(|fd| GIVEN.contains(&fd));
        let out = way == Way::Out;
        let mut all = [
            (ReasonId::TakenWhenItCame, self.message && (!out || self.local)),
            (ReasonId::LastWords, out && self.last_words),
            (ReasonId::OneResultEach, out && given && 2 * self.results >= self.steps.len()),
        ]
        .into_iter();
        self.within || all.any(|(reason, holds)| claims.excuse(at, reason, holds))
    }

    /// Returns true if `step` writes something new to the same terminal: a line ended, or the program worked.
    fn is_over(&self, step: &Step<'_>, steps: &[Step<'_>]) -> bool {
        let last = self.steps.last().and_then(|at| steps.get(*at));
        let out = step.moved.is_some_and(|m| m.line.way == Way::Out);
        out && (self.line || last.is_some_and(|last| is_news(last, step)))
    }

    fn small(&self) -> bool {
        self.bytes <= SMALL * self.steps.len() as u64
    }

    /// Claims all transfers of a long run but one for each full buffer. Returns true if it did.
    fn claim(&self, stream: Stream, cut: bool, steps: &[Step<'_>], claims: &mut Claims) -> bool {
        let keys = stream.terminal && stream.way == Way::In;
        let across = || self.steps.first().is_some_and(|at| goes_back(*at, stream, steps));
        let least = match cut {
            true if keys && across() => LONG_ACROSS,
            _ if cut || self.cut => LONG_CUT,
            _ => LONG,
        };
        if self.steps.len() < least || !(self.small() || self.message) {
            return false;
        }
        let each = if self.message { BATCH } else { (BUFFER * self.steps.len() as u64 / self.bytes.max(1)).max(2) };
        // The window does not show whether the first transfer, of less than a buffer's size, began a buffer.
        let first =
            self.steps.first().copied().filter(|at| self.steps.len() as u64 <= each && goes_back(*at, stream, steps));
        if let Some(step) = first.and_then(|at| steps.get(at)) {
            leave_out_later(step, claims);
        }
        let mut from = 0;
        for (n, at) in self.steps.iter().enumerate() {
            if !(n as u64).is_multiple_of(each) {
                let weak = self.weak(*at, stream, claims);
                put_small(*at, (weak, false), stream, steps, claims);
                // A question whether there is more is as needless as the read. Messages are
                // excluded: they come one by one, even if one call reads several.
                let between = steps.get(from..*at).filter(|_| !self.message).unwrap_or_default().iter();
                between.filter(|s| ready_at_once(s)).for_each(|s| put(claims, s.index, looks_each_time(stream)));
            }
            from = at + 1;
        }
        true
    }
}

fn looks_each_time(stream: Stream) -> Claim {
    let about = "waits until there is something to read, which there was, before each few bytes";
    Claim {
        facts: Facts::default().with(Fact::Terminal, stream.terminal),
        ..Claim::of(Kind::SmallIo, about, "read into a buffer of 4 KiB or more")
    }
}

/// Claims a small transfer. `in_parts` is true if it moves one of several parts of a message, which the reader answers.
fn put_small(at: usize, (weak, in_parts): (bool, bool), stream: Stream, steps: &[Step<'_>], claims: &mut Claims) {
    let Some(step) = steps.get(at) else { return };
    let Stream { way, terminal, .. } = stream;
    let message = step.moved.is_some_and(|m| is_message(step, &m));
    let in_parts = in_parts && !message && !is_file(step);
    let (about, instead) = match way {
        _ if message => ("sends or takes one small message a call", "sendmmsg or recvmmsg move many at once"),
        Way::In if terminal => (
            "reads a few bytes at a time of a terminal that had more",
            "ask for 4 KiB: a terminal gives what there is and waits for no more",
        ),
        Way::In => ("reads a few bytes at a time that lay together", "read into a buffer of 4 KiB or more"),
        Way::Out if terminal => (
            "writes to a terminal in pieces of a few bytes, one right after the other",
            "collect what belongs together, a line or a screen, and write it at once",
        ),
        Way::Out if in_parts => ("writes a message in parts", "join the parts of a message, and write it at once"),
        Way::Out => {
            ("writes a few bytes at a time though no reader waits for them", "collect them in a buffer, or use writev")
        }
    };
    let claim = Claim {
        weak,
        facts: Facts::default()
            .with(Fact::Message, message)
            .with(Fact::Terminal, terminal)
            .with(Fact::InParts, in_parts),
        object: step.observed.call.fd.as_deref().filter(|f| f.starts_with('/')).map(|file| claims.object(file)),
        gives_up: if way == Way::Out && !in_parts {
            "what was written last is lost if the program is killed"
        } else {
            ""
        },
        ..Claim::of(Kind::SmallIo, about, instead)
    };
    put(claims, step.index, claim);
}
