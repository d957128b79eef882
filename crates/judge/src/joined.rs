//! Joins groups that have one cause and the same cures into one finding.
//!
//! Groups are made by cause and object, since two objects may have different cures. If their cures are the same, the reader
//! has one thing to do, and gets one finding.

use crate::finding::Finding;
use crate::group::Group;
use crate::judged_view::JudgedView;
use crate::options::Options;
use crate::phases::Phases;
use crate::verdict::verdict;
use systoll_model::Recording;

/// Returns the verdicts of groups; groups with one cause and the same cures have one verdict.
pub(crate) fn verdicts(
    groups: &[Group<'_>],
    shown: JudgedView<'_>,
    phases: &Phases,
    options: &Options,
) -> Vec<Finding> {
    let told = |group: &Group<'_>| verdict(group, shown, phases, options);
    let mut each: Vec<Option<Finding>> = groups.iter().map(told).collect();
    let mut findings = Vec::new();
    for at in 0..groups.len() {
        let Some((group, finding)) = groups.get(at).zip(each.get_mut(at).and_then(Option::take)) else { continue };
        let alike = |other: &usize| {
            let of_other = groups.get(*other).zip(each.get(*other).and_then(Option::as_ref));
            of_other.is_some_and(|other| are_one((group, &finding), other, shown.recording))
        };
        let others: Vec<usize> = (at + 1..groups.len()).filter(alike).collect();
        let of_others = others.iter().filter_map(|other| groups.get(*other)).flat_map(|group| &group.rows);
        let mut rows: Vec<_> = group.rows.iter().chain(of_others).copied().collect();
        rows.sort_unstable();
        rows.dedup();
        let as_sure = |all: &Finding| all.confidence >= finding.confidence && all.cures == finding.cures;
        let all = if others.is_empty() { None } else { told(&group.with_rows(rows)).filter(as_sure) };
        match all {
            Some(all) => {
                for other in others {
                    each.get_mut(other).map(Option::take);
                }
                findings.push(all);
            }
            None => findings.push(finding),
        }
    }
    findings
}

/// Returns true if two groups of a program have one cause and one way to end it.
fn are_one(one: (&Group<'_>, &Finding), other: (&Group<'_>, &Finding), recording: &Recording) -> bool {
    type Of<'a> = (&'a Group<'a>, &'a Finding);
    fn cause<'a>((_, finding): Of<'a>) -> Option<&'a str> {
        finding.cause.as_deref()
    }
    let plain = |(group, _): Of<'_>| group.startup.is_none() && group.children.is_none();
    let alike = |(group, finding): Of<'_>| (group.by_wait, finding.kind, finding.confidence, finding.phase);
    let exe = |(_, finding): Of<'_>| {
        let lead = finding.rows.first()?;
        Some(&recording.process(recording.row(*lead).process).exe)
    };
    cause(one).is_some()
        && cause(one) == cause(other)
        && plain(one)
        && plain(other)
        && alike(one) == alike(other)
        && one.1.cures == other.1.cures
        && exe(one) == exe(other)
}
