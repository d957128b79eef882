//! What was meant by a command that there is not: other tools' words, a cause, a program, an option without its command.

use clap::error::{ContextKind, ContextValue, ErrorKind};
use systoll_judge::Catalogue;

/// Words that other tools have for what a command of ours does.
const WORDS: &[(&[&str], &str, &str)] = &[
    (&["record", "save", "collect", "capture"], "to keep a recording", "systoll run --save REC -- CMD"),
    (&["stat", "stats", "count", "summary"], "for strace's table of counts", "systoll run -c -- CMD"),
    (
        &["trace", "watch", "strace", "profile", "prof", "analyze", "analyse", "find", "start", "exec", "time"],
        "to watch a program",
        "systoll run -- CMD",
    ),
    (&["attach", "pid"], "systoll watches what it starts, and does not attach", "systoll run -- CMD"),
    (&["top"], "to see a report every ten seconds", "systoll run --every 10s -- CMD"),
    (&["compare", "delta"], "to compare two recordings, or commands", "systoll diff OLD NEW"),
    (&["bench", "benchmark"], "to time two commands", "systoll prove --vs 'NEW CMD' -- CMD"),
    (&["fix", "apply", "patch"], "to keep a cure", "systoll cure --print CAUSE"),
    (&["list", "ls", "why"], "for the causes that it knows", "systoll causes"),
    (&["show", "open", "read", "view"], "to print a kept recording's report", "systoll report REC"),
    (&["flamegraph", "script"], "for other tools' formats", "systoll export --format FORMAT REC"),
    (&["man", "manual", "docs", "usage"], "for the manual", "systoll help, or systoll help COMMAND"),
    (&["test"], "to hold a program to its calls", "systoll check -- CMD"),
    (&["status", "info"], "to see what can be watched here", "systoll doctor"),
];

/// What is said of arguments that could not be read.
pub(crate) enum Instead {
    /// What was asked for.
    Answer(String),
    /// What can be typed in their place.
    Hint(String),
}

/// The same, where something is known to have been meant.
pub(crate) fn instead(error: &clap::Error) -> Option<Instead> {
    let of = |kind| match error.get(kind) {
        Some(ContextValue::String(word)) => Some(word.as_str()),
        _ => None,
    };
    match error.kind() {
        ErrorKind::InvalidSubcommand => {
            let word = of(ContextKind::InvalidSubcommand)?;
            if word == "version" {
                return Some(Instead::Answer(format!("systoll {}\n", env!("CARGO_PKG_VERSION"))));
            }
            told(word, &hints(word, is_program(word))).map(Instead::Hint)
        }
        ErrorKind::UnknownArgument => {
            let option = of(ContextKind::InvalidArg)?;
            // Before any command.
            let first = std::env::args().nth(1)?;
            let name = option.trim_start_matches('-').split('=').next()?;
            if first.split('=').next() != option.split('=').next() {
                return None;
            }
            let text = match name {
                "p" | "pid" | "attach" => told(option, &hints("attach", false))?,
                _ if is_of_run(name) => {
                    format!("systoll: {option} goes with a command\n         systoll run {option} … -- CMD\n")
                }
                _ => return None,
            };
            Some(Instead::Hint(text))
        }
        _ => None,
    }
}

/// What can be typed, each after what it is for.
fn hints(word: &str, is_program: bool) -> Vec<(String, String)> {
    let mut hints = Vec::new();
    if let Some((_, what, command)) = WORDS.iter().find(|(words, ..)| words.contains(&word)) {
        hints.push(((*what).to_owned(), (*command).to_owned()));
    }
    if Catalogue::builtin().get(word).is_some() {
        hints.push(("it is a cause".to_owned(), format!("systoll explain {word}")));
    }
    if is_program {
        let typed = systoll_present::shell_words(&[word]);
        let what =
            if hints.is_empty() { "to watch a program".to_owned() } else { format!("to watch the program {typed}") };
        hints.push((what, format!("systoll run -- {typed} …")));
    }
    hints
}

fn told(word: &str, hints: &[(String, String)]) -> Option<String> {
    let lines: String = hints.iter().map(|(what, command)| format!("         {what}: {command}\n")).collect();
    let typed = systoll_present::shell_words(&[word]);
    (!hints.is_empty()).then(|| format!("systoll: there is no command {typed}\n{lines}"))
}

/// Whether a word is a program: `systoll ./app`, `systoll python3`.
fn is_program(word: &str) -> bool {
    let on_path =
        || std::env::var_os("PATH").is_some_and(|p| std::env::split_paths(&p).any(|d| d.join(word).is_file()));
    word.contains('/') || on_path()
}

/// Whether `systoll run` has an option of that name.
fn is_of_run(name: &str) -> bool {
    let mut all = crate::cli::command();
    let Some(run) = all.find_subcommand_mut("run") else { return false };
    let mut letters = name.chars();
    let letter = letters.next().filter(|_| letters.next().is_none());
    run.get_arguments().any(|arg| arg.get_long() == Some(name) || letter.is_some() && arg.get_short() == letter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_tools_words_lead_to_ours() {
        let first = |word: &str, is_program| told(word, &hints(word, is_program)).unwrap_or_default();
        assert_eq!(
            first("record", false),
            "systoll: there is no command record\n         to keep a recording: systoll run --save REC -- CMD\n"
        );
        assert_eq!(
            first("stat", true),
            "systoll: there is no command stat\n         for strace's table of counts: systoll run -c -- CMD\n\
             \x20        to watch the program stat: systoll run -- stat …\n"
        );
        assert!(first("tz-unset", false).ends_with("it is a cause: systoll explain tz-unset\n"));
        assert!(first("./app", true).ends_with("to watch a program: systoll run -- ./app …\n"));
        assert_eq!(first("frobnicate", false), "");
        assert!(is_of_run("c") && is_of_run("longer") && !is_of_run("p") && !is_of_run("frobnicate"));
    }

    #[test]
    fn each_command_that_is_named_can_be_typed() {
        let all = crate::cli::command();
        for (words, _, command) in WORDS {
            let named = command.split_whitespace().nth(1).unwrap().trim_end_matches(',');
            assert!(named == "help" || all.get_subcommands().any(|c| c.get_name() == named), "{command}");
            assert!(words.iter().all(|word| all.get_subcommands().all(|c| c.get_name() != *word)), "{words:?}");
        }
    }
}
