//! Starts a program with counting code in it, answers its questions, and reads the counts.
//!
//! Invariants: ptrace holds a thread only from its `execve` to the exec stop and never while it runs; the target's code
//! is written only while its one thread waits, or before any thread knows the code; if the launcher ends, however it
//! does, the target runs on.

#[cfg(any(test, feature = "any-target"))]
mod any_image;
mod attach;
mod death_notice;
mod exec;
mod handles;
mod next_question;
mod polling;
mod program;
mod requests;
mod results;
mod root_process;
mod session;
mod shared;
mod spending;
mod sys;
mod tracees;
mod watch;

use super::cache::Cache;
use crate::assemble::RunFacts;
use crate::backend::{Backend, Closely, Control, HowToWatch, Launch, Moment, Probe, Quiet, Running};
use crate::error::Error;
use crate::launch;
use crate::moment::Awaited;
use crate::signals::Signals;
pub use attach::clean::clean;
use attach::enter;
use exec::files::Files;
use exec::place::Maker;
use exec::read_ahead::{Ahead, Reading};
use exec::seccomp;
use polling::Polling;
use results::own_cpu::UnseenTime;
use results::run_stats::Around;
use results::{clock, overhead, recording, turns};
use session::Session;
use shared::memory::Memory;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use systoll_hooks::assemble::{LONGEST_POWER, Options};
use systoll_model::{BackendKind, LONG_WAIT_NS, Recording, Spread};
use systoll_symbols::Symbols;
#[cfg(any(test, feature = "any-target"))]
use {exec::confinement, shared::maps};

/// The backend that watches from inside: the target counts by itself, and ptrace has detached from it.
#[derive(Debug, Default)]
pub struct InprocBackend(());

impl InprocBackend {
    /// Creates a backend that has probed nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

fn with_source(error: &Error) -> String {
    std::error::Error::source(error).map_or_else(|| error.to_string(), |source| format!("{error}: {source}"))
}

/// Returns the property that this machine lacks, if it lacks one.
fn missing() -> Option<String> {
    (!sys::has_fsgsbase()).then(|| "programs can't set their gs base here (no FSGSBASE)".into())
}

fn options(closely: Closely, elide: bool) -> Options {
    let looks = closely == Closely::All;
    let time = clock::is_constant() && closely != Closely::CountsOnly;
    Options {
        results: true,
        time,
        waited: time,
        windows: looks,
        elide: elide || closely == Closely::CountsOnly,
        totals: closely == Closely::Totals,
        long: None,
        sampled: false,
        receives: false,
        writes: false,
    }
}

/// Duration of the shortest call that is kept as a wait.
const LONG_WAIT: Duration = Duration::from_nanos(LONG_WAIT_NS);

/// Returns the power of two of cycles from which on the code keeps single calls, for calls that take `longer`. With a
/// power of two a later run can reuse cached code, though its measured clock rate differs slightly.
fn long_power(longer: Duration, cycles_per_ns: f64) -> u8 {
    let cycles = longer.as_nanos() as f64 * cycles_per_ns;
    // The clock's rate may be wrong by one percent at first, so subtract that.
    (cycles * 0.99).max(1.0).log2().min(f64::from(LONGEST_POWER)) as u8
}

/// Time that counting code adds to a call, ns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OwnShare {
    /// Time of a call without the counting code, measured in the same moments, ns.
    pub plain_ns: f64,
    /// Time that the counting code adds, ns.
    pub added_ns: f64,
}

/// Measures, in this process, the time that counting by `options` adds to a call. Returns `None` if that is impossible:
/// without FSGSBASE, or if this process is watched itself or may not map code.
#[must_use]
pub fn own_share(options: &Options) -> Option<OwnShare> {
    if missing().is_some() {
        return None;
    }
    let ratio = clock::Ratio::begin();
    let measured = overhead::measure(options, &Cache::open())?;
    let ns = ratio.settled().cycles_per_ns();
    Some(OwnShare { plain_ns: measured.plain.min / ns, added_ns: measured.share.added / ns })
}

/// Commands that do next to nothing, for a trial; the first that exists is used. Small systems have a shell, but `true`
/// is not at its usual place.
const TRIED: [&[&str]; 3] = [&["/bin/true"], &["/usr/bin/true"], &["/bin/sh", "-c", ":"]];

impl Backend for InprocBackend {
    fn kind(&self) -> BackendKind {
        BackendKind::Inproc
    }

    fn probe(&self) -> Probe {
        let mut probe = Probe { kind: self.kind(), can_run: false, found: Vec::new(), missing: Vec::new() };
        if let Some(what) = missing() {
            probe.missing.push((what, None));
            return probe;
        }
        let Some(command) = TRIED.iter().find(|words| words.first().is_some_and(|file| Path::new(file).is_file()))
        else {
            probe.missing.push(("there is neither /bin/true nor /bin/sh to try it on".into(), None));
            return probe;
        };
        let file = command.first().copied().unwrap_or_default();
        let command = command.iter().map(Into::into).collect();
        match self.watch(&Launch { command, discard_output: true, ..Launch::default() }, &mut Quiet) {
            Ok(recording) if recording.calls() > 1 => {
                probe.can_run = true;
                let added = self.cost().map_or_else(|_| String::new(), |c| format!(", +{:.0} ns a call", c.min));
                probe.found.push(format!("counted {} calls of {file} from inside{added}", recording.calls()));
            }
            Ok(_) => probe.missing.push((format!("counted nothing of {file}"), None)),
            Err(e) => probe.missing.push((e.to_string(), None)),
        }
        if !clock::is_constant() {
            probe.missing.push(("calls can't be timed: the time stamp counter is not constant".into(), None));
        }
        probe
    }

    fn cost(&self) -> Result<Spread, Error> {
        if let Some(what) = missing() {
            return Err(Error::refused(BackendKind::Inproc, what));
        }
        let ratio = clock::Ratio::begin().settled();
        let cycles = overhead::added_for_long(&options(Closely::All, false), &Cache::open());
        Ok(overhead::in_ns(cycles, ratio.cycles_per_ns()))
    }

    fn run(&mut self, launch: &Launch, control: &mut dyn Control) -> Result<Recording, Error> {
        self.watch(launch, control)
    }

    fn attach(&mut self, running: &Running, control: &mut dyn Control) -> Result<Recording, Error> {
        let _limits = crate::limits::Raised::new();
        let session = Self::attached(running, control)?;
        Ok(recording::finish(session, running.how.ends_process).recording(UnseenTime::UNMEASURED))
    }
}

impl InprocBackend {
    fn watch(&self, launch: &Launch, control: &mut dyn Control) -> Result<Recording, Error> {
        let _limits = crate::limits::Raised::new();
        let finished = recording::finish(self.watched(launch, control)?, launch.how.ends_process);
        // A caller that compares runs of counts asks for no time.
        let twins =
            finished.twins.as_ref().filter(|_| launch.how.forward_signals && launch.how.closely == Closely::All);
        let beside = twins.and_then(|twins| {
            twins.kept_or_measured(&Cache::open(), &launch.how, |twin| {
                let (windows, sampled_time) = (launch.how.windows.clone(), launch.how.sampled_time);
                let twin =
                    Launch { how: HowToWatch { windows, sampled_time, ..HowToWatch::default() }, ..twin.clone() };
                self.watched(&twin, &mut Quiet).map(recording::spent)
            })
        });
        Ok(finished.recording(beside.unwrap_or(UnseenTime::UNMEASURED)))
    }

    /// Starts a command and watches it until all its processes have ended.
    fn watched(&self, launch: &Launch, control: &mut dyn Control) -> Result<Session, Error> {
        let ratio = clock::Ratio::begin();
        if let Some(why) = crate::sandbox::kills(BackendKind::Inproc) {
            return Err(Error::refused(BackendKind::Inproc, why));
        }
        let prepared = launch::prepare(launch)?;
        can_share()?;
        let mut signals = Signals::of(&launch.how, launch.grace)?;
        let Begun { cache, options, around, crossing, ratio } = Begun::measure(&launch.how, ratio);
        // Nothing has been started yet: the caller may choose another backend.
        let refused = |e| Error::refused(BackendKind::Inproc, with_source(&e));
        let memory = Memory::new().map_err(refused)?;
        let held = prepared.start(&signals.original_mask()).map_err(refused)?;
        // Start threads only after the fork, which needs a single-threaded process, and not beside a measurement; the
        // rest of the preparation goes on meanwhile.
        let (ahead, maker, mut polling) = (Ahead::default(), Maker::new(options), Polling::new());
        let (program, room) = (prepared.program(), memory.codes().clone());
        let (beside, kept) = (polling.beside(), Arc::clone(&cache));
        let reading = Reading { program, cache: kept, maker: maker.clone(), room, beside };
        polling.read_ahead(&ahead, reading, held.pid);
        let facts = RunFacts::of(launch, crossing);
        let mut symbols = Symbols::expecting(ahead.modules.clone());
        symbols.look_up_ahead(polling.threads_beside());
        let files = Files::new(maker, cache, ahead);
        let mut session = watch::new_session(&launch.how, (memory, polling), (files, symbols), (facts, around), ratio);
        session.draft.awaited = Awaited::of(launch);
        signals.watch(held.pid, control.every());
        control.begins();
        if let Some(held) = watch::begin(&mut session, held)? {
            return Err(held.not_begun(prepared.program(), session.traced.root.exit));
        }
        if let Some(why) = session.traced.root.refused.take() {
            watch::wait_for_root(&mut session);
            signals.give_back();
            return Err(Error::refused(BackendKind::Inproc, why));
        }
        watch::watch(&mut session, &signals, control, launch.linger);
        signals.release();
        Ok(session)
    }

    /// Enters running processes, watches them for a while, and leaves them.
    fn attached(running: &Running, control: &mut dyn Control) -> Result<Session, Error> {
        let ratio = clock::Ratio::begin();
        if let Some(why) = crate::sandbox::kills(BackendKind::Inproc) {
            return Err(Error::refused(BackendKind::Inproc, why));
        }
        can_share()?;
        // An impossible request is reported before anything is measured.
        enter::look_at(running)?;
        let signals = Signals::of(&running.how, None)?;
        let Begun { cache, options, around, crossing, ratio } = Begun::measure(&running.how, ratio);
        let memory = Memory::new().map_err(|e| Error::refused(BackendKind::Inproc, with_source(&e)))?;
        let (maker, polling) = (Maker::new(options), Polling::new());
        let facts = RunFacts::of_running(running, crossing);
        let mut symbols = Symbols::new();
        symbols.look_up_ahead(polling.threads_beside());
        let files = Files::new(maker, cache, Ahead::default());
        let mut session = watch::new_session(&running.how, (memory, polling), (files, symbols), (facts, around), ratio);
        turns::begin(&session.targets.memory, running.in_turns);
        enter::enter_all(&mut session, running)?;
        signals.watch(0, control.every());
        watch::watch(&mut session, &signals, control, Duration::ZERO);
        signals.release();
        Ok(session)
    }
}

/// Checks that memory can be shared with programs here.
///
/// # Errors
/// The reason why it can't.
fn can_share() -> Result<(), Error> {
    if let Some(what) = missing() {
        return Err(Error::refused(BackendKind::Inproc, what));
    }
    // Done before measuring starts, so its cost is not charged to the target.
    seccomp::inherited();
    match crate::limits::forbid_sharing().or_else(crate::sys::forbids_futex) {
        Some(why) => Err(Error::refused(BackendKind::Inproc, why)),
        None => Ok(()),
    }
}

/// Measurements made before anything is watched.
struct Begun {
    cache: Arc<Cache>,
    options: Options,
    around: Around,
    crossing: Spread,
    ratio: clock::Ratio,
}

impl Begun {
    /// Measures how much time counting adds to a call, with the code that `how` needs; `ratio` was begun some time
    /// ago.
    fn measure(how: &HowToWatch, ratio: clock::Ratio) -> Self {
        let cache = Arc::new(Cache::open());
        let mut options = options(how.closely, !how.elisions.is_empty());
        let longer = how.longer.filter(|_| options.time);
        let kept = longer.unwrap_or(LONG_WAIT).min(LONG_WAIT);
        options.long = options.time.then(|| long_power(kept, ratio.settled().cycles_per_ns()));
        options.receives = options.windows && how.windows.tells_requests;
        options.writes = options.windows && matches!(how.until, Some(Moment::Line(_)));
        options.sampled = options.time && how.sampled_time && longer.is_none();
        let measured = overhead::measure(&options, &cache);
        let ratio = ratio.settled();
        let share = measured.as_ref().map_or_else(overhead::guess, |m| m.share);
        let crossing = measured.as_ref().map(|m| overhead::in_ns(m.plain, ratio.cycles_per_ns()));
        let crossing = crossing.unwrap_or_else(|| systoll_price::crossing(overhead::CROSSING));
        let around = Around {
            share_measured: measured.is_some(),
            again: measured.map(|m| m.again),
            own_cycles: share.inside,
            added_ns: share.added / ratio.cycles_per_ns(),
        };
        Self { cache, options, around, crossing, ratio }
    }
}

#[cfg(any(test, feature = "any-target"))]
pub(crate) use any_image::use_image;

/// Parses the texts of a process under /proc: for fuzzing.
#[cfg(any(test, feature = "any-target"))]
pub(crate) fn use_proc(text: &[u8]) {
    maps::use_text(text);
    confinement::use_status(&String::from_utf8_lossy(text));
}
