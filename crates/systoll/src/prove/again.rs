//! Makes the command line that repeats a comparison with more pairs.

use crate::cli::ProveArgs;
use std::ffi::{OsStr, OsString};
use systoll_model::EnvChange;
use systoll_present::shell_words;

/// Returns the command line of the same comparison with `pairs` pairs. `both` changes the
/// environment of both sides.
pub(super) fn with_pairs(args: &ProveArgs, both: &[EnvChange], pairs: u32) -> String {
    let mut words = around(both);
    words.extend(["systoll", "prove", "--pairs", &pairs.to_string()].map(OsString::from));
    let mut add = |option: &str, value: &OsStr| words.extend([OsString::from(option), value.to_owned()]);
    args.cure.iter().for_each(|cure| add("--cure", cure.as_ref()));
    if let Some(vs) = &args.vs {
        add("--vs", shell(&vs.0).as_ref());
    }
    args.env.iter().for_each(|change| add("-E", &typed(change)));
    args.preload.iter().for_each(|library| add("--preload", library.as_os_str()));
    args.shorten.iter().for_each(|what| add("--shorten", what.as_ref()));
    args.to.iter().for_each(|part| add("--to", part.to_string().as_ref()));
    args.elide.iter().for_each(|call| add("--elide", call.name().as_ref()));
    if args.same != USUAL_SAME {
        add("--same", &args.same);
    }
    args.input.iter().filter(|path| !path.starts_with("/proc/self")).for_each(|path| add("--input", path.as_os_str()));
    args.causes.folder.iter().for_each(|folder| add("--causes", folder.as_os_str()));
    [("--prepare", &args.prepare), ("--setup", &args.setup), ("--cleanup", &args.cleanup)]
        .into_iter()
        .for_each(|(option, hook)| hook.iter().for_each(|hook| add(option, hook)));
    if args.warmup > 0 {
        add("--warmup", args.warmup.to_string().as_ref());
    }
    if args.ignore_failure {
        words.push("--ignore-failure".into());
    }
    words.push("--".into());
    words.extend(args.command.iter().cloned());
    shell(&words)
}

/// The default of `--same`.
const USUAL_SAME: &str = "stdout,stderr,exit";

/// Returns `env A=1` if the environment of both sides differs from ours.
fn around(both: &[EnvChange]) -> Vec<OsString> {
    let is_set = |change: &&EnvChange| matches!(change, EnvChange::Set(..));
    let removed = both.iter().filter(|change| !is_set(change)).flat_map(|change| ["-u".into(), typed(change)]);
    let set = both.iter().filter(is_set).map(typed);
    let changes = removed.chain(set);
    if both.is_empty() { Vec::new() } else { [OsString::from("env")].into_iter().chain(changes).collect() }
}

/// Returns a change as the value of `-E`.
fn typed(change: &EnvChange) -> OsString {
    match change {
        EnvChange::Set(name, value) => {
            let mut text = name.clone();
            text.push("=");
            text.push(value);
            text
        }
        EnvChange::Remove(name) => name.clone(),
    }
}

fn shell(words: &[OsString]) -> String {
    shell_words(&words.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Cli, Command};
    use clap::Parser;

    #[test]
    fn it_reads_back_as_the_same_comparison() {
        let typed = [
            "systoll",
            "prove",
            "--limit",
            "9s",
            "--cure",
            "tz-unset",
            "-E",
            "A=b c",
            "--same",
            "exit",
            "--vs",
            "./new 'x y'",
            "-p",
            "sync",
            "-i",
            "--",
            "./app",
            "two words",
            "--pairs",
        ];
        let Command::Prove(args) = Cli::try_parse_from(typed).unwrap().command else { panic!("not prove") };
        let line = with_pairs(&args, &[], 120);
        let Command::Prove(again) = Cli::try_parse_from(shell_words::split(&line).unwrap()).unwrap().command else {
            panic!("not prove")
        };
        assert_eq!((again.pairs, again.limit), (Some(120), None));
        let of = |args: &ProveArgs| {
            format!(
                "{:?}",
                (&args.cure, &args.env, &args.same, &args.vs, &args.prepare, args.ignore_failure, &args.command)
            )
        };
        assert_eq!(of(&again), of(&args));
        let both = [EnvChange::Set("B".into(), "2".into()), EnvChange::Remove("C".into())];
        assert!(with_pairs(&args, &both, 9).starts_with("env -u C B=2 systoll prove --pairs 9 --cure tz-unset"));
    }
}
