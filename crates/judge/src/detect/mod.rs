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

/// Returns true if a window shows a call that finds a name missing.
fn misses(recording: &Recording) -> bool {
    let is_missing = |call: &WindowCall| call.errno().is_some_and(|errno| MISSING.contains(&errno));
    recording.windows.iter().any(|window| window.calls.iter().any(is_missing))
}

/// Returns the claims on the calls of all windows, in the order of [`Recording::windows`].
pub(crate) fn claims(recording: &Recording, semantics: &Semantics, options: &Options) -> Claims {
    let search = search::Search::new(recording, semantics);
    let nowhere = nowhere::Nowhere::new(recording);
    let changers = Rc::new(Changers::of(recording, semantics));
    let mut replay = Replay::new(recording, semantics, changers.clone(), misses(recording));
    let mapped = mapped::mapped_files(recording, semantics);
    let signalled = signalled::signalled(recording);
    let single = with_one_thread(recording);
    let rung = awake::Rung::of(recording, semantics);
    // A call has the claim of the first detector that makes one.
    let mut detectors: Vec<Box<dyn Detector>> = vec![
        Box::new(reload::Reload::default()),
        Box::new(short_threads::ShortThreads::new(recording, semantics)),
        Box::new(scratch::Scratch::new(recording, semantics)),
        Box::new(ritual::Ritual::default()),
        Box::new(room::Room),
        Box::new(repeat::Repeat::new(recording, semantics, changers)),
        Box::new(missing::Missing::default()),
        Box::new(own_writes::OwnWrites::new(recording, semantics)),
        Box::new(noop::NoOp::new(recording, semantics, &mapped)),
        Box::new(seek_back::SeekBack),
        Box::new(refill::Refill),
        Box::new(status::Status),
        Box::new(relock::Relock::new(recording, semantics)),
        Box::new(rewatch::Rewatch::default()),
        Box::new(toggle::Toggle::new(recording, semantics, &signalled)),
        Box::new(there_and_back::ThereAndBack::default()),
        Box::new(presized::Presized::new(&mapped)),
        Box::new(dead_store::DeadStore::new(recording, semantics)),
        Box::new(made_again::MadeAgain::new(recording, semantics, &single)),
        Box::new(rewritten::Rewritten::new(recording, semantics)),
        Box::new(reconnect::Reconnect::new(recording, semantics)),
        Box::new(rearm::Rearm::new(recording, semantics)),
        Box::new(search),
        Box::new(herd::Herd::new(recording, semantics)),
        Box::new(failing::Failing::new(recording)),
        Box::new(nowhere),
        Box::new(awake::Awake::new(&rung, recording)),
        Box::new(self_wake::SelfWake::new(&rung)),
        Box::new(brief_sleep::BriefSleep),
        Box::new(busy_poll::BusyPoll::new(recording, semantics)),
        Box::new(unserved::Unserved::new(recording, semantics)),
        Box::new(ready_first::ReadyFirst::new(recording, semantics)),
        Box::new(entries::Entries::new(recording)),
        Box::new(small_io::SmallIo::new(&rung, recording, &mapped, &signalled, &single)),
        Box::new(near_reads::NearReads),
        Box::new(pieces::Pieces),
        Box::new(slow_path::SlowPath::new(recording, semantics)),
        Box::new(kernel_locks::KernelLocks),
        Box::new(handoff::Handoff::new(&rung, recording, semantics)),
        Box::new(held_back::HeldBack::new(recording, semantics)),
        Box::new(sync::Sync::new(recording, semantics)),
        Box::new(reopen::Reopen::new(recording, semantics)),
        Box::new(own_pipe::OwnPipe::new(recording, semantics)),
    ];
    let mut claims = Claims::with_room(recording.windows.iter().map(|window| window.calls.len()).sum(), options);
    let mut steps = Vec::new();
    let (mut edge, mut elsewhere) = (edge::Edge::default(), margin::Elsewhere::default());
    let mut programs = program::Programs::new(recording);
    for window in &recording.windows {
        let shown = replay.window(window, &mut steps);
        claims.begin(steps.len());
        for detector in detectors.iter_mut().filter(|detector| shown.any(detector.looks_for())) {
            detector.window(&steps, &mut claims);
        }
        if options.reasons == UseOfReasons::Explain {
            steps.iter().for_each(|step| claims.note(step.index, Why::Plain(plain(step))));
        }
        edge.window(&steps, shown, &claims);
        elsewhere.window(&steps);
        programs.window(&steps, shown, &claims);
    }
    edge.finish(&mut claims);
    programs.finish(&mut claims);
    margin::leave_out(recording, &elsewhere, &mut claims);
    claims
}
