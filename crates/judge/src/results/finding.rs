//! The judge's result: findings and remarks.

use crate::code::language::CodeLanguage;
use crate::collections::named::named;
use crate::results::cure_kind::CureKind;
use std::sync::Arc;
use systoll_model::{FrameId, Phase, ProcessId, RowId, RowLine, Sysno};

named! {
    /// The kinds of waste.
    #[derive(Default)]
    Kind:
    /// A question is asked again and gets the same answer.
    #[default]
    Repeat = "repeat",
    /// A setting is set to the value that it has.
    NoOp = "no-op",
    /// Two calls cancel each other.
    Toggle = "toggle",
    /// Calls fail the same way each time.
    Failing = "failing",
    /// Many small transfers are made in place of one.
    SmallIo = "small-io",
    /// A cheaper way to the same result exists.
    SlowPath = "slow-path",
    /// Calls return at once with nothing, again and again.
    BusyPoll = "busy-poll",
    /// The program waits without need.
    Blocking = "blocking",
}

impl Kind {
    /// Returns what calls of this kind do, as a sentence without its period.
    pub fn means(self) -> &'static str {
        match self {
            Self::Repeat => "a question is asked again, and its answer can't have changed",
            Self::NoOp => "a setting is set to the value that it has",
            Self::Toggle => {
                "two calls cancel each other, or a thing is made, used a little and given up, again and again"
            }
            Self::Failing => "calls fail the same way each time",
            Self::SmallIo => "many small transfers, or neighbouring ranges, take a call each where one would do",
            Self::SlowPath => "a cheaper way to the same result exists",
            Self::BusyPoll => "calls return with nothing, again and again",
            Self::Blocking => "the program waits without need",
        }
    }
}

/// The certainty that a finding's calls are needless.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Confidence {
    /// Enough for a remark only.
    #[default]
    Low,
    /// Enough for a finding, but calls were sampled only in part or not timed, or the recording is an excerpt.
    Medium,
    /// Enough for a finding.
    High,
}

/// A number of calls estimated from windows, with its interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Estimate {
    /// The best estimate.
    pub estimate: u64,
    /// The lower bound.
    pub low: u64,
    /// The upper bound.
    pub high: u64,
}

impl Estimate {
    /// Returns the sum of two estimates.
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            estimate: self.estimate.saturating_add(other.estimate),
            low: self.low.saturating_add(other.low),
            high: self.high.saturating_add(other.high),
        }
    }
}

/// Costs of calls that arise after they have returned, or while other threads ran.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Later {
    /// Number of page faults on memory that the needless calls had given back.
    pub faults: Estimate,
    /// Number of context switches inside the needless calls.
    pub switches: Estimate,
    /// Time of the faults and switches themselves, ns, without the cache misses after them.
    pub ns: Estimate,
    /// `ns` as a share of the run's processor time, 0 to 1; `None` if that is unknown.
    pub share_of_cpu: Option<f64>,
}

/// The expected gain of removing needless calls, ns of the run's processor time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExpectedGain {
    /// The lower bound, ns.
    pub low: u64,
    /// The upper bound, ns.
    pub high: u64,
    /// The program's own work right around the calls, ns; some of it may go with them.
    pub around_ns: u64,
    /// True if that work is done for the calls, and goes with them: what was read is parsed, or the cure leaves out the
    /// library's function that makes the calls.
    pub with_work: bool,
}

impl Finding {
    /// Returns true if the gain may well exceed its interval: the needless calls start programs, whose whole cost is
    /// not counted, or the program's own work around the calls, part of which may go with them, is larger than the
    /// interval is wide.
    pub fn gains_at_least(&self) -> bool {
        let wide = |gain: ExpectedGain| gain.around_ns > gain.high - gain.low.min(gain.high);
        self.starts && !self.copies || self.expected_gain.is_some_and(wide)
    }
}

named! {
    /// The work that a program does once a round. Units nearer to the program's purpose come first.
    WorkUnit:
    /// Reading bytes from a socket to which bytes are written back.
    Request = "request",
    /// Accepting a connection.
    Connection = "connection",
    /// Reading bytes from a pipe or terminal, and writing others in answer.
    Item = "item",
    /// A wait for descriptors that ended with some ready.
    WakeUp = "wake-up",
    /// Opening a file, another one each time.
    File = "file",
    /// Opening a file, possibly the same again.
    Opening = "opening",
    /// Reading bytes from a file.
    Read = "read",
    /// Writing bytes.
    Write = "write",
}

/// The number of a finding's calls in each round of the program's work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PerUnit {
    /// The work that marks a round.
    pub per: WorkUnit,
    /// Number of rounds since `main` began, by exact counts.
    pub rounds: u64,
    /// Number of calls of the finding's rows in each round.
    pub calls: u64,
    /// Number of needless calls among `calls`.
    pub needless: u64,
    /// Number of whole rounds in windows.
    pub looked_at: u64,
    /// Number of whole rounds in windows that have exactly `calls` calls.
    pub agree: u64,
}

/// One of several objects that calls are about.
#[derive(Clone, Debug, PartialEq)]
pub struct ObjectShare {
    /// A path, or a descriptor's target.
    pub name: String,
    /// The object's share of the sampled calls, 0 to 1.
    pub share: f64,
}

/// One row's part of a finding's needless calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RowNeedless {
    /// Number of the row's needless calls, estimated.
    pub calls: u64,
    /// Toll of the needless calls, ns.
    pub toll_ns: u64,
}

named! {
    /// The observations that a finding rests on.
    #[derive(Default)]
    Basis:
    /// Windows: consecutive calls, recorded whole.
    #[default]
    Samples = "samples",
    /// Looks at single calls over the whole run, where windows hold too few of them close together.
    Looks = "looks",
    /// Exact counts of programs started or of waits before `main`, which windows don't show.
    Counts = "counts",
}

named! {
    /// The reason for which needless calls are a remark and not a finding.
    Doubt:
    /// The calls cost too little, or are too few.
    Cheap = "cheap",
    /// Each call may have a good reason, as far as is known.
    Unsure = "unsure",
    /// No window shows that most calls of the rows are needless.
    PartOfRow = "part-of-row",
    /// Windows hold too few of the rows' calls, or do not agree.
    FewSamples = "few-samples",
    /// The calls are from an excerpt of a run, which doesn't tell what they cost in the whole run.
    Excerpt = "excerpt",
    /// The waits may keep a pace that is meant.
    Pace = "pace",
}

/// The windows behind a finding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Evidence {
    /// Number of windows with calls of the finding's rows.
    pub windows: u64,
    /// Number of windows in which at least half of those calls are claimed.
    pub agree: u64,
    /// Number of the rows' calls in windows.
    pub calls: u64,
    /// Number of the rows' calls in windows that are claimed needless.
    pub claimed: u64,
}

/// One cure of a finding, for this program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advice {
    /// The advice in one line, preceded by its situation if it is not for all.
    pub how: String,
    /// The kind of change; `None` if no cause is known.
    pub kind: Option<CureKind>,
    /// The drawback of the advice; empty if there is none.
    pub gives_up: String,
    /// Language of the advice's code; `None` if it holds code of no language.
    pub language: Option<CodeLanguage>,
    /// True if `systoll prove` can try the advice.
    pub is_applied: bool,
    /// True if the advice is for only one of the programs that the finding lists, and avoids that
    /// program.
    pub is_for_one: bool,
    /// True if the advice asks for a change in code that is not the reader's: of a package, or of a program that came
    /// with the system.
    pub by_others: bool,
}

/// A claim that calls are needless, with its price and its cure.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Finding {
    /// The id of the cause, if a cause of the catalogue matches.
    pub cause: Option<Arc<str>>,
    /// Kind of waste.
    pub kind: Kind,
    /// The certainty of the claim.
    pub confidence: Confidence,
    /// The rows with the calls, costliest first.
    pub rows: Vec<RowId>,
    /// For each of `rows` the row of [`crate::Judgement::strands`] that holds the calls about the finding's objects: its
    /// lines, callers and API are those of these calls. If the calls wait for data that were held back, the rows that sent these data
    /// come before them.
    pub strands: Vec<RowId>,
    /// Lines of scripts whose waits were longer than they had to be, or that waited for the processes that are started, the
    /// most first; empty if none of the stacks of such waits was sampled. `None` if the finding is about other calls, or no
    /// line is known that waited for the processes.
    pub at_lines: Option<Vec<RowLine>>,
    /// The system calls, most calls first.
    pub syscalls: Vec<Sysno>,
    /// The public APIs of the rows, most calls first.
    pub apis: Vec<Arc<str>>,
    /// The user's own frame of the costliest row.
    pub user: Option<FrameId>,
    /// The object of the calls: a path, an option, a descriptor's target.
    pub what: Option<String>,
    /// The most frequent objects in windows, if the calls are about several.
    pub objects: Vec<ObjectShare>,
    /// Number of different objects in windows, `objects` among them; there may be more.
    pub objects_seen: usize,
    /// Number of all calls of the rows.
    pub calls: u64,
    /// Number of the rows' calls that are about the finding's objects, if they have calls about
    /// other objects too, or may have, as they serve several lines or callers; `None` if all are. Of
    /// starts: of the calls that served them, if the rows have others.
    pub calls_about: Option<Estimate>,
    /// Number of calls that are claimed needless.
    pub needless: Estimate,
    /// True if starts of programs are needless: `needless` counts the starts, not their calls.
    pub starts: bool,
    /// True if the started processes are forks that run no program of their own.
    pub copies: bool,
    /// Toll of all calls of the rows, ns.
    pub toll_ns: u64,
    /// Toll of the needless calls, ns.
    pub needless_toll_ns: u64,
    /// The share that each of `rows`, in their order, has in `needless.estimate` and `needless_toll_ns`: the shares
    /// add up to both. Of starts: the number of each row's calls that served them.
    pub by_row: Vec<RowNeedless>,
    /// Number of the calls on each request, connection, …; `None` if windows do not agree on a number.
    pub per_unit: Option<PerUnit>,
    /// Cost that follows after the needless calls, in addition; `None` if windows show none.
    pub later: Option<Later>,
    /// Expected gain of removing the needless calls; `None` if it is unknown, or the price is waiting.
    pub expected_gain: Option<ExpectedGain>,
    /// Time waited in the rows, ns; `None` if it is unknown.
    pub waited_ns: Option<u64>,
    /// `needless_toll_ns` as a share of the run's processor time, 0 to 1; `None` if it is unknown.
    pub share_of_cpu: Option<f64>,
    /// `waited_ns` as a share of its phase's wall time, 0 to 1, for the thread that holds the program up.
    pub share_of_wall: Option<f64>,
    /// `calls` as a share of all calls of the run, 0 to 1.
    pub share_of_calls: f64,
    /// The phase with most of the rows' calls.
    pub phase: Phase,
    /// The windows behind the finding.
    pub evidence: Evidence,
    /// The observations that the finding rests on.
    pub basis: Basis,
    /// The reason for which this is a remark; `None` if it is a finding.
    pub doubt: Option<Doubt>,
    /// The mechanism and the evidence, in a sentence or two.
    pub why: String,
    /// The language of the code that makes the calls; `None` if it is unknown.
    pub language: Option<CodeLanguage>,
    /// The name that this language gives to the function that was called (`os.path.realpath`); `None` if it is
    /// unknown.
    pub language_api: Option<String>,
    /// The cures that fit this program, best first.
    pub cures: Vec<Advice>,
    /// The next command to type, as argv.
    pub prove: Vec<String>,
}

impl Advice {
    /// Returns advice in general words, for any language, that gives nothing up.
    pub fn general(how: impl Into<String>) -> Self {
        let gives_up = String::new();
        let how = how.into();
        Self { how, kind: None, gives_up, language: None, is_applied: false, is_for_one: false, by_others: false }
    }

    /// Returns advice in general words that others have to follow.
    pub(crate) fn to_others(how: String) -> Self {
        Self { by_others: true, ..Self::general(how) }
    }
}

impl Finding {
    /// Returns the cures' lines, best first.
    pub fn stop(&self) -> Vec<&str> {
        self.cures.iter().map(|cure| &*cure.how).collect()
    }

    /// Returns what the first cure gives up; empty if nothing.
    pub fn gives_up(&self) -> &str {
        self.cures.first().map_or("", |cure| &cure.gives_up)
    }

    /// Returns true if the reader can follow some of the advice: not all of it asks others to change their code.
    pub fn is_for_reader(&self) -> bool {
        self.cures.iter().any(|cure| !cure.by_others)
    }

    /// Returns true if the finding's price is time waited rather than processor time.
    pub fn is_about_waiting(&self) -> bool {
        match (self.share_of_wall, self.share_of_cpu) {
            (Some(wall), Some(cpu)) => wall > cpu,
            (Some(_), None) => true,
            (None, _) => self.kind == Kind::Blocking,
        }
    }

    /// Returns the most time that a cure would win, ns: the needless calls' toll and the cost that follows them, or
    /// the waiting if that is the price ([`Finding::share_of_wall`] or a blocking kind).
    pub fn time_to_win_ns(&self) -> u64 {
        let waits = self.share_of_wall.is_some() || self.kind == Kind::Blocking;
        let waited = self.waited_ns.filter(|_| waits).unwrap_or(0);
        let later = self.later.map_or(0, |l| l.ns.estimate);
        self.needless_toll_ns.saturating_add(later).max(waited)
    }
}

/// Needless calls of one place that no finding and no remark reports.
#[derive(Clone, Debug, PartialEq)]
pub struct Beneath {
    /// A row of the place.
    pub row: RowId,
    /// The cause of most of the calls, if one is known.
    pub cause: Option<Arc<str>>,
    /// The kind of most of the calls.
    pub kind: Kind,
    /// Number of calls that are needless, or may be; an estimate.
    pub calls: u64,
    /// Number of calls that are surely needless; an estimate.
    pub sure_calls: u64,
    /// Toll of all `calls`, ns.
    pub toll_ns: u64,
    /// The best cure in one line, of the costliest places with a cause.
    pub cure: Option<String>,
}

/// Needless calls that are in no finding and no remark: too few, or too cheap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Untold {
    /// Number of the needless calls, estimated.
    pub calls: u64,
    /// Toll of these needless calls, ns.
    pub toll_ns: u64,
    /// Number of further calls that may be needless and may have a reason, estimated.
    pub unsure_calls: u64,
    /// Toll of the further calls, ns.
    pub unsure_toll_ns: u64,
}

/// Calls that can't be judged: neither their row nor a like row has windows, or systoll has no rule for what such a
/// call asks or changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unjudged {
    /// Number of calls that can't be judged, exact.
    pub calls: u64,
    /// Toll of the calls that can't be judged, ns.
    pub toll_ns: u64,
}

/// Waits of one row for the same thing that ended in the same way.
#[derive(Clone, Debug, PartialEq)]
pub struct Wait {
    /// The row that counts the calls.
    pub row: RowId,
    /// The system call.
    pub syscall: Sysno,
    /// The thing waited for: a file, a peer, a descriptor's number; empty if it is unknown.
    pub about: String,
    /// Number of calls that waited.
    pub calls: u64,
    /// True if all the waits ended by their timeouts.
    pub ran_out: bool,
    /// Time waited, ns.
    pub ns: u64,
    /// The longest wait, ns.
    pub longest_ns: u64,
    /// `ns` as a share of the time that the trace shows; above 1 if several threads waited at once. `None` if lines
    /// have no times.
    pub share: Option<f64>,
}

/// A row of a table of counts that is worth a closer look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counted {
    /// The table, as an entry of the recording's processes.
    pub process: ProcessId,
    /// The row's system call, then the system calls that it is compared with.
    pub syscalls: Vec<Sysno>,
    /// The observation, in words.
    pub text: String,
    /// The usual meaning of the observation; empty if none is known.
    pub may_be: &'static str,
    /// Ids of the causes to which the row's calls may belong.
    pub causes: &'static [&'static str],
    /// The command that shows which of the causes it is, as argv; `CMD` stands for the program's
    /// own.
    pub find_out: Vec<String>,
}
