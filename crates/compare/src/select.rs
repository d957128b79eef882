//! Selects rows by a person's words.

use crate::names::{Names, plain};
use crate::table::caller;
use std::collections::BTreeSet;
use std::sync::Arc;
use systoll_model::{Class, Counts, Frame, Phase, Recording, Row, Sysno, signatures};

/// Selects the rows for which all given conditions hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selector {
    /// The system calls of which the row's must be one.
    pub calls: Option<BTreeSet<Sysno>>,
    /// The public function.
    pub api: Option<String>,
    /// The program's own function that calls.
    pub caller: Option<String>,
    /// The file that contains the caller: its last component, without a library's version.
    pub library: Option<String>,
    /// The program.
    pub program: Option<String>,
    /// Names each of which must be the system call, the public function or a function above it.
    pub chain: Vec<String>,
    /// The part of the program's life whose calls alone are counted: before `main`, or from then
    /// on.
    pub phase: Option<Phase>,
}

/// The reason why a selector can't be parsed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SelectError {
    /// No system call and no class has this name.
    #[error("there is no system call {0}")]
    NoCall(String),
    /// There is no name between two `<`, or no name at all.
    #[error("a name is missing: SYSCALL < FUNCTION")]
    Empty,
}

impl Selector {
    /// Parses `fstat < read_config`: the call (or the public function, or a class such as %file),
    /// then functions that called it, innermost first.
    ///
    /// # Errors
    ///
    /// A name is missing.
    pub fn chain(text: &str) -> Result<Self, SelectError> {
        let chain: Vec<String> = text.split('<').map(|name| name.trim().to_owned()).collect();
        if chain.iter().any(String::is_empty) {
            return Err(SelectError::Empty);
        }
        if let Some(class) = chain[0].strip_prefix('%') {
            let calls = Some(calls(&format!("%{class}"))?);
            return Ok(Self { calls, chain: chain[1..].to_vec(), ..Self::default() });
        }
        Ok(Self { chain, ..Self::default() })
    }

    /// Returns true if the selector selects `row`.
    pub fn selects(&self, recording: &Recording, row: &Row) -> bool {
        let is = |wanted: &Option<String>, name: Option<Arc<str>>| {
            wanted.as_ref().is_none_or(|w| name.is_some_and(|n| *n == **w))
        };
        let names = Names::default();
        let frame = caller(recording, row).and_then(|id| recording.frames.get(id.0 as usize));
        self.calls.as_ref().is_none_or(|calls| calls.contains(&row.syscall))
            && is(&self.api, row.api.clone())
            && is(&self.library, frame.and_then(|f| names.module(recording, f.module?)))
            && is(&self.program, names.program(recording, row.process))
            && self.caller.as_ref().is_none_or(|wanted| {
                let user = row.user.and_then(|id| recording.frames.get(id.0 as usize));
                frame.is_some_and(|f| called(f, wanted)) || user.is_some_and(|f| called(f, wanted))
            })
            && self.chain.iter().all(|name| in_chain(recording, row, name))
    }

    /// Returns the number of selected calls among `counts`, which are the counts of a selected row.
    pub fn calls_of(&self, counts: &Counts) -> u64 {
        match self.phase {
            None => counts.calls,
            Some(Phase::StartUp) => counts.startup_calls.min(counts.calls),
            Some(_) => counts.calls.saturating_sub(counts.startup_calls),
        }
    }

    /// Returns the number of selected calls in `recording`.
    pub fn count(&self, recording: &Recording) -> u64 {
        let rows = recording.rows.iter().filter(|row| self.selects(recording, row));
        rows.fold(0u64, |sum, row| sum.saturating_add(self.calls_of(&row.counts)))
    }
}

/// Parses system calls: names and `%classes` separated by commas.
///
/// # Errors
/// A name is not known.
pub(crate) fn calls(text: &str) -> Result<BTreeSet<Sysno>, SelectError> {
    let mut set = BTreeSet::new();
    for name in text.split(',').map(str::trim) {
        match Class::from_name(name).filter(|_| name.starts_with('%')) {
            Some(class) => set.extend(signatures().iter().filter(|s| s.classes.contains(class)).map(|s| s.sysno)),
            None if name.is_empty() => return Err(SelectError::Empty),
            None => _ = set.insert(Sysno::from_name(name).ok_or_else(|| SelectError::NoCall(name.to_owned()))?),
        }
    }
    Ok(set)
}

fn in_chain(recording: &Recording, row: &Row, name: &str) -> bool {
    if row.syscall.name() == Some(name) || row.api.as_deref() == Some(name) {
        return true;
    }
    let frames = |id: systoll_model::StackId| recording.stacks.get(id.0 as usize).map_or(&[][..], |s| &s.frames);
    let lines = row.lines.iter().map(|l| l.frame);
    let all = frames(row.context).iter().chain(frames(row.outer)).copied().chain(row.user).chain(lines);
    all.filter_map(|id| recording.frames.get(id.0 as usize)).any(|frame| called(frame, name))
}

/// Returns true if one of a frame's functions, inlined ones included, has this name.
fn called(frame: &Frame, name: &str) -> bool {
    frame.locations.iter().any(|place| *place.function == *name || *plain(&place.function) == *name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chains_are_read() {
        assert_eq!(Selector::chain("fstat < read_config").unwrap().chain, ["fstat", "read_config"]);
        let class = Selector::chain("%file<main").unwrap();
        assert!(class.calls.unwrap().contains(&Sysno::from_name("openat").unwrap()) && class.chain == ["main"]);
        for wrong in ["", "fstat <", "< main", "%nothing < x"] {
            assert!(Selector::chain(wrong).is_err(), "{wrong}");
        }
        assert_eq!(calls("openat, read").unwrap().len(), 2);
        assert_eq!(calls("opnat"), Err(SelectError::NoCall("opnat".into())));
    }
}
