//! Claims: which calls of windows are needless, and why. What detectors have in common.

use crate::fact::Facts;
use crate::finding::Kind;
use crate::replay::Step;
use crate::signs::Signs;
use std::ptr;
use std::sync::Arc;

/// What of a call's price is saved where it is left out, or made otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) enum Saving {
    /// All of it.
    #[default]
    All,
    /// So many ns: another call is made in its place.
    Ns(f64),
}

impl Saving {
    /// The share of a call's price, which is in ns.
    pub(crate) fn share_of(self, price: f64) -> f64 {
        match self {
            Self::All => 1.0,
            Self::Ns(ns) if price > 0.0 => (ns / price).clamp(0.0, 1.0),
            Self::Ns(_) => 0.0,
        }
    }
}

/// That one call of a window was needless.
#[derive(Clone, Debug)]
pub(crate) struct Claim {
    /// The kind of waste.
    pub kind: Kind,
    /// Whether it makes a remark at most.
    pub weak: bool,
    /// Whether its price is waiting.
    pub by_wait: bool,
    /// What is so of the call, for causes to ask for.
    pub facts: Facts,
    /// The path or file it is about.
    pub object: Option<Arc<str>>,
    /// What the call is about or does, for a sentence.
    pub about: &'static str,
    /// What to do instead, where the table knows.
    pub instead: Option<&'static str>,
    /// What that gives up.
    pub gives_up: &'static str,
    /// What of the call's price it saves.
    pub saves: Saving,
}

impl Claim {
    /// A sure claim about no object in particular.
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

    /// Whether it says the same as another; one made elsewhere of equal words may be taken for another.
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

/// The place of a call of which the window does not tell whether it is one of those claimed.
const LEFT_OUT: u32 = u32::MAX;

/// What detectors have to say of a call.
#[derive(Clone, Copy)]
pub(crate) enum Judged<'a> {
    /// Nothing.
    Unclaimed,
    /// Claims are made of what it belongs to, but the window's edge hides whether it is like the others.
    LeftOut,
    /// It is needless.
    Claimed(&'a Claim),
}

/// Claims, and objects, that are looked through for one that says the same.
const RECENT: usize = 8;

/// Claims, one place a call of a window.
#[derive(Default)]
pub(crate) struct Claims {
    /// For each call of all windows so far, which claim it has, from 1, or [`LEFT_OUT`].
    places: Vec<u32>,
    /// Each stands for all calls it was made of in a row: most are as the ones before.
    made: Vec<Claim>,
    /// Objects of steps, by number.
    numbered: Vec<Option<Arc<str>>>,
    /// Objects of the newest claims.
    objects: [Option<Arc<str>>; RECENT],
    /// Which of these is the oldest.
    oldest: usize,
    /// Where each window's places begin.
    starts: Vec<usize>,
    /// The newest of these.
    window: usize,
    /// Whether it has a claim.
    any: bool,
}

impl Claims {
    /// None yet, of the windows of a recording that hold so many calls.
    pub(super) fn with_room(calls: usize) -> Self {
        Self { places: Vec::with_capacity(calls), ..Self::default() }
    }

    /// Goes on to a window of so many calls.
    pub(super) fn begin(&mut self, calls: usize) {
        self.window = self.places.len();
        self.any = false;
        self.starts.push(self.window);
        self.places.resize(self.window + calls, 0);
    }

    /// Whether any call of the newest window has a claim.
    pub(super) fn any(&self) -> bool {
        self.any
    }

    /// The claim on a call of the newest window.
    pub(super) fn get(&self, index: usize) -> Option<&Claim> {
        let place = self.places.get(self.window + index)?.checked_sub(1)?;
        self.made.get(place as usize)
    }

    /// Puts a claim on a call of the newest window, whatever it had.
    pub(super) fn set(&mut self, index: usize, claim: Claim) {
        let Some(place) = self.places.get_mut(self.window + index) else { return };
        let from = self.made.len().saturating_sub(RECENT);
        let same = self.made.get(from..).and_then(|newest| newest.iter().rposition(|made| made.is(&claim)));
        let at = same.map_or(self.made.len(), |at| from + at);
        // Claims beyond what can be counted are left out.
        let Some(claimed) = u32::try_from(at + 1).ok().filter(|claimed| *claimed != LEFT_OUT) else { return };
        if same.is_none() {
            self.made.push(claim);
        }
        *place = claimed;
        self.any = true;
    }

    /// Has a call of the newest window not be counted, unless there is a claim on it.
    pub(super) fn leave_out(&mut self, index: usize) {
        if let Some(place) = self.places.get_mut(self.window + index).filter(|place| **place == 0) {
            *place = LEFT_OUT;
        }
    }

    /// An object's name, kept once where it comes again soon.
    pub(super) fn object(&mut self, name: &str) -> Arc<str> {
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

    /// The name of a step's object, kept once.
    fn object_of(&mut self, step: &Step<'_>) -> Option<Arc<str>> {
        let (name, at) = (step.object.as_deref()?, step.object_id?.place());
        if self.numbered.len() <= at {
            self.numbered.resize(at + 1, None);
        }
        Some(self.numbered.get_mut(at)?.get_or_insert_with(|| name.into()).clone())
    }

    /// The claim on a call of a window, both by their place.
    pub(crate) fn at(&self, window: usize, index: usize) -> Option<&Claim> {
        let place = self.places.get(self.starts.get(window)? + index)?;
        self.made.get(place.checked_sub(1)? as usize)
    }

    /// One place for each call of all windows, in their order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Judged<'_>> {
        self.places.iter().map(|place| match *place {
            0 => Judged::Unclaimed,
            LEFT_OUT => Judged::LeftOut,
            place => self.made.get(place as usize - 1).map_or(Judged::Unclaimed, Judged::Claimed),
        })
    }
}

/// Reads windows and claims calls that no other detector has claimed.
pub(super) trait Detector {
    /// What a window shows in which it may find anything, or learn something: of others it is not told.
    fn looks_for(&self) -> Signs {
        Signs::CALL
    }

    /// Looks at one window, whose steps and claims go together.
    fn window(&mut self, steps: &[Step<'_>], claims: &mut Claims);
}

/// Puts a claim where none is, or where only a weaker one is.
pub(super) fn put(claims: &mut Claims, index: usize, claim: Claim) {
    if claims.get(index).is_none_or(|old| old.weak && !claim.weak) {
        claims.set(index, claim);
    }
}

/// Leaves a call out whose verdict lies outside the window, unless it is the very first of its row: before
/// that there was none like it.
pub(super) fn leave_out_later(step: &Step<'_>, claims: &mut Claims) {
    if step.observed.call.nth > 1 {
        claims.leave_out(step.index);
    }
}

/// The claim that a step's own state gives rise to.
pub(super) fn about_state(kind: Kind, step: &Step<'_>, claims: &mut Claims) -> Option<Claim> {
    let state = step.meaning.as_ref()?.line.about;
    let object = claims.object_of(step);
    let (weak, gives_up) = (state.unsure, state.gives_up);
    Some(Claim { weak, instead: None, object, gives_up, ..Claim::of(kind, state.thing, "") })
}
