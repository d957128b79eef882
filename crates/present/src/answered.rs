//! Describes an experiment that answers calls in place of the kernel: the number of answered calls,
//! and the reasons why others were not answered.

use crate::style::{Line, Role};
use crate::text::clean;
use crate::units::grouped;
use serde::Serialize;
use std::collections::BTreeMap;
use systoll_prove::{Answered, missed, words_of};

/// Indent of the text behind a label.
const INDENT: &str = "             ";

/// Writes the counts of an average run: `12 of 600,000 rt_sigprocmask calls`.
fn counted(a: &Answered) -> String {
    let a_run = |n: u64| grouped(n / u64::from(a.runs.max(1)));
    let of =
        |p: &systoll_model::InPlace| format!("{} of {} {} calls", a_run(p.answered), a_run(p.eligible()), p.syscall);
    a.calls.iter().map(of).collect::<Vec<_>>().join(", ")
}

/// Writes a share rounded down, `33.1 %`: a part never reads as all.
fn percent(share: f64) -> String {
    format!("{:.1} %", (share * 1000.0).floor() / 10.0)
}

/// Writes in one line how many of the calls that could be answered were answered. Where a few were not, so that the counts of
/// an average run are equal, the number of these in all runs stands in place of the share.
fn summary(a: &Answered, of: &str) -> String {
    let runs = u64::from(a.runs.max(1));
    let look_equal = a.calls.iter().all(|p| p.answered / runs == p.eligible() / runs);
    let missed = a.calls.iter().fold(0u64, |sum, p| sum.saturating_add(p.missed()));
    let share = match a.share() {
        Some(share) if look_equal && missed > 0 && share < 1.0 => {
            let plural = if runs == 1 { "" } else { "s" };
            format!(" (all but {} in {} {of}{plural})", grouped(missed), grouped(runs))
        }
        Some(share) => format!(" ({})", percent(share)),
        None => String::new(),
    };
    format!("{} that change nothing, in a {of}{share}", counted(a))
}

/// Writes in one line the reason why nothing is predicted.
pub(crate) fn too_few(a: &Answered) -> String {
    format!("{TOO_FEW}: {}", summary(a, "run"))
}

const TOO_FEW: &str = "too few calls were answered in place to tell what all of them would win";

/// Returns the screen's lines about the answered calls, on the average of runs.
pub(crate) fn lines(a: &Answered) -> Vec<Line> {
    lines_of(a, "run")
}

/// Returns the screen's lines about the answered calls, on the average of what `of` names.
pub(crate) fn lines_of(a: &Answered, of: &str) -> Vec<Line> {
    let strong = |label: &str, text: String| Line::of(Role::Strong, label.to_owned()).with(Role::Plain, text);
    if a.is_enough() {
        return vec![strong("  answered   ", summary(a, of))];
    }
    let plain = |text: String| Line::of(Role::Plain, format!("{INDENT}{text}"));
    let mut lines = vec![strong("  not predicted   ", TOO_FEW.into()), plain(format!("answered: {}", summary(a, of)))];
    let a_run = |n: u64| grouped(n.div_ceil(u64::from(a.runs.max(1))));
    lines.extend(missed(&a.calls).into_iter().map(|(reason, n)| plain(format!("{} {}", a_run(n), words_of(reason)))));
    lines.extend(a.told.iter().map(|text| plain(clean(text))));
    lines
}

#[derive(Serialize)]
pub(crate) struct AnsweredJson {
    runs: u32,
    share: Option<f64>,
    enough: bool,
    calls: Vec<AnsweredCalls>,
}

#[derive(Serialize)]
struct AnsweredCalls {
    syscall: String,
    answered: u64,
    needed: u64,
    missed: u64,
    why: BTreeMap<&'static str, u64>,
}

pub(crate) fn json(a: &Answered) -> AnsweredJson {
    let calls = a.calls.iter().map(|p| AnsweredCalls {
        syscall: p.syscall.to_string(),
        answered: p.answered,
        needed: p.needed,
        missed: p.missed(),
        why: p.missed.iter().map(|(why, n)| (why.name(), *n)).collect(),
    });
    AnsweredJson { runs: a.runs, share: a.share(), enough: a.is_enough(), calls: calls.collect() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::style::Style;
    use systoll_model::{InPlace, Missed, Sysno};

    fn answered(answered: u64, missed: Vec<(Missed, u64)>) -> Answered {
        let calls = vec![InPlace { syscall: Sysno(14), answered, needed: 7, missed }];
        Answered { calls, runs: 2, told: vec!["./x: its calls are not answered in place: why".into()] }
    }

    fn written(a: &Answered) -> String {
        lines(a).iter().map(|l| l.render(&Style::default()) + "\n").collect()
    }

    #[test]
    fn a_part_comes_with_its_reasons() {
        assert_eq!(
            written(&answered(1_000, vec![(Missed::Elsewhere, 2_990), (Missed::Unknown, 10)])),
            "  not predicted   too few calls were answered in place to tell what all of them would win
             answered: 500 of 2,000 rt_sigprocmask calls that change nothing, in a run (25.0 %)
             1,495 point to memory that the kernel has not touched since some was taken away
             5 came after a signal or a wait, or first in their thread: the mask was not known
             ./x: its calls are not answered in place: why
"
        );
    }

    #[test]
    fn a_part_never_reads_as_all() {
        let text = written(&answered(1_999_999, vec![(Missed::Unknown, 1)]));
        assert!(text.starts_with("  answered   999,999 of 1,000,000 rt_sigprocmask calls"), "{text}");
        assert!(text.ends_with("(99.9 %)\n"), "{text}");
        // Of two runs with 1,000,000 calls each, one call was not answered: an average run's counts look equal.
        let text = written(&answered(2_000_000, vec![(Missed::Unknown, 1)]));
        assert!(text.starts_with("  answered   1,000,000 of 1,000,000"), "{text}");
        assert!(text.ends_with("(all but 1 in 2 runs)\n"), "{text}");
    }
}
