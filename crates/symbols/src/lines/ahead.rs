//! Threads that look up lines while the program runs.
//!
//! Lines that an earlier run looked up are kept. For a single new address, megabytes of debug information are read;
//! at the end of a run, the user would wait for that.

use super::dwarf::{Dwarf, LineLookup};
use crate::ModuleKey;
use crate::module::{Module, is_libc};
use foldhash::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

/// Starts a thread that runs a closure; returns false if that failed.
pub type Spawn = Box<dyn Fn(Box<dyn FnOnce() + Send>) -> bool>;

/// Files whose debug information is in memory at once, at most; that of a large program takes hundreds of megabytes.
const MOST_FILES: usize = 2;
/// Addresses of a file looked up while the program runs, at most.
const MOST: usize = 1 << 16;
/// Time after which a file's debug information is freed if no address is asked for.
const IDLE: Duration = Duration::from_millis(500);

/// The threads that look up lines, one for each file with debug information.
#[derive(Default)]
pub(crate) struct LinesAhead {
    spawn: Option<Spawn>,
    readers: HashMap<ModuleKey, Reader>,
}

/// A thread that looks up lines of one file.
#[derive(Debug)]
struct Reader {
    asked: HashSet<u64>,
    questions: Sender<u64>,
    answers: Receiver<LookupsAhead>,
}

/// Results by address.
pub(crate) type LookupsAhead = HashMap<u64, LineLookup>;

impl LinesAhead {
    pub(crate) fn by(spawn: Spawn) -> Self {
        Self { spawn: Some(spawn), ..Self::default() }
    }

    /// Asks for the lines at an address, unless an earlier run has kept them; [`LinesAhead::take`] returns them
    /// later.
    pub(crate) fn want(&mut self, key: ModuleKey, module: &Arc<Module>, address: u64) {
        let Some(spawn) = self.spawn.as_ref().filter(|_| module.kept_lines(address).is_none()) else { return };
        if !self.readers.contains_key(&key) {
            let is_libcs = module.whole_class().is_some_and(is_libc);
            if self.readers.len() >= MOST_FILES || is_libcs || !module.elf.has_lines() || module.tells_go() {
                return;
            }
            let Some(reader) = Reader::begin(spawn, Arc::clone(module)) else { return };
            self.readers.insert(key, reader);
        }
        if let Some(reader) = self.readers.get_mut(&key) {
            reader.ask(address);
        }
    }

    /// Waits for the thread that looks up lines of this file, which then ends. Returns the lines that it found at
    /// `addresses`.
    pub(crate) fn take(&mut self, key: ModuleKey, addresses: &[u64]) -> LookupsAhead {
        if addresses.is_empty() {
            return LookupsAhead::default();
        }
        let Some(mut reader) = self.readers.remove(&key) else { return LookupsAhead::default() };
        addresses.iter().for_each(|address| reader.ask(*address));
        drop(reader.questions);
        // A thread that ended early sends no answers.
        reader.answers.recv().unwrap_or_default()
    }
}

impl fmt::Debug for LinesAhead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LinesAhead").field("readers", &self.readers).finish_non_exhaustive()
    }
}

impl Reader {
    fn begin(spawn: &Spawn, module: Arc<Module>) -> Option<Self> {
        let ((questions, asked), (tell, answers)) = (channel(), channel());
        let work = move || {
            // Nobody receives if the run has ended without asking for names.
            let _ = tell.send(answer(&module, &asked));
        };
        spawn(Box::new(work)).then(|| Self { asked: HashSet::default(), questions, answers })
    }

    fn ask(&mut self, address: u64) {
        if self.asked.len() < MOST && self.asked.insert(address) {
            // The send fails if the thread has ended.
            let _ = self.questions.send(address);
        }
    }
}

/// Looks up the addresses that are asked for until their sender is gone. Returns nothing after an error: the caller
/// at the end of the run meets the same error and reports it.
fn answer(module: &Module, questions: &Receiver<u64>) -> LookupsAhead {
    let mut all = LookupsAhead::default();
    while let Ok(first) = questions.recv() {
        let Ok(Some(dwarf)) = Dwarf::read(module) else { return LookupsAhead::default() };
        let looked_up = dwarf.look_up(|at| {
            let mut next = Some(first);
            while let Some(address) = next {
                all.insert(address, at(address));
                next = questions.recv_timeout(IDLE).ok();
            }
        });
        if looked_up.is_err() {
            return LookupsAhead::default();
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lines::dwarf;
    use crate::{AddressSpace, Symbols};
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Returns this test program, and addresses of it that have lines.
    fn own() -> (Symbols, ModuleKey, Vec<u64>) {
        let (mut symbols, mut space) = (Symbols::new(), AddressSpace::new());
        space.update(&mut symbols, std::process::id() as i32);
        let functions: [*const (); 3] = [own as _, answer as _, in_a_thread as _];
        let frames = functions.map(|function| space.frame(function as u64, false));
        (symbols, frames[0].module.unwrap(), frames.iter().map(|f| f.address).collect())
    }

    fn in_a_thread() -> Spawn {
        Box::new(|work| std::thread::Builder::new().spawn(work).is_ok())
    }

    #[test]
    fn lines_looked_up_ahead_equal_those_looked_up_at_the_end() {
        let (mut symbols, key, addresses) = own();
        let expected = dwarf::look_up(symbols.module(key).unwrap(), &addresses).unwrap();
        assert!(expected.iter().all(|looked| looked.is_lasting && !looked.locations.is_empty()));
        symbols.look_up_ahead(in_a_thread());
        symbols.facts_at(key, addresses[0], false);
        // Meanwhile the thread frees the debug information.
        std::thread::sleep(IDLE + IDLE / 2);
        symbols.facts_at(key, addresses[1], false);
        let ahead = &mut symbols.lines_ahead;
        assert!(ahead.take(key, &[]).is_empty());
        let found = ahead.take(key, &addresses);
        assert_eq!(addresses.iter().map(|a| &found[a]).collect::<Vec<_>>(), expected.iter().collect::<Vec<_>>());
        assert!(ahead.take(key, &addresses).is_empty(), "a thread looks up no more than it was asked for");
    }

    #[test]
    fn without_a_thread_no_lines_are_looked_up_ahead() {
        let never: [Spawn; 2] = [Box::new(|_| false), Box::new(|work| std::mem::size_of_val(&work) > 0)];
        for spawn in never {
            let (mut symbols, key, addresses) = own();
            symbols.look_up_ahead(spawn);
            addresses.iter().for_each(|address| _ = symbols.facts_at(key, *address, false));
            assert!(symbols.lines_ahead.take(key, &addresses).is_empty());
        }
    }

    #[test]
    fn starts_few_threads_and_looks_up_each_address_once() {
        static BEGUN: AtomicUsize = AtomicUsize::new(0);
        let (symbols, key, addresses) = own();
        let module = symbols.shared_module(key).unwrap();
        let mut ahead = LinesAhead::by(Box::new(|work| {
            BEGUN.fetch_add(1, Ordering::Relaxed);
            // A thread that never runs the work.
            std::mem::forget(work);
            true
        }));
        (0..10).for_each(|n| (0..2).for_each(|_| ahead.want(ModuleKey(n), module, addresses[0])));
        assert_eq!((BEGUN.load(Ordering::Relaxed), ahead.readers.len()), (MOST_FILES, MOST_FILES));
        assert!(ahead.readers.values().all(|reader| reader.asked.len() == 1));
    }
}
