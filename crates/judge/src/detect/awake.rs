//! Detects needless wakeups: the woken thread has not yet handled the wakeup before.

use crate::causes::fact::Fact;
use crate::collections::hash::{Map, Set};
use crate::evidence::claim::{Claim, Claims, Detector, put};
use crate::results::finding::Kind;
use crate::semantics::{INTEREST, ObservedCall, PIPES, Semantics, TOKENS, Thing, WAKE_COUNTERS, Way};
use crate::world::replay::Step;
use systoll_model::constants::{EPOLLET, EPOLLRDHUP};
use systoll_model::{Moment, Recording, RowId};

/// Least ratio of wakeups to reads for a claim. At a lower one it is open which of two successive
/// wakeups woke the thread.
const LEAST: u64 = 4;
/// Least number of reads that shows that the program reads its wakeup descriptor. One that uses
/// edge-triggered epoll may hardly ever do (mio never reads its eventfd).
const LOOKS: u64 = 16;
/// Largest ratio of wakeups to reads at which the reads count as handling the wakeups.
const MOST: u64 = 1024;

/// Key of an eventfd or pipe used for wakeups: its process and its name. All eventfds of a process
/// have the same name.
type Bell<'a> = (u32, &'a str);

/// Claims wakeups that came before the last one was handled. All calls of a row use one wakeup descriptor. Its writes
/// and reads are counted exactly, so the number of wakeups that woke no thread is known, though not which ones they
/// were.
pub(super) struct Awake<'a> {
    /// Indices of wakeup descriptors in `rung`.
    bells: Map<Bell<'a>, usize>,
    /// For each wakeup descriptor: the wakeups that one read answers on average, and the wakeups that windows showed
    /// so far.
    rung: Vec<(u64, u64)>,
}

/// The data in a pipe that its writing process reads itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Within {
    /// Always the same few bytes: it is a wakeup without content.
    Wakes,
    /// Other data, for which another thread may wait.
    Tells,
}

/// Pipes and eventfds by which threads of one process communicate, and local sockets by which they wake a thread of any
/// process.
#[derive(Default)]
pub(super) struct Bells<'a>(Map<Bell<'a>, Within>);

/// Beginning of the names of local streams.
const LOCAL_STREAMS: &str = "UNIX-STREAM:";

impl<'a> Bells<'a> {
    pub(super) fn new(rung: &Rung<'a>) -> Self {
        let within = |rows: &Rows<'_>| if rows.is_token() { Within::Wakes } else { Within::Tells };
        let both = rung.bells.iter().filter(|(_, r)| !r.out.is_empty() && !r.read.is_empty());
        let both = both.map(|(bell, rows)| (*bell, within(rows)));
        // A socket's name does not tell who reads what is sent. One byte that is always the same is no part of a message,
        // whoever reads it.
        let is_byte = |rows: &Rows<'_>| rows.is_token() && rows.token.is_some_and(|token| token.len() == 1);
        let sockets = rung.sockets.iter().filter(|(_, rows)| is_byte(rows)).map(|(bell, _)| (*bell, Within::Wakes));
        Self(both.chain(sockets).collect())
    }

    /// Returns what a call's descriptor carries within its process; `None` if another process may have the other end.
    pub(super) fn carried(&self, call: &ObservedCall<'_>) -> Option<Within> {
        self.0.get(&(call.window.process.0, call.call.fd.as_deref()?)).copied()
    }

    /// Returns true if a call's descriptor only wakes threads.
    pub(super) fn carries_wakes(&self, call: &ObservedCall<'_>) -> bool {
        self.carried(call) == Some(Within::Wakes)
    }

    /// Returns true if there is any such descriptor.
    pub(super) fn any(&self) -> bool {
        !self.0.is_empty()
    }
}

#[derive(Default)]
struct Rows<'a> {
    out: Set<RowId>,
    read: Set<RowId>,
    /// True if a read returned more than one wakeup at once: the reader lags behind.
    behind: bool,
    /// The bytes of the first write.
    token: Option<&'a [u8]>,
    /// True if a later write had other bytes, or bytes that the window does not hold.
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

/// The rows that write and read each pipe and eventfd, from windows.
pub(super) struct Rung<'a> {
    bells: Map<Bell<'a>, Rows<'a>>,
    /// The rows that write to each local socket.
    sockets: Map<Bell<'a>, Rows<'a>>,
    /// Processes that use edge-triggered epoll: each wakeup matters there, even if the one before was not read.
    pub(super) edges: Set<u32>,
    /// Those of them that are not told of a stream's end: it may come with the last bytes, and tells itself only to a read
    /// more.
    pub(super) ends_untold: Set<u32>,
    /// Descriptors that they wait for, by process; true if only by their edges.
    waited_for: Map<(u32, i32), bool>,
    /// Processes with an event descriptor that hands its count out one by one (EFD_SEMAPHORE).
    semaphores: Set<u32>,
}

impl<'a> Rung<'a> {
    pub(super) fn of(recording: &'a Recording, semantics: &Semantics) -> Self {
        let mut bells: Map<Bell<'a>, Rows<'a>> = Map::default();
        let mut sockets: Map<Bell<'a>, Rows<'a>> = Map::default();
        let (mut edges, mut ends_untold, mut semaphores) = (Set::default(), Set::default(), Set::default());
        let mut waited_for: Map<(u32, i32), bool> = Map::default();
        for observed in semantics.calls_in_windows(recording, |_| true) {
            let (process, call) = (observed.window.process.0, observed.call);
            if let Some(events) = watched(&observed, semantics) {
                let by_edge = events & EPOLLET != 0;
                *waited_for.entry((process, observed.descriptor(2))).or_insert(true) &= by_edge;
                edges.extend(by_edge.then_some(process));
                ends_untold.extend((by_edge && events & EPOLLRDHUP == 0).then_some(process));
            }
            semaphores.extend(is_semaphore(&observed, semantics).then_some(process));
            let Some(name) = call.fd.as_deref() else { continue };
            let bell = bell(process, Some(name));
            if bell.is_none() && !name.starts_with(LOCAL_STREAMS) {
                continue;
            }
            let Some(transfer) = semantics.lines_of(observed.syscall).transfer(&observed) else { continue };
            let rows = match bell {
                Some(bell) => bells.entry(bell).or_default(),
                None if transfer.way == Way::Out => sockets.entry((process, name)).or_default(),
                None => continue,
            };
            if transfer.way == Way::In {
                rows.read.insert(call.row);
                rows.behind |= found(&observed).is_some_and(|wakes| wakes > 1);
            } else {
                rows.out.insert(call.row);
                rows.sends(observed.data(1, Moment::Entry));
            }
        }
        Self { bells, sockets, edges, ends_untold, waited_for, semaphores }
    }

    /// Returns true if all that is written there is the same one or eight bytes, and a read takes all of it.
    pub(super) fn is_wake(&self, process: u32, name: &str) -> bool {
        let token = self.bells.get(&(process, name)).is_some_and(Rows::is_token);
        token && !(name == WAKE_COUNTERS && self.semaphores.contains(&process))
    }

    /// Returns true if the descriptor was only ever waited for by its edges, as far as windows show.
    pub(super) fn is_by_edge(&self, process: u32, fd: i32) -> bool {
        self.waited_for.get(&(process, fd)) == Some(&true) && !self.semaphores.contains(&process)
    }
}

/// Returns true if the call makes an event descriptor whose reads take one of its count each.
fn is_semaphore(call: &ObservedCall<'_>, semantics: &Semantics) -> bool {
    semantics.lines_of(call.syscall).line::<Thing>(call).is_some_and(|thing| thing.thing == TOKENS)
}

/// Returns the events that the call registers for; `None` if it registers for none.
fn watched(call: &ObservedCall<'_>, semantics: &Semantics) -> Option<u32> {
    let line = semantics.lines_of(call.syscall).state(call).filter(|line| line.about.is(&INTEREST));
    let event = line.and_then(|_| call.data(3, Moment::Entry))?;
    Some(events(event))
}

/// Returns the events of a `struct epoll_event`; none where it is empty or cut.
pub(super) fn events(event: &[u8]) -> u32 {
    event.first_chunk().map_or(0, |events| u32::from_le_bytes(*events))
}

/// Returns the number of wakeups that a read returned: an eventfd's value, or a pipe's bytes.
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

    /// Returns true if all writes have the same bytes, of one byte or eight.
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

/// Returns the key of the descriptor `fd` if it is an eventfd or a pipe.
fn bell(process: u32, fd: Option<&str>) -> Option<Bell<'_>> {
    fd.filter(|name| *name == WAKE_COUNTERS || name.starts_with(PIPES)).map(|name| (process, name))
}

impl Detector for Awake<'_> {
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
