//! Reads, in a thread of its own, the files needed to watch a program that uses the C library, while the program
//! starts.
//!
//! These are megabytes of code, call frame information and symbols, the same in nearly every run, and the program waits
//! for them when it maps the library. A piece is read by the thread that needs it first; the other one waits.

use crate::inproc::cache::{Cache, Key};
use crate::inproc::monitor::exec::file_notes::FileNotes;
use crate::inproc::monitor::exec::kept_names;
use crate::inproc::monitor::exec::place::{Maker, Regions, first_room, place};
use crate::inproc::monitor::exec::plan_ahead::{NewFile, Placed, Planning, SOMEWHERE};
use crate::inproc::monitor::exec::prefetched::Prefetched;
use crate::inproc::monitor::shared::code::Code;
use crate::inproc::monitor::shared::memory::{CodeRoom, Runs};
use crate::inproc::monitor::sys;
use crate::limits::{self, allowed_descriptors};
use nix::sched::CpuSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use systoll_hooks::assemble::new_image;
use systoll_hooks::layout::{NUMBERS, image};
use systoll_hooks::plan::Plan;
use systoll_symbols::{PreloadedFile, libraries_of};

/// Signature of rseq areas as C libraries register them on x86 (kernel: tools/testing/selftests/rseq/rseq-x86.h; glibc:
/// sysdeps/unix/sysv/linux/x86/bits/rseq.h).
const RSEQ_SIGNATURE: u32 = 0x5305_3053;

/// Libraries of a new program that are planned, at most; ffmpeg, which has many, has 213.
const MOST_LIBRARIES: usize = 512;

/// Threads that plan libraries of other programs than the first, at most.
const MOST_PLANNERS: usize = 2;

/// Number of descriptors that this process must be allowed to have before the thread may use some of them.
const DESCRIPTORS: u64 = 64;

/// Data that the thread has read, shared with the launcher.
#[derive(Clone, Default)]
pub(crate) struct Ahead {
    pub(crate) plans: Arc<Prefetched<Placed>>,
    pub(crate) codes: Arc<Prefetched<Code>>,
    /// Facts that earlier runs found out about files.
    pub(crate) notes: Arc<Prefetched<FileNotes>>,
    /// Files that no run has seen, by [`Cache::unread`].
    pub(crate) new: Arc<Prefetched<NewFile>>,
    pub(crate) regions: Regions,
    /// Number of records that the roots of the program's first files have, once known.
    pub(crate) first_roots: Arc<OnceLock<u64>>,
    /// Initial contents of every image.
    blank: Arc<OnceLock<Runs>>,
    /// Arguments with which reading began, if it may start threads.
    with: Arc<OnceLock<Reading>>,
    /// Number of threads that plan libraries of other programs than the first.
    planners: Arc<AtomicUsize>,
    pub(crate) modules: systoll_symbols::Preloaded,
}

/// The program to read ahead, and the means for that.
#[derive(Clone)]
pub(crate) struct Reading {
    pub(crate) program: PathBuf,
    pub(crate) cache: Arc<Cache>,
    pub(crate) maker: Maker,
    pub(crate) room: CodeRoom,
    /// Processors for threads started later.
    pub(crate) beside: Option<CpuSet>,
}

impl Ahead {
    /// Starts a thread that reads the files a program will need, on any processor but `beside`. Starts none if it would
    /// take descriptors or memory that others need.
    pub(crate) fn begin(&self, what: Reading, beside: Option<usize>) -> Option<JoinHandle<()>> {
        if allowed_descriptors() < DESCRIPTORS {
            return None;
        }
        let what = self.with.get_or_init(|| what).clone();
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

    /// Returns the initial contents of every image.
    pub(crate) fn blank(&self) -> &Runs {
        self.blank.get_or_init(|| {
            let mut words = new_image(0, RSEQ_SIGNATURE);
            words.push((image::SEED, 0));
            words.sort_unstable();
            Runs::new(words)
        })
    }

    fn read(&self, what: &Reading) {
        self.blank();
        let program = self.modules.open(&what.program);
        if program.as_ref().is_some_and(|file| !file.is_dynamic()) {
            return;
        }
        // A script's interpreter is assumed to need the libraries that most programs need.
        let mut libraries = libraries_of(program.as_ref());
        self.plan_new(program.as_ref(), &libraries, what);
        // Read them in the order in which they are needed: the loader comes first, and is the smaller one.
        libraries.sort_by_key(|path| std::fs::metadata(path).map_or(0, |m| m.len()));
        let files: Vec<PreloadedFile> = libraries.iter().filter_map(|path| self.modules.open(path)).collect();
        let mut roots = NUMBERS;
        for file in &files {
            if let Some(key) = self.know(file, what) {
                self.read_code(file, what, &key, &mut roots);
            }
            file.read_frames();
        }
        if !files.iter().all(PreloadedFile::is_known) {
            systoll_symbols::make_decoder_ready();
        }
        files.iter().rev().for_each(PreloadedFile::read_names);
        // The host's description is cached as well; parts of it are slow to read in virtual machines.
        let _ = systoll_price::host();
        // Reading a large program's symbols takes as long as its start. Its code is read at its exec, which comes
        // sooner.
        if let Some(program) = program {
            self.know(&program, what);
            program.read_frames();
            program.read_names();
        }
    }

    /// Plans the libraries of a program that no run has seen. The libraries of a known program have most likely been
    /// seen too, and checking that takes as long as starting a small program.
    fn plan_new(&self, program: Option<&PreloadedFile>, libraries: &[PathBuf], what: &Reading) -> Option<()> {
        let (program, loader) = (program?, libraries.first()?);
        what.cache.unread(program.state().as_ref(), program.build_id())?;
        let is_new = what.cache.key_of(program.state().as_ref(), program.build_id(), || None).is_none();
        is_new.then(|| self.plan_libraries(program, loader, what))
    }

    fn plan_libraries(&self, program: &PreloadedFile, loader: &Path, what: &Reading) {
        let most = usize::try_from(allowed_descriptors() / 4).unwrap_or(usize::MAX).min(MOST_LIBRARIES);
        let files = self.modules.open_needed(program, loader, most);
        let (new, codes, regions) = (&*self.new, &*self.codes, &self.regions);
        Planning { new, codes, regions, cache: &what.cache, maker: &what.maker, room: &what.room }.all(&files);
    }

    /// Starts a thread that plans the libraries of `program`, which a watched process has just executed and no
    /// earlier run has seen.
    pub(crate) fn plan_for(&self, program: &Path) {
        // The first program's thread plans its libraries already.
        let is_first = |what: &&Reading| std::fs::canonicalize(&what.program).is_ok_and(|first| first == program);
        let Some(what) = self.with.get().filter(|what| !is_first(what)) else { return };
        let begin = |running: usize| (running < MOST_PLANNERS).then_some(running + 1);
        if self.planners.fetch_update(Ordering::Relaxed, Ordering::Relaxed, begin).is_err() {
            return;
        }
        let (ahead, what, program) = (self.clone(), what.clone(), program.to_owned());
        let plan = move || {
            if let Some(processors) = &what.beside {
                sys::run_on(processors);
            }
            sys::take_short_turns();
            if let Some(program) = ahead.modules.open(&program).filter(PreloadedFile::is_dynamic)
                && let Some(loader) = libraries_of(Some(&program)).first()
            {
                ahead.plan_libraries(&program, loader, &what);
            }
            ahead.planners.fetch_sub(1, Ordering::Relaxed);
        };
        if limits::spawn("systoll-ahead", plan).is_err() {
            self.planners.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Reads the file's plan and code, if the cache has them, and prepares the file's roots behind the roots of earlier
    /// files. A file whose plan is needed needs its code next, so a thread waits for both together.
    fn read_code(&self, file: &PreloadedFile, what: &Reading, key: &Key, roots: &mut u64) {
        self.plans.put(key, || {
            let plan = what.cache.kept_plan(key)?;
            let region = self.regions.give(&plan);
            if let Some(region) = region {
                self.store_code(file, what, key, (&plan, region), roots);
            }
            Some(Placed { plan, region })
        });
    }

    fn store_code(
        &self,
        file: &PreloadedFile,
        what: &Reading,
        key: &Key,
        (plan, region): (&Plan, u64),
        roots: &mut u64,
    ) -> Option<()> {
        let at = place(plan, SOMEWHERE, first_room(plan), &|_| true)?;
        let delta = at.wrapping_sub(SOMEWHERE) as i64;
        let key = what.maker.key(key, delta);
        self.codes.put(&key, || {
            let code = Code::kept(what.maker.kept(&what.cache, &key)?, delta, plan, region, &what.room)?;
            code.jumps.read_ahead(|at, bytes| file.read_code_into(at, bytes));
            // Once the program has started, the launcher knows the number of records of its first files.
            *roots = self.first_roots.get().copied().unwrap_or(*roots);
            let _ = code.roots(*roots);
            *roots += code.blob.sites.len() as u64;
            Some(code)
        });
        Some(())
    }

    /// Gives a file the answers about its symbols that earlier runs have kept. Returns its key in the cache.
    fn know(&self, file: &PreloadedFile, what: &Reading) -> Option<Key> {
        let key = what.cache.key_of(file.state().as_ref(), file.build_id(), || None)?;
        let notes = self.notes.share(&key, || Some(FileNotes::read(&what.cache, &key)))?;
        if let Some(answers) = kept_names::answers(&notes, file.debug_file_state()) {
            file.know_names(answers);
        }
        Some(key)
    }
}
