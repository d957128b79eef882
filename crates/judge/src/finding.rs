//! What the judge says: findings and remarks.

use crate::cure_kind::CureKind;
use crate::language::CodeLanguage;
use std::sync::Arc;
use systoll_model::{FrameId, Phase, ProcessId, RowId, Sysno};

/// The kinds of waste.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Same question, same answer.
    Repeat,
    /// Sets what is already so.
    NoOp,
    /// Two calls that cancel each other.
    Toggle,
    /// Fails the same way each time.
    Failing,
    /// Many small transfers where one would do.
    SmallIo,
    /// A cheaper way to the same answer exists here.
    SlowPath,
    /// Returns at once with nothing, again and again.
    BusyPoll,
    /// Waits where there is no need to.
    Blocking,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 8] = [
        Self::Repeat,
        Self::NoOp,
        Self::Toggle,
        Self::Failing,
        Self::SmallIo,
        Self::SlowPath,
        Self::BusyPoll,
        Self::Blocking,
    ];

    /// The kind with this name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Its name in JSON and in causes' files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Repeat => "repeat",
            Self::NoOp => "no-op",
            Self::Toggle => "toggle",
            Self::Failing => "failing",
            Self::SmallIo => "small-io",
            Self::SlowPath => "slow-path",
            Self::BusyPoll => "busy-poll",
            Self::Blocking => "blocking",
        }
    }
}

/// How sure a finding is that its calls are needless.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Confidence {
    /// A remark.
    Low,
    /// A finding that rests on looks which were not whole, as a problem of the recording says.
    Medium,
    /// A finding.
    High,
}

/// A number of calls known from windows: an estimate with its interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Estimate {
    /// Best estimate.
    pub estimate: u64,
    /// At least.
    pub low: u64,
    /// At most.
    pub high: u64,
}

impl Estimate {
    /// Both together.
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            estimate: self.estimate.saturating_add(other.estimate),
            low: self.low.saturating_add(other.low),
            high: self.high.saturating_add(other.high),
        }
    }
}

/// What calls cost after they have returned, or while others ran.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Later {
    /// Page faults by which memory came back that the needless calls had given back.
    pub faults: Estimate,
    /// Switches to other threads in the needless calls themselves.
    pub switches: Estimate,
    /// What both took, ns: alone, not the cold memory.
    pub ns: Estimate,
    /// `ns` as a share of the run's processor time; `None` where it can't be told.
    pub share_of_cpu: Option<f64>,
}

/// What being rid of needless calls is expected to win, ns of the run's processor time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExpectedGain {
    /// At least.
    pub low: u64,
    /// At most.
    pub high: u64,
    /// The program's own work right around the calls, of which some may go with them.
    pub around_ns: u64,
}

impl Finding {
    /// Returns true if the expected gain is one at least: starts end more than was counted, and more of the program's own
    /// work may go with the calls than the interval is wide.
    pub fn gains_at_least(&self) -> bool {
        let wide = |gain: ExpectedGain| gain.around_ns > gain.high - gain.low.min(gain.high);
        self.starts || self.expected_gain.is_some_and(wide)
    }
}

/// What a program does once a round, the nearest to what it is for first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WorkUnit {
    /// Bytes taken from a socket, where bytes go back.
    Request,
    /// A connection accepted.
    Connection,
    /// Bytes taken from a pipe or terminal, where others are answered.
    Item,
    /// A wait for descriptors that ended with some.
    WakeUp,
    /// A file opened, another one each time.
    File,
    /// A file opened, be it the same.
    Opening,
    /// Bytes read from a file.
    Read,
    /// Bytes written.
    Write,
}

impl WorkUnit {
    /// All of them.
    pub const ALL: [Self; 8] =
        [Self::Request, Self::Connection, Self::Item, Self::WakeUp, Self::File, Self::Opening, Self::Read, Self::Write];

    /// Its name in JSON, and one of them in a sentence.
    pub fn name(self) -> &'static str {
        match self {
            Self::Request => "request",
            Self::Connection => "connection",
            Self::Item => "item",
            Self::WakeUp => "wake-up",
            Self::File => "file",
            Self::Opening => "opening",
            Self::Read => "read",
            Self::Write => "write",
        }
    }
}

/// How many of a finding's calls go with each round of what the program does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PerUnit {
    /// What marks a round.
    pub per: WorkUnit,
    /// Rounds after `main` began, by the exact counts.
    pub rounds: u64,
    /// Calls of the finding's rows in each round.
    pub calls: u64,
    /// Of these, needless.
    pub needless: u64,
    /// Whole rounds seen in windows.
    pub looked_at: u64,
    /// Of these, with just `calls` calls.
    pub agree: u64,
}

/// One of several objects that calls are about.
#[derive(Clone, Debug, PartialEq)]
pub struct ObjectShare {
    /// A path, or a descriptor's target.
    pub name: String,
    /// Its part of the calls that were looked at, 0 to 1.
    pub share: f64,
}

/// What one row has of a finding's needless calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RowNeedless {
    /// Needless calls, an estimate.
    pub calls: u64,
    /// Their toll, ns.
    pub toll_ns: u64,
}

/// What a finding rests on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Basis {
    /// Windows: some calls in a row, looked at whole.
    #[default]
    Samples,
    /// Looks at single calls, from the run's start to its end; windows hold too few of them close together.
    Looks,
    /// Exact counts, of programs started or of waits before `main`; windows are no evidence of it.
    Counts,
}

impl Basis {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Samples, Self::Looks, Self::Counts];

    /// Its name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Samples => "samples",
            Self::Looks => "looks",
            Self::Counts => "counts",
        }
    }
}

/// Why needless calls are told as a remark and not as a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Doubt {
    /// They cost too little, or are too few.
    Cheap,
    /// What is known of each call leaves room for a good reason.
    Unsure,
    /// Most calls of their rows are of use.
    PartOfRow,
    /// Too few of their rows' calls were looked at, or these do not agree.
    FewSamples,
    /// They are out of a run that is not seen whole: what they cost in it can't be told.
    Excerpt,
}

impl Doubt {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Cheap, Self::Unsure, Self::PartOfRow, Self::FewSamples, Self::Excerpt];

    /// Its name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cheap => "cheap",
            Self::Unsure => "unsure",
            Self::PartOfRow => "part-of-row",
            Self::FewSamples => "few-samples",
            Self::Excerpt => "excerpt",
        }
    }
}

/// What was looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Evidence {
    /// Windows that held calls of the finding's rows.
    pub windows: u64,
    /// Windows in which the claim held for most of those calls.
    pub agree: u64,
    /// Calls of the rows seen in windows.
    pub calls: u64,
    /// Of these, claimed needless.
    pub claimed: u64,
}

/// One way to stop it, for this program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advice {
    /// What to do, in a line; with the situation it is for, where it is not for all.
    pub how: String,
    /// What kind of change it is; `None` where no cause is known.
    pub kind: Option<CureKind>,
    /// What is lost by it; empty where nothing.
    pub gives_up: String,
    /// The language it is code of; `None` where it is of no language.
    pub language: Option<CodeLanguage>,
    /// Whether `systoll prove` can try it.
    pub is_applied: bool,
    /// Whether it is the one that says what to do without one of the programs that a finding lists.
    pub is_for_one: bool,
}

/// A claim that calls are needless, with its price and its cure.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// Id of the cause, where one of the catalogue matches.
    pub cause: Option<Arc<str>>,
    /// Kind of waste.
    pub kind: Kind,
    /// How sure.
    pub confidence: Confidence,
    /// Rows it is about, costliest first.
    pub rows: Vec<RowId>,
    /// System calls it is about, most calls first.
    pub syscalls: Vec<Sysno>,
    /// Public APIs of its rows, most calls first.
    pub apis: Vec<Arc<str>>,
    /// The user's own frame of its costliest row.
    pub user: Option<FrameId>,
    /// The object it is about: a path, an option, a descriptor's target.
    pub what: Option<String>,
    /// Where it is about several objects: the most frequent, of those that were looked at.
    pub objects: Vec<ObjectShare>,
    /// How many different objects were seen, `objects` among them; there may be more.
    pub objects_seen: usize,
    /// All calls of its rows.
    pub calls: u64,
    /// Of these, those that are about its objects, where its rows have calls about others too; `None` where all are.
    pub calls_about: Option<Estimate>,
    /// The calls it claims needless.
    pub needless: Estimate,
    /// Starts of programs, where it is they that are needless: `needless` counts them, not their calls.
    pub starts: bool,
    /// Toll of all calls of its rows, ns.
    pub toll_ns: u64,
    /// Toll of the needless ones, ns.
    pub needless_toll_ns: u64,
    /// What each of `rows`, in their order, has of `needless.estimate` and `needless_toll_ns`: adds up to both.
    pub by_row: Vec<RowNeedless>,
    /// How many of them fall on each request, connection, …; `None` where they do not agree on a number.
    pub per_unit: Option<PerUnit>,
    /// What the needless ones cost later, on top; `None` where nothing was seen.
    pub later: Option<Later>,
    /// What being rid of them is expected to win; `None` where it can't be told, or is waiting.
    pub expected_gain: Option<ExpectedGain>,
    /// Time waited in its rows, ns; `None` where it can't be told.
    pub waited_ns: Option<u64>,
    /// `needless_toll_ns` as a share of the run's processor time; `None` where it can't be told.
    pub share_of_cpu: Option<f64>,
    /// `waited_ns` as a share of its phase's wall time, for the thread that holds the program up.
    pub share_of_wall: Option<f64>,
    /// `calls` as a share of all calls of the run.
    pub share_of_calls: f64,
    /// Phase most of its calls fall in.
    pub phase: Phase,
    /// What was looked at.
    pub evidence: Evidence,
    /// What it rests on.
    pub basis: Basis,
    /// Why it is a remark; `None` where it is a finding.
    pub doubt: Option<Doubt>,
    /// The mechanism and the evidence, in a sentence or two.
    pub why: String,
    /// The language of the code that makes the calls; `None` where nothing tells.
    pub language: Option<CodeLanguage>,
    /// What that language calls the function that was called: `os.path.realpath`; `None` where nothing tells.
    pub language_api: Option<String>,
    /// How to stop it, most preferable first: what fits this program, and nothing for others.
    pub cures: Vec<Advice>,
    /// The next command to type, as argv.
    pub prove: Vec<String>,
}

impl Advice {
    /// In general words, for any language, that gives nothing up.
    pub fn general(how: impl Into<String>) -> Self {
        let gives_up = String::new();
        Self { how: how.into(), kind: None, gives_up, language: None, is_applied: false, is_for_one: false }
    }
}

impl Finding {
    /// The cures' lines alone, most preferable first.
    pub fn stop(&self) -> Vec<&str> {
        self.cures.iter().map(|cure| &*cure.how).collect()
    }

    /// What the first cure gives up; empty where nothing.
    pub fn gives_up(&self) -> &str {
        self.cures.first().map_or("", |cure| &cure.gives_up)
    }

    /// Whether it is about time waited rather than paid.
    pub fn is_about_waiting(&self) -> bool {
        match (self.share_of_wall, self.share_of_cpu) {
            (Some(wall), Some(cpu)) => wall > cpu,
            (Some(_), None) => true,
            (None, _) => self.kind == Kind::Blocking,
        }
    }

    /// What it would win at most, ns: the needless calls' toll and what they cost later, or the
    /// waiting where that is the price ([`Finding::share_of_wall`] or a blocking kind).
    pub fn time_to_win_ns(&self) -> u64 {
        let waits = self.share_of_wall.is_some() || self.kind == Kind::Blocking;
        let waited = self.waited_ns.filter(|_| waits).unwrap_or(0);
        let later = self.later.map_or(0, |l| l.ns.estimate);
        self.needless_toll_ns.saturating_add(later).max(waited)
    }
}

/// Needless calls of one place that no finding and no remark tells of.
#[derive(Clone, Debug, PartialEq)]
pub struct Beneath {
    /// A row of the place.
    pub row: RowId,
    /// The cause of most of them, where one is known.
    pub cause: Option<Arc<str>>,
    /// The kind most of them are of.
    pub kind: Kind,
    /// Calls that are needless, or may be: an estimate.
    pub calls: u64,
    /// Of these, the ones that surely are.
    pub sure_calls: u64,
    /// What all of them took, ns.
    pub toll_ns: u64,
}

/// Needless calls that are in no finding and no remark: too few, or too cheap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Untold {
    /// Calls that are needless, an estimate.
    pub calls: u64,
    /// Their toll, ns.
    pub toll_ns: u64,
    /// Calls that may be needless and may have a reason, beside those.
    pub unsure_calls: u64,
    /// Their toll, ns.
    pub unsure_toll_ns: u64,
}

/// Calls of which nothing could be said: none of their row was looked at, nor of a row alike, or systoll knows nothing of
/// what such a call asks or changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unjudged {
    /// How many, exactly.
    pub calls: u64,
    /// Their toll, ns.
    pub toll_ns: u64,
}

/// Waits of one row for the same thing that ended alike.
#[derive(Clone, Debug, PartialEq)]
pub struct Wait {
    /// The row they were counted on.
    pub row: RowId,
    /// The system call.
    pub syscall: Sysno,
    /// What was waited for: a file, a peer, a descriptor's number; empty where nothing tells.
    pub about: String,
    /// How many waited.
    pub calls: u64,
    /// Whether all of them ended because their time was over.
    pub ran_out: bool,
    /// Time waited, ns.
    pub ns: u64,
    /// The longest of them, ns.
    pub longest_ns: u64,
    /// `ns` as a share of the time the trace shows; above 1 where several threads waited at once. `None` where lines have
    /// no times.
    pub share: Option<f64>,
}

/// A row of a table of counts that is worth a closer look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counted {
    /// The table, as an entry of the recording's processes.
    pub process: ProcessId,
    /// The row's system call first, then those it is compared with.
    pub syscalls: Vec<Sysno>,
    /// What the table shows of it.
    pub text: String,
    /// What that is mostly; empty where nothing is known.
    pub may_be: &'static str,
    /// Ids of the causes that this may be.
    pub causes: &'static [&'static str],
    /// The command that shows which it is, as argv; `CMD` stands for the program's own.
    pub find_out: Vec<String>,
}
