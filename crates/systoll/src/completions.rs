//! `systoll completions SHELL`: what completes commands, flags, causes, stories and system calls.

use crate::cli::{CompletionsArgs, command};
use crate::failure::Failure;
use crate::output::Output;
use clap::builder::PossibleValuesParser;
use clap::{Arg, Command};
use clap_complete::{Shell, generate};
use std::io::Write;
use std::process::ExitCode;
use systoll_judge::Catalogue;
use systoll_model::{Class, Elision, signatures};

/// Writes the completions of a shell, whichever.
pub fn write_for(shell: Shell, w: &mut dyn Write) {
    generate(shell, &mut completed(), "systoll", &mut &mut *w);
    // A pipe that is closed has no reader.
    let _ = match shell {
        // clap_complete completes no words that stand without a flag there.
        Shell::Fish => w.write_all(for_fish().as_bytes()),
        Shell::Bash => w.write_all(FOR_BASH.as_bytes()),
        _ => Ok(()),
    };
}

/// Bash's own lines: what stands after `--` is a program with its arguments, which bash-completion completes where it
/// is there.
const FOR_BASH: &str = r#"
_systoll_or_program() {
    local i
    for ((i = 1; i < COMP_CWORD; i++)); do
        [[ ${COMP_WORDS[i]} == -- ]] || continue
        COMPREPLY=()
        if declare -F _command_offset > /dev/null; then
            _command_offset $((i + 1))
        elif ((COMP_CWORD == i + 1)); then
            COMPREPLY=($(compgen -c -- "${COMP_WORDS[COMP_CWORD]}"))
        fi
        return
    done
    _systoll "$@"
}
complete -F _systoll_or_program -o bashdefault -o default systoll
"#;

/// Fish's own lines for causes, stories and programs.
fn for_fish() -> String {
    let causes: Vec<String> = Catalogue::builtin().iter().map(|cause| cause.id.to_string()).collect();
    let stories: Vec<&str> = systoll_cure::stories().iter().map(|story| story.id).collect();
    let line = |commands: &str, words: &str| {
        format!("complete -c systoll -n \"__fish_seen_subcommand_from {commands}\" -f -a \"{words}\"\n")
    };
    line("explain cure", &causes.join(" "))
        + &line("demo", &stories.join(" "))
        + &line("run prove check diff", "(__fish_complete_command)")
}

pub(crate) fn write(args: &CompletionsArgs) -> Result<ExitCode, Failure> {
    let mut output = Output::open(None, Output::Stdout)?;
    let mut text = Vec::new();
    write_for(args.shell, &mut text);
    output.write("completions", |w| w.write_all(&text))?;
    Ok(ExitCode::SUCCESS)
}

/// The definition with the names that there are: causes, stories, system calls. The parser takes more (causes of
/// one's own, `ID:N`, sets between commas), so they are put in here alone.
fn completed() -> Command {
    // clap wants names that last; this process ends with the text.
    let causes: Vec<&'static str> = Catalogue::builtin().iter().map(|cause| &*cause.id.to_string().leak()).collect();
    let stories: Vec<&'static str> = systoll_cure::stories().iter().map(|story| story.id).collect();
    let of_tables = signatures().iter().filter_map(|signature| signature.sysno.name());
    let calls: Vec<&'static str> = Class::all().map(Class::name).chain(of_tables).collect();
    let with = |command: Command, of: &'static str, arg: &'static str, values: &[&'static str]| {
        let values = PossibleValuesParser::new(values.to_vec());
        command.mut_subcommand(of, |c| c.mut_arg(arg, |a: Arg| a.value_parser(values)))
    };
    let command = with(command(), "explain", "cause", &causes);
    let command = with(command, "cure", "cause", &causes);
    // What is changed comes last, and the program has to stand behind its causes.
    let command = command.mut_subcommand("cure", |c| c.mut_arg("command", |program| program));
    let command = with(command, "prove", "cure", &causes);
    let command = with(command, "prove", "elide", &Elision::ALL.map(Elision::name));
    let command = with(command, "demo", "story", &stories);
    let command = with(command, "run", "trace", &calls);
    with(command, "report", "trace", &calls)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shells_complete_causes_stories_and_calls() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let mut text = Vec::new();
            write_for(shell, &mut text);
            let text = String::from_utf8(text).unwrap();
            for word in ["tz-unset", "localtime", "newfstatat", "%network", "--save"] {
                let plain = word.trim_start_matches('-');
                assert!(text.contains(plain), "{shell}: {word}");
            }
        }
    }
}
