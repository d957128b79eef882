//! Whether something soon follows what the launcher has just done, told by how it was before.
//!
//! Programs of one file begin alike: a hundredth `cc1` maps the libraries that the first has mapped, one soon after the
//! other, and asks nothing for milliseconds after the last. So it is kept for each of a file's first questions whether
//! the next came soon, and for all others by what they were about.

use std::cell::Cell;
use std::rc::Rc;

/// Questions of a program that are told apart: those of its start.
const FIRST: usize = 48;

/// What the launcher has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Kind {
    /// None of the others, or nothing yet.
    #[default]
    Other,
    /// It answered about a context or a call of a window.
    Call,
    /// A program that begins has said that it has mapped what it shares.
    Starting,
    /// Code that was mapped was looked through.
    Mapped,
    /// A thread was made ready for an exec.
    BeforeExec,
    /// A program that was executed was let go.
    Exec,
    /// A process's end was noted.
    Ended,
}

/// Kinds there are.
const KINDS: usize = Kind::Ended as usize + 1;

/// What the launcher has done, and whose question it was.
#[derive(Clone, Debug, Default)]
pub(crate) struct Done {
    pub(crate) kind: Kind,
    /// How it was in programs of the same file, and which of the program's questions it was.
    pub(crate) place: Option<(Rc<OfFile>, usize)>,
}

/// Whether something came soon, the last few times.
#[derive(Clone, Copy, Debug)]
struct Followed(u8);

impl Followed {
    const MOST: u8 = 3;
    /// It always did.
    const SOON: Self = Self(Self::MOST);

    /// As after one time.
    fn first(soon: bool) -> Self {
        Self(if soon { Self::MOST } else { 0 })
    }

    /// And after another.
    fn and(self, soon: bool) -> Self {
        Self(if soon { (self.0 + 1).min(Self::MOST) } else { self.0.saturating_sub(1) })
    }

    /// Whether it mostly did.
    fn mostly(self) -> bool {
        self.0 > Self::MOST / 2
    }
}

/// What followed the first questions of programs of one file.
#[derive(Debug)]
pub(crate) struct OfFile([Cell<Option<Followed>>; FIRST]);

impl Default for OfFile {
    fn default() -> Self {
        Self(std::array::from_fn(|_| Cell::new(None)))
    }
}

/// What followed what, in this run.
#[derive(Debug)]
pub(crate) struct Outlook([Followed; KINDS]);

impl Default for Outlook {
    fn default() -> Self {
        Self([Followed::SOON; KINDS])
    }
}

impl Outlook {
    /// Notes whether something came soon after `done`.
    pub(crate) fn note(&mut self, done: &Done, soon: bool) {
        if let Some(of_kind) = self.0.get_mut(done.kind as usize) {
            *of_kind = of_kind.and(soon);
        }
        if let Some(cell) = place(done) {
            cell.set(Some(cell.get().map_or(Followed::first(soon), |followed| followed.and(soon))));
        }
    }

    /// Whether something mostly comes soon after `done`.
    pub(crate) fn is_soon(&self, done: &Done) -> bool {
        let of_place = place(done).and_then(Cell::get);
        of_place.or_else(|| self.0.get(done.kind as usize).copied()).is_none_or(Followed::mostly)
    }
}

fn place(done: &Done) -> Option<&Cell<Option<Followed>>> {
    let (of_file, nth) = done.place.as_ref()?;
    of_file.0.get(*nth)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn done(of_file: &Rc<OfFile>, nth: usize) -> Done {
        Done { kind: Kind::Mapped, place: Some((Rc::clone(of_file), nth)) }
    }

    #[test]
    fn a_file_s_own_questions_tell_more_than_their_kind() {
        let (mut outlook, of_file) = (Outlook::default(), Rc::default());
        let kind = Done { kind: Kind::Mapped, place: None };
        assert!(outlook.is_soon(&kind) && outlook.is_soon(&done(&of_file, 3)));
        for _ in 0..4 {
            for (nth, soon) in [(1, true), (2, true), (3, false)] {
                outlook.note(&done(&of_file, nth), soon);
            }
        }
        assert!(outlook.is_soon(&kind) && outlook.is_soon(&done(&of_file, 2)));
        assert!(!outlook.is_soon(&done(&of_file, 3)));
        // What no program of the file has asked yet, or none can be told by, is told by its kind.
        assert!(outlook.is_soon(&done(&of_file, 4)) && outlook.is_soon(&done(&of_file, FIRST)));
    }

    #[test]
    fn once_is_no_habit() {
        let mut outlook = Outlook::default();
        let kind = Done { kind: Kind::Call, place: None };
        outlook.note(&kind, false);
        assert!(outlook.is_soon(&kind));
        outlook.note(&kind, false);
        assert!(!outlook.is_soon(&kind));
        outlook.note(&kind, true);
        outlook.note(&kind, true);
        assert!(outlook.is_soon(&kind));
    }
}
