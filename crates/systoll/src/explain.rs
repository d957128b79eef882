//! `systoll explain` and `systoll causes`, and the catalogue with the user's own causes.

use crate::cli::{CausesArgs, ExplainArgs};
use crate::failure::Failure;
use crate::output::Output;
use std::path::Path;
use std::process::ExitCode;
use systoll_judge::Catalogue;
use systoll_present::{write_causes, write_explain};

/// The built-in causes and those of a folder.
pub(crate) fn catalogue(dir: Option<&Path>) -> Result<Catalogue, Failure> {
    let mut catalogue = Catalogue::builtin();
    let Some(dir) = dir else { return Ok(catalogue) };
    let entries = std::fs::read_dir(dir).map_err(|e| Failure::file("read", dir, e))?;
    let mut paths: Vec<_> = entries.filter_map(|e| Some(e.ok()?.path())).collect();
    paths.retain(|p| p.extension().is_some_and(|e| e == "toml"));
    paths.sort();
    for path in paths {
        let text = std::fs::read_to_string(&path).map_err(|e| Failure::file("read", &path, e))?;
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let cause = Catalogue::parse(&name, &text).map_err(|e| Failure::Cause(path.clone(), e.to_string()))?;
        catalogue.extend([cause]);
    }
    Ok(catalogue)
}

pub(crate) fn explain(args: &ExplainArgs) -> Result<ExitCode, Failure> {
    let catalogue = catalogue(args.causes.as_deref())?;
    let Some(cause) = catalogue.get(&args.cause) else {
        return Err(Failure::Unknown {
            what: "cause",
            name: args.cause.clone(),
            known: catalogue.iter().map(|c| c.id.to_string()).collect(),
            help: "systoll causes lists them".into(),
        });
    };
    let mut output = Output::open(None, Output::Stdout)?;
    let style = output.style(args.color);
    output.write("text", |w| write_explain(w, cause, args.language, &style))?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn causes(args: &CausesArgs) -> Result<ExitCode, Failure> {
    let catalogue = catalogue(args.causes.as_deref())?;
    let mut output = Output::open(None, Output::Stdout)?;
    let style = output.style(args.color);
    output.write("text", |w| write_causes(w, &catalogue, &style))?;
    Ok(ExitCode::SUCCESS)
}
