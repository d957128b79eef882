//! Chooses a cure by the user's word, one that systoll can apply itself.

use crate::cli::KeepFor;
use crate::environment;
use crate::failure::Failure;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use systoll_cure::{Shim, preload, reached};
use systoll_judge::{Catalogue, Cause, CodeLanguage, Cure};
use systoll_model::{Elision, EnvChange, Machine, Recording};
use systoll_present::shell_words;

/// Default folder for a library that is kept.
const LIBRARIES: &str = "/usr/local/lib";

/// A cure by environment variables or by a library.
pub(super) struct ChosenCure {
    /// The cure as the user named it.
    asked: String,
    env: BTreeMap<String, String>,
    shim: Option<&'static Shim>,
    cause: Cause,
    /// Calls of the cure's cause that can be answered in place, separated by commas.
    elided: Option<String>,
    /// Languages and files that the cure is for; empty if it is for all.
    languages: Vec<CodeLanguage>,
    modules: Vec<String>,
    pub(super) gives_up: String,
}

/// Returns the cure that `asked` names: a cause's id means the first of its cures that systoll can
/// apply, `ID:N` the Nth that `systoll explain` lists.
pub(super) fn chosen(catalogue: &Catalogue, asked: &str) -> Result<ChosenCure, Failure> {
    let numbered = asked.rsplit_once(':').and_then(|(id, n)| Some((id, n.parse::<usize>().ok()?)));
    let (id, number) = numbered.map_or((asked, None), |(id, n)| (id, Some(n)));
    let cause = crate::explain::known(catalogue, id)?;
    // There is no cure with this number.
    let numbers: Vec<String> =
        (1..).zip(&cause.cures).filter(|(_, c)| c.is_applied()).map(|(n, _)| format!("{id}:{n}")).collect();
    if number.is_some() && cure_of(cause, number).is_none() && !numbers.is_empty() {
        return Err(Failure::Unknown {
            what: "cure",
            name: asked.to_owned(),
            known: numbers,
            help: format!("systoll explain {id} tells what each does, with a try: line").into(),
        });
    }
    let cure = cure_of(cause, number).ok_or_else(|| Failure::NotApplied {
        asked: asked.to_owned(),
        cause: id.to_owned(),
        elided: elided(cause),
    })?;
    let shim = cure.shim.as_deref().map(|name| Shim::named(name).ok_or_else(|| unknown_shim(name))).transpose()?;
    let (env, gives_up) = (cure.env.clone(), cure.gives_up.clone());
    let (languages, modules) = (cure.languages.clone(), cure.modules.clone());
    let (asked, cause, elided) = (asked.to_owned(), cause.clone(), elided(cause));
    Ok(ChosenCure { asked, env, shim, cause, elided, languages, modules, gives_up })
}

/// Returns the calls for `prove --elide`, in case no cure reaches the program.
fn elided(cause: &Cause) -> Option<String> {
    let mut names: Vec<&str> = elided_by(cause).into_iter().map(Elision::name).collect();
    names.sort_unstable();
    (!names.is_empty()).then(|| names.join(","))
}

/// Returns the calls of a cause that can be answered in place.
pub(super) fn elided_by(cause: &Cause) -> Vec<Elision> {
    let calls = cause.matches.iter().flat_map(|m| m.syscalls.iter()).filter_map(|s| Elision::from_name(s.name()?));
    let mut all = Vec::new();
    calls.for_each(|call| {
        if !all.contains(&call) {
            all.push(call)
        }
    });
    all
}

fn cure_of(cause: &Cause, number: Option<usize>) -> Option<&Cure> {
    let mut applied = cause.cures.iter().enumerate().filter(|(_, cure)| cure.is_applied());
    applied.find(|(at, _)| number.is_none_or(|n| at + 1 == n)).map(|(_, cure)| cure)
}

fn unknown_shim(name: &str) -> Failure {
    Failure::Unknown {
        what: "shim",
        name: name.to_owned(),
        known: Shim::all().iter().map(|s| s.name().to_owned()).collect(),
        help: match Shim::all().is_empty() {
            true => format!("its library is written for x86-64, and this machine is {}", Machine::HERE.name()).into(),
            false => "docs/reference/causes.md tells what each does".into(),
        },
    }
}

/// Returns the changes to a run's environment by the cures and by other libraries.
/// Libraries that are preloaded already come after these.
pub(super) fn changes(cures: &[ChosenCure], others: &[PathBuf]) -> Result<Vec<EnvChange>, Failure> {
    let mut all: Vec<EnvChange> = cures.iter().flat_map(ChosenCure::environment).collect();
    let mut libraries = Vec::new();
    for cure in cures {
        let path: Option<PathBuf> = cure.shim.map(Shim::at_hand).transpose()?;
        libraries.extend(path.filter(|p| !libraries.contains(p)));
    }
    libraries.extend(others.iter().cloned());
    if !libraries.is_empty() {
        let set = all.iter().rev().find_map(|change| match change {
            EnvChange::Set(name, value) if name == "LD_PRELOAD" => Some(value.clone()),
            _ => None,
        });
        let others = set.or_else(environment::preload);
        let value = preload(libraries.iter().map(|l| l.as_os_str()), others.as_deref());
        all.push(EnvChange::Set("LD_PRELOAD".into(), value));
    }
    Ok(all)
}

/// Fails if a run already has what a cure would give it: the run would be compared with itself.
pub(super) fn check_change(cures: &[ChosenCure]) -> Result<(), Failure> {
    let so = |cure: &&ChosenCure| cure.is_so();
    cures.iter().find(so).map_or(Ok(()), |cure| Err(Failure::AlreadySo(cure.asked.clone(), cure.label())))
}

/// Fails if the cures would not reach `program`, or are for another language than its scripts'. A shell may start programs of any.
pub(super) fn check_reach(cures: &[ChosenCure], program: &OsStr) -> Result<(), Failure> {
    let name = Path::new(program).file_name().unwrap_or_default().to_string_lossy();
    let is_other = |is: &CodeLanguage| !matches!(is, CodeLanguage::Shell | CodeLanguage::Bash | CodeLanguage::Fish);
    let language = CodeLanguage::of_file(&name).filter(is_other);
    let of_others =
        |cure: &&ChosenCure| !cure.languages.is_empty() && language.is_some_and(|is| !cure.languages.contains(&is));
    if let Some((cure, is)) = cures.iter().find(of_others).zip(language) {
        let only = cure.shown_languages();
        return Err(Failure::OtherLanguage { cure: cure.asked.clone(), only, is: is.shown() });
    }
    let Some(cure) = cures.iter().find(|c| c.shim.is_some()) else { return Ok(()) };
    reached(program).map_err(|why| Failure::Unreached {
        program: program.to_owned(),
        why,
        cure: cure.asked.clone(),
        elided: cure.elided.clone(),
    })
}

impl ChosenCure {
    fn environment(&self) -> impl Iterator<Item = EnvChange> {
        self.env.iter().map(|(name, value)| EnvChange::Set(name.into(), value.into()))
    }

    /// Returns the cure's name as the heading of the changed run.
    pub(super) fn label(&self) -> String {
        let env = self.env.iter().map(|(name, value)| format!("{name}={value}"));
        env.chain(self.shim.map(|shim| format!("shim {}", shim.name()))).collect::<Vec<_>>().join(" ")
    }

    /// Returns the id of the cure's cause.
    pub(super) fn id(&self) -> &str {
        &self.cause.id
    }

    /// Returns the number of calls in the run that the cure's cause could explain.
    pub(super) fn could_explain(&self, recording: &Recording) -> Option<u64> {
        self.cause.could_explain(recording)
    }

    /// Returns the lines that keep the cure, for a shell.
    pub(super) fn shell(&self) -> Vec<String> {
        let export = self.shim.map(|_| format!("systoll cure --export {LIBRARIES} {}", self.asked));
        export.into_iter().chain(variables(std::slice::from_ref(self), KeepFor::Shell, Path::new(LIBRARIES))).collect()
    }

    /// Writes the cure's library into `dir`, if it has one.
    pub(super) fn export(&self, dir: &Path) -> Result<(), Failure> {
        self.shim.map(|shim| shim.export(dir)).transpose()?;
        Ok(())
    }

    /// Returns the line that explains how to install the cure's library.
    pub(super) fn library_line(&self) -> Option<String> {
        self.shim.map(|shim| {
            format!("# {}: systoll cure --export {LIBRARIES} {}", shim.file_name(), shell_words(&[&self.asked]))
        })
    }

    /// Returns the line that says which programs the cure is for, if not for all, and how to change
    /// the code of others.
    fn scope(&self) -> Option<String> {
        let only = [self.shown_languages(), self.modules.join(", ")];
        let only: Vec<&str> = only.iter().map(String::as_str).filter(|names| !names.is_empty()).collect();
        let id = self.id();
        (!only.is_empty())
            .then(|| format!("# {id}, for {} alone; others: systoll cure --print --for code {id}", only.join(", ")))
    }

    fn shown_languages(&self) -> String {
        self.languages.iter().map(|language| language.shown()).collect::<Vec<_>>().join(", ")
    }

    /// Returns true if a run has all the cure's variables already and the cure needs no library.
    fn is_so(&self) -> bool {
        let is = |(name, value): (&String, &String)| environment::has(name, value);
        self.shim.is_none() && self.env.iter().all(is)
    }
}

/// Returns the lines that keep all cures. Libraries are in `exported`; without it, the lines
/// explain how to install them.
pub(super) fn keep(cures: &[ChosenCure], keep_for: KeepFor, exported: Option<&Path>) -> String {
    let scopes = cures.iter().filter_map(ChosenCure::scope);
    let head = match keep_for {
        KeepFor::Shell | KeepFor::Docker | KeepFor::Code => None,
        KeepFor::Systemd => Some("[Service]".to_owned()),
        KeepFor::Kubernetes => Some("env:".to_owned()),
    };
    let libraries = cures.iter().filter(|_| exported.is_none()).filter_map(ChosenCure::library_line);
    let lines = variables(cures, keep_for, exported.unwrap_or(Path::new(LIBRARIES)));
    scopes.chain(libraries).chain(head).chain(lines).map(|line| line + "\n").collect()
}

/// Returns a line for each variable. Libraries are in `dir`.
fn variables(cures: &[ChosenCure], keep_for: KeepFor, dir: &Path) -> Vec<String> {
    let variable = |name: &str, value: &str| match keep_for {
        // Only the value is quoted: a quoted name would be no assignment.
        KeepFor::Shell | KeepFor::Code => format!("export {name}={}", shell_words(&[value])),
        KeepFor::Systemd => format!("Environment={}", quoted(&format!("{name}={value}"))),
        KeepFor::Docker => format!("ENV {name}={}", quoted(value)),
        KeepFor::Kubernetes => format!("  - name: {name}\n    value: {}", quoted(value)),
    };
    let env = cures.iter().flat_map(|cure| &cure.env).map(|(name, value)| variable(name, value));
    let mut libraries: Vec<PathBuf> = Vec::new();
    for shim in cures.iter().filter_map(|cure| cure.shim) {
        let path = dir.join(shim.file_name());
        if !libraries.contains(&path) {
            libraries.push(path);
        }
    }
    let all = preload(libraries.iter().map(|l| l.as_os_str()), None).to_string_lossy().into_owned();
    let library = (!libraries.is_empty()).then(|| match keep_for {
        // Other libraries may be preloaded already.
        KeepFor::Shell => format!("export LD_PRELOAD={}${{LD_PRELOAD:+:$LD_PRELOAD}}", shell_words(&[&all])),
        _ => variable("LD_PRELOAD", &all),
    });
    env.chain(library).collect()
}

/// Quotes a value with double quotes, as systemd, Docker and YAML all read it.
fn quoted(value: &str) -> String {
    format!("\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\""))
}

/// Returns changes of an environment in JSON's form.
pub(super) fn environment(changes: &[EnvChange]) -> BTreeMap<String, Option<String>> {
    let change = |change: &EnvChange| match change {
        EnvChange::Set(name, value) => {
            (name.to_string_lossy().into_owned(), Some(value.to_string_lossy().into_owned()))
        }
        EnvChange::Remove(name) => (name.to_string_lossy().into_owned(), None),
    };
    changes.iter().map(change).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exactly_the_applicable_causes_are_applied() {
        let catalogue = Catalogue::builtin();
        for cause in catalogue.iter() {
            let told = !matches!(cause.apply, systoll_judge::Apply::None | systoll_judge::Apply::Elide);
            let found = chosen(&catalogue, &cause.id);
            assert_eq!(found.is_ok(), told, "{}: apply = {:?}", cause.id, cause.apply);
            for shim in cause.cures.iter().filter_map(|cure| cure.shim.as_deref()) {
                assert!(Shim::named(shim).is_some(), "{}: no shim {shim}", cause.id);
            }
        }
    }

    #[test]
    fn a_cure_can_be_picked_by_its_number() {
        let catalogue = Catalogue::builtin();
        let go = chosen(&catalogue, "madvise-churn:2").ok().unwrap();
        assert_eq!(go.shell(), ["export GOGC=400"]);
        assert_eq!(chosen(&catalogue, "madvise-churn").ok().unwrap().env.keys().next().unwrap(), "MALLOC_CONF");
        for wrong in ["madvise-churn:4", "madvise-churn:9", "madvise-churn:0", "no-such-cause:1"] {
            assert!(chosen(&catalogue, wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_cure_for_another_language_is_declined() {
        let cure = [chosen(&Catalogue::builtin(), "unbuffered-output").ok().unwrap()];
        let programs =
            [("/usr/bin/perl5.36", false), ("node", false), ("python3.11", true), ("sh", true), ("./app", true)];
        for (program, fits) in programs {
            let is_other = matches!(check_reach(&cure, OsStr::new(program)), Err(Failure::OtherLanguage { .. }));
            assert_eq!(is_other, !fits, "{program}");
        }
    }

    #[test]
    fn kept_settings_fit_shells_and_systemd() {
        let catalogue = Catalogue::builtin();
        let pick = |id: &str| chosen(&catalogue, id).ok().unwrap();
        let cures = ["sigmask-setjmp", "tz-unset"].map(pick);
        let library = "/usr/local/lib/libsystoll-setjmp.so";
        let how = "# libsystoll-setjmp.so: systoll cure --export /usr/local/lib sigmask-setjmp\n";
        assert_eq!(
            keep(&cures, KeepFor::Shell, None),
            format!("{how}export TZ=:/etc/localtime\nexport LD_PRELOAD={library}${{LD_PRELOAD:+:$LD_PRELOAD}}\n")
        );
        assert_eq!(
            keep(&cures, KeepFor::Systemd, None),
            format!("{how}[Service]\nEnvironment=\"TZ=:/etc/localtime\"\nEnvironment=\"LD_PRELOAD={library}\"\n")
        );
        let exported = keep(&cures[..1], KeepFor::Kubernetes, Some(Path::new("/opt")));
        assert_eq!(exported, "env:\n  - name: LD_PRELOAD\n    value: \"/opt/libsystoll-setjmp.so\"\n");
        let of_python = keep(&[pick("unbuffered-output")], KeepFor::Shell, None);
        let scope =
            "# unbuffered-output, for Python alone; others: systoll cure --print --for code unbuffered-output\n";
        assert_eq!(of_python, format!("{scope}export PYTHONUNBUFFERED=''\n"));
        // A variable has one value, however many libraries there are.
        let both = ["sigmask-setjmp", "membarrier-global", "sigmask-setjmp"].map(pick);
        let line = "ENV LD_PRELOAD=\"/opt/libsystoll-setjmp.so:/opt/libsystoll-membarrier.so\"\n";
        assert_eq!(keep(&both, KeepFor::Docker, Some(Path::new("/opt"))), line);
    }
}
