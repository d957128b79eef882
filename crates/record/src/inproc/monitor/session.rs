//! All that a run's watching knows, as plain data in groups by who uses them.
//!
//! What is done with it is in the rooms (`exec`, `requests`, `results`), whose functions take the groups they
//! need, or all of it.

use crate::inproc::monitor::death_notice::DeathNotice;
use crate::inproc::monitor::exec::context_reuse::KnownContexts;
use crate::inproc::monitor::exec::files::Files;
use crate::inproc::monitor::exec::kept_contexts::KeptContexts;
use crate::inproc::monitor::exec::kept_no_calls::{KeptNoCalls, MappedAs};
use crate::inproc::monitor::handles::{NodeAddr, ProgramId};
use crate::inproc::monitor::outlook::OfFile;
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

/// A run that is watched.
pub(crate) struct Session {
    /// Dropped before the memory it speaks of.
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

/// What programs of a file need not find out anew.
#[derive(Default)]
pub(crate) struct Reuse {
    pub(crate) contexts: KnownContexts,
    /// What earlier runs have kept of them.
    pub(crate) kept: KeptContexts,
    /// What is known of programs of each file, by its path.
    pub(crate) by_file: HashMap<Arc<str>, Earlier>,
    /// Programs to be given the contexts of earlier ones once their thread has gone on.
    pub(crate) to_preload: Vec<ProgramId>,
}

/// What is known of earlier programs of one file.
#[derive(Default)]
pub(crate) struct Earlier {
    /// How many have begun.
    pub(crate) begun: u32,
    /// What followed their first questions.
    pub(crate) outlook: Rc<OfFile>,
    /// Whether calls were made through files that are not asked about.
    pub(crate) calls_through: bool,
    /// Code of files that they have mapped, one for each region.
    pub(crate) mapped: Vec<Rc<Code>>,
    /// For how many calls looks at one of them stood, at most.
    pub(crate) looked: u64,
}

/// What new programs and new files are hooked with.
pub(crate) struct Provisioning {
    pub(crate) files: Files,
    /// An image made ahead of the next exec.
    pub(crate) spare: Option<ProgramId>,
    /// The `maps` file that was looked at last.
    pub(crate) maps_file: Option<MapsFile>,
    /// Bits of what is to be answered in place.
    pub(crate) elided: u32,
    /// Whether programs may write over their own code.
    pub(crate) writes_code: bool,
    /// Whether threads may write windows by themselves.
    pub(crate) writes_windows: bool,
    /// Of files that map others, and of the first that they map.
    pub(crate) kinds: HashMap<ModuleKey, Option<Kind>>,
    /// Files that programs need not ask about.
    pub(crate) no_calls: NoCalls,
    /// How places that make calls were hooked.
    pub(crate) sites: AllSites,
}

/// Files without calls of which threads are told, so that they need not ask.
#[derive(Default)]
pub(crate) struct NoCalls {
    /// Entries that were made.
    pub(crate) told: HashSet<MappedAs>,
    /// Which files they are of, of those that a program has asked about or a stack leads through.
    pub(crate) files: HashSet<ModuleKey>,
    /// Files that no program has asked about, as earlier runs have told of them.
    pub(crate) unasked: HashSet<FileState>,
    /// Files on stacks of which is known whether they are among those.
    pub(crate) seen: HashSet<ModuleKey>,
    /// What earlier runs have told, and later ones are to be told.
    pub(crate) kept: KeptNoCalls,
    /// Where files map others that were the loaders of programs: roots that count it.
    pub(crate) loaders: HashMap<ModuleKey, NodeAddr>,
}

/// A `maps` file of /proc that is open.
pub(crate) struct MapsFile {
    pub(crate) program: ProgramId,
    /// Which of the program's threads it is of.
    pub(crate) tid: i32,
    pub(crate) file: Rc<File>,
}

/// What the loop does now and then.
#[derive(Debug, Default)]
pub(crate) struct Chores {
    /// Programs that have ended and whose counts are not collected yet.
    pub(crate) ended: Vec<ProgramId>,
    /// When progress was last told, ns.
    pub(crate) last_housekeeping: u64,
    /// When programs that have ended were last looked for, ns.
    pub(crate) last_look_for_ended: u64,
    /// When the kernel was last asked whether all processes are gone, ns.
    pub(crate) last_desertion: u64,
    /// When changed children were last looked for without a signal that told of them, ns.
    pub(crate) last_reap: u64,
}
