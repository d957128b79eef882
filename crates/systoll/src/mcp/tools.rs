//! Defines the tools: each turns its arguments into words of a command line.

mod schemas;

use super::arguments::{Arguments, file};
use super::child::{Done, Words};
use super::clip;
use super::shorten::{ROOM, in_order, part, shorten};
use serde_json::{Map, Value, json};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, TryLockError};
use std::thread;
use std::time::Duration;
use systoll_cure::PrivateFolder;
use systoll_mcp::{Answer, Call, Description, Effect, Tool};

/// Largest number of recordings of one session that are kept at once (those of `run` without
/// `save`). The oldest are removed.
const KEPT: u64 = 50;
/// Largest size of a report that is read, bytes.
const MAX_REPORT: u64 = 256 << 20;
/// Time that `prove` may take beyond its own limit, for the current pair and the watched runs.
const BEYOND: Duration = Duration::from_secs(120);
/// Fields of a report that a model should read first.
const READ_FIRST: [&str; 8] = ["findings", "also", "waits", "counted", "problems", "recording", "timed_out", "output"];
/// Number of elements of a list that `report` returns by default.
const SOME: u64 = 20;

/// A tool that runs systoll.
struct SystollTool {
    what: ToolKind,
    shop: Arc<PrivateFolder>,
    /// The lock that is held while a command is measured: two at once would disturb each other.
    measuring: Arc<Mutex<()>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ToolKind {
    Run,
    Report,
    Explain,
    Prove,
    Diff,
    Import,
}

/// Returns all tools. `shop` holds their files.
pub(super) fn all(shop: &Arc<PrivateFolder>, measuring: &Arc<Mutex<()>>) -> Vec<Box<dyn Tool>> {
    [ToolKind::Run, ToolKind::Explain, ToolKind::Prove, ToolKind::Diff, ToolKind::Report, ToolKind::Import]
        .map(|what| -> Box<dyn Tool> {
            Box::new(SystollTool { what, shop: Arc::clone(shop), measuring: Arc::clone(measuring) })
        })
        .into()
}

/// The reason why there is no answer.
enum Trouble {
    /// A text for the model.
    Said(String),
    /// The client cancelled the call.
    Cancelled,
}

impl From<String> for Trouble {
    fn from(why: String) -> Self {
        Self::Said(why)
    }
}

impl Tool for SystollTool {
    fn describe(&self) -> Description {
        let (name, title, text, input) = match self.what {
            ToolKind::Run => ("run", "Find needless system calls", schemas::RUN, schemas::run()),
            ToolKind::Report => ("report", "Look into a recording", schemas::REPORT, schemas::report()),
            ToolKind::Explain => ("explain", "Explain a cause and its cures", schemas::EXPLAIN, schemas::explain()),
            ToolKind::Prove => ("prove", "Prove what a change wins", schemas::PROVE, schemas::prove()),
            ToolKind::Diff => ("diff", "Compare exact counts", schemas::DIFF, schemas::diff()),
            ToolKind::Import => ("import", "Read a trace in a bug report", schemas::IMPORT, schemas::import()),
        };
        let reads = matches!(self.what, ToolKind::Report | ToolKind::Explain | ToolKind::Import);
        let effect = if reads { Effect::Reads } else { Effect::RunsCommands };
        Description { name, title, text, input, effect }
    }

    fn call(&self, arguments: &Map<String, Value>, call: &Call<'_>) -> Answer {
        let done = Arguments::of(arguments, &self.describe().input).map_err(Trouble::Said).and_then(|arguments| {
            let _measuring = self.turn(call)?;
            match self.what {
                ToolKind::Run => self.run(&arguments, call),
                ToolKind::Report => self.report(&arguments, call),
                ToolKind::Explain => explain(&arguments, call),
                ToolKind::Prove => self.prove(&arguments, call),
                ToolKind::Diff => self.diff(&arguments, call),
                ToolKind::Import => self.import(&arguments, call),
            }
        });
        match done {
            Ok(answer) => answer,
            Err(Trouble::Said(why)) => Answer::Failed(why),
            Err(Trouble::Cancelled) => Answer::Failed("taken back".into()),
        }
    }
}

impl SystollTool {
    /// Waits until no other command is measured.
    fn turn(&self, call: &Call<'_>) -> Result<Option<std::sync::MutexGuard<'_, ()>>, Trouble> {
        const LOOK: Duration = Duration::from_millis(20);
        if matches!(self.what, ToolKind::Report | ToolKind::Explain | ToolKind::Import) {
            return Ok(None);
        }
        loop {
            match self.measuring.try_lock() {
                Ok(turn) => return Ok(Some(turn)),
                Err(TryLockError::Poisoned(turn)) => return Ok(Some(turn.into_inner())),
                Err(TryLockError::WouldBlock) if call.is_cancelled() => return Err(Trouble::Cancelled),
                Err(TryLockError::WouldBlock) => thread::sleep(LOOK),
            }
        }
    }

    /// Returns the path of a new recording in the session's folder, and removes the oldest
    /// recording.
    fn new_recording(&self) -> PathBuf {
        static NUMBER: AtomicU64 = AtomicU64::new(1);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = |number: u64| self.shop.path().join(format!("{number}.systoll"));
        if let Some(old) = number.checked_sub(KEPT) {
            // Its run may have failed without leaving a recording.
            let _ = std::fs::remove_file(name(old));
        }
        name(number)
    }

    /// Returns the path of a new answer. The answer is removed once it is read.
    fn new_answer(&self) -> PathBuf {
        static NUMBER: AtomicU64 = AtomicU64::new(1);
        self.shop.path().join(format!("{}.json", NUMBER.fetch_add(1, Ordering::Relaxed)))
    }

    fn run(&self, arguments: &Arguments<'_>, call: &Call<'_>) -> Result<Answer, Trouble> {
        let command = arguments.command()?;
        let kept = match arguments.text("save")? {
            Some(save) => PathBuf::from(file(save)),
            None => self.new_recording(),
        };
        let mut words = CommandWords::new(&["run", "--quiet", "--json", "--save"]);
        words.push(&kept);
        if let Some(backend) = arguments.text("backend")? {
            words.push(format!("--backend={backend}"));
        }
        words.extend(arguments.env()?.into_iter().map(|change| format!("--env={change}")));
        let line = words.command(&command);
        let (mut report, done) = self.json(line, arguments, arguments.timeout()?, call)?;
        let folder = arguments.folder()?.filter(|_| kept.is_relative()).unwrap_or_default();
        let kept = std::path::absolute(folder.join(&kept)).unwrap_or(kept);
        if let Some(report) = report.as_object_mut() {
            let left_out = report.remove("left_out");
            report.insert("recording".into(), kept.to_string_lossy().into());
            report.insert("output".into(), json!({"stdout": done.stdout.json(), "stderr": done.stderr.json()}));
            report.insert("timed_out".into(), done.timed_out.into());
            left_out.map(|left_out| report.insert("left_out".into(), left_out));
        }
        Ok(Answer::Json(in_order(report, &READ_FIRST)))
    }

    fn report(&self, arguments: &Arguments<'_>, call: &Call<'_>) -> Result<Answer, Trouble> {
        let recording = arguments.text("recording")?.ok_or_else(|| "recording is missing: a file".to_owned())?;
        let mut words = CommandWords::new(&["report", "--json"]);
        if let Some(by) = arguments.text("by")? {
            words.push(format!("--by={by}"));
        }
        if let Some(set) = arguments.text("calls")? {
            words.push(format!("--trace={set}"));
        }
        words.push(file(recording));
        let at = arguments.text("at")?;
        let offset = arguments.number("offset", 0, u64::MAX)?.unwrap_or(0);
        let limit = arguments.number("limit", 1, 1000)?.unwrap_or(SOME);
        let (whole, _) = self.whole(words.0, arguments, arguments.timeout()?, call)?;
        let shown = match at {
            None => in_order(whole, &READ_FIRST),
            Some(at) => part(&whole, at, usize::try_from(offset).unwrap_or(usize::MAX), limit as usize)
                .ok_or_else(|| format!("nothing is at {at}: a JSON pointer, such as /findings/0 or /rows"))?,
        };
        Ok(Answer::Json(shorten(shown)))
    }

    fn import(&self, arguments: &Arguments<'_>, call: &Call<'_>) -> Result<Answer, Trouble> {
        let (pasted, trace) = (arguments.text("text")?, arguments.text("trace")?);
        let kept = self.new_recording();
        let mut words = CommandWords::new(&["import", "--json", "--save"]);
        words.push(&kept);
        let own = match (pasted, trace) {
            (Some(text), None) => {
                let place = self.new_answer().with_extension("trace");
                std::fs::write(&place, text).map_err(|e| format!("can't keep the text: {e}"))?;
                words.push(&place);
                Some(place)
            }
            (None, Some(trace)) => {
                words.push(file(trace));
                None
            }
            _ => return Err("give text (what was pasted) or trace (a file), and not both".to_owned().into()),
        };
        let answer = self.json(words.0, arguments, arguments.timeout()?, call);
        if let Some(place) = own {
            // The file has been read. If it can't be removed now, it is removed with the folder.
            let _ = std::fs::remove_file(place);
        }
        let (mut report, _) = answer?;
        if let Some(report) = report.as_object_mut() {
            report.insert("recording".into(), kept.to_string_lossy().into());
        }
        Ok(Answer::Json(in_order(report, &READ_FIRST)))
    }

    fn prove(&self, arguments: &Arguments<'_>, call: &Call<'_>) -> Result<Answer, Trouble> {
        let command = arguments.command()?;
        if !["cure", "vs", "env", "elide", "preload"].iter().any(|change| arguments.has(change)) {
            return Err("nothing differs: give cure, vs, env, elide or preload".to_owned().into());
        }
        let limit = arguments.number("limit_seconds", 1, super::arguments::LONGEST)?.unwrap_or(60);
        let mut words = CommandWords::new(&["prove", "--quiet", "--json"]);
        words.push(format!("--limit={limit}s"));
        words.extend(arguments.texts("cure")?.into_iter().map(|cure| format!("--cure={cure}")));
        words.extend(arguments.env()?.into_iter().map(|change| format!("--env={change}")));
        words.extend(arguments.texts("elide")?.into_iter().map(|call| format!("--elide={call}")));
        words.vs(arguments)?;
        for name in ["preload", "input", "same", "prepare"] {
            if let Some(text) = arguments.text(name)? {
                words.push(format!("--{name}={text}"));
            }
        }
        let line = words.command(&command);
        let (proof, _) = self.json(line, arguments, Duration::from_secs(limit) + BEYOND, call)?;
        Ok(Answer::Json(proof))
    }

    fn diff(&self, arguments: &Arguments<'_>, call: &Call<'_>) -> Result<Answer, Trouble> {
        let (old, new, command) = (arguments.texts("old")?, arguments.texts("new")?, arguments.words("command")?);
        let mut words = CommandWords::new(&["diff", "--json"]);
        if let Some(by) = arguments.text("by")? {
            words.push(format!("--by={by}"));
        }
        let line = match (old.is_empty(), new.is_empty(), command.is_empty()) {
            (false, false, true) => {
                words.extend(old.into_iter().map(file));
                words.push(":");
                words.extend(new.into_iter().map(file));
                words.0
            }
            (true, true, false) => {
                if let Some(runs) = arguments.number("runs", 1, 100)? {
                    words.push(format!("--runs={runs}"));
                }
                words.extend(arguments.env()?.into_iter().map(|change| format!("--env={change}")));
                words.vs(arguments)?;
                words.command(&command)
            }
            _ => return Err("give old and new (recordings), or command with vs or env".to_owned().into()),
        };
        let (changes, _) = self.json(line, arguments, arguments.timeout()?, call)?;
        Ok(Answer::Json(changes))
    }

    /// Runs systoll and returns its JSON, shortened.
    fn json(
        &self,
        words: Vec<OsString>,
        arguments: &Arguments<'_>,
        timeout: Duration,
        call: &Call<'_>,
    ) -> Result<(Value, Done), Trouble> {
        let (whole, done) = self.whole(words, arguments, timeout, call)?;
        Ok((shorten(whole), done))
    }

    fn whole(
        &self,
        mut words: Vec<OsString>,
        arguments: &Arguments<'_>,
        timeout: Duration,
        call: &Call<'_>,
    ) -> Result<(Value, Done), Trouble> {
        let place = self.new_answer();
        // The option comes after the command's own word and before a program's words.
        words.splice(1..1, ["--output".into(), place.clone().into_os_string()]);
        let done = started(words, arguments, timeout, clip::HEAD, call)?;
        let read = systoll_files::head(&place, MAX_REPORT).ok();
        // The file has been read. If it can't be removed now, it is removed with the folder.
        let _ = std::fs::remove_file(&place);
        let Some(value) = read.and_then(|text| serde_json::from_slice(&text).ok()) else {
            let late = if done.timed_out { format!("no end in {} s: ", timeout.as_secs()) } else { String::new() };
            return Err(format!("{late}{}", said(&done)).into());
        };
        Ok((value, done))
    }
}

fn explain(arguments: &Arguments<'_>, call: &Call<'_>) -> Result<Answer, Trouble> {
    let mut words = CommandWords::new(&[]);
    match arguments.text("cause")? {
        None => words.extend(["causes", "--color=never"]),
        Some(cause) => {
            words.extend(["explain", "--color=never"]);
            if let Some(language) = arguments.text("language")? {
                words.push(format!("--language={language}"));
            }
            words.extend(["--", cause]);
        }
    }
    let done = started(words.0, arguments, Duration::from_secs(super::arguments::TIMEOUT), ROOM, call)?;
    if done.status.success() { Ok(Answer::Text(done.stdout.text())) } else { Err(said(&done).into()) }
}

fn started(
    words: Vec<OsString>,
    arguments: &Arguments<'_>,
    timeout: Duration,
    keep: usize,
    call: &Call<'_>,
) -> Result<Done, Trouble> {
    let folder = arguments.folder()?;
    let doing = format!("systoll {}", words.first().map_or_else(String::new, |w| w.to_string_lossy().into_owned()));
    let done = Words { words, folder, timeout, keep, doing }.run(call);
    done.map_err(|e| format!("can't run systoll: {e}"))?.ok_or(Trouble::Cancelled)
}

/// Returns systoll's error message, or its output if it wrote none.
fn said(done: &Done) -> String {
    let text = done.stderr.text();
    let text = if text.trim().is_empty() { done.stdout.text() } else { text };
    if text.trim().is_empty() { format!("systoll ended with {} and said nothing", done.status) } else { text }
}

/// The words of a command line.
struct CommandWords(Vec<OsString>);

impl CommandWords {
    fn new(words: &[&str]) -> Self {
        Self(words.iter().map(OsString::from).collect())
    }

    fn push(&mut self, word: impl Into<OsString>) {
        self.0.push(word.into());
    }

    fn extend(&mut self, words: impl IntoIterator<Item = impl Into<OsString>>) {
        self.0.extend(words.into_iter().map(Into::into));
    }

    /// Adds the other command as `--vs`, which takes a shell's words.
    fn vs(&mut self, arguments: &Arguments<'_>) -> Result<(), String> {
        let vs = arguments.words("vs")?;
        if !vs.is_empty() {
            self.push(format!("--vs={}", shell_words::join(vs)));
        }
        Ok(())
    }

    /// Returns the whole line, ending with the program's words.
    fn command(mut self, command: &[&str]) -> Vec<OsString> {
        self.push("--");
        self.extend(command.iter().copied());
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_recordings_are_kept_whatever_is_asked_between() {
        let shop = Arc::new(PrivateFolder::new().unwrap());
        let tool = SystollTool { what: ToolKind::Run, shop: Arc::clone(&shop), measuring: Arc::default() };
        let made: Vec<PathBuf> = (0..3 * KEPT)
            .map(|nth| {
                // Other tools' answers take names too, now one, now two.
                (0..=nth % 2).for_each(|_| assert_eq!(tool.new_answer().extension().unwrap(), "json"));
                let recording = tool.new_recording();
                std::fs::write(&recording, "").unwrap();
                recording
            })
            .collect();
        let kept = made.iter().rev().take_while(|recording| recording.exists()).count();
        assert_eq!((kept, shop.path().read_dir().unwrap().count()), (KEPT as usize, KEPT as usize));
    }
}
