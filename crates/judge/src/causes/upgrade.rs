//! Newer versions that lack a cause. The installed version is compared, never guessed.

use crate::causes::pattern::glob;
use crate::code::author::Author;
use crate::code::language::Version;
use crate::results::cure_kind::CureKind;
use crate::results::finding::Advice;
use serde::de::Error;
use serde::{Deserialize, Deserializer};
use systoll_model::{Package, Recording, Row, RowId, Sysno};

/// The placeholder of the version in a pattern.
const VERSION: &str = "{version}";

/// A newer version of a program or library, which lacks the cause. One of `kernel`, `sources` and `modules` says where
/// the installed version is found.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Upgrade {
    /// Name of the program or library.
    #[serde(rename = "what")]
    pub name: String,
    /// The first version without the cause.
    pub version: Version,
    /// A further step that the user has to take; empty if there is none.
    #[serde(default)]
    pub then: String,
    /// The command that tells the installed version if no file name does; may be empty.
    #[serde(default)]
    pub ask: String,
    /// The public source: the project and its change.
    pub reference: String,
    /// System calls that the upgrade changes; empty if it changes all of the cause's.
    #[serde(default, deserialize_with = "syscalls")]
    pub syscalls: Vec<Sysno>,
    /// True if the version is that of the kernel that the program ran on. If `modules` are given as well, one of them must
    /// match a file on the stack.
    #[serde(default)]
    kernel: bool,
    /// Source files on the stack, as patterns with `*`; a pattern may hold the version.
    #[serde(default)]
    sources: Vec<String>,
    /// Files of programs and libraries on the stack, as patterns with `*`; a pattern may hold the version.
    #[serde(default)]
    modules: Vec<String>,
}

/// Reads system calls by their names.
fn syscalls<'de, D: Deserializer<'de>>(file: D) -> Result<Vec<Sysno>, D::Error> {
    let known = |name: String| Sysno::from_name(&name).ok_or_else(|| format!("there is no system call {name:?}"));
    let names = Vec::<String>::deserialize(file)?;
    names.into_iter().map(known).collect::<Result<_, _>>().map_err(Error::custom)
}

/// The version that a program uses.
#[derive(Clone, Debug, PartialEq, Eq)]
enum UsedVersion {
    Version(Version),
    /// The program uses the language or module in an unknown version.
    Unknown,
    /// The program does not use the language or module.
    None,
}

impl Upgrade {
    /// Returns true if the upgrade changes one of the calls of these rows. A library's upgrade does not change what a
    /// program calls by number, with syscall(2).
    pub(crate) fn concerns(&self, rows: &[RowId], recording: &Recording) -> bool {
        let changed = |row: &Row| self.syscalls.contains(&row.syscall) && row.api.as_deref() != Some("syscall");
        self.syscalls.is_empty() || rows.iter().any(|id| changed(recording.row(*id)))
    }

    /// Returns the advice for the calls' author, and true if the installed version is known to be older. Returns
    /// `None` if the upgrade does not concern the calls, or is installed.
    pub(crate) fn advice(&self, author: &Author, recording: &Recording) -> Option<(bool, Advice)> {
        let used = self.used_version(author, recording);
        let here = match &used {
            UsedVersion::Version(version) if version.compare(&self.version).is_lt() => format!("here: {version}"),
            UsedVersion::Version(_) | UsedVersion::None => return None,
            UsedVersion::Unknown if self.ask.is_empty() => "where it is older".into(),
            UsedVersion::Unknown => format!("where it is older: {}", self.ask),
        };
        let then = if self.then.is_empty() { String::new() } else { format!(", then {}", self.then) };
        let how = format!("upgrade {} to {} or newer{then} ({here})", self.name, self.version);
        let advice = Advice { kind: Some(CureKind::Upgrade), ..Advice::general(how) };
        Some((matches!(used, UsedVersion::Version(_)), advice))
    }

    fn used_version(&self, author: &Author, recording: &Recording) -> UsedVersion {
        if self.kernel {
            let is_there = |pattern: &String| author.files.iter().any(|file| glob(pattern, file));
            let concerns = self.modules.is_empty() || self.modules.iter().any(is_there);
            let version = leading_version(&recording.header.host.kernel).filter(|_| concerns);
            return version.map_or(UsedVersion::None, |(version, _)| UsedVersion::Version(version));
        }
        let by_source = !self.sources.is_empty();
        let (patterns, names) =
            if by_source { (&self.sources, &author.sources) } else { (&self.modules, &author.files) };
        let pairs = || patterns.iter().flat_map(|pattern| names.iter().map(move |name| (pattern, name)));
        if let Some(version) = pairs().find_map(|(pattern, name)| version_in(pattern, name)) {
            return UsedVersion::Version(version);
        }
        let mut there = pairs().filter(|(pattern, name)| glob(pattern, name)).map(|(_, name)| name).peekable();
        if there.peek().is_none() {
            return UsedVersion::None;
        }
        there.find_map(|source| installed(source, recording)).map_or(UsedVersion::Unknown, UsedVersion::Version)
    }

    /// Checks that the fields do not contradict each other.
    pub(crate) fn check(&self) -> Result<(), String> {
        if self.reference.is_empty() {
            return Err(format!("the upgrade of {}: no reference, and nothing is guessed", self.name));
        }
        match (self.kernel, self.sources.is_empty(), self.modules.is_empty()) {
            (true, true, _) | (false, false, true) | (false, true, false) => Ok(()),
            _ => Err(format!("the upgrade of {}: kernel, sources or modules tell what is installed", self.name)),
        }
    }

    /// Returns the upgrade in one line, for readers of the cause.
    pub fn line(&self) -> String {
        let then = if self.then.is_empty() { String::new() } else { format!(", then {}", self.then) };
        format!("{} {} or newer{then} ({})", self.name, self.version, self.reference)
    }
}

/// Returns the version of the installed package that a source file belongs to.
fn installed(source: &str, recording: &Recording) -> Option<Version> {
    let is_of = |p: &&Package| source.strip_prefix(&*p.home).is_some_and(|r| r.is_empty() || r.starts_with('/'));
    recording.packages.iter().find(is_of).and_then(|p| Version::parse(&p.version))
}

/// Returns the version that a name has in the place of `{version}` in the pattern.
fn version_in(pattern: &str, name: &str) -> Option<Version> {
    let (head, tail) = pattern.split_once(VERSION)?;
    let fixed = head.trim_start_matches('*');
    let mut ends = name.match_indices(fixed).map(|(at, _)| at + fixed.len());
    let begins = |end: &usize| head != fixed || *end == fixed.len();
    ends.by_ref().filter(begins).find_map(|end| {
        let (version, rest) = leading_version(name.get(end..)?)?;
        glob(tail, rest).then_some(version)
    })
}

/// Returns the version at the beginning of a text, and the text after it.
fn leading_version(text: &str) -> Option<(Version, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (numbers, _) = text.split_at_checked(end)?;
    let numbers = numbers.trim_end_matches('.');
    Some((Version::parse(numbers)?, text.get(numbers.len()..)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn upgrade(text: &str) -> Upgrade {
        let upgrade: Upgrade = toml::from_str(text).unwrap();
        upgrade.check().map(|()| upgrade).unwrap()
    }

    fn author(sources: &[&str], files: &[&str]) -> Author {
        let owned = |names: &[&str]| names.iter().map(ToString::to_string).collect();
        Author { sources: owned(sources), files: owned(files), ..Author::default() }
    }

    fn run_on(kernel: &str) -> Recording {
        let mut run = Recording::default();
        run.header.host.kernel = kernel.into();
        run
    }

    #[test]
    fn versions_are_compared_where_names_tell_them() {
        let uuid = upgrade(
            "what = 'google/uuid'\nversion = '1.3.0'\nthen = 'call it'\nreference = 'r'\n\
             sources = ['*github.com/google/uuid@v{version}/*']",
        );
        let told = |source: &str| uuid.advice(&author(&[source], &[]), &Recording::default());
        let old = told("/root/go/pkg/mod/github.com/google/uuid@v1.2.0/version4.go").unwrap();
        assert_eq!(old.1.how, "upgrade google/uuid to 1.3.0 or newer, then call it (here: 1.2.0)");
        assert!(old.0 && told("github.com/google/uuid@v1.2.9/a.go").unwrap().0);
        for source in ["x/github.com/google/uuid@v1.3.0/a.go", "github.com/google/uuid@v10.0/a.go", "/src/uuid.go"] {
            assert_eq!(told(source), None, "{source}");
        }
        // A version with anything but numbers is unknown.
        assert_eq!(told("github.com/google/uuid@v1.2.0-rc1/a.go"), None);
    }

    #[test]
    fn an_upgrade_concerns_the_calls_that_it_changes() {
        let file = "what = 'glibc'\nversion = '2.41'\nreference = 'r'\nmodules = ['libc.so.6']\n";
        let (of_one, of_all) = (upgrade(&format!("{file}syscalls = ['getrandom']")), upgrade(file));
        let making = |syscall: &str| {
            let mut run = Recording::default();
            run.rows.push(systoll_model::Row::new(
                systoll_model::ProcessId(0),
                Sysno::from_name(syscall).unwrap(),
                systoll_model::Counts::default(),
            ));
            run
        };
        let concerned = |upgrade: &Upgrade| ["getrandom", "openat"].map(|s| upgrade.concerns(&[RowId(0)], &making(s)));
        assert_eq!((concerned(&of_one), concerned(&of_all)), ([true, false], [true, true]));
    }

    #[test]
    fn what_is_there_in_an_unknown_version_is_not_said_to_be_old() {
        let psutil = upgrade(
            "what = 'psutil'\nversion = '6.0'\nask = 'pip show psutil'\nreference = 'r'\nsources = ['*/psutil/__init__.py']",
        );
        let (known, advice) = psutil.advice(&author(&["/x/psutil/__init__.py"], &[]), &Recording::default()).unwrap();
        assert!(!known);
        assert_eq!(advice.how, "upgrade psutil to 6.0 or newer (where it is older: pip show psutil)");
        assert_eq!(psutil.advice(&author(&["/x/other.py"], &[]), &Recording::default()), None);
    }

    #[test]
    fn a_version_that_is_installed_beside_the_source_is_compared() {
        let psutil = upgrade(
            "what = 'psutil'\nversion = '6.0'\nask = 'pip show psutil'\nreference = 'r'\nsources = ['*/psutil/__init__.py']",
        );
        let told = |version: &str, home: &str| {
            let packages = vec![Package { home: home.into(), version: version.into() }];
            let run = Recording { packages, ..Recording::default() };
            psutil.advice(&author(&["/x/psutil/__init__.py"], &[]), &run).map(|(known, advice)| (known, advice.how))
        };
        let old = "upgrade psutil to 6.0 or newer (here: 5.9.8)".to_owned();
        assert_eq!(told("5.9.8", "/x/psutil"), Some((true, old)));
        assert_eq!((told("6.0.0", "/x/psutil"), told("6.1", "/x/psutil")), (None, None));
        // The version of another package, or one that can't be compared, is not used.
        for (version, home) in [("5.9.8", "/x/psut"), ("5.9.8", "/y/psutil"), ("x", "/x/psutil")] {
            assert!(!told(version, home).unwrap().0, "{home} {version}");
        }
    }

    #[test]
    fn the_kernel_is_that_of_the_run() {
        let linux = upgrade("what = 'Linux'\nversion = '6.11'\nkernel = true\nreference = 'r'");
        let told =
            |kernel: &str| linux.advice(&Author::default(), &run_on(kernel)).map(|(known, advice)| (known, advice.how));
        let old = "upgrade Linux to 6.11 or newer (here: 6.1.0)".to_owned();
        assert_eq!(told("6.1.0-18-amd64"), Some((true, old)));
        assert_eq!((told("6.11.2"), told("7.0-rc1"), told("")), (None, None, None));
        let of_glibc =
            upgrade("what = 'Linux'\nversion = '6.11'\nkernel = true\nmodules = ['libc.so.6']\nreference = 'r'");
        let host = run_on("5.10");
        assert!(of_glibc.advice(&Author::default(), &host).is_none());
        assert!(of_glibc.advice(&author(&[], &["app", "libc.so.6"]), &host).is_some_and(|(known, _)| known));
    }

    #[test]
    fn a_library_by_its_file() {
        let libc =
            upgrade("what = 'glibc'\nversion = '2.41'\nreference = 'r'\nmodules = ['libc-{version}.so', 'libc.so.6']");
        let told = |file: &str| libc.advice(&author(&[], &[file]), &Recording::default()).map(|(known, _)| known);
        assert_eq!(
            (told("libc-2.31.so"), told("libc.so.6"), told("ld-musl-x86_64.so.1")),
            (Some(true), Some(false), None)
        );
    }

    #[test]
    fn what_tells_nothing_is_refused() {
        let refused = |text: &str| toml::from_str::<Upgrade>(text).ok().is_none_or(|of| of.check().is_err());
        assert!(refused("what = 'a'\nversion = '1'\nreference = 'r'"));
        assert!(refused("what = 'a'\nversion = 'x'\nreference = 'r'\nkernel = true"));
        assert!(refused("what = 'a'\nversion = '1'\nreference = ''\nkernel = true"));
        assert!(refused("what = 'a'\nversion = '1'\nreference = 'r'\nkernel = true\nsources = ['x']"));
    }
}
