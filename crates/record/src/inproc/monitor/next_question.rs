//! Predicts, from earlier programs, if another question will come soon after the launcher's last work.
//!
//! Programs of one file begin alike: a hundredth `cc1` maps the libraries that the first has mapped, one soon after the
//! other, and asks nothing for milliseconds after the last. Therefore we note, for each of a file's first questions, if
//! the next came soon, and for all other questions the same by their kind.

use std::cell::Cell;
use std::rc::Rc;

/// Questions from a program's start that are predicted one by one.
const FIRST: usize = 48;

/// Kind of work that the launcher did last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Any other work, or none so far.
    #[default]
    Other,
    /// An answer to a question about a context or about a call of a window.
    Call,
    /// The note that a new program has mapped the shared memory.
    Starting,
    /// Planning and hooking of newly mapped code.
    Mapped,
    /// Preparation of a thread for an exec.
    BeforeExec,
    /// Release of a program that was executed.
    Exec,
    /// The note that a process has ended.
    Ended,
}

/// Number of kinds of work.
const KINDS: usize = Kind::Ended as usize + 1;

/// The launcher's last work, and the question that caused it.
#[derive(Clone, Debug, Default)]
pub(crate) struct LastWork {
    pub(crate) kind: Kind,
    /// History of programs of the same file, and the number of this question in the program.
    pub(crate) place: Option<(Rc<FileHistory>, usize)>,
}

/// Counter that rises each time a question came soon, and falls each time it did not.
#[derive(Clone, Copy, Debug)]
struct Streak(u8);

impl Streak {
    const MOST: u8 = 3;
    /// Streak of questions that always came soon.
    const SOON: Self = Self(Self::MOST);

    /// Returns the streak after a first observation; `soon` is true if the question came soon.
    fn first(soon: bool) -> Self {
        Self(if soon { Self::MOST } else { 0 })
    }

    /// Returns the streak after a further observation.
    fn and(self, soon: bool) -> Self {
        Self(if soon { (self.0 + 1).min(Self::MOST) } else { self.0.saturating_sub(1) })
    }

    /// Returns true if questions mostly came soon.
    fn mostly(self) -> bool {
        self.0 > Self::MOST / 2
    }
}

/// Counters for the first questions of programs of one file.
#[derive(Debug)]
pub(crate) struct FileHistory([Cell<Option<Streak>>; FIRST]);

impl Default for FileHistory {
    fn default() -> Self {
        Self(std::array::from_fn(|_| Cell::new(None)))
    }
}

/// Counters for each kind of work in this run. They predict if another question comes soon.
#[derive(Debug)]
pub(crate) struct NextQuestion([Streak; KINDS]);

impl Default for NextQuestion {
    fn default() -> Self {
        Self([Streak::SOON; KINDS])
    }
}

impl NextQuestion {
    /// Notes if a question came soon after the work `done`.
    pub(crate) fn note(&mut self, done: &LastWork, soon: bool) {
        if let Some(of_kind) = self.0.get_mut(done.kind as usize) {
            *of_kind = of_kind.and(soon);
        }
        if let Some(cell) = place(done) {
            cell.set(Some(cell.get().map_or(Streak::first(soon), |followed| followed.and(soon))));
        }
    }

    /// Returns true if a question mostly comes soon after the work `done`.
    pub(crate) fn is_soon(&self, done: &LastWork) -> bool {
        let of_place = place(done).and_then(Cell::get);
        of_place.or_else(|| self.0.get(done.kind as usize).copied()).is_none_or(Streak::mostly)
    }
}

fn place(done: &LastWork) -> Option<&Cell<Option<Streak>>> {
    let (of_file, nth) = done.place.as_ref()?;
    of_file.0.get(*nth)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn done(of_file: &Rc<FileHistory>, nth: usize) -> LastWork {
        LastWork { kind: Kind::Mapped, place: Some((Rc::clone(of_file), nth)) }
    }

    #[test]
    fn a_files_own_history_outweighs_the_kind_of_question() {
        let (mut outlook, of_file) = (NextQuestion::default(), Rc::default());
        let kind = LastWork { kind: Kind::Mapped, place: None };
        assert!(outlook.is_soon(&kind) && outlook.is_soon(&done(&of_file, 3)));
        for _ in 0..4 {
            for (nth, soon) in [(1, true), (2, true), (3, false)] {
                outlook.note(&done(&of_file, nth), soon);
            }
        }
        assert!(outlook.is_soon(&kind) && outlook.is_soon(&done(&of_file, 2)));
        assert!(!outlook.is_soon(&done(&of_file, 3)));
        // A question that no program of the file has asked, or that is beyond the first ones, is predicted by its kind.
        assert!(outlook.is_soon(&done(&of_file, 4)) && outlook.is_soon(&done(&of_file, FIRST)));
    }

    #[test]
    fn once_is_no_habit() {
        let mut outlook = NextQuestion::default();
        let kind = LastWork { kind: Kind::Call, place: None };
        outlook.note(&kind, false);
        assert!(outlook.is_soon(&kind));
        outlook.note(&kind, false);
        assert!(!outlook.is_soon(&kind));
        outlook.note(&kind, true);
        outlook.note(&kind, true);
        assert!(outlook.is_soon(&kind));
    }
}
