//! Implements `systoll explain` and `systoll causes`, and loads the catalogue with the user's own
//! causes.

use crate::cli::{CausesArgs, ExplainArgs};
use crate::failure::Failure;
use crate::output::Output;
use std::path::Path;
use std::process::ExitCode;
use systoll_judge::{Catalogue, Cause, Kind, Pattern};
use systoll_model::Sysno;
use systoll_present::{write_causes, write_causes_of, write_explain};

/// Returns the built-in causes and the causes of a folder.
pub(crate) fn catalogue(dir: Option<&Path>) -> Result<Catalogue, Failure> {
    let mut catalogue = Catalogue::builtin();
    let Some(dir) = dir else { return Ok(catalogue) };
    let entries = std::fs::read_dir(dir).map_err(|e| Failure::file("read", dir, e))?;
    let mut paths: Vec<_> = entries.filter_map(|e| Some(e.ok()?.path())).collect();
    // Opening a FIFO would wait for its writer.
    paths.retain(|p| p.extension().is_some_and(|e| e == "toml") && p.is_file());
    paths.sort();
    for path in paths {
        let text = std::fs::read_to_string(&path).map_err(|e| Failure::file("read", &path, e))?;
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let cause = Catalogue::parse(&name, &text).map_err(|e| Failure::Cause(path.clone(), e.to_string()))?;
        catalogue.extend([cause]);
    }
    Ok(catalogue)
}

/// Returns the cause with this id. For the name of an API, a system call or a variable, the error
/// lists the causes that are about it.
pub(crate) fn known<'a>(catalogue: &'a Catalogue, id: &str) -> Result<&'a Cause, Failure> {
    catalogue.get(id).ok_or_else(|| {
        let which = match (of_call(catalogue, id), of_variable(catalogue, id)) {
            (ids, _) if !ids.is_empty() => format!("{id} can have these: {}\n", ids.join(", ")),
            (_, ids) if !ids.is_empty() => format!("the variable {id} is about these: {}\n", ids.join(", ")),
            _ if Sysno::from_name(id).is_some() => {
                format!("no known cause is about the system call {id}; who makes it: systoll run -e {id} -- CMD\n")
            }
            _ => String::new(),
        };
        Failure::Unknown {
            what: "cause",
            name: id.to_owned(),
            known: if which.is_empty() { catalogue.iter().map(|c| c.id.to_string()).collect() } else { vec![] },
            help: (which + "systoll causes lists them all").into(),
        }
    })
}

/// Returns the causes of calls by this API or, if there are none, of this system call.
fn of_call<'a>(catalogue: &'a Catalogue, name: &str) -> Vec<&'a str> {
    let with = |is_of: &dyn Fn(&Pattern) -> bool| {
        catalogue.iter().filter(|cause| cause.matches.iter().any(is_of)).map(|cause| &*cause.id).collect::<Vec<_>>()
    };
    let of_api = with(&|pattern| pattern.apis.iter().any(|api| api == name));
    if !of_api.is_empty() {
        return of_api;
    }
    Sysno::from_name(name).map_or_else(Vec::new, |call| with(&|pattern| pattern.syscalls.contains(&call)))
}

/// Returns the causes with a cure that sets or removes this environment variable.
fn of_variable<'a>(catalogue: &'a Catalogue, name: &str) -> Vec<&'a str> {
    let sets = |cause: &&Cause| cause.cures.iter().any(|cure| cure.env.keys().any(|key| key == name));
    catalogue.iter().filter(sets).map(|cause| &*cause.id).collect()
}

pub(crate) fn explain(args: &ExplainArgs) -> Result<ExitCode, Failure> {
    let catalogue = catalogue(args.causes.folder.as_deref())?;
    let id = args.cause.as_deref().unwrap_or_default();
    let of = if catalogue.get(id).is_none() { of_name(&catalogue, id) } else { None };
    let cause = if of.is_none() { Some(known(&catalogue, id)?) } else { None };
    let mut output = Output::open(None, Output::Stdout)?;
    let style = output.style(args.color.when);
    output.write("text", |w| match (&of, cause) {
        (Some((what, causes)), _) => write_causes_of(w, what, causes, &style),
        (None, Some(cause)) => write_explain(w, cause, args.language, &style),
        (None, None) => Ok(()),
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the causes that are about a system call, a function or a variable, or of a kind of waste, with a heading
/// for them. Returns `None` if there are none.
fn of_name<'a>(catalogue: &'a Catalogue, name: &str) -> Option<(String, Vec<&'a Cause>)> {
    if let Some(kind) = Kind::named(name) {
        let is_of = |cause: &&Cause| cause.matches.iter().any(|pattern| pattern.kinds.contains(&kind));
        let heading = format!(
            "{name} is no cause but a kind of waste, where no known cause fits: {}. The finding's own words tell more. \
             Known causes of this kind",
            kind.means()
        );
        return Some((heading, catalogue.iter().filter(is_of).collect()));
    }
    let (ids, of_variable) = (of_call(catalogue, name), of_variable(catalogue, name));
    let (what, ids) = match ids.is_empty() {
        false => ("Needless calls of", ids),
        true => ("Needless calls that end with the variable", of_variable),
    };
    let causes: Vec<&Cause> = ids.iter().filter_map(|id| catalogue.get(id)).collect();
    let have = if causes.len() == 1 { "have this cause" } else { "can have these causes" };
    (!causes.is_empty()).then(|| (format!("{what} {name} {have}"), causes))
}

pub(crate) fn causes(args: &CausesArgs) -> Result<ExitCode, Failure> {
    let catalogue = catalogue(args.causes.folder.as_deref())?;
    let mut output = Output::open(None, Output::Stdout)?;
    let style = output.style(args.color.when);
    output.write("text", |w| write_causes(w, &catalogue, &style))?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fifo_in_a_folder_is_no_cause() {
        let folder = tempfile::tempdir().unwrap();
        nix::unistd::mkfifo(&folder.path().join("a.toml"), nix::sys::stat::Mode::S_IRUSR).unwrap();
        let with = |folder| catalogue(folder).unwrap().iter().count();
        assert_eq!(with(Some(folder.path())), with(None));
    }

    #[test]
    fn the_kind_that_stands_in_a_cause_s_place_is_explained() {
        let catalogue = Catalogue::builtin();
        for kind in Kind::ALL {
            let (heading, causes) = of_name(&catalogue, kind.name()).unwrap();
            assert!(heading.contains(kind.means()) && !causes.is_empty(), "{heading}");
        }
    }

    #[test]
    fn an_api_and_a_system_call_lead_to_their_causes() {
        let catalogue = Catalogue::builtin();
        assert!(of_call(&catalogue, "localtime").contains(&"tz-unset"));
        assert!(of_call(&catalogue, "membarrier").contains(&"membarrier-global"));
        assert_eq!(of_variable(&catalogue, "TZ"), ["tz-unset"]);
        assert_eq!(of_call(&catalogue, "frobnicate"), Vec::<&str>::new());
        let Err(Failure::Unknown { help, known, .. }) = known(&catalogue, "localtime") else { panic!("a cause") };
        assert!(help.contains("tz-unset") && known.is_empty(), "{help}");
    }

    #[test]
    fn a_call_s_name_is_explained() {
        let catalogue = Catalogue::builtin();
        let (what, causes) = of_name(&catalogue, "getpid").unwrap();
        let ids: Vec<&str> = causes.iter().map(|cause| &*cause.id).collect();
        assert_eq!((&*what, ids), ("Needless calls of getpid have this cause", vec!["identity-per-op"]));
        assert!(of_name(&catalogue, "TZ").is_some_and(|(what, _)| what.contains("the variable TZ")));
        assert!(of_name(&catalogue, "openat").is_some_and(|(what, _)| what.ends_with("can have these causes")));
        assert!(of_name(&catalogue, "frobnicate").is_none());
    }
}
