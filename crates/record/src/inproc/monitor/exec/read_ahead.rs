//! What watching a program of the C library needs, read by a thread of its own while it starts.
//!
//! That is megabytes of code, call frame information and symbols, the same in nearly every run, and
//! the program waits for them when it maps the library. The thread that needs a piece first reads it;
//! the other one waits for that.

use crate::inproc::cache::{Cache, Key};
use crate::inproc::monitor::exec::kept_names;
use crate::inproc::monitor::exec::place::{Maker, Regions, first_room, kept_fixed, place};
use crate::inproc::monitor::shared::code::Code;
use crate::inproc::monitor::shared::memory::{CodeRoom, Runs};
use crate::inproc::monitor::sys;
use crate::limits::{self, allowed_descriptors};
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;
use systoll_hooks::assemble::Room;
use systoll_hooks::assemble::every_image;
use systoll_hooks::plan::Plan;
use systoll_symbols::{PreloadedFile, libraries_of};

/// Signature of rseq areas as C libraries register them on x86 (kernel:
/// tools/testing/selftests/rseq/rseq-x86.h; glibc: sysdeps/unix/sysv/linux/x86/bits/rseq.h).
const RSEQ_SIGNATURE: u32 = 0x5305_3053;

/// Where a library may come to lie: only how far its code is from it matters.
const SOMEWHERE: u64 = 0x7f00_0000_0000;

/// Descriptors to be allowed for the thread to take some of them.
const DESCRIPTORS: u64 = 64;

/// What has been read, until it is taken.
#[derive(Debug)]
pub(crate) struct Shelf<T>(Mutex<HashMap<Key, Arc<Mutex<Item<T>>>>>);

#[derive(Debug)]
enum Item<T> {
    Unread,
    Read(Option<T>),
    Taken,
}

impl<T> Default for Shelf<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T> Shelf<T> {
    fn item(&self, key: &Key) -> Arc<Mutex<Item<T>>> {
        let mut items = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(items.entry(key.clone()).or_insert_with(|| Arc::new(Mutex::new(Item::Unread))))
    }

    /// Has `read` read it, unless it has been read.
    fn put(&self, key: &Key, read: impl FnOnce() -> Option<T>) {
        let item = self.item(key);
        let mut item = item.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(*item, Item::Unread) {
            *item = Item::Read(read());
        }
    }

    /// What was read ahead, else what `read` reads.
    pub(crate) fn take(&self, key: &Key, read: impl FnOnce() -> Option<T>) -> Option<T> {
        let item = self.item(key);
        let mut item = item.lock().unwrap_or_else(PoisonError::into_inner);
        match std::mem::replace(&mut *item, Item::Taken) {
            Item::Read(found) => found,
            Item::Unread | Item::Taken => read(),
        }
    }
}

/// A plan, and where its file's roots are to lie, if that is settled.
pub(crate) struct Placed {
    pub(crate) plan: Plan,
    pub(crate) region: Option<u64>,
    /// What [`systoll_symbols::Symbols::know_fixed`] is to be told of the file.
    pub(crate) fixed: Vec<(u64, bool)>,
}

/// What a thread reads ahead.
#[derive(Clone, Default)]
pub(crate) struct Ahead {
    pub(crate) plans: Arc<Shelf<Placed>>,
    pub(crate) codes: Arc<Shelf<Code>>,
    pub(crate) regions: Regions,
    /// Records of roots that the program's first files take, once that is known.
    pub(crate) first_roots: Arc<OnceLock<u64>>,
    /// What every image begins with.
    blank: Arc<OnceLock<Runs>>,
    pub(crate) modules: systoll_symbols::Preloaded,
}

/// What it reads them for and with.
pub(crate) struct Reading {
    pub(crate) program: PathBuf,
    pub(crate) cache: Arc<Cache>,
    pub(crate) maker: Maker,
    pub(crate) room: CodeRoom,
}

impl Ahead {
    /// Begins to read what a program will need, on any processor but `beside`, where it does not take
    /// descriptors or memory that others need. The thread that does.
    pub(crate) fn begin(&self, what: Reading, beside: Option<usize>) -> Option<JoinHandle<()>> {
        if allowed_descriptors() < DESCRIPTORS {
            return None;
        }
        let ahead = self.clone();
        let read = move || {
            if let Some(processor) = beside {
                sys::keep_off(processor);
            }
            sys::take_short_turns();
            ahead.read(&what);
        };
        // Without the thread everything is read when it is needed.
        limits::spawn("systoll-ahead", read).ok()
    }

    /// What every image begins with.
    pub(crate) fn blank(&self) -> &Runs {
        self.blank.get_or_init(|| Runs::new(every_image(RSEQ_SIGNATURE)))
    }

    fn read(&self, what: &Reading) {
        self.blank();
        let program = self.modules.open(&what.program);
        if program.as_ref().is_some_and(|file| !file.is_dynamic()) {
            return;
        }
        // A script's interpreter is taken to be like most programs.
        let mut libraries = libraries_of(program.as_ref());
        // In the order in which they are needed: the loader comes first, and is the smaller one.
        libraries.sort_by_key(|path| std::fs::metadata(path).map_or(0, |m| m.len()));
        let files: Vec<PreloadedFile> = libraries.iter().filter_map(|path| self.modules.open(path)).collect();
        let mut roots = Room::default();
        for file in &files {
            if let Some(key) = know(file, what) {
                self.read_code(file, what, &key, &mut roots);
            }
            file.read_frames();
        }
        systoll_symbols::make_decoder_ready();
        files.iter().rev().for_each(PreloadedFile::read_names);
        // Kept as well; some of it is slow to be told in virtual machines.
        let _ = systoll_price::host();
        // A large program's take as long as it needs to begin. Its code is read at its exec, which is sooner.
        if let Some(program) = program {
            know(&program, what);
            program.read_frames();
            program.read_names();
        }
    }

    /// Plan and code, where they are in the cache, and `roots` behind those of the files before. A file
    /// whose plan is needed needs its code next, so both are waited for as one.
    fn read_code(&self, file: &PreloadedFile, what: &Reading, key: &Key, roots: &mut Room) {
        self.plans.put(key, || {
            let plan = what.cache.kept_plan(key)?;
            let region = self.regions.give(&plan);
            if let Some(region) = region {
                self.store_code(file, what, key, (&plan, region), roots);
            }
            Some(Placed { plan, region, fixed: kept_fixed(&what.cache, key) })
        });
    }

    fn store_code(
        &self,
        file: &PreloadedFile,
        what: &Reading,
        key: &Key,
        (plan, region): (&Plan, u64),
        roots: &mut Room,
    ) -> Option<()> {
        let at = place(plan, SOMEWHERE, first_room(plan), &|_| true)?;
        let delta = at.wrapping_sub(SOMEWHERE) as i64;
        let key = what.maker.key(key, delta)?;
        self.codes.put(&key, || {
            let code = Code::kept(what.maker.kept(&what.cache, &key)?, delta, plan, region, &what.room)?;
            code.jumps.read_ahead(|at, bytes| file.read_code_into(at, bytes));
            // Those of files that a program begins with are known here if it has begun.
            roots.roots = self.first_roots.get().copied().unwrap_or(roots.roots);
            let _ = code.roots(roots);
            roots.roots += code.blob.sites.len() as u64;
            Some(code)
        });
        Some(())
    }
}

/// Tells a file what an earlier run has asked of its symbols; what it is known by in the cache.
fn know(file: &PreloadedFile, what: &Reading) -> Option<Key> {
    let key = what.cache.key_of(file.state().as_ref(), file.build_id(), || None)?;
    if let Some(answers) = kept_names::read(&what.cache, &key, file.debug_file_state(), what.maker.build()) {
        file.know_names(answers);
    }
    Some(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_read_ahead_is_taken_once() {
        let shelf = Shelf::default();
        let key = Cache::key_named("a");
        shelf.put(&key, || Some(1));
        shelf.put(&key, || unreachable!("it has been read"));
        assert_eq!(shelf.take(&key, || unreachable!("it has been read")), Some(1));
        shelf.put(&key, || unreachable!("it is no longer needed"));
        assert_eq!(shelf.take(&key, || Some(2)), Some(2));
        let missing = Cache::key_named("b");
        shelf.put(&missing, || None);
        assert_eq!(shelf.take(&missing, || unreachable!("there is none")), None);
    }

    #[test]
    fn who_comes_while_it_is_read_waits_for_it() {
        let shelf = Arc::new(Shelf::default());
        let key = Cache::key_named("a");
        let (begun, has_begun) = std::sync::mpsc::channel();
        let reader = {
            let (shelf, key) = (Arc::clone(&shelf), key.clone());
            std::thread::spawn(move || {
                shelf.put(&key, || {
                    begun.send(()).unwrap();
                    std::thread::sleep(std::time::Duration::from_millis(20));
                    Some(7)
                });
            })
        };
        has_begun.recv().unwrap();
        assert_eq!(shelf.take(&key, || unreachable!("it is being read")), Some(7));
        reader.join().unwrap();
    }
}
