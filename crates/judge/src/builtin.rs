//! The files of the causes that come with systoll, with what is known of each before it is read.

use crate::finding::Kind;
use crate::pattern::Symptoms;

/// A file under `causes/`.
pub(crate) struct File {
    /// The id of its cause.
    pub id: &'static str,
    /// What stands in it, as JSON.
    pub json: &'static str,
    /// What stands in it.
    #[cfg(test)]
    pub toml: &'static str,
    /// What each of its patterns asks.
    pub matches: &'static [Asked],
}

/// What one of its patterns asks of kind, system call and API, each by name; nothing where a list is empty.
pub(crate) struct Asked {
    kinds: &'static [&'static str],
    syscalls: &'static [&'static str],
    apis: &'static [&'static str],
}

/// All of them, by id.
pub(crate) const FILES: &[File] = include!(concat!(env!("OUT_DIR"), "/causes.rs"));

impl Asked {
    /// Whether the pattern may hold for a call with a claim of one of these kinds.
    fn may_match(&self, call: &Symptoms<'_>, kinds: &[Kind]) -> bool {
        let is_among = |list: &[&str], name: Option<&str>| list.is_empty() || name.is_some_and(|n| list.contains(&n));
        (self.kinds.is_empty() || kinds.iter().any(|kind| self.kinds.contains(&kind.name())))
            && is_among(self.syscalls, call.syscall.name())
            && is_among(self.apis, call.api)
    }
}

impl File {
    /// Whether its cause may explain a call with a claim of one of these kinds.
    pub(crate) fn may_explain(&self, call: &Symptoms<'_>, kinds: &[Kind]) -> bool {
        self.matches.iter().any(|asked| asked.may_match(call, kinds))
    }
}
