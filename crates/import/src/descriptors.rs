//! Follows the files of descriptors from call to call where the trace does not name them.

use crate::hash::Map;
use std::sync::Arc;

/// Largest number of descriptors followed in all processes; further ones have no name.
const MOST: usize = 200_000;
/// Largest number of descriptors that children inherit, all children together, since each costs a
/// copy. Later children begin without any that is known.
const MOST_COPIED: usize = 1 << 24;

/// A process's descriptors: those that an exec keeps, and those that it closes.
#[derive(Clone, Debug, Default)]
struct Open {
    stay: Map<i32, Arc<str>>,
    closed_by_exec: Map<i32, Arc<str>>,
}

impl Open {
    fn len(&self) -> usize {
        self.stay.len() + self.closed_by_exec.len()
    }

    fn close(&mut self, fd: i32) {
        if self.stay.remove(&fd).is_none() {
            self.closed_by_exec.remove(&fd);
        }
    }
}

/// The followed descriptors, by process.
#[derive(Default)]
pub(crate) struct Descriptors {
    tables: Map<u32, Open>,
    held: usize,
    copied: usize,
}

impl Descriptors {
    /// Returns the name of a descriptor's file.
    pub(crate) fn name(&self, process: u32, fd: i32) -> Option<Arc<str>> {
        let open = self.tables.get(&process)?;
        open.stay.get(&fd).or_else(|| open.closed_by_exec.get(&fd)).cloned()
    }

    /// Notes that a descriptor leads to `name` from now on.
    pub(crate) fn open(&mut self, process: u32, fd: i32, name: Arc<str>, closed_by_exec: bool) {
        if fd < 0 || self.held >= MOST {
            return;
        }
        let open = self.tables.entry(process).or_default();
        let before = open.len();
        open.close(fd);
        if closed_by_exec { &mut open.closed_by_exec } else { &mut open.stay }.insert(fd, name);
        self.held += open.len() - before;
    }

    /// Notes that descriptor `to` leads to the same file as `from` from now on.
    pub(crate) fn duplicate(&mut self, process: u32, from: i32, to: i32, closed_by_exec: bool) {
        if from == to {
            return;
        }
        match self.name(process, from) {
            Some(name) => self.open(process, to, name, closed_by_exec),
            None => self.close(process, to),
        }
    }

    /// Notes that a descriptor was closed.
    pub(crate) fn close(&mut self, process: u32, fd: i32) {
        let Some(open) = self.tables.get_mut(&process) else { return };
        let before = open.len();
        open.close(fd);
        self.held -= before - open.len();
    }

    /// Notes that another program begins in the process.
    pub(crate) fn exec(&mut self, process: u32) {
        let Some(open) = self.tables.get_mut(&process) else { return };
        self.held -= std::mem::take(&mut open.closed_by_exec).len();
    }

    /// Notes that a process begins with its parent's descriptors.
    pub(crate) fn fork(&mut self, parent: u32, child: u32) {
        let fits = |open: &&Open| self.held + open.len() <= MOST && self.copied + open.len() <= MOST_COPIED;
        let Some(open) = self.tables.get(&parent).filter(fits).cloned() else { return };
        self.end(child);
        self.held += open.len();
        self.copied += open.len();
        self.tables.insert(child, open);
    }

    /// Notes that the process has ended.
    pub(crate) fn end(&mut self, process: u32) {
        self.held -= self.tables.remove(&process).map_or(0, |open| open.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors_are_followed() {
        let mut all = Descriptors::default();
        all.open(1, 3, Arc::from("/a"), true);
        all.open(1, 4, Arc::from("/b"), false);
        all.duplicate(1, 3, 0, false);
        all.fork(1, 2);
        all.exec(2);
        all.close(1, 3);
        let names = |all: &Descriptors, process| [0, 3, 4].map(|fd| all.name(process, fd).unwrap_or_default());
        assert_eq!(names(&all, 1), ["/a", "", "/b"].map(Arc::from));
        assert_eq!(names(&all, 2), ["/a", "", "/b"].map(Arc::from));
        assert_eq!(all.held, 4);
        // The descriptor is opened again, with the other flag.
        all.open(1, 4, Arc::from("/c"), true);
        assert_eq!((names(&all, 1), all.held), (["/a", "", "/c"].map(Arc::from), 4));
        all.exec(1);
        assert_eq!((names(&all, 1), all.held), (["/a", "", ""].map(Arc::from), 3));
        all.end(1);
        all.end(2);
        assert_eq!(all.held, 0);
    }

    #[test]
    fn programs_begun_and_children_made_again_and_again_cost_little() {
        let mut all = Descriptors::default();
        let many = MOST as i32 / 2;
        (0..many).for_each(|fd| all.open(1, fd, Arc::from("/a"), false));
        // If each exec and fork walked all descriptors, this would take minutes.
        let began = std::time::Instant::now();
        for _ in 0..100_000 {
            all.open(1, many, Arc::from("/b"), true);
            all.exec(1);
            all.fork(1, 2);
            all.end(2);
        }
        assert!(began.elapsed().as_secs() < 60, "{:?}", began.elapsed());
        assert_eq!((all.held, all.copied <= MOST_COPIED), (many as usize, true));
    }
}
