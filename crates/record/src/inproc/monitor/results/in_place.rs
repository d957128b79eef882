//! Reports the number of calls that were answered in place, and the reasons why others were not.

use systoll_hooks::assemble::{MadeInPlace, elided_calls};
use systoll_hooks::layout::{elide, slot};
use systoll_model::{Counts, Elision, InPlace, Missed, Row, Sysno};

/// The reasons for which needless calls were made all the same, in the order of [`slot::WHY`].
const WHYS: [Missed; slot::WHYS as usize] = [Missed::Changes, Missed::Unknown, Missed::Elsewhere, Missed::Down];

/// Returns the bits of the calls to answer in place.
pub(crate) fn bits(elisions: &[Elision]) -> u32 {
    let bit = |elision: &Elision| match elision {
        Elision::Getpid => 1,
        Elision::Gettid => 1 << 1,
        Elision::Getuid => 1 << 2,
        Elision::Geteuid => 1 << 3,
        Elision::RtSigprocmask => elide::MASK,
    };
    elisions.iter().map(bit).fold(0, |all, bit| all | bit)
}

/// Returns the outcome for the system calls whose bits are set in `elided`. Rows count all calls and threads count the
/// needed ones, so the rest were needless.
pub(crate) fn in_place(elided: u32, made: &MadeInPlace, rows: &[Row]) -> Vec<InPlace> {
    in_place_of(elided, made, || rows.iter().map(|row| (row.syscall, &row.counts)))
}

/// Returns the same as [`in_place`] for rows that have no names yet.
pub(crate) fn in_place_of<'a, R: Iterator<Item = (Sysno, &'a Counts)>>(
    elided: u32,
    made: &MadeInPlace,
    rows: impl Fn() -> R,
) -> Vec<InPlace> {
    let calls = elided_calls().zip(made.needed);
    calls
        .filter(|((bit, _), _)| elided & bit != 0)
        .map(|((_, number), needed)| {
            let own = rows().filter(|(syscall, _)| *syscall == Sysno(number));
            let add = |sum: (u64, u64), (_, c): (Sysno, &Counts)| {
                (sum.0.saturating_add(c.calls), sum.1.saturating_add(c.elided))
            };
            of_call(Sysno(number), needed, made, own.fold((0, 0), add))
        })
        .collect()
}

fn of_call(syscall: Sysno, needed: u64, made: &MadeInPlace, (calls, answered): (u64, u64)) -> InPlace {
    let needed = needed.min(calls);
    let mut rest = calls - needed;
    let mut missed = Vec::new();
    if syscall.name() == Some("rt_sigprocmask") {
        for (why, n) in WHYS.into_iter().zip(made.missed) {
            let n = n.min(rest);
            rest -= n;
            missed.push((why, n));
        }
    }
    missed.push((Missed::Unseen, rest));
    missed.retain(|(_, n)| *n > 0);
    InPlace { syscall, answered, needed, missed }
}

#[cfg(test)]
mod tests {
    use super::*;
    use systoll_model::ProcessId;

    fn row(syscall: u32, calls: u64, elided: u64) -> Row {
        Row::new(ProcessId(0), Sysno(syscall), Counts { calls, elided, ..Counts::default() })
    }

    #[test]
    fn calls_without_a_reason_count_as_unseen() {
        let made = MadeInPlace { needed: [1, 0, 0, 0, 7], missed: [0, 2, 3, 0] };
        let rows = [row(39, 4, 9), row(14, 20, 80), row(14, 0, 5), row(102, 3, 0)];
        let all = in_place(1 | 1 << 4, &made, &rows);
        let of = |n: u32| all.iter().find(|p| p.syscall == Sysno(n)).cloned();
        let missed = vec![(Missed::Unseen, 3)];
        assert_eq!(of(39), Some(InPlace { syscall: Sysno(39), answered: 9, needed: 1, missed }));
        let missed = vec![(Missed::Unknown, 2), (Missed::Elsewhere, 3), (Missed::Unseen, 8)];
        assert_eq!(of(14), Some(InPlace { syscall: Sysno(14), answered: 85, needed: 7, missed }));
        assert_eq!(all.len(), 2);
    }

    #[test]
    fn overwritten_figures_do_not_exceed_the_counts() {
        let made = MadeInPlace { needed: [u64::MAX; 5], missed: [u64::MAX; 4] };
        let all = in_place(u32::MAX, &made, &[row(14, 20, 1)]);
        assert!(all.iter().all(|p| p.missed() == 0), "{all:?}");
        let made = MadeInPlace { needed: [0; 5], missed: [u64::MAX; 4] };
        let all = in_place(1 << 4, &made, &[row(14, 20, 1)]);
        assert_eq!((all[0].missed(), all[0].eligible()), (20, 21));
    }
}
