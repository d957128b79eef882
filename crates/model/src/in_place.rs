//! Counts of the calls that an experiment asked to answer in place of the kernel.

use crate::sysno::Sysno;

/// The reason why a call was made although it could have been answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Missed {
    /// The call seemed to change something, so it had to be made.
    Changes,
    /// The answer may have been out of date: since it was learnt, a signal came or another thread
    /// ran on the processor; or the thread had no answer yet.
    Unknown,
    /// The call's argument points into memory that the kernel has not touched since a mapping was
    /// removed.
    Elsewhere,
    /// The site answered no calls at that time: the target had mapped code that the launcher had
    /// not looked at yet.
    Down,
    /// No calls are answered at this site: the system call is chosen by number at run time, or the
    /// process is not watched completely.
    Unseen,
}

impl Missed {
    /// All reasons, in the order of their codes.
    pub const ALL: [Self; 5] = [Self::Changes, Self::Unknown, Self::Elsewhere, Self::Down, Self::Unseen];

    /// Returns the reason's name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Changes => "changes",
            Self::Unknown => "unknown",
            Self::Elsewhere => "elsewhere",
            Self::Down => "down",
            Self::Unseen => "unseen",
        }
    }
}

/// Counts of one system call whose calls systoll was to answer in place of the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InPlace {
    /// The system call that the counts are for.
    pub syscall: Sysno,
    /// Number of calls that were answered; the kernel never saw them.
    pub answered: u64,
    /// Number of calls that had to be made: they changed something, failed, or were the first to
    /// ask in their thread.
    pub needed: u64,
    /// Numbers of calls that were made and could have been answered, by reason.
    pub missed: Vec<(Missed, u64)>,
}

impl InPlace {
    /// Returns the number of calls that were made and could have been answered.
    pub fn missed(&self) -> u64 {
        self.missed.iter().fold(0, |sum, (_, n)| sum.saturating_add(*n))
    }

    /// Returns the number of calls that could be answered, including those that were made.
    pub fn eligible(&self) -> u64 {
        self.answered.saturating_add(self.missed())
    }

    /// Adds the figures of other calls of the same system call.
    pub fn add(&mut self, more: &Self) {
        self.answered = self.answered.saturating_add(more.answered);
        self.needed = self.needed.saturating_add(more.needed);
        for (why, n) in &more.missed {
            match self.missed.iter_mut().find(|(known, _)| known == why) {
                Some((_, sum)) => *sum = sum.saturating_add(*n),
                None => self.missed.push((*why, *n)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eligible_calls_are_answered_or_missed() {
        let of = |answered, missed| InPlace { syscall: Sysno(14), answered, needed: 5, missed };
        let mut sum = of(90, vec![(Missed::Unknown, 4)]);
        sum.add(&of(0, vec![(Missed::Unknown, 1), (Missed::Unseen, 5)]));
        assert_eq!((sum.answered, sum.needed, sum.missed(), sum.eligible()), (90, 10, 10, 100));
        sum.add(&of(u64::MAX, vec![(Missed::Down, u64::MAX)]));
        assert_eq!(sum.eligible(), u64::MAX);
    }
}
