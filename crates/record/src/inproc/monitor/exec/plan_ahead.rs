//! Plans the libraries of a program that no run has seen, in other threads than the one that serves it.
//!
//! When a program is new, the launcher reads, hashes and plans each library as the loader maps it, and the program
//! waits: hundreds of milliseconds if there are hundreds. The loader begins with the first library; the threads here
//! begin with the last.

use crate::inproc::cache::{Cache, Key, Kind};
use crate::inproc::monitor::exec::place::{Maker, Regions, first_room, place};
use crate::inproc::monitor::exec::prefetched::Prefetched;
use crate::inproc::monitor::shared::code::Code;
use crate::inproc::monitor::shared::memory::CodeRoom;
use crate::limits;
use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use systoll_hooks::assemble::assemble;
use systoll_hooks::plan::{Plan, PlanError};
use systoll_symbols::PreloadedFile;

/// Address at which a library is assumed to lie: only the distance of its code matters.
pub(crate) const SOMEWHERE: u64 = 0x7f00_0000_0000;

/// Threads that plan, at most: each holds a file.
const MOST_THREADS: usize = 4;

/// A plan, and the address of its file's roots, if that has been assigned.
pub(crate) struct Placed {
    pub(crate) plan: Plan,
    pub(crate) region: Option<u64>,
}

/// A file that no earlier run has seen.
pub(crate) struct NewFile {
    /// Key of the file from now on.
    pub(crate) id: Key,
    pub(crate) placed: Result<Placed, PlanError>,
}

/// The means and the results of planning.
pub(crate) struct Planning<'a> {
    pub(crate) new: &'a Prefetched<NewFile>,
    pub(crate) codes: &'a Prefetched<Code>,
    pub(crate) regions: &'a Regions,
    pub(crate) cache: &'a Cache,
    pub(crate) maker: &'a Maker,
    pub(crate) room: &'a CodeRoom,
}

impl Planning<'_> {
    /// Plans the `files` that no run has seen, the last one first, in one thread for each processor other than the
    /// launcher's.
    pub(crate) fn all(&self, files: &[PreloadedFile]) {
        let left = AtomicUsize::new(files.len());
        let some = || {
            let next = || left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).ok();
            while let Some(file) = next().and_then(|left| files.get(left - 1)) {
                self.plan(file);
            }
        };
        let processors = std::thread::available_parallelism().map_or(1, NonZero::get);
        std::thread::scope(|scope| {
            for _ in 2..processors.min(MOST_THREADS + 1) {
                // If a thread can't be started, the others do its work.
                let _ = limits::spawn_scoped(scope, "systoll-ahead", some);
            }
            some();
        });
    }

    fn plan(&self, file: &PreloadedFile) -> Option<()> {
        let state = file.state();
        let unread = self.cache.unread(state.as_ref(), file.build_id())?;
        self.new.put(&unread, || {
            let (id, content) = self.cache.key_and_content(state.as_ref(), file.build_id(), || file.bytes());
            // Nothing is left to do for a file that a run has seen.
            let (id, content) = (id?, content?);
            let plan = self.cache.kept_plan(&id).map_or_else(|| self.cache.new_plan(Some(&id), &content), Ok);
            let placed = plan.map(|plan| {
                let has_code = !plan.sites.is_empty() || !plan.entries.is_empty() || plan.unwinder.is_some();
                let region = has_code.then(|| self.regions.give(&plan)).flatten();
                let placed = Placed { plan, region };
                self.make_code(&id, &placed);
                placed
            });
            Some(NewFile { id, placed })
        });
        Some(())
    }

    /// Makes and keeps the code of a file at the preferred distance.
    fn make_code(&self, id: &Key, Placed { plan, region, .. }: &Placed) -> Option<()> {
        let region = (*region)?;
        let mut room = first_room(plan);
        loop {
            let delta = place(plan, SOMEWHERE, room, &|_| true)?.wrapping_sub(SOMEWHERE) as i64;
            let key = self.maker.key(id, delta);
            let mut size = None;
            self.codes.put(&key, || {
                let blob = assemble(plan, &self.maker.options, delta).ok()?;
                self.cache.put(Kind::Code, &key, &blob.to_bytes());
                let code = Code::store(blob, plan, region, self.room).ok()?;
                size = Some(code.size());
                Some(code)
            });
            // The launcher looks for more room if this was too little.
            if size? <= room {
                return Some(());
            }
            room = size? + 4096;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inproc::monitor::shared::memory::Memory;
    use crate::inproc::monitor::{Closely, options};
    use std::path::Path;
    use systoll_symbols::{Preloaded, libraries_of};

    /// Plans `files` with the contents of `cache`.
    fn planned(cache: &Cache, maker: &Maker, files: &[PreloadedFile]) -> (Prefetched<NewFile>, Prefetched<Code>) {
        let (new, codes, memory) = (Prefetched::default(), Prefetched::default(), Memory::new().unwrap());
        let (regions, room) = (Regions::default(), memory.codes());
        Planning { new: &new, codes: &codes, regions: &regions, cache, maker, room }.all(files);
        (new, codes)
    }

    #[test]
    #[expect(clippy::print_stderr, reason = "whoever runs tests must see it")]
    fn new_libraries_are_planned_once() {
        let modules = Preloaded::default();
        let own = modules.open(Path::new("/proc/self/exe")).unwrap();
        let files = modules.open_needed(&own, &libraries_of(None)[0], 16);
        let dir = tempfile::tempdir().unwrap();
        let (cache, maker) = (Cache::at(dir.path(), 1 << 26), Maker::new(options(Closely::All, true)));
        let unread = |file: &PreloadedFile| cache.unread(file.state().as_ref(), file.build_id());
        let strict = std::env::var("SYSTOLL_TEST_STRICT").as_deref() == Ok("1");
        if !strict && !files.iter().all(|file| unread(file).is_some()) {
            // On such a file system each file is read when it is mapped.
            eprintln!("skipped: the file system that has this box's libraries does not tell of every change");
            return;
        }
        let (new, codes) = planned(&cache, &maker, &files);
        let mut hooked = 0;
        for file in &files {
            let NewFile { id, placed } = new.take(&unread(file).unwrap(), || None).unwrap();
            let (bytes, placed) = (file.bytes().unwrap(), placed.unwrap());
            assert_eq!(Some(&id), cache.key(&bytes).as_ref());
            assert_eq!(placed.plan, systoll_hooks::plan::plan(&bytes).unwrap());
            assert_eq!(cache.kept_plan(&id).as_ref(), Some(&placed.plan));
            let Some(region) = placed.region else { continue };
            let delta =
                place(&placed.plan, SOMEWHERE, first_room(&placed.plan), &|_| true).unwrap().wrapping_sub(SOMEWHERE);
            let code = codes.take(&maker.key(&id, delta as i64), || None).unwrap();
            assert_eq!((code.region, code.blob.delta), (region, delta as i64));
            hooked += 1;
        }
        // At least the C library and the loader have hooks.
        assert!(hooked >= 2, "{hooked} of {}", files.len());
        // Another run finds the plans in the cache.
        let (new, _) = planned(&cache, &maker, &files);
        assert!(files.iter().all(|file| new.take(&unread(file).unwrap(), || None).is_none()));
    }
}
