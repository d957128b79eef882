//! Suggests what the user meant: by an unknown command (another tool's word, a cause, a program, an
//! option without its command) or by an unknown program (a whole line, a shell's word, a variable).

use crate::{environment, strace_options};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use systoll_judge::Catalogue;

/// Other tools' words for one of our commands.
struct Words {
    typed: &'static [&'static str],
    /// The purpose of the command, as a hint says it.
    purpose: &'static str,
    command: &'static str,
}

const fn words(typed: &'static [&'static str], purpose: &'static str, command: &'static str) -> Words {
    Words { typed, purpose, command }
}

const WORDS: &[Words] = &[
    words(&["record", "save", "collect", "capture"], "to keep a recording", "systoll run --save REC -- CMD"),
    words(&["stat", "stats", "count", "summary"], "for strace's table of counts", "systoll run -c -- CMD"),
    words(
        &["trace", "watch", "strace", "profile", "prof", "analyze", "analyse", "find", "start", "exec", "time"],
        "to watch a program",
        "systoll run -- CMD",
    ),
    words(&["pid"], "to watch a process that runs", "systoll attach PID"),
    words(&["compare", "delta"], "to compare two recordings, or commands", "systoll diff OLD NEW"),
    words(&["bench", "benchmark"], "to time two commands", "systoll prove --vs 'NEW CMD' -- CMD"),
    words(&["fix", "apply", "patch"], "to keep a cure", "systoll cure --print CAUSE"),
    words(&["list", "ls", "why"], "for the causes that it knows", "systoll causes"),
    words(&["show", "open", "read", "view"], "to print a kept recording's report", "systoll report REC"),
    words(&["flamegraph", "script"], "for other tools' formats", "systoll export --format FORMAT REC"),
    words(&["man", "manual", "docs", "usage"], "for the manual", "systoll help, or systoll help COMMAND"),
    words(&["test"], "to hold a program to its calls", "systoll check -- CMD"),
    words(
        &["update", "upgrade", "self-update", "install"],
        "systoll does not update itself (docs/use/install.md); the version that this is",
        "systoll --version",
    ),
    words(&["status", "info"], "to see what can be watched here", "systoll doctor"),
];

/// The output in place of an error about arguments.
pub(crate) enum Instead {
    /// The answer to what the user asked.
    Answer(String),
    /// A hint on what to type in its place.
    Hint(String),
}

/// Returns the output for an error whose intention is known.
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
            let first = std::env::args_os().nth(1)?;
            if let Some(command) = first.to_str().filter(|word| matches!(*word, "run" | "report" | "import")) {
                return strace_options::instead(command, option).map(Instead::Hint);
            }
            // The option stands before any command.
            let name = option.trim_start_matches('-').split('=').next()?;
            if first.to_string_lossy().split('=').next() != option.split('=').next() {
                return None;
            }
            let text = match name {
                "p" | "pid" | "attach" => told(option, &hints("pid", false))?,
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

/// A command to type, and its purpose.
struct Hint {
    purpose: String,
    command: String,
}

fn hints(word: &str, is_program: bool) -> Vec<Hint> {
    let mut hints = Vec::new();
    if let Some(known) = WORDS.iter().find(|known| known.typed.contains(&word)) {
        hints.push(Hint { purpose: known.purpose.to_owned(), command: known.command.to_owned() });
    }
    if Catalogue::builtin().get(word).is_some() {
        hints.push(Hint { purpose: "it is a cause".to_owned(), command: format!("systoll explain {word}") });
    }
    if is_program {
        let typed = systoll_present::shell_words(&[word]);
        let purpose =
            if hints.is_empty() { "to watch a program".to_owned() } else { format!("to watch the program {typed}") };
        hints.push(Hint { purpose, command: format!("systoll run -- {typed} …") });
    }
    hints
}

fn told(word: &str, hints: &[Hint]) -> Option<String> {
    let lines: String = hints.iter().map(|hint| format!("         {}: {}\n", hint.purpose, hint.command)).collect();
    let typed = systoll_present::shell_words(&[word]);
    (!hints.is_empty()).then(|| format!("systoll: there is no command {typed}\n{lines}"))
}

/// Returns a hint if `program` was to be run and does not exist.
pub(crate) fn program(program: &str) -> Option<String> {
    let typed = systoll_present::shell_words(&[program]);
    let first = program.split_whitespace().next()?;
    let is_variable = |word: &str| word.split_once('=').is_some_and(|(name, _)| is_name(name));
    if first.len() < program.len() {
        let plain = !program.contains(['|', '&', ';', '<', '>', '$', '`', '*', '(', '\'', '"', '\\']);
        let known = is_program(first) && !SHELL_WORDS.contains(&first);
        let line = if plain && known { program.to_owned() } else { format!("sh -c {typed}") };
        let why =
            if plain && known { "without quotes it is a program and its arguments" } else { "a shell can run it" };
        return Some(format!("{why}: systoll run -- {line}"));
    }
    if is_variable(program) {
        return Some(format!("to set a variable: systoll run -E {typed} -- CMD"));
    }
    let own = SHELL_WORDS.contains(&program);
    own.then(|| format!("{program} is a shell's own word, no program: systoll run -- sh -c '{program} …'"))
}

/// Returns true for a valid name of a shell's variable.
fn is_name(text: &str) -> bool {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.chars().all(word) && text.chars().next().is_some_and(|c| !c.is_ascii_digit())
}

/// Words that shells handle themselves: POSIX's special and intrinsic utilities, its reserved
/// words, and bash's additions.
const SHELL_WORDS: &[&str] = &[
    ".", ":", "alias", "bg", "break", "builtin", "case", "cd", "command", "continue", "declare", "do", "eval", "exec",
    "exit", "export", "fg", "for", "function", "hash", "if", "jobs", "let", "local", "pushd", "popd", "read",
    "readonly", "return", "set", "shift", "shopt", "source", "times", "trap", "type", "ulimit", "umask", "unalias",
    "unset", "until", "wait", "while",
];

/// Returns true if the word names a program: `systoll ./app`, `systoll python3`.
fn is_program(word: &str) -> bool {
    word.contains('/') || environment::is_on_path(word)
}

/// Returns true if `systoll run` has an option of that name.
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
    fn files_that_are_not_programs_come_with_hints() {
        let hint = |word: &str| program(word).unwrap_or_default();
        assert_eq!(hint("ls -la"), "without quotes it is a program and its arguments: systoll run -- ls -la");
        assert_eq!(hint("ls | wc -l"), "a shell can run it: systoll run -- sh -c 'ls | wc -l'");
        assert_eq!(hint("cd /tmp"), "a shell can run it: systoll run -- sh -c 'cd /tmp'");
        assert!(hint("cd").contains("sh -c 'cd …'") && hint("ulimit").contains("a shell's own word"));
        assert_eq!(hint("FOO=1"), "to set a variable: systoll run -E FOO=1 -- CMD");
        assert_eq!((hint("no-such-program"), hint("1=2"), hint("")), Default::default());
    }

    #[test]
    fn each_command_that_is_named_can_be_typed() {
        let all = crate::cli::command();
        for Words { typed, command, .. } in WORDS {
            let named = command.split_whitespace().nth(1).unwrap().trim_end_matches(',');
            assert!(
                named == "help" || named == "--version" || all.get_subcommands().any(|c| c.get_name() == named),
                "{command}"
            );
            assert!(typed.iter().all(|word| all.get_subcommands().all(|c| c.get_name() != *word)), "{typed:?}");
        }
    }
}
