//! The processor time that the command and its descendants would have taken unwatched.

use crate::cpu::{IMPOSSIBLE, not_below};
use crate::inproc::monitor::session::Session;
use systoll_model::{Problem, ProblemKind};

/// How exactly it has to be known for shares of it to mean anything; and what is small enough for
/// programs that are over at once, ns.
const EXACT: f64 = 0.1;
const SMALL_NS: u64 = 300_000;
/// How far what counting adds to a call may be off.
const ADDED_DOUBT: f64 = 0.1;
/// How long ago a process that did not say what it has used may have been asked, ns.
const ASKED_AGO_NS: u64 = 100_000_000;

/// An estimate, and what it may be wrong by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct OwnCpu {
    /// What was measured.
    total_ns: u64,
    /// What of it is left to the command; `None` where that is less than its calls alone came to.
    own_ns: Option<u64>,
    doubt_ns: u64,
}

impl OwnCpu {
    /// The estimate, where it is good.
    pub(crate) fn known(&self) -> Option<u64> {
        let good = |own: &u64| self.doubt_ns <= (*own as f64 * EXACT) as u64 + SMALL_NS;
        self.own_ns.filter(|own| *own > 0).filter(good)
    }

    /// What it was at most.
    pub(crate) fn most(&self) -> u64 {
        self.own_ns.map_or(self.total_ns, |own| own.saturating_add(self.doubt_ns).min(self.total_ns.max(own)))
    }

    /// Says why it is not known.
    pub(crate) fn problem(&self) -> Option<Problem> {
        if self.known().is_some() {
            return None;
        }
        let ms = |ns: u64| format!("{:.1} ms", ns as f64 / 1e6);
        let why = match self.own_ns {
            None => IMPOSSIBLE.to_owned(),
            Some(0) => "none was measured".to_owned(),
            Some(own) => format!(
                "of {} that were measured watching took {}, to within {}",
                ms(self.total_ns),
                ms(self.total_ns.saturating_sub(own)),
                ms(self.doubt_ns)
            ),
        };
        Some(Problem::new(ProblemKind::Price, format!("the command's own processor time is not known: {why}")))
    }
}

/// By what the kernel says of all that were waited for, `children` (user and system time).
pub(crate) fn own_cpu(session: &Session, children: (u64, u64)) -> OwnCpu {
    let before = session.stats.facts.children_before;
    let waited_for = children.0.saturating_sub(before.0) + children.1.saturating_sub(before.1);
    let waited_for = waited_for.saturating_sub(session.root.before_exec_ns);
    let added = (session.stats.around.added_ns * session.table.calls as f64) as u64;
    let images = session.table.images.iter().fold(0u64, |sum, i| sum.saturating_add(i.instances.max(1)));
    // A forked process maps our memory again, page by page, and gives it back.
    let start = session.stats.starts_ns / session.stats.starts.max(1);
    let forks = images.saturating_sub(session.stats.starts).saturating_mul(start);
    let ours =
        [session.stats.starts_ns, forks, session.stats.counted.asked.ns].into_iter().fold(added, u64::saturating_add);
    let mut doubt_ns = [session.stats.starts_ns / 2, forks / 2, session.stats.counted.asked.doubt_ns]
        .into_iter()
        .fold((added as f64 * ADDED_DOUBT) as u64, u64::saturating_add);
    let (mut total_ns, mut own_ns) = (waited_for, waited_for.saturating_sub(ours));
    // Daemons and what still runs are not waited for; they have said themselves what they used.
    let said = session.table.images.iter().fold(0u64, |sum, i| sum.saturating_add(i.cpu_ns)).saturating_sub(added);
    if said > own_ns {
        total_ns = total_ns.max(said.saturating_add(ours));
        own_ns = said;
        doubt_ns = doubt_ns.saturating_add(session.stats.counted.asked.unsaid.saturating_mul(ASKED_AGO_NS));
    }
    let toll = session.table.rows.iter().filter_map(|r| r.counts.toll_ns).fold(0u64, u64::saturating_add);
    OwnCpu { total_ns, own_ns: not_below(own_ns, toll), doubt_ns }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_doubtful_or_impossible_is_not_known() {
        let ms = 1_000_000;
        let own = |own_ns, doubt_ns| OwnCpu { total_ns: 30 * ms, own_ns, doubt_ns };
        assert_eq!(own(Some(10 * ms), ms).known(), Some(10 * ms));
        assert_eq!(own(Some(10 * ms), ms).problem(), None);
        for unknown in [own(Some(10 * ms), 2 * ms), own(None, 0), own(Some(0), 0)] {
            assert_eq!(unknown.known(), None);
            assert!(unknown.problem().unwrap().text.contains("not known"), "{unknown:?}");
        }
        assert_eq!([own(Some(10 * ms), 2 * ms).most(), own(None, 0).most()], [12 * ms, 30 * ms]);
    }
}
