//! Implements `run --prove`: proves the best finding right after the report.

use crate::cli::{Cli, Command, ProveArgs, RunArgs};
use crate::failure::Failure;
use crate::output::{Output, to_stderr};
use clap::Parser;
use std::ffi::OsString;
use std::os::unix::fs::FileTypeExt;
use std::path::PathBuf;
use systoll_judge::{Finding, judge};
use systoll_model::Recording;
use systoll_present::shell_words;

/// Proves the finding with the largest gain that can be proved. The result, or the reason why there
/// is none, goes to standard error, as the report does.
pub(super) fn prove(args: &RunArgs, recording: &Recording) -> Result<(), Failure> {
    let catalogue = crate::explain::catalogue(args.show.causes.folder.as_deref())?;
    let findings = judge(recording, &catalogue, &systoll_judge::Options::default()).findings;
    let Some(first) = findings.first() else {
        to_stderr("systoll: nothing was found that would be worth a proof\n");
        return Ok(());
    };
    let mut passed_over = None;
    for finding in &findings {
        if let Some(prove) = prove_args(args, finding) {
            if let Some(passed_over) = passed_over {
                tell_of(passed_over);
            }
            let how = finding.prove.iter().take_while(|w| *w != "--").map(String::as_str).collect::<Vec<_>>().join(" ");
            to_stderr(&format!("systoll: {} by: {how} -- …\n\n", name(finding)));
            note_input();
            crate::prove::prove_for(&prove, &args.env, Output::Stderr)?;
            return Ok(());
        }
        passed_over.get_or_insert(finding);
    }
    tell_of(first);
    Ok(())
}

/// Parses the finding's own `prove` command, for the command as it was typed.
fn prove_args(args: &RunArgs, finding: &Finding) -> Option<ProveArgs> {
    let own = finding.prove.iter().take_while(|w| *w != "--").map(OsString::from);
    let words = own.chain([OsString::from("--")]).chain(args.command.iter().cloned());
    match Cli::try_parse_from(words).ok()?.command {
        Command::Prove(mut prove) => {
            prove.color = args.show.color;
            prove.causes.clone_from(&args.show.causes);
            prove.quiet = args.quiet > 0;
            prove.input = again();
            Some(*prove)
        }
        _ => None,
    }
}

fn name(finding: &Finding) -> String {
    match &finding.cause {
        Some(cause) => format!("the finding {cause} is put to the proof"),
        None => format!("the finding about {} is put to the proof", syscalls(finding)),
    }
}

fn syscalls(finding: &Finding) -> String {
    finding.syscalls.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// Prints that no cure of systoll's can stop the finding, and what helps.
fn tell_of(finding: &Finding) {
    let what = finding.cause.as_ref().map_or_else(|| syscalls(finding), ToString::to_string);
    let help = shell_words(&finding.prove);
    to_stderr(&format!("systoll: no cure of {what} can be applied from outside the program: {help}\n"));
}

/// Returns the command's input if it can be read again: a file.
fn again() -> Option<PathBuf> {
    let path = PathBuf::from("/proc/self/fd/0");
    std::fs::metadata(&path).is_ok_and(|m| m.is_file()).then_some(path)
}

fn note_input() {
    let kind = std::fs::metadata("/proc/self/fd/0").map(|m| m.file_type());
    if kind.is_ok_and(|k| k.is_fifo() || k.is_socket()) {
        to_stderr("systoll: what came through a pipe can't be read again: standard input is empty now\n");
    }
}
