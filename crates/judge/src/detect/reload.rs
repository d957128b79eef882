//! Detects a library that is loaded, unloaded and loaded again.

use crate::causes::fact::{Fact, Facts};
use crate::collections::hash::{Map, Seeded, Set};
use crate::evidence::claim::{Claim, Claims, Detector, put};
use crate::results::finding::Kind;
use crate::semantics::{Effect, Trait};
use crate::world::bounds::REMEMBERED;
use crate::world::replay::{Opened, Step};
use std::hash::BuildHasher;
use std::sync::Arc;

/// Largest number of calls between an opening and its closing.
const CYCLE: usize = 24;

/// Claims loading a library that was loaded before. A loaded library is not mapped again, so it was unloaded in
/// between.
#[derive(Default)]
pub(super) struct Reload {
    /// Libraries that were loaded again, by process and address.
    lay: Map<(u32, u64), Arc<str>>,
    /// Hashes of the libraries that were loaded. A program that opens a library to look at it before it loads it has
    /// not loaded it twice.
    loaded: Set<(u32, u64)>,
    hash: Seeded,
}

impl Detector for Reload {
    fn window(&mut self, steps: &[Step<'_>], claims: &mut Claims) {
        for (at, step) in steps.iter().enumerate() {
            if let Some(opened) = step.opened.as_ref().filter(|o| !o.writes && !o.anew && o.again) {
                self.load(opened, steps.get(at..).unwrap_or_default(), claims);
            }
            let Some(library) = self.lay.get(&(step.who, step.observed.arg(0))) else { continue };
            if step.ends {
                put(claims, step.index, claim(library));
            }
        }
    }
}

impl Reload {
    fn load(&mut self, opened: &Opened<'_>, steps: &[Step<'_>], claims: &mut Claims) {
        let Some(fd) = steps.first().and_then(|s| s.observed.call.result) else { return };
        let about = |s: &Step<'_>| s.lines.fd == Some(0) && i64::from(s.observed.descriptor(0)) == fd;
        let closes = |s: &Step<'_>| about(s) && s.effects.iter().any(|e| matches!(e, Effect::Closes(0)));
        let cycle = steps.get(..CYCLE.min(steps.len())).unwrap_or_default();
        let Some(end) = cycle.iter().position(closes) else { return };
        let cycle = cycle.get(..=end).unwrap_or_default();
        let maps = |s: &&Step<'_>| s.lines.maps() && s.observed.call.errno().is_none();
        let loads = |s: &Step<'_>| s.lines.is(Trait::LoadsCode, &s.observed) && s.observed.call.errno().is_none();
        if !cycle.iter().any(|s| loads(s) && i64::from(s.observed.descriptor(4)) == fd) {
            return;
        }
        let who = steps.first().map_or(0, |s| s.who);
        let room = self.loaded.len() < REMEMBERED;
        let name = (who, self.hash.hash_one(&*opened.path));
        if !self.loaded.contains(&name) {
            if room {
                self.loaded.insert(name);
            }
            return;
        }
        let library: Arc<str> = Arc::from(&*opened.path);
        let own = cycle.iter().enumerate().filter(|(n, s)| *n == 0 || about(s) || maps(s));
        own.for_each(|(_, step)| put(claims, step.index, claim(&library)));
        let place = |s: &Step<'_>| (who, s.observed.call.result.unwrap_or(0) as u64);
        if let Some(place) = cycle.iter().find(maps).map(place)
            && self.lay.len() < REMEMBERED
        {
            self.lay.insert(place, library);
        }
    }
}

fn claim(library: &Arc<str>) -> Claim {
    Claim {
        object: Some(library.clone()),
        facts: Facts::default().with(Fact::Reloaded, true),
        gives_up: "it remains in memory",
        ..Claim::of(
            Kind::Repeat,
            "a library that was loaded before and let go of",
            "keep its handle and leave it loaded: dlclose at the end, or RTLD_NODELETE",
        )
    }
}
