//! The causes that come with systoll, each read from its file when it is asked for.

use crate::catalogue::{Catalogue, Cause};
use crate::finding::Kind;
use crate::pattern::Symptoms;
use std::sync::OnceLock;

/// A file under `causes/`.
struct File {
    /// The id of its cause.
    id: &'static str,
    text: &'static str,
    matches: &'static [Asked],
}

/// What one of its patterns asks of kind, system call and API, each by name; nothing where a list is empty.
struct Asked {
    kinds: &'static [&'static str],
    syscalls: &'static [&'static str],
    apis: &'static [&'static str],
}

/// All of them, by id.
const FILES: &[File] = include!(concat!(env!("OUT_DIR"), "/causes.rs"));

impl Asked {
    /// Whether the pattern may hold for a call with a claim of one of these kinds.
    fn may_match(&self, call: &Symptoms<'_>, kinds: &[Kind]) -> bool {
        let is_among = |list: &[&str], name: Option<&str>| list.is_empty() || name.is_some_and(|n| list.contains(&n));
        (self.kinds.is_empty() || kinds.iter().any(|kind| self.kinds.contains(&kind.name())))
            && is_among(self.syscalls, call.syscall.name())
            && is_among(self.apis, call.api)
    }
}

/// The built-in causes that were read so far. To read a file takes longer than most runs take to judge, and few of them
/// explain anything of one run.
#[derive(Clone, Debug)]
pub(crate) struct Builtin {
    read: Box<[OnceLock<Option<Box<Cause>>>]>,
}

impl Builtin {
    /// None read yet.
    pub(crate) fn new() -> Self {
        Self { read: FILES.iter().map(|_| OnceLock::new()).collect() }
    }

    fn at(&self, at: usize) -> Option<&Cause> {
        let read = || match Catalogue::parse(FILES[at].id, FILES[at].text) {
            Ok(cause) => Some(Box::new(cause)),
            // A test reads every built-in file, so this can't be reached in a tested build.
            Err(error) => {
                debug_assert!(false, "{error}");
                None
            }
        };
        self.read.get(at)?.get_or_init(read).as_deref()
    }

    /// The one with this id.
    pub(crate) fn get(&self, id: &str) -> Option<&Cause> {
        self.at(FILES.binary_search_by(|file| file.id.cmp(id)).ok()?)
    }

    /// All, by id.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Cause> {
        (0..FILES.len()).filter_map(|at| self.at(at))
    }

    /// Those that may explain a call with a claim of one of these kinds, by id.
    pub(crate) fn that_may(&self, call: &Symptoms<'_>, kinds: &[Kind]) -> impl Iterator<Item = &Cause> {
        let may = |file: &File| file.matches.iter().any(|asked| asked.may_match(call, kinds));
        FILES.iter().enumerate().filter(move |(_, file)| may(file)).filter_map(|(at, _)| self.at(at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fact::Facts;
    use crate::pattern::Pattern;

    /// A call for which the pattern may hold.
    fn told<'a>(pattern: &'a Pattern, kind: Kind, syscall: usize, api: usize) -> Symptoms<'a> {
        Symptoms {
            kind,
            syscall: pattern.syscalls.get(syscall).copied().unwrap_or(systoll_model::Sysno::UNKNOWN),
            api: pattern.apis.get(api).map(|api| &**api),
            object: None,
            args: None,
            result: None,
            facts: Facts::default(),
        }
    }

    #[test]
    fn a_file_is_read_for_each_call_that_one_of_its_patterns_names() {
        for (at, cause) in Builtin::new().iter().enumerate() {
            assert_eq!(FILES[at].matches.len(), cause.matches.len(), "{}", cause.id);
            for pattern in &cause.matches {
                let kinds = if pattern.kinds.is_empty() { &Kind::ALL[..] } else { &pattern.kinds };
                for (syscall, api) in
                    (0..pattern.syscalls.len().max(1)).flat_map(|s| (0..pattern.apis.len().max(1)).map(move |a| (s, a)))
                {
                    for kind in kinds {
                        let (builtin, call) = (Builtin::new(), told(pattern, *kind, syscall, api));
                        assert!(builtin.that_may(&call, &[*kind]).any(|c| c.id == cause.id), "{}", cause.id);
                    }
                }
            }
        }
    }

    #[test]
    fn what_explains_nothing_of_a_call_is_not_read() {
        let builtin = Builtin::new();
        let call = Symptoms {
            kind: Kind::Repeat,
            syscall: systoll_model::Sysno::from_name("getpid").unwrap(),
            api: Some("getpid"),
            object: None,
            args: None,
            result: None,
            facts: Facts::default(),
        };
        assert!(builtin.that_may(&call, &[Kind::Repeat]).any(|cause| &*cause.id == "identity-per-op"));
        let read = builtin.read.iter().filter(|cause| cause.get().is_some()).count();
        assert!(read < 5, "{read} files were read");
        assert_eq!(builtin.that_may(&call, &[]).count(), 0);
    }
}
