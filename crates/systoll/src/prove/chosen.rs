//! The cure of a cause that systoll can apply itself.

use crate::failure::Failure;
use std::collections::BTreeMap;
use systoll_judge::Catalogue;
use systoll_model::EnvChange;
use systoll_present::shell_words;

/// A cause's cure by its environment.
pub(super) struct Chosen {
    env: BTreeMap<String, String>,
    pub(super) gives_up: String,
}

/// The cure of the cause `id`: the first of its cures that is a change of the environment.
pub(super) fn chosen(catalogue: &Catalogue, id: &str) -> Result<Chosen, Failure> {
    let Some(cause) = catalogue.get(id) else {
        return Err(Failure::Unknown {
            what: "cause",
            name: id.to_owned(),
            known: catalogue.iter().map(|c| c.id.to_string()).collect(),
            help: "systoll causes lists them",
        });
    };
    match cause.stop.iter().find(|cure| !cure.env.is_empty()) {
        Some(cure) => Ok(Chosen { env: cure.env.clone(), gives_up: cure.gives_up.clone() }),
        None => Err(Failure::NotApplied(id.to_owned())),
    }
}

impl Chosen {
    /// What changes in the program's environment.
    pub(super) fn changes(&self) -> impl Iterator<Item = EnvChange> {
        self.env.iter().map(|(name, value)| EnvChange::Set(name.into(), value.into()))
    }

    /// The lines that keep it, for a shell.
    pub(super) fn shell(&self) -> Vec<String> {
        // Only the value is quoted: a quoted name would be no assignment.
        let line = |(name, value): (&String, &String)| format!("export {name}={}", shell_words(&[value]));
        self.env.iter().map(line).collect()
    }

    /// A line for each variable.
    pub(super) fn lines(&self, line: impl Fn(&str, &str) -> String) -> String {
        self.env.iter().map(|(name, value)| line(name, value)).collect()
    }
}

/// In double quotes, as systemd, Docker and YAML read them alike.
pub(super) fn quoted(value: &str) -> String {
    format!("\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\""))
}

/// Changes of an environment as JSON shows them.
pub(super) fn environment(changes: &[EnvChange]) -> BTreeMap<String, Option<String>> {
    let change = |change: &EnvChange| match change {
        EnvChange::Set(name, value) => {
            (name.to_string_lossy().into_owned(), Some(value.to_string_lossy().into_owned()))
        }
        EnvChange::Remove(name) => (name.to_string_lossy().into_owned(), None),
    };
    changes.iter().map(change).collect()
}
