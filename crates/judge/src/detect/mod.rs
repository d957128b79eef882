//! The detectors: each reads windows, or exact counts, and claims calls. None knows a cause.

mod blocking;
mod busy_poll;
mod children;
mod failing;
mod given_back;
mod noop;
mod rearm;
mod reopen;
mod repeat;
mod slow_path;
mod small_io;
mod sync;
mod toggle;

pub(crate) use blocking::{StartupWait, startup_waits};
pub(crate) use children::{Children, children};

use crate::Kind;
use crate::replay::{Replay, Step};
use crate::semantics::Semantics;
use std::sync::Arc;
use systoll_model::Recording;

/// That one call of a window was needless.
#[derive(Clone, Debug)]
pub(crate) struct Claim {
    /// The kind of waste.
    pub kind: Kind,
    /// Whether it makes a remark at most.
    pub weak: bool,
    /// Whether its price is waiting.
    pub by_wait: bool,
    /// Whether it is one of many places looked into for one thing.
    pub search: bool,
    /// The path or file it is about.
    pub object: Option<Arc<str>>,
    /// What the call is about or does, for a sentence.
    pub about: &'static str,
    /// What to do instead, where the table knows.
    pub instead: Option<&'static str>,
    /// What that gives up.
    pub gives_up: &'static str,
}

/// Claims of one window, one place a call.
pub(crate) type Claims = [Option<Claim>];

/// Reads windows and claims calls that nobody has claimed yet.
trait Detector {
    /// Looks at one window, whose steps and claims go together.
    fn window(&mut self, steps: &[Step<'_>], claims: &mut Claims);
}

/// Claims for all windows, in the order of [`Recording::windows`].
pub(crate) fn claims(recording: &Recording, semantics: &Semantics) -> Vec<Vec<Option<Claim>>> {
    let mut replay = Replay::new(recording, semantics);
    // A call is claimed by the first that can tell why.
    let mut detectors: [Box<dyn Detector>; 11] = [
        Box::new(repeat::Repeat),
        Box::new(noop::NoOp),
        Box::new(toggle::Toggle),
        Box::new(rearm::Rearm),
        Box::new(given_back::GivenBack::default()),
        Box::new(failing::Failing::default()),
        Box::new(busy_poll::BusyPoll),
        Box::new(small_io::SmallIo),
        Box::new(slow_path::SlowPath),
        Box::new(sync::Sync::new(recording, semantics)),
        Box::new(reopen::Reopen::default()),
    ];
    let windows = recording.windows.iter().map(|window| {
        let steps = replay.window(window);
        let mut claims = vec![None; steps.len()];
        for detector in &mut detectors {
            detector.window(&steps, &mut claims);
        }
        claims
    });
    windows.collect()
}

/// Puts a claim where none is, or where only a weaker one is.
fn put(claims: &mut Claims, index: usize, claim: Claim) {
    if let Some(place) = claims.get_mut(index)
        && place.as_ref().is_none_or(|old| old.weak && !claim.weak)
    {
        *place = Some(claim);
    }
}

/// The claim that a step's own topic gives rise to.
fn topical(kind: Kind, step: &Step<'_>) -> Option<Claim> {
    let topic = step.meaning.as_ref()?.entry.about;
    Some(Claim {
        kind,
        weak: topic.unsure,
        by_wait: false,
        search: false,
        object: step.object.as_deref().map(Arc::from),
        about: topic.thing,
        instead: None,
        gives_up: topic.gives_up,
    })
}
