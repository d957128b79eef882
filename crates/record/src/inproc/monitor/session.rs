//! The state of a run's watching, as plain data, grouped by its users.
//!
//! The functions that use it are in the rooms (`exec`, `requests`, `results`). A function takes the groups that it needs,
//! or a single field of a group; only the loop and functions that need more than three groups take the whole session.

use crate::inproc::monitor::death_notice::DeathNotice;
use crate::inproc::monitor::exec::call_free_files::{CallFreeFiles, MappedAs};
use crate::inproc::monitor::exec::context_reuse::KnownContexts;
use crate::inproc::monitor::exec::files::Files;
use crate::inproc::monitor::exec::kept_contexts::KeptContexts;
use crate::inproc::monitor::handles::{NodeAddr, ProgramId};
use crate::inproc::monitor::next_question::FileHistory;
use crate::inproc::monitor::polling::Polling;
use crate::inproc::monitor::program::Programs;
use crate::inproc::monitor::requests::open_windows::OpenWindows;
use crate::inproc::monitor::results::clock::RunClock;
use crate::inproc::monitor::results::run_stats::RunStats;
use crate::inproc::monitor::results::sites::AllSites;
use crate::inproc::monitor::root_process::RootProcess;
use crate::inproc::monitor::shared::code::Code;
use crate::inproc::monitor::shared::memory::Memory;
use crate::inproc::monitor::spending::Spending;
use crate::inproc::monitor::tracees::Tracees;
use crate::moment::Awaited;
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
    /// Must be dropped before the memory that it refers to.
    pub(crate) _death_notice: DeathNotice,
    pub(crate) targets: Targets,
    pub(crate) knowledge: FileKnowledge,
    pub(crate) draft: DraftRecording,
    pub(crate) traced: TracedProcesses,
    pub(crate) polling: Polling,
    pub(crate) chores: Chores,
    pub(crate) spending: Spending,
}

/// The watched programs, and the memory that they share with the launcher.
pub(crate) struct Targets {
    pub(crate) memory: Memory,
    pub(crate) programs: Programs,
}

/// Knowledge about files: their names, their hooks, and facts that later programs of the same file reuse.
pub(crate) struct FileKnowledge {
    pub(crate) symbols: Symbols,
    pub(crate) provisioning: Provisioning,
    pub(crate) reuse: Reuse,
}

/// The recording in the making: rows, windows, and figures of the whole run.
pub(crate) struct DraftRecording {
    pub(crate) table: Table,
    pub(crate) windows: OpenWindows,
    pub(crate) stats: RunStats,
    pub(crate) clock: RunClock,
    pub(crate) problems: Problems,
    /// The moment at which watching ends.
    pub(crate) awaited: Awaited,
}

/// The processes and threads for which the launcher waits by ptrace: the command's own, and those about to exec.
pub(crate) struct TracedProcesses {
    pub(crate) tracees: Tracees,
    pub(crate) root: RootProcess,
}

/// Data of earlier programs that later programs of the same file reuse.
#[derive(Default)]
pub(crate) struct Reuse {
    pub(crate) contexts: KnownContexts,
    /// Contexts that earlier runs have kept.
    pub(crate) kept: KeptContexts,
    /// Facts about earlier programs of each file, by its path.
    pub(crate) by_file: HashMap<Arc<str>, EarlierPrograms>,
    /// Programs that get the contexts of earlier programs once the thread that asks has gone on.
    pub(crate) to_preload: Vec<ProgramId>,
}

/// Facts about earlier programs of one file.
#[derive(Default)]
pub(crate) struct EarlierPrograms {
    /// Number of programs begun so far.
    pub(crate) begun: u32,
    /// History of the programs' first questions.
    pub(crate) outlook: Rc<FileHistory>,
    /// True if stacks have had frames in files that threads map without asking.
    pub(crate) calls_through: bool,
    /// Code of the files that the programs have mapped, one for each region.
    pub(crate) mapped: Vec<Rc<Code>>,
    /// Largest number of calls that the samples of one program stood for.
    pub(crate) looked: u64,
}

/// Data for hooking new programs and new files.
pub(crate) struct Provisioning {
    pub(crate) files: Files,
    /// An image made in advance for the next exec.
    pub(crate) spare: Option<ProgramId>,
    /// The `maps` file of /proc that was read last.
    pub(crate) maps_file: Option<MapsFile>,
    /// Bits of the calls to answer in place.
    pub(crate) elided: u32,
    /// True if programs may write over their own code.
    pub(crate) writes_code: bool,
    /// True if threads may write windows by themselves.
    pub(crate) writes_windows: bool,
    /// Kinds of files that map other files, and kinds of the first files mapped by these.
    pub(crate) kinds: HashMap<ModuleKey, Option<Kind>>,
    /// Files that programs need not ask about.
    pub(crate) no_calls: NoCalls,
    /// Sites by the way in which they were hooked.
    pub(crate) sites: AllSites,
}

/// Files without calls. Shared memory has a list of them, so that threads need not ask about these files.
#[derive(Default)]
pub(crate) struct NoCalls {
    /// Entries that were written to the list.
    pub(crate) told: HashSet<MappedAs>,
    /// Files in the list that a program has asked about, or that a stack leads through.
    pub(crate) files: HashSet<ModuleKey>,
    /// Files known from earlier runs about which no program has asked.
    pub(crate) unasked: HashSet<FileState>,
    /// Files on stacks that were already looked up among `unasked`.
    pub(crate) seen: HashSet<ModuleKey>,
    /// Files kept by earlier runs, and files to be kept for later runs.
    pub(crate) kept: CallFreeFiles,
    /// Roots that count the calls by which loaders of programs map files, by loader.
    pub(crate) loaders: HashMap<ModuleKey, NodeAddr>,
}

/// A `maps` file of /proc that is kept open.
pub(crate) struct MapsFile {
    pub(crate) program: ProgramId,
    /// The thread of the program for which the file was opened.
    pub(crate) tid: i32,
    pub(crate) file: Rc<File>,
}

/// State of the loop's periodic work.
#[derive(Debug, Default)]
pub(crate) struct Chores {
    /// Programs that have ended and whose counts are not yet collected.
    pub(crate) ended: Vec<ProgramId>,
    /// Time of the last report of progress, ns.
    pub(crate) last_housekeeping: u64,
    /// Time of the last search for ended programs, ns.
    pub(crate) last_look_for_ended: u64,
    /// Time at which the kernel was last asked if all processes are gone, ns.
    pub(crate) last_desertion: u64,
    /// True if the loop has done work since its last turn that could not be left out, see [`Spending`].
    pub(crate) did_needed: bool,
    /// Time of the last search for changed children that no signal had announced, ns.
    pub(crate) last_reap: u64,
}
