//! Holds every failure that a user can meet: one text, one piece of advice, one exit code for each.

use crate::nearest::others;
use crate::suggest::Instead;
use std::borrow::Cow;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use systoll_cure::RunError;
use systoll_import::ImportError;
use systoll_model::BackendKind;
use systoll_prove::ProveError;

/// Exit code of systoll's own failures.
pub(crate) const EXIT_OF_SYSTOLL: u8 = 125;

/// The reason why systoll ended without doing its job.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The program could not be started or watched.
    Record(systoll_record::Error),
    /// A recording could not be read.
    Recording(PathBuf, systoll_model::FileError),
    /// The recording can't be written in that format.
    Export(systoll_export::ExportError),
    /// A trace could not be read.
    Trace(PathBuf, ImportError),
    /// A bisection is not possible.
    Bisect(crate::bisect::Trouble),
    /// There is no file with a budget.
    NoBudget(PathBuf),
    /// The budget can't be used.
    Budget(PathBuf, String),
    /// The folder has no recordings.
    NoRecordings(PathBuf),
    /// A file could not be read, created or written.
    File { what: &'static str, path: PathBuf, source: std::io::Error },
    /// The result of a run could not be written to its file.
    NotKept { what: &'static str, path: PathBuf, source: std::io::Error, bytes: u64 },
    /// The recording would replace a file that is no recording.
    NotOurs(PathBuf),
    /// Standard output or error failed while the report was written.
    Stream(&'static str, std::io::Error),
    /// Standard output or error is closed: the report would have nowhere to go.
    Closed(&'static str),
    /// There is no cause or story of that name.
    Unknown { what: &'static str, name: String, known: Vec<String>, help: Cow<'static, str> },
    /// There is no process of that name, number or port, or none "of the unit x" and the like.
    NoProcess(String),
    /// Several services have that name.
    SeveralServices(String, Vec<String>),
    /// Standard output is no terminal.
    NoTerminal,
    /// The terminal could not be used.
    Terminal(std::io::Error),
    /// A cause's file can't be parsed.
    Cause(PathBuf, String),
    /// The cause is known, but none of its cures, or not the requested one, can be applied from
    /// outside.
    NotApplied { asked: String, cause: String, elided: Option<String> },
    /// The cure would change nothing. Holds the cure as requested, and what it would set.
    AlreadySo(String, String),
    /// A cure's library can't be written.
    Cure(systoll_cure::CureError),
    /// A cure is for the languages `only`, and CMD runs `is`.
    OtherLanguage { cure: String, only: String, is: &'static str },
    /// The program would not load a cure's library.
    Unreached { program: OsString, why: systoll_cure::Unreached, cure: String, elided: Option<String> },
    /// A cause has no calls that could be answered in place in a program that runs. `help` is what helps; `applied` is
    /// true if systoll can apply one of its cures to a program that it starts.
    NotLive { cause: String, applied: bool, help: String },
    /// A program that runs can't be entered, or its calls can't be answered in place.
    NotEntered { reason: String, advice: Option<String> },
    /// A query over many recordings failed.
    Fleet(systoll_fleet::FleetError),
    /// The agent could not begin.
    Agent(systoll_agent::AgentError),
    /// The folder has no tables.
    NoTables(PathBuf),
    /// The arguments do not go together.
    Usage(&'static str),
    /// The sleeps of a place can't be shortened.
    NotShortened { what: String, why: String },
    /// Another program listens on the port on which the command is to be awaited.
    PortTaken(u16),
    /// The command ended without the sign that it is ready.
    NotReady(crate::cli::Sign),
    /// The comparison could not be made.
    Prove(systoll_prove::ProveError),
    /// This signal told systoll to end before there was a result.
    Interrupted(i32),
    /// This signal told systoll to end. The text follows `interrupted` and says what is known.
    InterruptedKnowing(i32, String),
    /// The command could not be executed.
    Exec(PathBuf, std::io::Error),
    /// A demo program can't be built or compared.
    Demo(String),
}

impl Failure {
    /// Adds what is known so far, if the failure is an interrupt. The text follows `interrupted`.
    pub(crate) fn knowing(self, known: impl FnOnce() -> String) -> Self {
        match self {
            Self::Interrupted(signal) => Self::InterruptedKnowing(signal, known()),
            other => other,
        }
    }

    /// Turns the failure of a process that was killed by an interrupt into the interrupt.
    pub(crate) fn unless_interrupted(self) -> Self {
        match (&self, systoll_cure::interrupted()) {
            (Self::Interrupted(_) | Self::InterruptedKnowing(..), _) | (_, None) => self,
            (_, Some(signal)) => Self::Interrupted(signal),
        }
    }

    pub(crate) fn file(what: &'static str, path: &Path, source: std::io::Error) -> Self {
        Self::File { what, path: path.to_owned(), source }
    }

    fn exit_code(&self) -> u8 {
        match self {
            Self::Record(e) => e.exit_code() as u8,
            Self::Exec(_, e) => not_run(e),
            Self::Interrupted(signal) | Self::InterruptedKnowing(signal, _) => ended_by(*signal),
            Self::Prove(ProveError::Run(RunError::Start { source, .. })) => not_run(source),
            _ => EXIT_OF_SYSTOLL,
        }
    }

    /// Returns what was tried, what stopped it, and the one command that helps.
    fn lines(&self) -> Vec<String> {
        let mut lines = match self {
            Self::Record(e) => vec![with_sources(e)],
            Self::Recording(path, e) => vec![format!("can't read the recording {}: {e}", path.display())],
            Self::Export(e) => vec![e.to_string()],
            Self::Trace(path, ImportError::Read(e)) => {
                vec![format!("can't read {}: {}", path.display(), plain(e))]
            }
            Self::Trace(path, e) => vec![format!("{} is no trace: {e}", path.display())],
            Self::Bisect(trouble) => vec![trouble.to_string()],
            Self::NoBudget(path) => vec![format!("there is no budget {}", path.display())],
            Self::Budget(path, e) => vec![format!("{}: {e}", path.display())],
            Self::NoRecordings(path) => vec![format!("there is no recording (*.systoll) in {}", path.display())],
            Self::File { what, path, source } => vec![format!("can't {what} {}: {}", path.display(), plain(source))],
            Self::NotKept { what, path, source, bytes } => {
                vec![format!("the {what} was not kept: {}: {}", path.display(), no_room(source, *bytes))]
            }
            Self::NotOurs(path) => vec![format!("{} is there and is no recording: it is not replaced", path.display())],
            Self::Stream(name, e) => vec![format!("can't write to {name}: {}", plain(e))],
            Self::Closed(name) => vec![format!("{name} is closed: the report would have nowhere to go")],
            Self::Unknown { what, name, known, .. } => {
                vec![format!("there is no {what} {name}{}", others(name, known))]
            }
            Self::NoProcess(word) => vec![match word.strip_prefix(':') {
                // Root sees every process of its box.
                Some(port) if nix::unistd::geteuid().is_root() => format!("nothing listens on port {port}"),
                Some(port) => format!("nothing that you may inspect listens on port {port}; try sudo"),
                None => format!("there is no process {word}"),
            }],
            Self::SeveralServices(name, services) => vec![format!("several are named {name}: {}", services.join(", "))],
            Self::NoTerminal => vec!["standard output is not a terminal: there is nothing to draw on".to_owned()],
            Self::Terminal(e) => vec![format!("the terminal can't be used: {}", plain(e))],
            Self::Cause(path, e) => vec![format!("{}: {e}", path.display())],
            Self::NotApplied { asked, .. } => {
                vec![format!("no cure of {asked} can be applied from outside the program")]
            }
            Self::AlreadySo(asked, what) => vec![format!("{asked} has nothing to change here: {what} is so already")],
            Self::Cure(e) => vec![e.to_string()],
            Self::OtherLanguage { cure, only, is } => vec![format!("{cure} is a cure for {only}, and CMD runs {is}")],
            Self::Unreached { program, why, cure, .. } => {
                vec![format!("{cure} can't be cured by a library here: {} {why}", program.display())]
            }
            Self::Agent(e) => vec![e.to_string()],
            Self::Fleet(e) => vec![with_sources(e)],
            Self::NoTables(path) => vec![format!("there is no table (*.parquet) below {}", path.display())],
            Self::Usage(text) => vec![(*text).to_owned()],
            Self::NotShortened { what, why } => vec![format!("the sleeps of {what} can't be shortened: {why}")],
            Self::PortTaken(port) => {
                vec![format!("another program listens on port {port} already: it would be taken for CMD")]
            }
            Self::NotReady(sign) => {
                vec![format!("{sign} was not seen before CMD ended, or was left: the report is about its whole run")]
            }
            Self::Prove(ProveError::Run(RunError::Start { program, source })) => {
                vec![format!("can't run {program}: {}", plain(source))]
            }
            Self::NotLive { cause, applied, .. } => {
                let calls = systoll_model::Elision::ALL.map(systoll_model::Elision::name).join(", ");
                let new = "its cure takes a new start of the program, on another port where it serves:";
                let none = format!("{cause}: none of its calls can be answered in place in a program that runs");
                let can = format!("what can: {calls}; no other process can change their answers");
                [none, can].into_iter().chain(applied.then(|| new.to_owned())).collect()
            }
            Self::NotEntered { reason, .. } => vec![reason.clone()],
            Self::Prove(e) => vec![with_sources(e)],
            Self::Interrupted(_) => vec!["interrupted before there was anything to report".into()],
            Self::InterruptedKnowing(_, known) => vec![format!("interrupted{known}")],
            Self::Exec(program, e) => vec![format!("can't run {}: {}", program.display(), plain(e))],
            Self::Demo(text) => vec![text.clone()],
        };
        lines.extend(self.advice());
        lines
    }

    fn advice(&self) -> Option<String> {
        match self {
            Self::Record(systoll_record::Error::NotFound(program)) => {
                crate::suggest::program(&program.to_string_lossy())
            }
            Self::Exec(program, e) if e.kind() == std::io::ErrorKind::NotFound => {
                crate::suggest::program(&program.to_string_lossy())
            }
            Self::Prove(ProveError::Run(RunError::Start { program, source }))
                if source.kind() == std::io::ErrorKind::NotFound =>
            {
                crate::suggest::program(program)
            }
            Self::Record(systoll_record::Error::Refused { backend: BackendKind::Bpf, reason })
                if reason.contains("CAP_") =>
            {
                let words: Vec<String> = std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
                Some(as_root(words.get(1..).unwrap_or_default()))
            }
            Self::Record(e) => e.advice(),
            Self::Trace(_, ImportError::Read(_) | ImportError::Foreign { .. }) => None,
            Self::Trace(path, ImportError::Profile) => {
                Some(format!("if systoll kept it, it is a recording: systoll report {}", typed(path)))
            }
            Self::Trace(..) => {
                Some("make one with: strace -f -ttt -T -v -o FILE CMD; docs/use/importing.md has the others".into())
            }
            Self::Recording(path, systoll_model::FileError::NotGzip) => Some(format!(
                "make one with: systoll run --save FILE -- CMD\nif another tool traced it: systoll import {}",
                typed(path)
            )),
            Self::Recording(..) | Self::NoRecordings(_) => Some("make one with: systoll run --save FILE -- CMD".into()),
            Self::NoTables(path) => Some(format!("add a run: systoll run --save-to {} -- CMD", typed(path))),
            Self::Fleet(systoll_fleet::FleetError::Package(package)) => Some(crate::python::install(package)),
            Self::Fleet(systoll_fleet::FleetError::Java) => Some("get it: apt-get install default-jre-headless".into()),
            Self::NoBudget(_) => Some("make one with: systoll check --update -- CMD".into()),
            Self::Budget(..) => Some("docs/use/check.md tells what a budget can hold".into()),
            Self::NoTerminal | Self::Terminal(_) => {
                Some("screens as plain text, e.g. ten of them: systoll top --batch 10 …".into())
            }
            Self::NoProcess(word) if word.starts_with("of ") => {
                Some("all processes with their control groups: ps -e -o pid,cgroup,args".into())
            }
            Self::NoProcess(_) => {
                Some("all processes: ps -e; all listening ports: ss -ltnp; those of other users: with sudo".into())
            }
            Self::NotShortened { .. } => Some("what waits, and where: systoll run --waits -- CMD".into()),
            Self::PortTaken(_) => Some("which one: ss -ltnp".into()),
            Self::NotOurs(_) => Some("give another name, or --force".into()),
            Self::Closed(_) => Some("give it a place: -o FILE".into()),
            Self::Unknown { help, .. } => Some(help.to_string()),
            Self::OtherLanguage { cure, .. } => {
                Some(format!("the cures in its code: systoll cure --print --for code {}", cause_of(cure)))
            }
            Self::SeveralServices(..) => Some("give the whole name of one of these".into()),
            Self::Unreached { cure, elided, .. } => {
                let others =
                    format!("the cures in its code, and what each gives up: systoll explain {}", cause_of(cure));
                Some(others + &ceiling(elided.as_deref()))
            }
            Self::Prove(ProveError::TooLong { needed, .. }) => {
                Some(format!("--limit {}s allows it; a shorter run of the same needs less", needed.as_secs() + 1))
            }
            Self::Prove(ProveError::NothingAnswered { .. }) => {
                Some("what it makes, and how: systoll run -- CMD; two builds can be compared: prove --vs".into())
            }
            Self::NotApplied { cause, elided, .. } => {
                let others = format!("what can be done: systoll explain {cause}; two builds: prove --vs");
                Some(others + &ceiling(elided.as_deref()))
            }
            Self::NotLive { help, .. } => Some(help.clone()),
            Self::NotEntered { advice, .. } => advice.clone(),
            Self::Cause(..) => Some("docs/reference/causes.md tells how one is written".into()),
            _ => None,
        }
    }

    /// Prints the failure on standard error and returns its exit code.
    pub(crate) fn tell(&self) -> ExitCode {
        let mut text = String::new();
        let width = crate::output::stderr_columns().saturating_sub(INDENT.len());
        let cleaned = self.lines().iter().flat_map(|l| l.lines()).map(systoll_present::clean).collect::<Vec<_>>();
        for (i, line) in cleaned.iter().flat_map(|line| systoll_present::wrapped(line, width)).enumerate() {
            text.push_str(if i == 0 { "systoll: " } else { INDENT });
            text.push_str(&line);
            text.push('\n');
        }
        crate::output::to_stderr(&text);
        if let Self::Record(systoll_record::Error::Ended { signal, .. }) = self {
            systoll_record::end_by_signal(*signal);
        }
        ExitCode::from(self.exit_code())
    }
}

/// Indent of all lines of a failure except the first, which starts with `systoll: `.
const INDENT: &str = "         ";

/// Returns the line that suggests the command that was typed, with these words behind `systoll`, as root.
fn as_root(words: &[String]) -> String {
    let otherwise =
        if words.first().is_some_and(|word| word == "run") { "; without --backend bpf it takes no rights" } else { "" };
    format!("as root: sudo systoll {}{otherwise}", systoll_present::shell_words(words))
}

/// Returns a path as a user types it in a shell.
fn typed(path: &Path) -> String {
    systoll_present::shell_words(&[path.to_string_lossy().as_ref()])
}

/// Returns the cause's id of a cure as requested, such as `ID:2`.
fn cause_of(cure: &str) -> &str {
    cure.split(':').next().unwrap_or_default()
}

/// Returns the line that suggests `--elide`, which shows the gain even if no cure can be applied.
fn ceiling(elided: Option<&str>) -> String {
    elided.map_or_else(String::new, |calls| {
        format!("\nwhat would be won without the calls: systoll prove --elide {calls} -- CMD")
    })
}

/// Returns the exit code that shells give a command that a signal ended.
pub(crate) fn ended_by(signal: i32) -> u8 {
    128u8.wrapping_add(signal as u8)
}

/// Returns the exit code of shells: 127 if there is no such program, 126 if it can't be executed.
fn not_run(error: &std::io::Error) -> u8 {
    if error.kind() == std::io::ErrorKind::NotFound { 127 } else { 126 }
}

impl From<crate::bisect::Trouble> for Failure {
    fn from(trouble: crate::bisect::Trouble) -> Self {
        Self::Bisect(trouble)
    }
}

impl From<systoll_cure::CureError> for Failure {
    fn from(e: systoll_cure::CureError) -> Self {
        Self::Cure(e)
    }
}

impl From<ProveError> for Failure {
    fn from(e: ProveError) -> Self {
        match e {
            ProveError::Watch(e) => Self::Record(e),
            ProveError::Interrupted { signal } => Self::Interrupted(signal),
            e => Self::Prove(e),
        }
    }
}

impl From<systoll_record::Error> for Failure {
    fn from(e: systoll_record::Error) -> Self {
        Self::Record(e)
    }
}

fn with_sources(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(source) = next {
        text.push_str(&format!(": {source}"));
        next = source.source();
    }
    text
}

/// Returns the system's text for an error, without Rust's "(os error N)".
fn plain(error: &std::io::Error) -> String {
    error.raw_os_error().map_or_else(|| error.to_string(), |e| nix::errno::Errno::from_raw(e).desc().to_owned())
}

/// Returns the text of [`plain`] for the middle of a sentence; if there was too little space, with
/// the space that is needed.
fn no_room(error: &std::io::Error, bytes: u64) -> String {
    use std::io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    let mut text = plain(error);
    if let Some(first) = text.get_mut(..1) {
        first.make_ascii_lowercase();
    }
    if matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge) {
        text.push_str(&format!(" (needs {} KiB)", bytes.div_ceil(1024)));
    }
    text
}

/// Removes clap's tip to put `--` before a mistyped option: the option would become the program to
/// run.
fn without_false_tip(text: &str) -> String {
    // `error: unexpected argument '--nope' found`, and then `tip: a similar argument exists: '--open'`.
    let quoted = |line: &str| line.split('\'').nth(1).map(str::to_owned);
    let typed = text.lines().next().and_then(quoted).unwrap_or_default();
    let is_alike = |line: &str| quoted(line).is_none_or(|name| crate::nearest::is_alike(&typed, &name));
    let is_false =
        |line: &&str| line.starts_with("  tip: to pass '") || line.starts_with("  tip: a similar ") && !is_alike(line);
    let mut lines: Vec<&str> = text.lines().filter(|line| !is_false(line)).collect();
    lines.dedup_by(|a, b| a.is_empty() && b.is_empty());
    lines.join("\n")
}

/// Prints a usage error and returns its exit code. `--help` and `--version` are no errors; wrong
/// arguments are systoll's error, not CMD's.
pub(crate) fn usage(error: &clap::Error) -> ExitCode {
    if error.use_stderr() {
        match crate::suggest::instead(error) {
            Some(Instead::Answer(text)) => {
                // A closed pipe has no reader.
                let _ = std::io::Write::write_all(&mut std::io::stdout(), text.as_bytes());
                return ExitCode::SUCCESS;
            }
            Some(Instead::Hint(text)) => {
                crate::output::to_stderr(&text);
                return ExitCode::from(EXIT_OF_SYSTOLL);
            }
            None => {}
        }
        let width = crate::output::stderr_columns();
        let text = error.render().to_string().replacen("error: ", "systoll: ", 1);
        let text = without_false_tip(&text);
        let lines: Vec<String> = text.lines().flat_map(|line| systoll_present::wrapped(line, width)).collect();
        crate::output::to_stderr(&(lines.join("\n") + "\n"));
        return ExitCode::from(EXIT_OF_SYSTOLL);
    }
    // A closed pipe has no reader.
    let _ = error.print();
    ExitCode::SUCCESS
}
