//! Detects things that are made, used a little and ended, again and again, where one could have been kept
//! (loop-invariant creation).

use crate::causes::fact::{Fact, Facts};
use crate::collections::hash::{Map, Set};
use crate::evidence::claim::{Claim, Claims, Detector, leave_out_later, put};
use crate::results::finding::Kind;
use crate::semantics::{EPOLL, Effect, INTEREST, MOVES_UNSEEN, SCRATCH, Semantics, Thing, Way, value};
use crate::world::barrier::Barrier;
use crate::world::bounds::{BESIDE, REMEMBERED};
use crate::world::replay::Step;
use systoll_model::constants::EPOLL_CTL_DEL;
use systoll_model::{Moment, Recording, WindowCall};

/// Least number of things of one description ended in a window. If one was ended in an earlier window, things of any
/// description count.
const CYCLES: usize = 2;
/// Largest content of a thing, bytes, that the program's own memory could hold as well.
const HELD: u64 = 64 << 10;
/// Place of a message's number in the header of netlink, bytes.
const SEQUENCE: std::ops::Range<usize> = 8..12;
/// Size of a page, bytes: the kernel rounds lengths up to it.
const PAGE: u64 = 4096;
/// Largest distance from the window's start, in calls, at which a thing made before the window may
/// end.
const NEAR: usize = 8;

/// A description of things: the call that makes them, their name, and the values that describe them.
type Sort = (&'static str, &'static str, Vec<u8>);

/// Claims the making and ending of things that one thing could have replaced, also if several are made in turns.
pub(super) struct MadeAgain<'a> {
    /// Descriptions of things that were made and ended in an earlier window, each with the maker's process.
    known: Set<(u32, Sort)>,
    /// Processes and epoll descriptors that watch a descriptor for now these events, now those.
    varied: Set<(u32, i32)>,
    /// Processes with one thread, in which no other thread uses what the window's thread makes.
    single: &'a Set<u32>,
}

/// Returns the processes and epoll descriptors with a descriptor whose interest windows show to change.
fn varied(recording: &Recording, semantics: &Semantics) -> Set<(u32, i32)> {
    let mut first: Map<(u32, [i32; 2]), u32> = Map::default();
    let mut varied = Set::default();
    for observed in semantics.calls_in_windows(recording, |lines| lines.sets(&INTEREST)) {
        let event = observed.data(3, Moment::Entry).filter(|_| observed.arg(1) as u32 != EPOLL_CTL_DEL);
        let Some(events) = event.and_then(|event| event.first_chunk()) else { continue };
        let (process, set, events) = (observed.window.process.0, observed.descriptor(0), u32::from_le_bytes(*events));
        if *first.entry((process, [set, observed.descriptor(2)])).or_insert(events) != events {
            varied.insert((process, set));
        }
    }
    varied
}

/// The life of a thing in a window, by the indices of its calls.
struct Life {
    made: usize,
    moved: Vec<usize>,
    /// Calls that work on the thing, if their effect ends with it.
    used: Vec<usize>,
    ended: Vec<usize>,
    thing: &'static Thing,
    sort: Sort,
    /// Number of the thing's handles that are not ended yet.
    open: usize,
    /// Length of the thing, bytes; 0 if it has none.
    length: u64,
    /// Number of bytes written to the thing.
    held: u64,
    /// Number of bytes read from the thing.
    taken: u64,
    /// True if the thing is used otherwise than for the bytes that `held` and `taken` count.
    uncounted: bool,
    /// True if bytes went through the thing.
    moved_any: bool,
    /// True if bytes came from the thing.
    answered: bool,
    /// True if bytes that were written to the thing were read back from it.
    read_back: bool,
    /// Path of the thing, if it has one; `unnamed` is true once the path is unlinked.
    name: Option<String>,
    unnamed: bool,
    /// Descriptor that this thing, a descriptor as well, duplicates.
    copy_of: Option<i32>,
    /// Bytes that were sent to the thing, of one that carries questions.
    asked: Vec<u8>,
    /// Number of bytes of each answer that the thing brought.
    answers: Vec<u64>,
    /// Index of the file from which the thing was made, if that was itself made in the window, as a file in memory is.
    of_made: Option<usize>,
    /// The file's descriptor, if the thing can't outlive it.
    of_open: Option<i32>,
}

impl Life {
    fn of(at: usize, step: &Step<'_>, openings: &Map<i32, u64>) -> Option<Self> {
        let thing = step.makes?;
        let observed = &step.observed;
        let mut bytes = Vec::new();
        for source in thing.sort {
            let part = value(*source, observed)?;
            bytes.extend_from_slice(&(part.len() as u32).to_le_bytes());
            bytes.extend_from_slice(&part);
        }
        if let Some(arg) = thing.file {
            // A file opened for the purpose is identified by its opening.
            let fd = observed.descriptor(arg);
            let opened = openings.get(&fd).copied().unwrap_or(0);
            bytes.extend_from_slice([fd as u64, opened].map(u64::to_le_bytes).as_flattened());
            bytes.extend_from_slice(observed.call.fd.as_deref().unwrap_or_default().as_bytes());
        }
        let name = match thing.unnamed_by {
            [] => None,
            _ => Some(named(step)?),
        };
        if let Some((folder, _)) = name.as_deref().and_then(|name| name.rsplit_once('/')) {
            bytes.extend_from_slice(folder.as_bytes());
        }
        let length = thing.ends_length.map_or(0, |(_, arg)| observed.arg(arg));
        Some(Self {
            made: at,
            moved: Vec::new(),
            used: Vec::new(),
            ended: Vec::new(),
            thing,
            sort: (thing.makes, thing.thing, bytes),
            open: thing.handles(observed).len(),
            length,
            held: 0,
            taken: 0,
            uncounted: false,
            moved_any: false,
            answered: false,
            read_back: false,
            name,
            unnamed: false,
            copy_of: thing.copy.then(|| observed.descriptor(0)),
            of_made: None,
            of_open: thing.file.filter(|_| thing.of_open).map(|arg| observed.descriptor(arg)),
            asked: Vec::new(),
            answers: Vec::new(),
        })
    }

    /// Returns true if the step ends only a part of the thing.
    fn is_cut_by(&self, step: &Step<'_>) -> bool {
        let length = self.thing.ends_length.filter(|_| self.moved.is_empty()).map(|(arg, _)| step.observed.arg(arg));
        length.is_some_and(|length| length.saturating_add(PAGE - 1) < self.length)
    }

    /// Returns true if the thing is of little use for its making. `all` are the things of the window.
    fn is_short(&self, all: &[Self], steps: &[Step<'_>]) -> bool {
        let soon = self.ended.last().is_some_and(|end| end - self.made <= self.thing.life) || self.is_made_anew(all);
        let gone = self.name.is_none() || self.unnamed && self.read_back;
        let is_of_use = self.held > HELD || self.thing.used && !self.moved_any;
        soon && gone && !is_of_use && !self.is_bound_to_file(all, steps)
    }

    /// Returns true if the step needs the thing: it closes the descriptor that the thing
    /// duplicates, so that the copy keeps the file open, or it moves the thing to another path.
    fn is_needed_by(&self, step: &Step<'_>) -> bool {
        // A descriptor that dup2 replaces does not count: its copy is made only to be put back,
        // around each step.
        let closes = step.effects.iter().any(|e| matches!(e, Effect::Closes(0)));
        let kept = self.copy_of.is_some_and(|fd| closes && step.observed.descriptor(0) == fd);
        let renamed = step.lines.names() && self.name.is_some() && step.observed.call.errno().is_none();
        kept || renamed && named(step) == self.name
    }

    /// Returns true if the thing is of a file, and another of the same description was made right after it ended.
    fn is_made_anew(&self, all: &[Self]) -> bool {
        let may = self.thing.file.is_some() && !self.thing.of_open;
        let follows =
            |end: usize, other: &Self| (end + 1..=end + BESIDE).contains(&other.made) && other.sort == self.sort;
        self.ended.last().filter(|_| may).is_some_and(|end| all.iter().any(|other| follows(*end, other)))
    }

    /// Returns true if the thing can't outlive its file, and the window shows that the file is opened or closed, or that
    /// another thing is made of it.
    fn is_bound_to_file(&self, all: &[Self], steps: &[Step<'_>]) -> bool {
        self.of_open.is_some_and(|fd| {
            all.iter().any(|other| other.of_open == Some(fd) && other.sort != self.sort)
                || steps.iter().any(|step| step.makes_descriptor(fd) || step.lets_go(fd))
        })
    }

    /// Notes what a step sends to the thing, or takes from it.
    fn hears(&mut self, step: &Step<'_>) {
        let Some(moved) = step.moved else { return };
        match moved.line.way {
            Way::In => self.answers.push(moved.got.unwrap_or(0)),
            Way::Out => {
                let sent = step.observed.call.arg_data(1, Moment::Entry).map_or(&[][..], |data| &data.bytes);
                // A message's number in its header is another each time (netlink(7): nlmsg_seq).
                self.asked.extend(sent.iter().enumerate().filter(|(at, _)| !SEQUENCE.contains(at)).map(|(_, b)| b));
            }
        }
    }

    /// Returns true if another thing was asked the same, and answered as much.
    fn is_asked_alike(&self, other: &Self) -> bool {
        !self.asked.is_empty()
            && !self.answers.is_empty()
            && (&self.asked, &self.answers) == (&other.asked, &other.answers)
    }

    /// Returns true if all that was written to the thing was read from it, so that a kept one would be as empty as a new
    /// one. `alone` is true if the process has one thread.
    fn is_empty(&self, alone: bool) -> bool {
        let passed = if alone { self.held == self.taken } else { self.held > 0 && self.held == self.taken };
        passed && !self.uncounted
    }

    fn claim(&self, alone: bool) -> Claim {
        let Thing { thing, unsure, instead, gives_up, carries, .. } = *self.thing;
        let weak = unsure && if carries { self.answered } else { !self.is_empty(alone) };
        let gives_up = if weak || !unsure { gives_up } else { "" };
        let facts = Facts::default()
            .with(Fact::Mapping, self.thing.file.is_some() && self.of_made.is_none())
            .with(Fact::NewSocket, carries)
            .with(Fact::EventLoop, thing == EPOLL)
            .with(Fact::Scratch, thing == SCRATCH);
        Claim { facts, weak, gives_up, ..Claim::of(Kind::Toggle, thing, instead) }
    }

    fn calls(&self) -> impl Iterator<Item = usize> {
        let made = std::iter::once(self.made).chain(self.moved.iter().copied());
        made.chain(self.used.iter().copied()).chain(self.ended.iter().copied())
    }
}

/// Returns the path that a step makes, moves or takes away.
fn named(step: &Step<'_>) -> Option<String> {
    step.effects.iter().find_map(|effect| match effect {
        Effect::Path { at, path } | Effect::OpensPath { at, path, .. } => {
            Some(step.observed.path(at, path)?.into_owned())
        }
        _ => None,
    })
}

/// Key of a handle: the call that gives it up, and the handle's value.
type Held = (&'static str, u64);

/// The things of a window.
#[derive(Default)]
struct Lives {
    all: Vec<Life>,
    /// By handle: index in `all` of a thing that was made here and is not yet ended.
    alive: Map<Held, usize>,
    /// Calls near the window's start that move or end things made before it.
    older: Vec<usize>,
    /// For each descriptor opened in the window: the number of that opening in the run.
    openings: Map<i32, u64>,
}

impl Lives {
    fn of(steps: &[Step<'_>]) -> Self {
        let mut lives = Self::default();
        let mut forked = false;
        for (at, step) in steps.iter().enumerate() {
            lives.uses(at, step);
            if step.lets(Barrier::FORKED) {
                lives.alive.clear();
                forked = true;
            } else if step.moves || step.ends {
                lives.goes_on(at, step, forked);
            }
            if step.opened.is_some() {
                let WindowCall { row, nth, result, .. } = step.observed.call;
                let opening = u64::from(row.0) << 40 | *nth;
                lives.openings.insert(result.unwrap_or(-1) as i32, opening);
            }
            if let Some(mut life) = Life::of(at, step, &lives.openings) {
                let file = life.thing.file.filter(|_| !life.thing.of_open).map(|arg| step.observed.descriptor(arg));
                life.of_made = file.and_then(|fd| lives.alive.get(&("close", u64::from(fd as u32)))).copied();
                let handles = life.thing.handles(&step.observed);
                lives.alive.extend(handles.iter().map(|handle| ((life.thing.ends.call, *handle), lives.all.len())));
                lives.all.push(life);
            }
        }
        lives
    }

    /// Notes a call that works on a thing.
    fn uses(&mut self, at: usize, step: &Step<'_>) {
        self.lets_live(at, step);
        if step.lines.sets(&INTEREST) {
            // The thread that waits for events knows the thing by its number.
            let watched = self.alive.get(&("close", u64::from(step.observed.descriptor(2) as u32))).copied();
            watched.and_then(|place| self.all.get_mut(place)).into_iter().for_each(|life| life.uncounted = true);
        }
        if step.observed.syscall.name().is_some_and(|name| MOVES_UNSEEN.contains(&name)) {
            self.all.iter_mut().for_each(|life| life.uncounted |= life.open > 0);
        }
        if step.moved.is_some_and(|moved| moved.line.carries) {
            // The message may pass descriptors to others (SCM_RIGHTS): forget which things are open.
            self.alive.clear();
        }
        let Some(fd) = step.lines.fd.and_then(|arg| u8::try_from(arg).ok()).filter(|_| !self.alive.is_empty()) else {
            return;
        };
        let place = self.alive.get(&("close", u64::from(step.observed.descriptor(fd) as u32))).copied();
        if let Some(life) = place.and_then(|place| self.all.get_mut(place)) {
            life.moved_any |= step.moved.is_some_and(|moved| moved.got.is_some());
            let prepares = life.thing.carries && step.moved.is_none();
            if (life.thing.holds || life.thing.asks || prepares) && !step.ends {
                life.used.push(at);
            }
            if life.thing.asks {
                life.hears(step);
            }
            let taken = step.moved.filter(|moved| moved.line.way == Way::In).and_then(|moved| moved.got);
            life.answered |= taken.is_some_and(|got| got > 0);
            life.taken = life.taken.saturating_add(taken.unwrap_or(0));
            life.uncounted |= step.moved.is_none() && !step.ends;
            life.read_back |= life.held > 0 && taken.is_some_and(|got| got > 0);
            let moved = step.moved.filter(|moved| moved.line.way == Way::Out).and_then(|moved| moved.got);
            life.held = life.held.saturating_add(moved.unwrap_or(0));
        }
    }

    /// Notes the thing whose path a step unlinks, and forgets the things that the step needs.
    fn lets_live(&mut self, at: usize, step: &Step<'_>) {
        let all = &mut self.all;
        self.alive.retain(|_, place| all.get(*place).is_none_or(|life| !life.is_needed_by(step)));
        let call = step.observed.syscall.name().unwrap_or_default();
        let takes =
            |life: &&mut Life| life.open > 0 && life.thing.unnamed_by.contains(&call) && named(step) == life.name;
        if step.observed.call.errno().is_none()
            && let Some(life) = all.iter_mut().rev().find(takes)
        {
            life.unnamed = true;
            life.used.push(at);
        }
    }

    fn goes_on(&mut self, at: usize, step: &Step<'_>, forked: bool) {
        let end = step.lines.ends(&step.observed);
        let call = step.observed.syscall.name().unwrap_or_default();
        let moved = |lives: &Self| {
            let first = step.observed.arg(0);
            lives
                .alive
                .iter()
                .find(|((_, handle), life)| {
                    *handle == first && lives.all.get(**life).is_some_and(|life| life.thing.moves == Some(call))
                })
                .map(|(held, life)| (*held, *life))
        };
        if step.moves {
            if let Some(((end, handle), place)) = moved(self) {
                self.alive.remove(&(end, handle));
                self.alive.insert((end, step.observed.call.result.unwrap_or(0) as u64), place);
                self.all.get_mut(place).into_iter().for_each(|life| life.moved.push(at));
            } else if at <= NEAR && !forked {
                self.older.push(at);
            }
            return;
        }
        let Some(end) = end else { return };
        match self.alive.remove(&(end.call, step.observed.arg(end.handle))).and_then(|place| self.all.get_mut(place)) {
            // A thing that is only trimmed to its alignment lives on.
            Some(life) if life.is_cut_by(step) => {}
            Some(life) => {
                life.ended.push(at);
                life.open = life.open.saturating_sub(1);
            }
            None if at <= NEAR && !forked => self.older.push(at),
            None => {}
        }
    }

    /// Returns the things that were ended soon after they were made, by description.
    fn ended(&self, steps: &[Step<'_>]) -> Map<&Sort, Vec<&Life>> {
        let mut ended: Map<&Sort, Vec<&Life>> = Map::default();
        // What was made from a file that others keep has been of use, too.
        let is_over = |life: &Life| life.open == 0 && life.is_short(&self.all, steps);
        let is_kept =
            |life: &Life| life.of_made.and_then(|place| self.all.get(place)).is_some_and(|made| !is_over(made));
        for life in self.all.iter().filter(|life| is_over(life) && !is_kept(life)) {
            ended.entry(&life.sort).or_default().push(life);
        }
        ended
    }

    /// Leaves out calls whose other half is beyond the window's edges: their things may belong to the `repeated`
    /// ones, or be of a description that is `known` from earlier windows.
    fn leave_out(&self, repeated: &[&Life], known: impl Fn(&Sort) -> bool, steps: &[Step<'_>], claims: &mut Claims) {
        let is_of = |step: &Step<'_>, thing: &Thing| {
            let name = step.observed.syscall.name();
            name == Some(thing.ends.call) || (name.is_some() && name == thing.moves)
        };
        let ends_repeated = |step: &&Step<'_>| repeated.iter().any(|life| is_of(step, life.thing));
        let older = self.older.iter().filter_map(|at| steps.get(*at)).filter(ends_repeated);
        older.for_each(|step| claims.leave_out(step.index));
        let goes_on = self.all.iter().filter(|life| life.open > 0 && life.made + life.thing.life >= steps.len());
        let is_known = |life: &Life| life.thing.file.is_none() && known(&life.sort);
        for life in goes_on.filter(|life| is_known(life) || repeated.iter().any(|other| other.sort == life.sort)) {
            life.calls().filter_map(|at| steps.get(at)).for_each(|step| leave_out_later(step, claims));
        }
    }
}

impl<'a> MadeAgain<'a> {
    pub(super) fn new(recording: &Recording, semantics: &Semantics, single: &'a Set<u32>) -> Self {
        Self { known: Set::default(), varied: varied(recording, semantics), single }
    }

    /// Claims all but the first of the things that are made and ended again and again. Returns one of each of these
    /// descriptions.
    fn claim<'l>(&mut self, lives: &'l Lives, steps: &[Step<'_>], claims: &mut Claims) -> Vec<&'l Life> {
        let Some(who) = steps.first().map(|step| step.who) else { return Vec::new() };
        let ended = lives.ended(steps);
        let mut repeated = Vec::new();
        for (sort, of_sort) in &ended {
            let key = (who, (*sort).clone());
            let seen = self.known.contains(&key);
            let alike = |other: &&Sort| (other.0, other.1) == (sort.0, sort.1);
            let of_kind: usize = ended.iter().filter(|(other, _)| alike(other)).map(|(_, lives)| lives.len()).sum();
            // If the work with each thing takes long, a window shows only one of them.
            let holds = of_sort.iter().any(|life| life.thing.holds);
            let again = of_sort.len() >= CYCLES || seen && (holds || of_kind >= CYCLES);
            // One thing of this description is needed in the whole run, not one in each window.
            if !seen && self.known.len() < REMEMBERED {
                self.known.insert(key);
            }
            let first = of_sort.first().filter(|life| life.of_open.is_some()).and_then(|life| steps.get(life.made));
            let varied = first.is_some_and(|step| self.varied.contains(&(who, step.observed.descriptor(0))));
            if seen && !again && !varied && of_sort.iter().all(|life| life.thing.file.is_none()) {
                // The window is too short for two of them. Those of a file may each be of another opening.
                let calls = of_sort.iter().flat_map(|life| life.calls()).filter_map(|at| steps.get(at));
                calls.for_each(|step| leave_out_later(step, claims));
            }
            if !again || varied {
                continue;
            }
            let alone = steps.first().is_some_and(|step| self.single.contains(&step.observed.window.process.0));
            let alike = of_sort.iter().all(|life| of_sort.iter().all(|other| life.is_asked_alike(other)));
            for life in of_sort.iter().skip(usize::from(!seen)) {
                let goes = |at: &usize| !life.thing.asks || of_sort.len() > 1 && alike || !life.used.contains(at);
                for step in life.calls().filter(goes).filter_map(|at| steps.get(at)) {
                    let claim = life.claim(alone);
                    if life.thing.carries && !claim.weak {
                        // Whatever else is needless about the call, it goes with the thing.
                        claims.set(step.index, claim);
                    } else {
                        put(claims, step.index, claim);
                    }
                }
            }
            repeated.extend(of_sort.first().copied());
        }
        repeated
    }
}

impl Detector for MadeAgain<'_> {
    fn window(&mut self, steps: &[Step<'_>], claims: &mut Claims) {
        let made = |step: &&Step<'_>| step.makes.is_some();
        if steps.iter().filter(made).count() < CYCLES && !steps.iter().filter_map(|step| step.makes).any(|t| t.holds) {
            return;
        }
        let lives = Lives::of(steps);
        let repeated = self.claim(&lives, steps, claims);
        let who = steps.first().map_or(0, |step| step.who);
        lives.leave_out(&repeated, |sort| self.known.contains(&(who, sort.clone())), steps, claims);
    }
}
