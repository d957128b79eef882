//! What descriptors are behind, followed from call to call where the trace does not say.

use crate::hash::Map;
use std::sync::Arc;

/// Descriptors of all processes that are followed; others stay without a name.
const MOST: usize = 200_000;

#[derive(Clone, Debug)]
struct Behind {
    name: Arc<str>,
    closed_by_exec: bool,
}

/// Descriptors by process.
#[derive(Default)]
pub(crate) struct Descriptors {
    tables: Map<u32, Map<i32, Behind>>,
    held: usize,
}

impl Descriptors {
    /// What a descriptor is behind.
    pub(crate) fn name(&self, process: u32, fd: i32) -> Option<Arc<str>> {
        self.tables.get(&process)?.get(&fd).map(|behind| behind.name.clone())
    }

    /// A descriptor is behind this from now on.
    pub(crate) fn open(&mut self, process: u32, fd: i32, name: Arc<str>, closed_by_exec: bool) {
        if fd < 0 || self.held >= MOST {
            return;
        }
        let new = self.tables.entry(process).or_default().insert(fd, Behind { name, closed_by_exec }).is_none();
        self.held += usize::from(new);
    }

    /// Two descriptors are behind the same from now on.
    pub(crate) fn duplicate(&mut self, process: u32, from: i32, to: i32, closed_by_exec: bool) {
        if from == to {
            return;
        }
        match self.name(process, from) {
            Some(name) => self.open(process, to, name, closed_by_exec),
            None => self.close(process, to),
        }
    }

    /// A descriptor is behind nothing any more.
    pub(crate) fn close(&mut self, process: u32, fd: i32) {
        let gone = self.tables.get_mut(&process).and_then(|table| table.remove(&fd)).is_some();
        self.held -= usize::from(gone);
    }

    /// Another program begins in the process.
    pub(crate) fn exec(&mut self, process: u32) {
        let Some(table) = self.tables.get_mut(&process) else { return };
        let before = table.len();
        table.retain(|_, behind| !behind.closed_by_exec);
        self.held -= before - table.len();
    }

    /// A process begins with what its parent has open.
    pub(crate) fn fork(&mut self, parent: u32, child: u32) {
        let Some(table) = self.tables.get(&parent).filter(|t| self.held + t.len() <= MOST).cloned() else { return };
        self.end(child);
        self.held += table.len();
        self.tables.insert(child, table);
    }

    /// The process has ended.
    pub(crate) fn end(&mut self, process: u32) {
        self.held -= self.tables.remove(&process).map_or(0, |table| table.len());
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
        let names = |process: u32| [0, 3, 4].map(|fd| all.name(process, fd).map(|n| n.to_string()));
        assert_eq!(names(1), [Some("/a".into()), None, Some("/b".into())]);
        assert_eq!(names(2), [Some("/a".into()), None, Some("/b".into())]);
        assert_eq!(all.held, 4);
        all.end(1);
        all.end(2);
        assert_eq!(all.held, 0);
    }
}
