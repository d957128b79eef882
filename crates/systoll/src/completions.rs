//! Writes `systoll completions SHELL`: scripts that complete commands, flags, causes, stories,
//! system calls and fleets' questions.

use crate::cli::{CompletionsArgs, command};
use crate::failure::Failure;
use crate::output::Output;
use clap::builder::PossibleValuesParser;
use clap::{Arg, Command};
use clap_complete::{Shell, generate};
use std::io::Write;
use std::process::ExitCode;
use systoll_fleet::QUESTIONS;
use systoll_judge::Catalogue;
use systoll_model::{Class, Elision, signatures};

/// Writes the completion script of any supported shell.
pub fn write_for(shell: Shell, w: &mut dyn Write) {
    let mut bytes = Vec::new();
    generate(shell, &mut completed(), "systoll", &mut bytes);
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let text = match shell {
        // clap_complete does not complete positional words there.
        Shell::Fish => text + &for_fish(),
        Shell::Bash => text + &for_bash(),
        Shell::Zsh => for_zsh(&text),
        _ => text,
    };
    // A closed pipe has no reader.
    let _ = w.write_all(text.as_bytes());
}

/// Returns the flags of `fleet` that take a value: the word after one of them is no folder.
fn fleets_flags_with_values() -> Vec<String> {
    let all = command();
    let fleet = all.find_subcommand("fleet").into_iter().flat_map(Command::get_arguments);
    let names = |arg: &Arg| {
        let long = arg.get_long().map(|long| format!("--{long}"));
        long.into_iter().chain(arg.get_short().map(|short| format!("-{short}"))).collect::<Vec<_>>()
    };
    fleet.filter(|arg| arg.get_action().takes_values()).flat_map(names).collect()
}

/// Quotes a text as one word of bash and zsh.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Adds the completion of `fleet`'s words to zsh's script: clap only knows that they are paths.
fn for_zsh(text: &str) -> String {
    let questions: Vec<String> = QUESTIONS.iter().map(|q| quoted(&format!("{}:{}", q.name, q.about()))).collect();
    let own = format!(
        "
# Folders, and behind a folder a question.
_systoll_fleet_words() {{
    local i asks=0 ret=1
    local -a questions=({questions})
    for ((i = 2; i < CURRENT; i++)); do
        case $words[i] in
            ({valued}) ((i++)) ;;
            (--show-sql) asks=1 ;;
            (-*) ;;
            (*) asks=1 ;;
        esac
    done
    ((asks)) && _describe -t questions question questions && ret=0
    _files -/ && ret=0
    return ret
}}
",
        questions = questions.join(" "),
        valued = fleets_flags_with_values().join("|"),
    );
    let mut whole = String::with_capacity(text.len() + own.len());
    for (nth, line) in text.lines().enumerate() {
        match line.strip_prefix("'*::words -- ") {
            // With one colon, zsh would complete flags after a folder too.
            Some(rest) => whole += &format!("'*:words -- {}", rest.replace(":_files'", ":_systoll_fleet_words'")),
            None => whole += line,
        }
        whole.push('\n');
        if nth == 0 {
            // Our functions come after the line by which zsh recognises the file.
            whole += &own;
        }
    }
    whole
}

/// Returns our own part of bash's script: folders and questions of `fleet`, and programs.
fn for_bash() -> String {
    let questions: Vec<&str> = QUESTIONS.iter().map(|q| q.name).collect();
    format!(
        r#"
# Folders, and behind a folder a question. 1 where the word is none of both.
_systoll_fleet_words() {{
    local i asks=0 word
    [[ $2 == -* ]] && return 1
    for ((i = 2; i < COMP_CWORD; i++)); do
        case ${{COMP_WORDS[i]}} in
            {valued})
                ((i++))
                [[ ${{COMP_WORDS[i]}} == = ]] && ((i++))
                ;;
            --show-sql) asks=1 ;;
            -*) ;;
            *) asks=1 ;;
        esac
    done
    ((i == COMP_CWORD)) || return 1
    COMPREPLY=()
    compopt -o filenames 2> /dev/null
    while IFS= read -r word; do COMPREPLY+=("$word"); done < <(
        ((asks)) && compgen -W "{questions}" -- "$2"
        compgen -d -- "$2"
    )
}}
{PROGRAMS_FOR_BASH}"#,
        valued = fleets_flags_with_values().join("|"),
        questions = questions.join(" "),
    )
}

/// Completes the program after `--` and its arguments, if bash-completion is installed.
const PROGRAMS_FOR_BASH: &str = r#"
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
    [[ ${COMP_WORDS[1]} == fleet ]] && _systoll_fleet_words "$@" && return
    _systoll "$@"
}
complete -F _systoll_or_program -o bashdefault -o default systoll
"#;

/// Returns our own part of fish's script: causes, stories, questions and programs.
fn for_fish() -> String {
    let causes: Vec<String> = Catalogue::builtin().iter().map(|cause| cause.id.to_string()).collect();
    let stories: Vec<&str> = systoll_cure::stories().iter().map(|story| story.id).collect();
    let line = |commands: &str, words: &str| {
        format!("complete -c systoll -n \"__fish_seen_subcommand_from {commands}\" -f -a \"{words}\"\n")
    };
    line("explain cure", &causes.join(" "))
        + &line("demo", &stories.join(" "))
        + &line("run prove check diff top", "(__fish_complete_command)")
        + &questions_for_fish()
}

/// Returns fish's lines for questions, which follow a folder. Fish completes folders itself.
fn questions_for_fish() -> String {
    let after_folder = format!(
        r"function __systoll_fleet_asks
    set -l is_value 0
    for word in (commandline -opc)[3..-1]
        if test $is_value = 1
            set is_value 0
        else if contains -- $word {}
            set is_value 1
        else if test $word = --show-sql; or not string match -q -- '-*' $word
            return 0
        end
    end
    return 1
end
",
        fleets_flags_with_values().join(" ")
    );
    let line = |q: &systoll_fleet::Question| {
        let about = q.about().replace('\\', r"\\").replace('\'', r"\'");
        format!(
            "complete -c systoll -n \"__fish_systoll_using_subcommand fleet; and __systoll_fleet_asks\" -a {} -d '{about}'\n",
            q.name
        )
    };
    after_folder + &QUESTIONS.iter().map(line).collect::<String>()
}

pub(crate) fn write(args: &CompletionsArgs) -> Result<ExitCode, Failure> {
    let mut output = Output::open(None, Output::Stdout)?;
    let mut text = Vec::new();
    write_for(args.shell, &mut text);
    output.write("completions", |w| w.write_all(&text))?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the definition with the known names: causes, stories, system calls. The parser accepts
/// more (a user's own causes, `ID:N`, sets with commas); therefore only completions use this.
fn completed() -> Command {
    // clap needs static names; this process ends after the text.
    let causes: Vec<&'static str> = Catalogue::builtin().iter().map(|cause| &*cause.id.to_string().leak()).collect();
    let stories: Vec<&'static str> = systoll_cure::stories().iter().map(|story| story.id).collect();
    let of_tables: Vec<&'static str> = signatures().iter().filter_map(|signature| signature.sysno.name()).collect();
    let calls: Vec<&'static str> = Class::all().map(Class::name).chain(of_tables.iter().copied()).collect();
    let with = |command: Command, of: &'static str, arg: &'static str, values: &[&'static str]| {
        let values = PossibleValuesParser::new(values.to_vec());
        command.mut_subcommand(of, |c| c.mut_arg(arg, |a: Arg| a.value_parser(values)))
    };
    let command = with(command(), "explain", "cause", &causes);
    let command = with(command, "cure", "cause", &causes);
    // mut_arg moves an argument to the end, and the program must follow its causes.
    let command = command.mut_subcommand("cure", |c| c.mut_arg("command", |program| program));
    let command = with(command, "prove", "cure", &causes);
    let command = with(command, "prove", "per", &of_tables);
    let command = with(command, "prove", "elide", &Elision::ALL.map(Elision::name));
    let command = with(command, "demo", "story", &stories);
    let command = with(command, "fleet", "cause", &causes);
    let command = with(command, "run", "trace", &calls);
    let command = with(command, "attach", "trace", &calls);
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
            for word in ["tz-unset", "localtime", "newfstatat", "%network", "--save", "odd-hosts", "_systoll_fleet_"] {
                let plain = word.trim_start_matches('-');
                assert!(text.contains(plain), "{shell}: {word}");
            }
            // The function is defined and called.
            assert!(text.matches("_systoll_fleet_").count() > 1, "{shell}");
        }
    }
}
