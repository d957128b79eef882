//! Implements `systoll export`: writes a recording in the format of another tool.

use crate::cli::ExportArgs;
use crate::explain::catalogue;
use crate::failure::Failure;
use crate::output::Output;
use crate::report::read;
use std::io::{self, IsTerminal};
use std::process::ExitCode;
use systoll_export::{ExportError, Format, JudgedRecording, export, flamegraph_compared};
use systoll_judge::{Options, judge};

/// Reads and judges a recording and writes it in another format.
pub(crate) fn write(args: &ExportArgs) -> Result<ExitCode, Failure> {
    if args.against.is_some() && args.format != Format::Flamegraph {
        return Err(Failure::Usage(
            "--against draws a flame graph: --format flamegraph; systoll diff tells what changed",
        ));
    }
    if args.format.is_binary() && args.output.is_none() && io::stdout().is_terminal() {
        return Err(Failure::Usage("what this format holds is no text for a terminal: -o FILE"));
    }
    let catalogue = catalogue(args.causes.folder.as_deref())?;
    let mut output = Output::open(args.output.as_deref(), Output::Stdout)?;
    let judged = |recording| judge(recording, &catalogue, &Options::default());
    let recording = read(&args.recording)?;
    let judgement = judged(&recording);
    let new = JudgedRecording::new(&recording, &judgement);
    // The export is complete before anything is written: half a file is worse than none.
    let mut bytes = Vec::new();
    let written = match &args.against {
        Some(path) => {
            let recording = read(path)?;
            let judgement = judged(&recording);
            flamegraph_compared(args.value, &JudgedRecording::new(&recording, &judgement), &new, &mut bytes)
        }
        None => export(args.format, args.value, &new, &mut bytes),
    };
    written.map_err(|error| match error {
        ExportError::Recording(error) => Failure::Recording(args.recording.clone(), error),
        error => Failure::Export(error),
    })?;
    output.write_as_is("export", |w| w.write_all(&bytes))?;
    Ok(ExitCode::SUCCESS)
}
