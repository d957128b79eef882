//! The ends of files that a window shows, as far as only one descriptor was written to.

use crate::collections::hash::Map;

/// A process and its descriptor.
type Opening = (u32, i32);

/// Known ends of open files, bytes. Others may write while the program waits, so the caller forgets all ends then.
#[derive(Default)]
pub(crate) struct FileEnds(Map<Opening, u64>);

impl FileEnds {
    /// Returns true if the file's end is known to lie at `position`.
    pub(crate) fn lies_at(&self, of: Opening, position: u64) -> bool {
        self.0.get(&of) == Some(&position)
    }

    /// Sets the end of a file.
    pub(crate) fn found(&mut self, of: Opening, end: u64) {
        self.0.insert(of, end);
    }

    /// Notes that bytes were written up to a position; `None` if that is not known.
    pub(crate) fn written(&mut self, of: Opening, position: Option<u64>) {
        match (self.0.get_mut(&of), position) {
            (Some(end), Some(position)) => *end = position.max(*end),
            (Some(_), None) => drop(self.0.remove(&of)),
            (None, _) => {}
        }
    }

    /// Forgets the ends of files for which `other` returns true.
    pub(crate) fn forget(&mut self, other: impl Fn(Opening) -> bool) {
        self.0.retain(|of, _| !other(*of));
    }

    /// Forgets all ends.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::FileEnds;

    #[test]
    fn an_end_moves_with_what_is_written_behind_it() {
        let (mut ends, of) = (FileEnds::default(), (0, 3));
        ends.written(of, Some(8));
        assert!(!ends.lies_at(of, 8), "its end was not asked for");
        ends.found(of, 8);
        ends.written(of, Some(4));
        assert!(ends.lies_at(of, 8));
        ends.written(of, Some(9));
        assert!(ends.lies_at(of, 9) && !ends.lies_at((0, 4), 9));
        ends.written(of, None);
        assert!(!ends.lies_at(of, 9), "it was written to at a place that is not known");
        ends.found(of, 1);
        ends.forget(|other| other == of);
        assert!(!ends.lies_at(of, 1));
    }
}
