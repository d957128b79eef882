//! What became of calls that were to be answered in place of the kernel.

use crate::sysno::Sysno;

/// Why a call was made that could have been answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Missed {
    /// It seemed to change something.
    Changes,
    /// A signal had come, or another thread had had the processor, since the answer was learnt; or it
    /// was the thread's first such call.
    Unknown,
    /// What it points to lies in memory that the kernel has not touched since some was taken away.
    Elsewhere,
    /// Nothing was answered at that time: code had come that the launcher had not looked at yet.
    Down,
    /// It was made where nothing is answered: by number, or in a process that is not seen whole.
    Unseen,
}

impl Missed {
    /// All there are.
    pub const ALL: [Self; 5] = [Self::Changes, Self::Unknown, Self::Elsewhere, Self::Down, Self::Unseen];

    /// As JSON says it.
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

/// Calls of one kind that were to be answered in place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InPlace {
    /// The system call.
    pub syscall: Sysno,
    /// Calls answered, which the kernel never saw.
    pub answered: u64,
    /// Calls made that had to be: they changed something, failed, or asked for the first time in their thread.
    pub needed: u64,
    /// Calls made that did not have to be, by why they were.
    pub missed: Vec<(Missed, u64)>,
}

impl InPlace {
    /// Calls made that did not have to be.
    pub fn missed(&self) -> u64 {
        self.missed.iter().fold(0, |sum, (_, n)| sum.saturating_add(*n))
    }

    /// Calls that did not have to be made: answered, and not.
    pub fn eligible(&self) -> u64 {
        self.answered.saturating_add(self.missed())
    }

    /// Adds what became of others of the kind.
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
    fn what_is_eligible_is_answered_or_missed() {
        let of = |answered, missed| InPlace { syscall: Sysno(14), answered, needed: 5, missed };
        let mut sum = of(90, vec![(Missed::Unknown, 4)]);
        sum.add(&of(0, vec![(Missed::Unknown, 1), (Missed::Unseen, 5)]));
        assert_eq!((sum.answered, sum.needed, sum.missed(), sum.eligible()), (90, 10, 10, 100));
        sum.add(&of(u64::MAX, vec![(Missed::Down, u64::MAX)]));
        assert_eq!(sum.eligible(), u64::MAX);
    }
}
