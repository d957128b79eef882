//! The detectors: each reads windows, or exact counts, and claims calls. None knows a cause.

mod awake;
mod between;
mod blocking;
mod brief_sleep;
mod busy_poll;
mod by_process;
mod children;
mod copies;
mod dead_store;
#[cfg(test)]
mod each_line;
mod edge;
mod entries;
mod failing;
mod families;

mod handoff;
mod held_back;
mod herd;
mod kernel_locks;
mod led_elsewhere;
mod made_again;
mod mapped;
mod margin;
mod missing;
mod near_reads;
mod noop;
mod nowhere;
mod open_file;
mod others_look;
mod own_pipe;
mod own_writes;
mod pieces;
mod presized;
mod program;
mod ready_first;
mod rearm;
mod reconnect;
mod refill;
mod reload;
mod relock;
mod renamed;
mod reopen;
mod repeat;
mod reread;
mod rewatch;
mod rewritten;
mod ritual;
mod room;
mod scratch;
mod search;
mod seek_back;
mod self_wake;
mod short_threads;
mod signalled;
mod slow_path;
mod small_io;
mod status;
mod sync;
mod terminal;
mod there_and_back;
mod timer_habits;
mod timers;
mod toggle;
mod unserved;
mod walk;

pub(crate) use blocking::{StartupWait, startup_waits};
pub(crate) use children::{Children, Started, children};
pub(crate) use copies::copies;
pub(crate) use reopen::READ_ANEW;
pub(crate) use walk::leads_to;

use crate::collections::hash::Set;
use crate::evidence::claim::{Claims, Detector};
use crate::options::{Options, UseOfReasons};
use crate::reasons::Why;
use crate::reasons::plain::plain;
use crate::semantics::signs::Signs;
use crate::semantics::{MISSING, Semantics};
use crate::world::changers::Changers;
use crate::world::replay::Replay;
use std::rc::Rc;
use systoll_model::{Recording, WindowCall};

/// Returns the processes with one thread.
fn with_one_thread(recording: &Recording) -> Set<u32> {
    let single = (0u32..).zip(&recording.processes).filter(|(_, process)| process.threads == 1);
    single.map(|(at, _)| at).collect()
}

/// Returns the processes with several threads. Of a process whose number of threads is not known, none is assumed.
fn with_several_threads(recording: &Recording) -> Set<u32> {
    let several = (0u32..).zip(&recording.processes).filter(|(_, process)| process.threads > 1);
    several.map(|(at, _)| at).collect()
}

/// Returns true if a window shows a call that finds a name missing.
fn misses(recording: &Recording) -> bool {
    let is_missing = |call: &WindowCall| call.errno().is_some_and(|errno| MISSING.contains(&errno));
    recording.windows.iter().any(|window| window.calls.iter().any(is_missing))
}

/// Returns the claims on the calls of all windows, in the order of [`Recording::windows`].
pub(crate) fn claims(recording: &Recording, semantics: &Semantics, options: &Options) -> Claims {
    let changers = Rc::new(Changers::of(recording, semantics));
    let mut replay = Replay::new(recording, semantics, changers.clone(), misses(recording));
    let (mapped, writers) = (mapped::mapped_files(recording, semantics), mapped::writers(recording, semantics));
    let signalled = signalled::signalled(recording);
    let (single, threaded) = (with_one_thread(recording), with_several_threads(recording));
    let synced = sync::shared(recording, semantics);
    let rung = awake::Rung::of(recording, semantics);
    // Each with the signs that it looks for: it is given only the windows that show one of them. A call has the claim of the
    // first detector that makes one.
    let mut detectors: Vec<(Signs, Box<dyn Detector>)> = vec![
        (Signs::OPENS_AGAIN.and(Signs::ENDS), Box::new(reload::Reload::default())),
        (Signs::CALL, Box::new(short_threads::ShortThreads::new(recording, semantics))),
        (Signs::CALL, Box::new(scratch::Scratch::new(recording, semantics))),
        (Signs::IN_VAIN.and(Signs::STATUS_FLAGS), Box::new(ritual::Ritual::default())),
        (Signs::ROOM, Box::new(room::window)),
        // If a path is opened again, claims of other detectors may have to be weakened.
        (Signs::KNOWN.and(Signs::OPENS_AGAIN), Box::new(repeat::Repeat::new(recording, semantics, changers))),
        (Signs::MISSING, Box::new(missing::Missing::default())),
        (Signs::PATH, Box::new(own_writes::OwnWrites::new(recording, semantics))),
        (Signs::SETS, Box::new(noop::NoOp { writers: &writers, mapped: &mapped, threaded: &threaded })),
        (Signs::SEEKS, Box::new(seek_back::window)),
        (Signs::SEEKS, Box::new(refill::window)),
        (Signs::FILE_STATUS, Box::new(status::window)),
        (Signs::LOCKS, Box::new(relock::Relock::new(recording, semantics))),
        (Signs::WATCHES, Box::new(rewatch::Rewatch::default())),
        (Signs::SETS, Box::new(toggle::Toggle::new(recording, semantics, &signalled))),
        (Signs::SETS, Box::new(there_and_back::ThereAndBack::default())),
        (Signs::SIZES, Box::new(presized::Presized { mapped: &mapped })),
        (Signs::STORES, Box::new(dead_store::DeadStore::new(recording, semantics))),
        (Signs::MAKES, Box::new(made_again::MadeAgain::new(recording, semantics, &single))),
        (Signs::OPENS, Box::new(rewritten::Rewritten::new(recording, semantics))),
        (Signs::CALL, Box::new(reconnect::Reconnect::new(recording, semantics))),
        (Signs::ARMS, Box::new(rearm::Rearm::new(recording, semantics))),
        (Signs::CALL, Box::new(search::Search::new(recording, semantics))),
        (Signs::NOTHING.and(Signs::WAKES), Box::new(herd::Herd::new(recording, semantics, &synced))),
        (Signs::CALL, Box::new(failing::Failing::new(&rung, recording))),
        (Signs::ATTRIBUTE.and(Signs::PATH), Box::new(nowhere::Nowhere::new(recording))),
        (Signs::MOVES, Box::new(awake::Awake::new(&rung, recording))),
        (Signs::MOVES, Box::new(self_wake::SelfWake { rung: &rung })),
        (Signs::SLEEPS, Box::new(brief_sleep::window)),
        (Signs::NOTHING, Box::new(busy_poll::BusyPoll::new(recording, semantics))),
        (Signs::CALL, Box::new(unserved::window)),
        (Signs::MOVES, Box::new(ready_first::window)),
        (Signs::ENTERS, Box::new(entries::Entries::new(recording))),
        (Signs::MOVES, Box::new(small_io::SmallIo::new(&rung, (recording, semantics), &mapped, &signalled, &single))),
        (Signs::MOVES_AT, Box::new(near_reads::window)),
        (Signs::RANGED, Box::new(pieces::window)),
        (Signs::SLOW, Box::new(slow_path::SlowPath::new(recording, semantics))),
        (Signs::KERNEL_LOCKS, Box::new(kernel_locks::window)),
        (Signs::CALL, Box::new(handoff::Handoff::new(&rung, recording, semantics))),
        (Signs::MOVES, Box::new(held_back::HeldBack::new(recording, semantics))),
        (Signs::SETS, Box::new(sync::Sync::new(recording, semantics, [&threaded, &synced], &writers))),
        (Signs::CALL, Box::new(reopen::Reopen::new(recording, semantics))),
        (Signs::MOVES, Box::new(own_pipe::OwnPipe::new(recording, semantics))),
    ];
    let mut claims = Claims::with_room(recording.windows.iter().map(|window| window.calls.len()).sum(), options);
    let mut steps = Vec::new();
    let (mut edge, mut elsewhere) = (edge::Edge::default(), margin::Elsewhere::default());
    let mut programs = program::Programs::new(recording);
    for (at, window) in recording.windows.iter().enumerate() {
        let shown = replay.window(window, &mut steps);
        claims.begin(steps.len());
        for (_, detector) in detectors.iter_mut().filter(|(looks_for, _)| shown.any(*looks_for)) {
            detector.window(&steps, &mut claims);
        }
        if options.reasons == UseOfReasons::Explain {
            steps.iter().for_each(|step| claims.note(step.index, Why::Plain(plain(step))));
        }
        edge.window(at, &steps, shown, &claims);
        elsewhere.window(&steps);
        programs.window(at, &steps, shown, &claims);
    }
    edge.finish(&mut claims);
    programs.finish(&mut claims);
    margin::leave_out(recording, &elsewhere, &mut claims);
    claims
}
