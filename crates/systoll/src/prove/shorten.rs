//! Shortens the sleeps of one place in the program, to show what a run with less of them takes (`prove --shorten`).
//!
//! A library that the program loads first (the shim `sleeps`) knows the calls by the address that they return to. So a
//! watched run comes first: it tells these addresses, and whether other lines sleep there too.

use crate::failure::Failure;
use crate::watched_run::WatchedRun;
use crate::why_not::is_at;
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use systoll_cure::{Shim, reached};
use systoll_judge::{Sleep, only_sleeps};
use systoll_model::{EnvChange, Frame, FrameClass, FrameId, Recording, Row, RowId, Sysno, short_file};

/// A call that the library does not know: no C library that it was written for has a function for it alone.
const UNKNOWN_TO_LIBRARY: Sysno = Sysno::named("epoll_pwait2");
/// Variable that tells the library which sleeps to shorten, and to which part.
const VARIABLE: &str = "SYSTOLL_SHORTEN";
/// Places that the library can hold.
const MOST_PLACES: usize = 64;

/// The sleeps that are shortened on the second side.
pub(super) struct Shortened {
    /// The place, as the user named it.
    what: String,
    /// The part of its time that a sleep takes, 0 to 1.
    part: f64,
    /// Number of sleeps in the watched run, and the time waited in them, ns.
    calls: u64,
    waited_ns: u64,
    /// Instructions that call a function which sleeps: the file's name and the address in it.
    places: BTreeSet<String>,
}

impl Shortened {
    /// Watches a run of `command`, and finds the sleeps of `what` in it.
    ///
    /// # Errors
    /// If there are none, or if they can't be distinguished from those of other lines.
    pub(super) fn of(what: &str, part: f64, command: &[OsString], both: &[EnvChange]) -> Result<Self, Failure> {
        let failed = |why: String| Failure::NotShortened { what: what.to_owned(), why };
        let program = command.first().map_or(OsStr::new(""), OsString::as_os_str);
        reached(program).map_err(|why| failed(format!("{} {why}", program.to_string_lossy())))?;
        let run = WatchedRun { command: command.to_vec(), env: both.to_vec(), ..WatchedRun::default() };
        let recording = run.run()?;
        Self::found(&recording, what, part).map_err(failed)
    }

    /// Finds the sleeps of `what` in a recording. Returns the reason if that fails.
    fn found(recording: &Recording, what: &str, part: f64) -> Result<Self, String> {
        let rows: Vec<(RowId, &Row)> = (0u32..).map(RowId).zip(&recording.rows).collect();
        let of_call = |row: &Row| row.syscall.name() == Some(what) || row.api.as_deref() == Some(what);
        let is_meant = |row: &Row| row.counts.calls > 0 && (of_call(row) || is_of(recording, row, what));
        let meant: Vec<_> = rows.iter().copied().filter(|(_, row)| is_meant(row)).collect();
        let sleeping: Vec<_> = meant.iter().copied().filter(|(_, row)| sleeps(row)).collect();
        if sleeping.is_empty() {
            let calls: BTreeSet<String> = meant.iter().map(|(_, row)| row.syscall.to_string()).collect();
            let calls: Vec<String> = calls.into_iter().take(8).collect();
            return Err(match calls.as_slice() {
                [] => "the watched run made no calls there".into(),
                calls => format!("it makes no call that only lets time pass; it makes {}", calls.join(", ")),
            });
        }
        let mut shortened = Self { what: what.to_owned(), part, calls: 0, waited_ns: 0, places: BTreeSet::new() };
        for (id, row) in &sleeping {
            if !only_sleeps(recording, *id) {
                return Err(format!("not all of its {} calls are sleeps: something becomes ready", row.syscall));
            }
            if !of_call(row)
                && let Some(other) = row.lines.iter().find(|line| !has(recording.frame(line.frame), what))
            {
                return Err(shared(recording, other.frame));
            }
            let place = place(recording, row).ok_or("the code that calls the sleep is in no file")?;
            let shares = |(other, of): &&(RowId, &Row)| {
                let alike = sleeps(of) && of.counts.calls > 0 && self::place(recording, of).as_ref() == Some(&place);
                alike && sleeping.iter().all(|(id, _)| id != other)
            };
            if let Some((_, other)) = rows.iter().find(shares) {
                return Err(other.user.map_or_else(
                    || "other code sleeps by the same call: theirs can't be distinguished".to_owned(),
                    |user| shared(recording, user),
                ));
            }
            shortened.places.insert(place);
            shortened.calls += row.counts.calls;
            shortened.waited_ns += row.counts.waited_ns.unwrap_or(row.counts.elapsed_ns);
        }
        if shortened.places.len() > MOST_PLACES {
            return Err(format!("it sleeps at {} places, {MOST_PLACES} are the most", shortened.places.len()));
        }
        Ok(shortened)
    }

    /// Returns the library that shortens them.
    pub(super) fn library(&self) -> Result<PathBuf, Failure> {
        let shim = Shim::named("sleeps").ok_or_else(|| Failure::NotShortened {
            what: self.what.clone(),
            why: "this build has no library for this machine".into(),
        })?;
        Ok(shim.at_hand()?)
    }

    /// Returns the variable that tells the library what to shorten.
    pub(super) fn variable(&self) -> EnvChange {
        let places: Vec<&str> = self.places.iter().map(String::as_str).collect();
        let thousandths = (self.part * 1000.0 + 0.5) as u64;
        EnvChange::Set(VARIABLE.into(), format!("{thousandths} {}", places.join(" ")).into())
    }

    /// Returns the name of the second side.
    pub(super) fn label(&self) -> String {
        format!("sleeps of {} take {:.0} % of their time", self.what, self.part * 100.0)
    }

    /// Writes what was shortened, for a report.
    pub(super) fn note(&self) -> String {
        let calls = if self.calls == 1 { "1 sleep".to_owned() } else { format!("{} sleeps", self.calls) };
        let waited = format!("{:.3} s", self.waited_ns as f64 / 1e9);
        format!(
            "{calls} of {}, {waited} of waiting in the watched run, took {:.0} % of their time on the second side; what the run \
             would take without them was not measured",
            self.what,
            self.part * 100.0
        )
    }
}

fn sleeps(row: &Row) -> bool {
    Sleep::of(row.syscall).is_some() && row.syscall != UNKNOWN_TO_LIBRARY
}

/// Returns true if a line or function makes a row's calls itself.
fn is_of(recording: &Recording, row: &Row, what: &str) -> bool {
    let lines = row.lines.iter().any(|line| has(recording.frame(line.frame), what));
    lines || row.lines.is_empty() && row.user.is_some_and(|user| has(recording.frame(user), what))
}

fn has(frame: &Frame, what: &str) -> bool {
    let is_at = is_at(what);
    frame.locations.iter().any(is_at)
}

/// Returns the reason against sleeps that another line shares.
fn shared(recording: &Recording, other: FrameId) -> String {
    let other = recording.frame(other).locations.first().map_or_else(String::new, |at| match (&at.file, at.line) {
        (Some(file), Some(line)) => format!("{}:{line}", short_file(file)),
        _ => at.function.to_string(),
    });
    format!("{other} sleeps by the same call: their sleeps can't be distinguished")
}

/// Returns the instruction that calls the function which sleeps: the first above the C library.
fn place(recording: &Recording, row: &Row) -> Option<String> {
    let stack = recording.stacks.get(row.context.0 as usize)?;
    let frames = stack.frames.iter().filter_map(|frame| recording.frames.get(frame.0 as usize));
    let mut above =
        frames.filter(|frame| !matches!(frame.class, FrameClass::Libc | FrameClass::Loader | FrameClass::Vdso));
    let frame = above.next().filter(|frame| frame.language.is_none())?;
    let module = recording.modules.get(frame.module?.0 as usize)?;
    let name = module.path.rsplit('/').next().filter(|name| !name.contains([' ', '+']))?;
    Some(format!("{name}+{:x}", frame.address))
}
