//! Causes: known diseases, as data.

use crate::causes::builtin::{FILES, File};
use crate::causes::pattern::{Pattern, glob};
use crate::causes::upgrade::Upgrade;
use crate::code::author::{ApiShare, Author, HALF};
use crate::code::language::{CodeLanguage, Version};
use crate::code::owner::Actor;
use crate::results::cure_kind::CureKind;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::OnceLock;

/// The way in which a cure can be tried without a change of the program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Apply {
    /// Environment variables.
    Env,
    /// A library that is loaded before the others.
    Shim,
    /// An answer in place of the call, which is not made.
    Elide,
    /// The cure can't be tried without a change of the program.
    #[default]
    None,
}

/// What a program does with files, so that it needs cures of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FileUse {
    /// It lists the folder of the finding's names.
    Lists,
    /// It looks for a name that is free, to make a file of that name. Cures that do not say so are left out.
    SeeksFreeName,
    /// It changes parts of a file in place. Cures that do not say so are left out.
    ChangesInPlace,
}

impl FileUse {
    /// Returns the words for it, after "where".
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Lists => "the folder of the names is listed",
            Self::SeeksFreeName => "the program looks for a name that is free",
            Self::ChangesInPlace => "the program changes parts of the file in place",
        }
    }
}

/// One way to cure a disease.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cure {
    /// The situation in which this cure is the right one; empty if it always is.
    #[serde(default)]
    pub situation: String,
    /// The advice in one line.
    pub how: String,
    /// The kind of change.
    pub kind: CureKind,
    /// The drawback of the advice; empty if there is none.
    #[serde(default)]
    pub gives_up: String,
    /// Environment variables that apply the cure.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Name of systoll's library that applies the cure.
    pub shim: Option<String>,
    /// A pattern of the calls for which the cure is offered; `None` if it is offered for all.
    pub when: Option<Pattern>,
    /// Languages for which the cure is offered; empty if it is offered for any.
    #[serde(default)]
    pub languages: Vec<CodeLanguage>,
    /// File names of programs or libraries for which the cure is offered, as patterns with `*`;
    /// empty if it is offered for any.
    #[serde(default)]
    pub modules: Vec<String>,
    /// Source files of which one must be on the stack, as patterns with `*`; empty if any will do.
    #[serde(default)]
    pub sources: Vec<String>,
    /// True if the cure leaves out the library function that makes the calls, with everything else that this function
    /// does.
    #[serde(default)]
    pub whole: bool,
    /// Functions of which one must be on the stack, as patterns with `*`; empty if any will do.
    #[serde(default)]
    pub functions: Vec<String>,
    /// Functions of the language's library of which the code must have called one, as patterns with
    /// `*`, or with `!` before one that is not meant; empty if any will do. An unknown function may be any of them.
    #[serde(default)]
    pub called: Vec<String>,
    /// Objects (a path, a program that is started) of which one must be the finding's, as patterns
    /// with `*`; empty if any will do.
    #[serde(default)]
    pub about: Vec<String>,
    /// Readers who can apply the cure. Empty if the cure changes the code that makes the calls, or if every reader can
    /// apply it.
    #[serde(default)]
    pub actors: Vec<Actor>,
    /// If given, the cure is offered only for code that each request of a server starts anew (true), or only for
    /// other code (false).
    pub served: Option<bool>,
    /// If given, the cure is offered only for questions about one thing that several places of the program ask
    /// (true), or only for others (false).
    pub several: Option<bool>,
    /// If given, the cure is offered only if this is what the program does with the finding's files.
    pub program: Option<FileUse>,
    /// Patterns with `*`, one of which a source file on some stack of the program's calls must match; empty if any will
    /// do.
    #[serde(default)]
    pub program_sources: Vec<String>,
    /// If given, the cure is offered only if the programs of `about` are mostly started with names of files beside
    /// their pattern or script (true), or only if they are not (false).
    pub files: Option<bool>,
    /// The first version of the language in which the cure works.
    pub since: Option<Version>,
    /// The first version of the language that does not need the cure any more.
    pub older_than: Option<Version>,
    /// A few lines with the disease; in compiled languages the body of `main`.
    pub before: Option<String>,
    /// The lines of `before` as the cure leaves them: without the disease, and with the same effect.
    pub after: Option<String>,
}

/// The degree to which a cure fits, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fit {
    /// The cure is for a file of this program, or for an object of this finding.
    Particular,
    /// The cure is for the program's language, or for any language.
    Usual,
}

/// A known disease.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cause {
    /// The cause's id, e.g. `tz-unset`.
    pub id: String,
    /// The disease in one line.
    pub title: String,
    /// The patterns of the cause's calls; one of them must match.
    #[serde(rename = "match")]
    pub matches: Vec<Pattern>,
    /// The mechanism in a sentence or two. May hold `{api}`, `{syscall}`, `{what}`, `{agree}`, `{windows}`.
    pub why: String,
    /// The signs by which a user recognises the disease without systoll.
    #[serde(default)]
    pub recognise: String,
    /// The cause's cures, best first.
    #[serde(rename = "stop")]
    pub cures: Vec<Cure>,
    /// The first versions of programs or libraries that lack the disease, as text.
    #[serde(default)]
    pub mended: Vec<String>,
    /// Newer versions that lack the disease.
    #[serde(default, rename = "upgrade")]
    pub upgrades: Vec<Upgrade>,
    /// The way in which a cure can be tried.
    #[serde(default)]
    pub apply: Apply,
    /// Public reports of the disease.
    #[serde(default)]
    pub reports: Vec<String>,
    /// Names of the test programs that have the disease.
    #[serde(default)]
    pub cases: Vec<String>,
}

/// The error of a file that does not describe a cause.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{name}: {problem}")]
pub struct CauseError {
    /// The file's name as the caller gave it.
    pub name: String,
    /// The problem in one line; from the TOML parser with its position.
    pub problem: String,
}

/// All known causes, by id.
#[derive(Clone, Debug, Default)]
pub struct Catalogue {
    /// The built-in causes; `None` if they are left out.
    builtin: Option<Builtin>,
    /// The causes that are not built in, by id.
    added: BTreeMap<String, Cause>,
}

impl Catalogue {
    /// Returns a catalogue without causes: detectors alone judge.
    pub fn empty() -> Self {
        Self::default()
    }

    /// Returns the causes that come with systoll.
    pub fn builtin() -> Self {
        Self { builtin: Some(Builtin::new()), ..Self::default() }
    }

    /// Reads one cause from TOML; `name` is for messages.
    ///
    /// # Errors
    /// If the text is not TOML, lacks a field, has an unknown one, or names a system call or language that does not
    /// exist.
    pub fn parse(name: &str, text: &str) -> Result<Cause, CauseError> {
        let cause = toml::from_str(text).map_err(|e| e.to_string());
        cause.and_then(Cause::checked).map_err(|problem| CauseError { name: name.to_owned(), problem })
    }

    /// Reads one built-in cause.
    fn read_builtin(file: &File) -> Result<Cause, CauseError> {
        let cause = serde_json::from_str(file.json).map_err(|e| e.to_string());
        cause.and_then(Cause::checked).map_err(|problem| CauseError { name: file.id.to_owned(), problem })
    }

    /// Adds causes; an added cause replaces one with the same id.
    pub fn extend(&mut self, causes: impl IntoIterator<Item = Cause>) {
        self.added.extend(causes.into_iter().map(|cause| (cause.id.clone(), cause)));
    }

    /// Returns the cause with this id.
    pub fn get(&self, id: &str) -> Option<&Cause> {
        self.added.get(id).or_else(|| self.builtin.as_ref()?.get(id))
    }

    /// Returns all causes, by id.
    pub fn iter(&self) -> impl Iterator<Item = &Cause> {
        let builtin = self.builtin.iter().flat_map(Builtin::iter);
        let all: BTreeMap<&str, &Cause> = builtin.chain(self.added.values()).map(|c| (c.id.as_str(), c)).collect();
        all.into_values()
    }

    /// Returns the id and the patterns of each cause.
    pub(crate) fn suspects(&self) -> impl Iterator<Item = Suspect<'_>> {
        let files = self.builtin.iter().flat_map(|_| FILES).filter(|file| !self.added.contains_key(file.id));
        let builtin = files.map(|file| Suspect { id: file.id, matches: file.matches, catalogue: self });
        let added = self.added.values().map(|c| Suspect { id: &c.id, matches: &c.matches, catalogue: self });
        builtin.chain(added)
    }
}

/// A cause's id and patterns. The rest of the cause is parsed when a finding names it.
#[derive(Clone, Copy)]
pub(crate) struct Suspect<'a> {
    /// The cause's id.
    pub id: &'a str,
    /// The patterns of the cause's calls; one of them must match.
    pub matches: &'a [Pattern],
    catalogue: &'a Catalogue,
}

impl<'a> Suspect<'a> {
    /// Returns the whole cause.
    pub(crate) fn cause(self) -> Option<&'a Cause> {
        self.catalogue.get(self.id)
    }
}

impl Cause {
    /// Returns true if some of the cause's cures are for one type of object only (files, sockets
    /// …). The same calls on two types of object are then two findings, each with its own cure.
    pub(crate) fn is_told_by_target(&self) -> bool {
        self.cures.iter().any(|cure| cure.when.as_ref().is_some_and(|when| !when.on.is_empty()))
    }
}

/// The built-in causes, each parsed when it is first needed. Parsing takes longer than most runs take to judge, and
/// findings name few causes.
#[derive(Clone, Debug)]
struct Builtin {
    read: Box<[OnceLock<Option<Box<Cause>>>]>,
}

impl Builtin {
    /// Returns the list with none parsed yet.
    fn new() -> Self {
        Self { read: FILES.iter().map(|_| OnceLock::new()).collect() }
    }

    fn at(&self, at: usize) -> Option<&Cause> {
        let read = || match Catalogue::read_builtin(&FILES[at]) {
            Ok(cause) => Some(Box::new(cause)),
            // A test reads every built-in file, so this can't be reached in a tested build.
            Err(error) => {
                debug_assert!(false, "{error}");
                None
            }
        };
        self.read.get(at)?.get_or_init(read).as_deref()
    }

    /// Returns the built-in cause with this id.
    fn get(&self, id: &str) -> Option<&Cause> {
        self.at(FILES.binary_search_by(|file| file.id.cmp(id)).ok()?)
    }

    /// Returns all built-in causes, by id.
    fn iter(&self) -> impl Iterator<Item = &Cause> {
        (0..FILES.len()).filter_map(|at| self.at(at))
    }
}

impl Cure {
    /// Returns the degree to which the cure fits `author`'s code and these objects; `None` if it is for something
    /// else.
    pub(crate) fn fit(&self, author: &Author, about: &[&str]) -> Option<Fit> {
        self.fit_of_any_call(author, about).filter(|_| self.is_for_called(author))
    }

    /// Returns true if the cure is for the function by which the code made at least half of the calls, or if that
    /// function is unknown.
    pub(crate) fn is_for_called(&self, author: &Author) -> bool {
        if self.called.is_empty() {
            return true;
        }
        let (not, is): (Vec<&String>, Vec<&String>) = self.called.iter().partition(|pattern| pattern.starts_with('!'));
        let is_called = |called: &str| {
            let is_meant = is.is_empty() || is.iter().any(|pattern| glob(pattern, called));
            is_meant && !not.iter().filter_map(|pattern| pattern.strip_prefix('!')).any(|pattern| glob(pattern, called))
        };
        let by_name = |part: &&ApiShare| part.name.as_deref().is_some_and(is_called);
        let known = author.shares.iter().any(|part| part.name.is_some());
        if known && author.shares.len() > 1 {
            return author.shares.iter().filter(by_name).map(|part| part.share).sum::<f64>() >= HALF;
        }
        author.called.as_deref().is_none_or(is_called)
    }

    /// Returns [`Cure::fit`] without regard to the function of the library that the code called.
    pub(crate) fn fit_of_any_call(&self, author: &Author, about: &[&str]) -> Option<Fit> {
        let of_module = |pattern: &String| author.files.iter().any(|file| glob(pattern, file));
        let of_source = |pattern: &String| author.sources.iter().any(|file| glob(pattern, file));
        let of_function = |pattern: &String| author.functions.iter().any(|name| glob(pattern, name));
        let of_language = |own: CodeLanguage| self.languages.iter().any(|language| own.is_a(*language));
        if !self.modules.is_empty() && !self.modules.iter().any(of_module)
            || !self.languages.is_empty() && !author.language.is_some_and(of_language)
            || !self.sources.is_empty() && !self.sources.iter().any(of_source)
            || !self.functions.is_empty() && !self.functions.iter().any(of_function)
            || !self.about.is_empty() && !about.iter().any(|what| self.is_about(what))
            || !self.actors.is_empty() && !self.actors.contains(&author.owner.reader())
            || self.served.is_some_and(|served| served != author.is_served)
        {
            return None;
        }
        // If the version is unknown, a cure is offered whatever versions it is for.
        if let Some(version) = author.version.as_ref().filter(|_| !self.languages.is_empty()) {
            let is_older = |than: &Version| version.compare(than).is_lt();
            if self.since.as_ref().is_some_and(is_older) || self.older_than.as_ref().is_some_and(|v| !is_older(v)) {
                return None;
            }
        }
        let is_particular = !self.names_nothing();
        Some(if is_particular { Fit::Particular } else { Fit::Usual })
    }

    /// Returns true if one of the cure's patterns of objects matches `what`.
    pub(crate) fn is_about(&self, what: &str) -> bool {
        self.about.iter().any(|pattern| glob(pattern, what))
    }

    /// Returns true if the cure names no file or function of the code that makes the calls.
    fn names_no_code(&self) -> bool {
        [&self.modules, &self.sources, &self.functions, &self.program_sources].iter().all(|names| names.is_empty())
    }

    /// Returns true if the cure names no file, function or object.
    fn names_nothing(&self) -> bool {
        self.names_no_code() && self.about.is_empty()
    }

    /// Returns true if the cure changes the code that makes the calls: only the author of that code can apply it.
    pub(crate) fn changes_the_code(&self) -> bool {
        let in_code = matches!(self.kind, CureKind::Code | CureKind::BuildFlag);
        in_code && self.actors.is_empty() && self.names_no_code()
    }

    /// Returns true if the cure is for a special situation of the program, in which cures that don't know of it would
    /// break the program.
    pub(crate) fn is_special(&self) -> bool {
        self.program.is_some_and(|uses| uses != FileUse::Lists)
    }

    /// Returns true if the cure is a sentence for any language, which cures of its kind for one language make
    /// superfluous.
    pub(crate) fn is_general(&self) -> bool {
        self.names_nothing() && self.languages.is_empty() && self.situation.is_empty()
    }

    /// Returns true if the cure is for `language`, or for a group of languages that holds it (any shell).
    pub fn is_for_language(&self, language: CodeLanguage) -> bool {
        self.languages.iter().any(|own| language.is_a(*own))
    }

    /// Returns true if systoll can apply the cure to a run.
    pub fn is_applied(&self) -> bool {
        !self.env.is_empty() || self.shim.is_some()
    }

    /// Checks that the fields do not contradict each other.
    fn check(&self) -> Result<(), String> {
        if self.kind == CureKind::Environment && self.env.is_empty() {
            return Err(format!("the cure {:?} is an environment without env", self.how));
        }
        if (self.kind == CureKind::Shim) != self.shim.is_some() {
            return Err(format!("the cure {:?}: kind = \"shim\" and shim go together", self.how));
        }
        if let Some(name) = self.env.keys().find(|n| n.is_empty() || n.contains(['=', '\0'])) {
            return Err(format!("{name:?} can't be the name of an environment variable"));
        }
        if let Some(pattern) = self.modules.iter().find(|m| m.is_empty() || m.contains('/')) {
            return Err(format!("{pattern:?} in modules is no pattern of a file's name"));
        }
        if self.files.is_some() && self.about.is_empty() {
            return Err(format!("the cure {:?}: files needs the programs, in about", self.how));
        }
        let has_versions = self.since.is_some() || self.older_than.is_some();
        if has_versions && self.languages.len() != 1 {
            return Err(format!("the cure {:?}: since and older_than need the one language they are of", self.how));
        }
        let is_blank = |text: &Option<String>| text.as_ref().is_some_and(|text| text.trim().is_empty());
        match (&self.before, &self.after) {
            (None, None) => Ok(()),
            (Some(_), Some(_)) if self.languages.is_empty() || is_blank(&self.before) || is_blank(&self.after) => {
                Err(format!("the cure {:?}: an example needs languages, and lines", self.how))
            }
            (Some(_), Some(_)) => Ok(()),
            _ => Err(format!("the cure {:?}: before and after go together", self.how)),
        }
    }
}

/// The names that a cause's `why` may hold in braces.
pub(crate) const PLACEHOLDERS: &[&str] = &["api", "syscall", "what", "agree", "windows"];

impl Cause {
    /// Returns the cause if its fields do not contradict each other.
    fn checked(mut self) -> Result<Self, String> {
        let id_ok =
            !self.id.is_empty() && self.id.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
        if !id_ok {
            return Err(format!("id {:?} is not made of a-z, 0-9 and -", self.id));
        }
        if self.matches.is_empty() {
            return Err("no [[match]]: it would never be found".into());
        }
        if self.cures.is_empty() {
            return Err("no [[stop]]: a cause needs a cure".into());
        }
        check_placeholders(&self.why)?;
        self.matches.iter().filter_map(|pattern| pattern.why.as_deref()).try_for_each(check_placeholders)?;
        self.cures.iter().try_for_each(Cure::check)?;
        self.upgrades.iter().try_for_each(Upgrade::check)?;
        self.cures.iter_mut().for_each(|cure| cure.languages.sort_unstable());
        Ok(self)
    }
}

fn check_placeholders(text: &str) -> Result<(), String> {
    for part in text.split('{').skip(1) {
        let name = part.split('}').next().unwrap_or_default();
        if !PLACEHOLDERS.contains(&name) {
            return Err(format!("{{{name}}} in why is none of {}", PLACEHOLDERS.join(", ")));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_built_in_is_what_stands_in_the_files() {
        for file in FILES {
            let cause = Catalogue::parse(file.id, file.toml);
            assert_eq!(Catalogue::read_builtin(file), cause, "{}", file.id);
            assert_eq!(cause.map(|cause| cause.matches).as_deref(), Ok(file.matches), "{}", file.id);
        }
    }

    #[test]
    fn what_explains_nothing_is_not_read() {
        let read = |catalogue: &Catalogue| {
            let builtin = catalogue.builtin.as_ref().unwrap();
            builtin.read.iter().filter(|cause| cause.get().is_some()).count()
        };
        let catalogue = Catalogue::builtin();
        let suspect = catalogue.suspects().find(|suspect| suspect.id == "identity-per-op").unwrap();
        assert_eq!((catalogue.suspects().count(), read(&catalogue)), (FILES.len(), 0));
        assert_eq!((suspect.cause().map(|cause| &*cause.id), read(&catalogue)), (Some("identity-per-op"), 1));
    }

    #[test]
    fn a_cure_for_a_function_is_for_code_that_makes_half_of_the_calls_by_it() {
        let catalogue = Catalogue::builtin();
        let cures = &catalogue.get("path-canonicalise").unwrap().cures;
        let cure = cures.iter().find(|cure| cure.how.contains("File.realpath")).unwrap();
        let fits = |shares: &[(Option<&str>, f64)], called: Option<&str>| {
            let share = |(name, share): &(Option<&str>, f64)| ApiShare { name: name.map(str::to_owned), share: *share };
            let shares = shares.iter().map(share).collect();
            cure.is_for_called(&Author { shares, called: called.map(str::to_owned), ..Author::default() })
        };
        let (real, loads) = (Some("File.realpath"), Some("require"));
        assert!(fits(&[(real, 0.6), (loads, 0.4)], None) && !fits(&[(real, 0.1), (loads, 0.9)], real));
        assert!(fits(&[(real, 1.0)], real) && !fits(&[(loads, 1.0)], loads));
        assert!(fits(&[], None) && fits(&[(None, 0.5), (None, 0.5)], None), "an unknown function may be any");
    }

    #[test]
    fn an_added_cause_replaces_the_one_with_its_id() {
        let mut catalogue = Catalogue::builtin();
        let mut cause = catalogue.get("tz-unset").unwrap().clone();
        cause.title = "another".into();
        catalogue.extend([cause]);
        let mut named = catalogue.suspects().filter(|suspect| suspect.id == "tz-unset");
        assert_eq!(named.next().and_then(Suspect::cause).map(|cause| &*cause.title), Some("another"));
        assert!(named.next().is_none() && catalogue.suspects().count() == FILES.len());
    }
}
