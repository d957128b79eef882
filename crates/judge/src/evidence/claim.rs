//! Claims on calls of windows as needless, with the reason, and the interface of detectors.

use crate::causes::fact::{Fact, Facts};
use crate::collections::hash::Map;
use crate::options::{Options, UseOfReasons};
use crate::reasons::{ReasonId, Why};
use crate::results::finding::Kind;
use crate::semantics::{SIGNAL_MASK, Value};
use crate::world::replay::Step;
use std::ptr;
use std::sync::Arc;
use systoll_model::constants::SIGPIPE;

/// Part of a call's price that is saved if the call is left out.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) enum Saving {
    /// The whole price.
    #[default]
    All,
    /// Only this time, ns, since another call is made in its place.
    Ns(f64),
    /// Nothing: the call is the one to change, which saves others.
    OfOthers,
}

impl Saving {
    /// Returns the saved share of a call's price, which is in ns, as 0 to 1.
    pub(crate) fn share_of(self, price: f64) -> f64 {
        match self {
            Self::All => 1.0,
            Self::Ns(ns) if price > 0.0 => (ns / price).clamp(0.0, 1.0),
            Self::Ns(_) | Self::OfOthers => 0.0,
        }
    }
}

/// The statement that one call of a window was needless.
#[derive(Clone, Debug)]
pub(crate) struct Claim {
    /// The kind of waste.
    pub kind: Kind,
    /// True if the claim makes a remark at most, never a finding.
    pub weak: bool,
    /// True if the call's price is the time that it waits.
    pub by_wait: bool,
    /// Facts of the call, for causes to ask for.
    pub facts: Facts,
    /// The path or file of the call.
    pub object: Option<Arc<str>>,
    /// The object or action of the call, for a sentence.
    pub about: &'static str,
    /// The advice, for a sentence; `None` if none is known.
    pub instead: Option<&'static str>,
    /// The drawback of the advice; empty if there is none.
    pub gives_up: &'static str,
    /// Part of the call's price that the advice saves.
    pub saves: Saving,
}

impl Claim {
    /// Returns the claim's votes where a row's claims differ: a weak one counts half.
    pub(crate) fn votes(&self) -> usize {
        if self.weak { 1 } else { 2 }
    }

    /// Returns a strong claim about no object in particular.
    pub(crate) fn of(kind: Kind, about: &'static str, instead: &'static str) -> Self {
        Self {
            kind,
            weak: false,
            by_wait: false,
            facts: Facts::default(),
            object: None,
            about,
            instead: Some(instead),
            gives_up: "",
            saves: Saving::All,
        }
    }

    /// Returns true if both claims are equal. Texts are compared by address, so equal texts from different constants
    /// count as different.
    fn is(&self, other: &Self) -> bool {
        let of = |c: &Self| (c.kind, c.weak, c.by_wait, c.facts, c.saves);
        let instead = match (self.instead, other.instead) {
            (Some(a), Some(b)) => ptr::eq(a, b),
            (a, b) => a.is_none() && b.is_none(),
        };
        let object = match (&self.object, &other.object) {
            (Some(a), Some(b)) => Arc::ptr_eq(a, b),
            (a, b) => a.is_none() && b.is_none(),
        };
        ptr::eq(self.about, other.about)
            && instead
            && object
            && of(self) == of(other)
            && ptr::eq(self.gives_up, other.gives_up)
    }
}

/// Value in `places` of a call that is left out, since the window does not show whether it is
/// needless.
const LEFT_OUT: u32 = u32::MAX;

/// The detectors' judgement of a call.
#[derive(Clone, Copy)]
pub(crate) enum Judged<'a> {
    /// No detector claims the call.
    Unclaimed,
    /// Like calls are claimed, but the window's edge hides whether this call is needless too.
    LeftOut,
    /// The call is claimed as needless.
    Claimed(&'a Claim),
}

/// Number of newest claims, and of objects, that are searched for an equal one.
const RECENT: usize = 8;

/// The claims on all calls of windows.
#[derive(Default)]
pub(crate) struct Claims {
    /// For each call of all windows so far: the number of its claim, from 1; 0 without a claim; or [`LEFT_OUT`].
    places: Vec<u32>,
    /// All different claims. One of them serves all calls whose claim equals one of the newest
    /// [`RECENT`].
    made: Vec<Claim>,
    /// Names of the steps' objects by path number, each stored once.
    numbered: Vec<Option<Arc<str>>>,
    /// Objects of the newest claims.
    objects: [Option<Arc<str>>; RECENT],
    /// Index of the oldest object in `objects`.
    oldest: usize,
    /// For each window the index of its first call in `places`.
    starts: Vec<usize>,
    /// Index of the newest window's first call in `places`.
    window: usize,
    /// For each call of all windows so far: the first good reason that keeps it silent or weak, or what there is to see of
    /// it. Empty unless [`UseOfReasons::Explain`] is asked for.
    whys: Vec<Option<Why>>,
    /// True if reasons are recorded.
    explains: bool,
    /// A reason that is switched off.
    off: Option<ReasonId>,
}

impl Claims {
    /// Returns an empty list with room for `calls` calls.
    pub(crate) fn with_room(calls: usize, options: &Options) -> Self {
        let off = match options.reasons {
            UseOfReasons::Without(reason) => Some(reason),
            UseOfReasons::Hold | UseOfReasons::Explain => None,
        };
        let explains = options.reasons == UseOfReasons::Explain;
        Self { places: Vec::with_capacity(calls), off, explains, ..Self::default() }
    }

    /// Returns true if a good reason holds for a call of the newest window, and is not switched off. `holds` is the
    /// reason's condition. Notes the reason if reasons are recorded.
    pub(crate) fn excuse(&mut self, index: usize, reason: ReasonId, holds: bool) -> bool {
        if !holds || self.off == Some(reason) {
            return false;
        }
        self.note(index, Why::Good(reason));
        true
    }

    /// Notes why a call of the newest window is not claimed, unless something was noted before.
    pub(crate) fn note(&mut self, index: usize, why: Why) {
        if let Some(noted) = self.whys.get_mut(self.window + index) {
            noted.get_or_insert(why);
        }
    }

    /// Returns what was noted of each call of all windows, in order; nothing unless reasons are recorded.
    pub(crate) fn whys(&self) -> &[Option<Why>] {
        &self.whys
    }

    /// Returns true if a reason is switched off.
    pub(crate) fn is_off(&self, reason: ReasonId) -> bool {
        self.off == Some(reason)
    }

    /// Begins a window of `calls` calls.
    pub(crate) fn begin(&mut self, calls: usize) {
        self.window = self.places.len();
        self.starts.push(self.window);
        self.places.resize(self.window + calls, 0);
        if self.explains {
            self.whys.resize(self.window + calls, None);
        }
    }

    /// Returns the claim on a call of the newest window.
    pub(crate) fn get(&self, index: usize) -> Option<&Claim> {
        let place = self.places.get(self.window + index)?.checked_sub(1)?;
        self.made.get(place as usize)
    }

    /// Sets the claim on a call of the newest window, whatever it had.
    pub(crate) fn set(&mut self, index: usize, claim: Claim) {
        let Some(place) = self.places.get_mut(self.window + index) else { return };
        let from = self.made.len().saturating_sub(RECENT);
        let same = self.made.get(from..).and_then(|newest| newest.iter().rposition(|made| made.is(&claim)));
        let at = same.map_or(self.made.len(), |at| from + at);
        // Claims are left out if there are too many to number.
        let Some(claimed) = u32::try_from(at + 1).ok().filter(|claimed| *claimed != LEFT_OUT) else { return };
        if same.is_none() {
            self.made.push(claim);
        }
        *place = claimed;
    }

    /// Excludes a call of the newest window from the share, unless it has a claim.
    pub(crate) fn leave_out(&mut self, index: usize) {
        if let Some(place) = self.places.get_mut(self.window + index).filter(|place| **place == 0) {
            *place = LEFT_OUT;
        }
    }

    /// Excludes a call of any window from the share, unless it has a claim. Takes the indices of its window and of the
    /// call in it.
    pub(crate) fn leave_out_at(&mut self, window: usize, index: usize) {
        let place = self.starts.get(window).and_then(|start| self.places.get_mut(start + index));
        if let Some(place) = place.filter(|place| **place == 0) {
            *place = LEFT_OUT;
        }
    }

    /// Returns a name as a shared string; reuses the string if the name is among the newest [`RECENT`].
    pub(crate) fn object(&mut self, name: &str) -> Arc<str> {
        if let Some(known) = self.objects.iter().flatten().find(|known| known.as_ref() == name) {
            return known.clone();
        }
        let new: Arc<str> = name.into();
        if let Some(place) = self.objects.get_mut(self.oldest) {
            *place = Some(new.clone());
        }
        self.oldest = (self.oldest + 1) % RECENT;
        new
    }

    /// Returns the name of a step's object, stored once.
    fn object_of(&mut self, step: &Step<'_>) -> Option<Arc<str>> {
        let (name, at) = (step.object.as_deref()?, step.object_id?.place());
        if self.numbered.len() <= at {
            self.numbered.resize(at + 1, None);
        }
        Some(self.numbered.get_mut(at)?.get_or_insert_with(|| name.into()).clone())
    }

    /// Adds a fact to the claims on calls, given by the indices of their window and of the call in it.
    pub(crate) fn add_fact(&mut self, calls: impl Iterator<Item = (usize, usize)>, fact: Fact) {
        // By the number of a claim: that of the same claim with the fact.
        let mut with_fact: Map<u32, u32> = Map::default();
        for (window, index) in calls {
            let Some(place) = self.starts.get(window).and_then(|start| self.places.get_mut(start + index)) else {
                continue;
            };
            let Some(claim) = place.checked_sub(1).and_then(|at| self.made.get(at as usize)) else { continue };
            let next = u32::try_from(self.made.len() + 1).unwrap_or(LEFT_OUT);
            let number = *with_fact.entry(*place).or_insert(next);
            if number == next && next != LEFT_OUT {
                self.made.push(Claim { facts: claim.facts.with(fact, true), ..claim.clone() });
            }
            *place = if number == LEFT_OUT { *place } else { number };
        }
    }

    /// Returns the claim on a call, by the indices of its window and of the call in it.
    pub(crate) fn at(&self, window: usize, index: usize) -> Option<&Claim> {
        let place = self.places.get(self.starts.get(window)? + index)?;
        self.made.get(place.checked_sub(1)? as usize)
    }

    /// Returns the judgement of each call of all windows, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Judged<'_>> {
        self.places.iter().map(|place| match *place {
            0 => Judged::Unclaimed,
            LEFT_OUT => Judged::LeftOut,
            place => self.made.get(place as usize - 1).map_or(Judged::Unclaimed, Judged::Claimed),
        })
    }
}

/// A detector, which reads windows and claims calls that no other detector has claimed.
pub(crate) trait Detector {
    /// Reads one window and makes claims on its steps.
    fn window(&mut self, steps: &[Step<'_>], claims: &mut Claims);
}

/// A detector that remembers nothing between windows is a function.
impl<F: FnMut(&[Step<'_>], &mut Claims)> Detector for F {
    fn window(&mut self, steps: &[Step<'_>], claims: &mut Claims) {
        self(steps, claims);
    }
}

/// Sets a claim on a call that has none, or only a weak one where the new claim is strong.
pub(crate) fn put(claims: &mut Claims, index: usize, claim: Claim) {
    if claims.get(index).is_none_or(|old| old.weak && !claim.weak) {
        claims.set(index, claim);
    }
}

/// Leaves out a call whose verdict lies outside the window, unless it is the first of its row: no call like it came
/// before.
pub(crate) fn leave_out_later(step: &Step<'_>, claims: &mut Claims) {
    if step.observed.call.nth > 1 {
        claims.leave_out(step.index);
    }
}

/// Returns a claim about the state that a step asks for or sets.
pub(crate) fn about_state(kind: Kind, step: &Step<'_>, claims: &mut Claims) -> Option<Claim> {
    let state = step.meaning.as_ref()?.line.about;
    let object = claims.object_of(step);
    let (weak, gives_up) = (state.unsure, state.gives_up);
    let facts = Facts::default().with(Fact::PipeSignal, is_about_pipes(step));
    Some(Claim { weak, facts, instead: None, object, gives_up, ..Claim::of(kind, state.thing, "") })
}

/// Claims a step for the state that it asks for or sets.
pub(crate) fn put_state(kind: Kind, step: &Step<'_>, claims: &mut Claims) {
    if let Some(claim) = about_state(kind, step, claims) {
        put(claims, step.index, claim);
    }
}

/// Returns true if the step changes the signal mask by SIGPIPE alone.
fn is_about_pipes(step: &Step<'_>) -> bool {
    let mask = |value: &Option<Value<'_>>| value.as_deref()?.first_chunk().map(|mask| u64::from_le_bytes(*mask));
    step.meaning.as_ref().filter(|meaning| meaning.line.about.is(&SIGNAL_MASK)).is_some_and(|meaning| {
        mask(&meaning.known).zip(mask(&meaning.now)).is_some_and(|(was, is)| was ^ is == 1 << (SIGPIPE - 1))
    })
}
