//! The detectors: each reads windows, or exact counts, and claims calls. None knows a cause.

mod blocking;
mod busy_poll;
mod children;
mod claim;
mod edge;
mod empty;
mod failing;
mod given_back;
mod herd;
mod noop;
mod rearm;
mod reload;
mod reopen;
mod repeat;
mod search;
mod short_lived;
mod slow_path;
mod small_io;
mod sync;
mod toggle;

pub(crate) use blocking::{StartupWait, startup_waits};
pub(crate) use children::{Children, children};
pub(crate) use claim::{Claim, Claims, Judged};

use crate::replay::Replay;
use crate::semantics::Semantics;
use claim::Detector;
use systoll_model::Recording;

/// Claims for the calls of all windows, in the order of [`Recording::windows`].
pub(crate) fn claims(recording: &Recording, semantics: &Semantics) -> Claims {
    let mut replay = Replay::new(recording, semantics);
    // A call is claimed by the first that can tell why.
    let mut detectors: [Box<dyn Detector>; 17] = [
        Box::new(reload::Reload::default()),
        Box::new(repeat::Repeat),
        Box::new(noop::NoOp),
        Box::new(toggle::Toggle),
        Box::new(short_lived::ShortLived::default()),
        Box::new(rearm::Rearm),
        Box::new(given_back::GivenBack::default()),
        Box::new(search::Search::default()),
        Box::new(herd::Herd::new(recording, semantics)),
        Box::new(failing::Failing::default()),
        Box::new(busy_poll::BusyPoll::new(recording, semantics)),
        Box::new(empty::Empty),
        Box::new(small_io::SmallIo),
        Box::new(slow_path::SlowPath),
        Box::new(sync::Sync::new(recording, semantics)),
        Box::new(reopen::Reopen::default()),
        Box::new(edge::Edge),
    ];
    let mut claims = Claims::default();
    let mut steps = Vec::new();
    for window in &recording.windows {
        replay.window(window, &mut steps);
        claims.begin(steps.len());
        for detector in &mut detectors {
            detector.window(&steps, &mut claims);
        }
    }
    claims
}
