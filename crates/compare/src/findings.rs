//! Finds findings that came or went.

use crate::change::Side;
use crate::key::Key;
use crate::names::Names;
use crate::table::Keys;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use systoll_judge::Finding;
use systoll_model::{Recording, Sysno};

/// A finding that only one side has.
#[derive(Clone, Debug, PartialEq)]
pub struct FindingChange {
    /// The finding's cause, or its kind if the cause is not known.
    pub id: Arc<str>,
    /// The system call of most of the finding's calls.
    pub syscall: Option<Sysno>,
    /// The object of the finding.
    pub what: Option<String>,
    /// The function that makes the calls.
    pub user: Option<Arc<str>>,
    /// Number of needless calls.
    pub needless: u64,
    /// Cost of the needless calls, ns.
    pub toll_ns: u64,
}

/// The identity of a finding: its cause or kind, and the system call.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Id {
    cause: Arc<str>,
    syscall: Option<Sysno>,
}

/// Returns a cause's id, or the kind's name if the cause is not known.
pub(crate) fn id(finding: &Finding) -> Arc<str> {
    finding.cause.clone().unwrap_or_else(|| finding.kind.name().into())
}

/// The findings of a side's recordings.
pub(crate) struct Judged {
    runs: usize,
    findings: BTreeMap<Id, Tally>,
}

struct Tally {
    /// Number of recordings that have the finding.
    found: usize,
    /// True if one of the finding's rows changed. If none did, the same calls were only judged
    /// differently.
    changed: bool,
    shown: FindingChange,
}

impl Judged {
    /// Collects the findings of `side`. `changed` are the rows that changed.
    pub(crate) fn of(side: Side<'_>, names: &Names, changed: &BTreeSet<&Key>) -> Self {
        let mut findings: BTreeMap<Id, Tally> = BTreeMap::new();
        for (recording, judgement) in side.recordings.iter().zip(side.judgements) {
            let keys = Keys::new(recording, names);
            let mut counted = BTreeSet::new();
            for finding in &judgement.findings {
                let id = Id { cause: id(finding), syscall: finding.syscalls.first().copied() };
                let rows = finding.rows.iter().filter_map(|id| recording.rows.get(id.0 as usize));
                let is_changed = rows.map(|row| keys.row(row)).any(|key| changed.contains(&key));
                let tally = findings.entry(id.clone()).or_insert_with(|| Tally {
                    found: 0,
                    changed: false,
                    shown: shown(recording, finding, &id),
                });
                tally.changed |= is_changed;
                tally.found += usize::from(counted.insert(id));
            }
        }
        Self { runs: side.recordings.len(), findings }
    }

    fn in_none(&self, id: &Id) -> bool {
        !self.findings.contains_key(id)
    }
}

fn shown(recording: &Recording, finding: &Finding, id: &Id) -> FindingChange {
    let user = finding.user.and_then(|f| recording.frames.get(f.0 as usize)?.location());
    FindingChange {
        id: id.cause.clone(),
        syscall: id.syscall,
        what: finding.what.clone(),
        user: user.map(|place| place.function.clone()),
        needless: finding.needless.estimate,
        toll_ns: finding.needless_toll_ns,
    }
}

/// Returns the findings that all runs of one side have and no run of the other has: new ones, then
/// those that are gone; costliest first.
pub(crate) fn changes(old: &Judged, new: &Judged) -> (Vec<FindingChange>, Vec<FindingChange>) {
    let only = |of: &Judged, other: &Judged| {
        let alone = of.findings.iter().filter(|(id, t)| t.changed && t.found == of.runs && other.in_none(id));
        let mut alone: Vec<FindingChange> = alone.map(|(_, t)| t.shown.clone()).collect();
        alone.sort_by_key(|f| std::cmp::Reverse(f.toll_ns));
        alone
    };
    (only(new, old), only(old, new))
}
