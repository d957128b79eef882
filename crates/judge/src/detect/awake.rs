//! Wakes for a thread that has not yet seen the one before.

use super::claim::{Claim, Claims, Detector, put};
use crate::fact::Fact;
use crate::finding::Kind;
use crate::hash::{Map, Set};
use crate::replay::Step;
use crate::semantics::{INTEREST, ObservedCall, PIPES, Semantics, WAKE_COUNTERS, Way};
use crate::signs::Signs;
use systoll_model::constants::EPOLLET;
use systoll_model::{Moment, Recording, RowId};

/// Wakes for each time a waiter looked, at least: of two in a row either may have been the one that woke.
const LEAST: u64 = 4;
/// Looks in all: who never looks, or hardly ever, is woken by the edge (mio's eventfd is never read).
const LOOKS: u64 = 16;
/// And wakes for each look, at most.
const MOST: u64 = 1024;

/// What lies behind the descriptor: a pipe by its name, or the process's counters for events, which have one name.
type Bell<'a> = (u32, &'a str);

/// Claims wakes that came before the last one was seen. All calls of a row go to one bell; how often a bell was rung
/// and seen to is exact, so that it is known how many of the wakes woke no thread, if not which.
pub(super) struct Awake<'a> {
    /// The places of bells in `rung`.
    bells: Map<Bell<'a>, usize>,
    /// Of each wake that was needed, how many there were, and how often it was rung.
    rung: Vec<(u64, u64)>,
}

/// What goes through a pipe that the process which writes it reads itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Within {
    /// Always the same few bytes: it wakes, and tells nothing.
    Wakes,
    /// Something else: it hands on what another thread may wait for.
    Tells,
}

/// Pipes and counters by which threads of one process tell each other something.
#[derive(Default)]
pub(super) struct Bells<'a>(Map<Bell<'a>, Within>);

impl<'a> Bells<'a> {
    pub(super) fn new(rung: &Rung<'a>) -> Self {
        let within = |rows: &Rows<'_>| if rows.is_token() { Within::Wakes } else { Within::Tells };
        let both = rung.bells.iter().filter(|(_, r)| !r.out.is_empty() && !r.read.is_empty());
        Self(both.map(|(bell, rows)| (*bell, within(rows))).collect())
    }

    /// What the descriptor of a step carries within its process; `None` where others have the other end.
    pub(super) fn of(&self, step: &Step<'_>) -> Option<Within> {
        let process = step.observed.window.process.0;
        bell(process, step.observed.call.fd.as_deref()).and_then(|bell| self.0.get(&bell).copied())
    }
}

#[derive(Default)]
struct Rows<'a> {
    out: Set<RowId>,
    read: Set<RowId>,
    /// Whether a reader was seen to find more than one wake at once: it is behind.
    behind: bool,
    /// What is sent, while it is the same.
    token: Option<&'a [u8]>,
    /// Whether what is sent tells something.
    tells: bool,
}

impl<'a> Awake<'a> {
    pub(super) fn new(rung: &Rung<'a>, recording: &Recording) -> Self {
        let each =
            |(bell, rows): (&Bell<'a>, &Rows<'_>)| Some((*bell, rows.each(rung.edges.contains(&bell.0), recording)?));
        let (mut bells, mut counts) = (Map::default(), Vec::new());
        for (bell, each) in rung.bells.iter().filter_map(each) {
            bells.insert(bell, counts.len());
            counts.push((each, 0));
        }
        Self { bells, rung: counts }
    }
}

/// What windows show of pipes and counters: which rows' calls write and read them.
pub(super) struct Rung<'a> {
    bells: Map<Bell<'a>, Rows<'a>>,
    /// Processes that are woken by edges: each wake counts there, whether or not the one before was read.
    edges: Set<u32>,
}

impl<'a> Rung<'a> {
    pub(super) fn of(recording: &'a Recording, semantics: &Semantics) -> Self {
        let mut bells: Map<Bell<'a>, Rows<'a>> = Map::default();
        let mut edges = Set::default();
        for window in &recording.windows {
            for call in &window.calls {
                if by_edge(&ObservedCall { window, call, syscall: recording.row(call.row).syscall }, semantics) {
                    edges.insert(window.process.0);
                }
                let Some(bell) = bell(window.process.0, call.fd.as_deref()) else { continue };
                let observed = ObservedCall { window, call, syscall: recording.row(call.row).syscall };
                let Some(transfer) = semantics.of(observed.syscall).transfer(&observed) else { continue };
                let rows = bells.entry(bell).or_default();
                if transfer.way == Way::In {
                    rows.read.insert(call.row);
                    rows.behind |= found(&observed).is_some_and(|wakes| wakes > 1);
                } else {
                    rows.out.insert(call.row);
                    rows.sends(observed.data(1, Moment::Entry));
                }
            }
        }
        Self { bells, edges }
    }
}

/// Whether the call asks to be told of edges.
fn by_edge(call: &ObservedCall<'_>, semantics: &Semantics) -> bool {
    let line = semantics.of(call.syscall).state(call).filter(|line| line.about.is(&INTEREST));
    line.is_some() && call.data(3, Moment::Entry).is_some_and(edge)
}

fn edge(event: &[u8]) -> bool {
    event.first_chunk().is_some_and(|events| u32::from_le_bytes(*events) & EPOLLET != 0)
}

/// How many wakes a reader found: a counter tells them by its number, a pipe by its bytes.
fn found(call: &ObservedCall<'_>) -> Option<u64> {
    let got = call.call.result.and_then(|got| u64::try_from(got).ok())?;
    if call.call.fd.as_deref() == Some(WAKE_COUNTERS) {
        return call.data(1, Moment::Exit)?.first_chunk().map(|count| u64::from_le_bytes(*count));
    }
    Some(got)
}

impl<'a> Rows<'a> {
    fn sends(&mut self, bytes: Option<&'a [u8]>) {
        match (bytes, self.token) {
            (Some(bytes), Some(token)) => self.tells |= bytes != token,
            (Some(bytes), None) => self.token = Some(bytes),
            (None, _) => self.tells = true,
        }
    }

    /// Whether all that is sent is the same byte, or the same number.
    fn is_token(&self) -> bool {
        !self.tells && self.token.is_some_and(|token| token.len() == 1 || token.len() == 8)
    }

    fn each(&self, edges: bool, recording: &Recording) -> Option<u64> {
        let succeeded = |rows: &Set<RowId>| {
            rows.iter().fold(0u64, |sum, row| {
                let counts = &recording.row(*row).counts;
                let failed = counts.errors.iter().fold(0u64, |sum, (_, n)| sum.saturating_add(*n));
                sum.saturating_add(counts.calls.saturating_sub(failed))
            })
        };
        let (rung, looks) = (succeeded(&self.out), succeeded(&self.read));
        let each = rung.checked_div(looks)?;
        let known = self.behind && !edges || looks >= LOOKS && each <= MOST;
        (self.is_token() && each >= LEAST && known).then_some(each)
    }
}

/// What a descriptor rings, if anything.
fn bell(process: u32, fd: Option<&str>) -> Option<Bell<'_>> {
    fd.filter(|name| *name == WAKE_COUNTERS || name.starts_with(PIPES)).map(|name| (process, name))
}

impl Detector for Awake<'_> {
    fn looks_for(&self) -> Signs {
        if self.bells.is_empty() { Signs::NONE } else { Signs::MOVES }
    }

    fn window(&mut self, steps: &[Step<'_>], claims: &mut Claims) {
        for step in steps {
            let out = step.moved.as_ref().is_some_and(|m| m.line.way == Way::Out && m.got.is_some());
            let Some(bell) = bell(step.observed.window.process.0, step.observed.call.fd.as_deref()).filter(|_| out)
            else {
                continue;
            };
            let Some((each, rung)) = self.bells.get(&bell).and_then(|at| self.rung.get_mut(*at)) else { continue };
            *rung += 1;
            if !rung.is_multiple_of(*each) {
                put(claims, step.index, claim());
            }
        }
    }
}

fn claim() -> Claim {
    Claim {
        facts: Fact::Awake.into(),
        ..Claim::of(
            Kind::NoOp,
            "a wake for a thread that has not seen to the one before",
            "keep a flag that says that a wake is under way: set it before the wake, clear it before the work is looked for",
        )
    }
}
