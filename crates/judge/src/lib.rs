//! From a recording to findings. Pure: the same recording gives the same findings, no I/O.
//!
//! Windows are replayed, detectors claim calls, claims become a share of each row, rows with one
//! disease become a group, and a group that costs enough becomes a finding. Causes are data: no
//! detector knows one.

#![forbid(unsafe_code)]

mod catalogue;
mod could_explain;
mod deferred_cost;
mod detect;
mod extrapolate;
mod fact;
mod finding;
mod group;
mod grouping;
mod hash;
mod options;
mod pattern;
mod per_unit;
mod phrasing;
mod replay;
mod semantics;
mod subject;
mod survey;
mod verdict;

pub use catalogue::{Apply, Catalogue, Cause, CauseError, Cure, CureKind};
pub use fact::{AskedFacts, Fact};
pub use finding::{Confidence, Estimate, Evidence, Finding, Judgement, Kind, Later, PerUnit, WorkUnit};
pub use grouping::{By, Common, Group, Grouping, grouped};
pub use options::Options;
pub use pattern::Pattern;

use semantics::Semantics;
use std::cmp::Reverse;
use systoll_model::Recording;

/// Judges a recording for which [`Recording::check`] holds.
pub fn judge(recording: &Recording, catalogue: &Catalogue, options: &Options) -> Judgement {
    let semantics = Semantics::new();
    let claims = detect::claims(recording, &semantics);
    let views = survey::survey(recording, &claims);
    let waits = detect::startup_waits(recording, &semantics, options);
    let phases = verdict::Phases::of(recording);
    let mut groups = group::groups(recording, &views, &waits, catalogue, options);
    groups.extend(
        detect::children(recording, &semantics, options).into_iter().map(|c| group::started(c, recording, catalogue)),
    );
    let shown = survey::Shown { recording, views: &views, claims: &claims, semantics: &semantics };
    let mut all: Vec<Finding> = groups.iter().filter_map(|g| verdict::verdict(g, shown, &phases, options)).collect();
    all.sort_by_key(|f| (Reverse(f.time_to_win_ns()), f.rows.first().copied()));
    let (findings, also) = all.into_iter().partition(|f| f.confidence == Confidence::High);
    Judgement { findings, also }
}
