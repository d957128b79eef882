//! The state of a run's watching, as plain data, grouped by its users.
//!
//! The functions that use it are in the rooms (`exec`, `requests`, `results`); they take the groups that they need, or
//! all of it.

use crate::inproc::monitor::death_notice::DeathNotice;
use crate::inproc::monitor::exec::context_reuse::KnownContexts;
use crate::inproc::monitor::exec::files::Files;
use crate::inproc::monitor::exec::kept_contexts::KeptContexts;
use crate::inproc::monitor::exec::kept_no_calls::{KeptNoCalls, MappedAs};
use crate::inproc::monitor::handles::{NodeAddr, ProgramId};
use crate::inproc::monitor::next_question::FileHistory;
use crate::inproc::monitor::polling::Polling;
use crate::inproc::monitor::program::Program;
use crate::inproc::monitor::requests::open_windows::OpenWindows;
use crate::inproc::monitor::results::clock::RunClock;
use crate::inproc::monitor::results::run_stats::RunStats;
use crate::inproc::monitor::results::sites::AllSites;
use crate::inproc::monitor::root_process::RootProcess;
use crate::inproc::monitor::shared::code::Code;
use crate::inproc::monitor::shared::memory::Memory;
use crate::inproc::monitor::tracees::Tracees;
use crate::problems::Problems;
use crate::table::Table;
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::rc::Rc;
use std::sync::Arc;
use systoll_hooks::plan::Kind;
use systoll_symbols::{FileState, ModuleKey, Symbols};

/// A run that is being watched.
pub(crate) struct Session {
    /// Dropped before the memory that it refers to.
    pub(crate) _death_notice: DeathNotice,
    pub(crate) memory: Memory,
    pub(crate) programs: foldhash::HashMap<ProgramId, Program>,
    pub(crate) symbols: Symbols,
    pub(crate) table: Table,
    pub(crate) windows: OpenWindows,
    pub(crate) reuse: Reuse,
    pub(crate) provisioning: Provisioning,
    pub(crate) polling: Polling,
    pub(crate) chores: Chores,
    pub(crate) tracees: Tracees,
    pub(crate) root: RootProcess,
    pub(crate) stats: RunStats,
    pub(crate) clock: RunClock,
    pub(crate) problems: Problems,
}

/// Data of earlier programs of a file that later ones reuse.
#[derive(Default)]
pub(crate) struct Reuse {
    pub(crate) contexts: KnownContexts,
    /// Contexts that earlier runs have kept.
    pub(crate) kept: KeptContexts,
    /// Facts about earlier programs of each file, by its path.
    pub(crate) by_file: HashMap<Arc<str>, EarlierPrograms>,
    /// Programs to be given the contexts of earlier ones once their thread has gone on.
    pub(crate) to_preload: Vec<ProgramId>,
}

/// Facts about earlier programs of one file.
#[derive(Default)]
pub(crate) struct EarlierPrograms {
    /// Number of programs begun.
    pub(crate) begun: u32,
    /// History of their first questions.
    pub(crate) outlook: Rc<FileHistory>,
    /// True if stacks have had frames in files that threads map without asking.
    pub(crate) calls_through: bool,
    /// Code of files that they have mapped, one for each region.
    pub(crate) mapped: Vec<Rc<Code>>,
    /// Calls that the samples of one program stood for, at most.
    pub(crate) looked: u64,
}

/// The means to hook new programs and new files.
pub(crate) struct Provisioning {
    pub(crate) files: Files,
    /// An image made in advance for the next exec.
    pub(crate) spare: Option<ProgramId>,
    /// The `maps` file that was read last.
    pub(crate) maps_file: Option<MapsFile>,
    /// Bits of the calls to answer in place.
    pub(crate) elided: u32,
    /// True if programs may write over their own code.
    pub(crate) writes_code: bool,
    /// True if threads may write windows by themselves.
    pub(crate) writes_windows: bool,
    /// Kinds of files that map others, and of the first files that they map.
    pub(crate) kinds: HashMap<ModuleKey, Option<Kind>>,
    /// Files that programs need not ask about.
    pub(crate) no_calls: NoCalls,
    /// The way in which places that make calls were hooked.
    pub(crate) sites: AllSites,
}

/// Files without calls, of which threads have a list, so that they need not ask.
#[derive(Default)]
pub(crate) struct NoCalls {
    /// Entries written to the list.
    pub(crate) told: HashSet<MappedAs>,
    /// Files of these entries that a program has asked about or a stack leads through.
    pub(crate) files: HashSet<ModuleKey>,
    /// Files that no program has asked about, known from earlier runs.
    pub(crate) unasked: HashSet<FileState>,
    /// Files on stacks that were already looked up among those.
    pub(crate) seen: HashSet<ModuleKey>,
    /// Files that earlier runs have kept, and those to keep for later ones.
    pub(crate) kept: KeptNoCalls,
    /// Roots that count where loaders of programs map files.
    pub(crate) loaders: HashMap<ModuleKey, NodeAddr>,
}

/// An open `maps` file of /proc.
pub(crate) struct MapsFile {
    pub(crate) program: ProgramId,
    /// The thread of the program that it was opened by.
    pub(crate) tid: i32,
    pub(crate) file: Rc<File>,
}

/// Periodic work of the loop.
#[derive(Debug, Default)]
pub(crate) struct Chores {
    /// Programs that have ended and whose counts are not collected yet.
    pub(crate) ended: Vec<ProgramId>,
    /// When progress was last reported, ns.
    pub(crate) last_housekeeping: u64,
    /// When ended programs were last searched for, ns.
    pub(crate) last_look_for_ended: u64,
    /// When the kernel was last asked if all processes are gone, ns.
    pub(crate) last_desertion: u64,
    /// When changed children were last searched for without a signal, ns.
    pub(crate) last_reap: u64,
}
