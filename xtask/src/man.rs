//! Writes man pages from the one definition of the command line. The text below the options in
//! `--help` becomes sections, with its examples as they are typed.

use anyhow::{Context, Result};
use clap_mangen::Man;
use std::io::Write;
use std::path::Path;
use systoll::cli::Definition as Command;
use systoll::environment::VARIABLES;

/// Exit codes of commands whose help does not list them.
const EXIT: &str = "0  it was done      125  systoll itself failed: wrong arguments, a file it can't read or write
130, 143  interrupted by Ctrl-C, SIGTERM: what was known by then is told, and no verdict given";

const FILES: &[(&str, &str)] = &[
    (
        "~/.cache/systoll",
        "What systoll has learnt of programs' files: where their system calls lie. 64 MiB at most; it may be removed at any time.",
    ),
    ("systoll.toml", "The budget of systoll check, in the folder where it is started."),
];

/// Length of a line of text, in bytes, at most.
const WIDTH: usize = 80;

/// Returns the date on the pages: that of the commit from which they are made; empty if there is
/// none.
fn day() -> String {
    let git = std::process::Command::new("git").args(["log", "-1", "--format=%cs"]).output();
    let told = git.ok().and_then(|output| String::from_utf8(output.stdout).ok());
    let is_day = |day: &str| day.len() == 10 && day.bytes().all(|b| b.is_ascii_digit() || b == b'-');
    told.map(|day| day.trim().to_owned()).filter(|day| is_day(day)).unwrap_or_default()
}

/// Writes systoll.1 and one page for each command into `dir`.
pub(crate) fn write(dir: &Path) -> Result<()> {
    // `systoll help` needs no page, because each command's page has its output.
    let mut all = systoll::cli::command().disable_help_subcommand(true);
    all.build();
    let day = day();
    for command in with_commands(&all) {
        let name = command.get_display_name().unwrap_or_else(|| command.get_name()).to_owned();
        let path = dir.join(format!("{name}.1"));
        std::fs::write(&path, page(command, &day)?).with_context(|| format!("can't write {}", path.display()))?;
    }
    Ok(())
}

/// Returns a command and all below it.
fn with_commands(command: &Command) -> Vec<&Command> {
    std::iter::once(command).chain(command.get_subcommands().flat_map(with_commands)).collect()
}

fn page(command: &Command, day: &str) -> Result<Vec<u8>> {
    let below = command.get_after_long_help().or(command.get_after_help()).map(ToString::to_string).unwrap_or_default();
    let below = Below::read(&below);
    let man = Man::new(command.clone());
    let mut out = Vec::new();
    let title = command.get_display_name().unwrap_or_else(|| command.get_name()).to_uppercase();
    writeln!(out, ".TH {title} 1 \"{day}\" \"systoll {}\" \"systoll manual\"", env!("CARGO_PKG_VERSION"))?;
    man.render_name_section(&mut out)?;
    man.render_synopsis_section(&mut out)?;
    man.render_description_section(&mut out)?;
    if command.get_arguments().any(|arg| !arg.is_hide_set()) {
        man.render_options_section(&mut out)?;
    }
    if command.has_subcommands() {
        man.render_subcommands_section(&mut out)?;
    }
    as_typed(&mut out, "EXAMPLES", &below.examples)?;
    as_typed(&mut out, "EXIT STATUS", if below.exit.is_empty() { EXIT } else { &below.exit })?;
    let variables: Vec<(&str, &str)> = VARIABLES.iter().map(|v| (v.names, v.about)).collect();
    entries(&mut out, "ENVIRONMENT", &variables)?;
    entries(&mut out, "FILES", FILES)?;
    let others =
        if command.get_name() == "systoll" { "systoll-run(1), systoll-prove(1), strace(1)" } else { "systoll(1)" };
    writeln!(out, ".SH \"SEE ALSO\"\n{others}")?;
    Ok(tidied(&String::from_utf8(out)?).into_bytes())
}

/// Formats a page as mandoc and groff want it: ASCII, no blank lines, no blanks at a line's end,
/// single breaks, and filled lines of at most 80 bytes.
fn tidied(text: &str) -> String {
    let (mut out, mut filled): (Vec<String>, bool) = (Vec::new(), true);
    for line in text.lines().map(str::trim_end).filter(|line| !line.is_empty()) {
        match line {
            ".nf" => filled = false,
            ".fi" => filled = true,
            _ => {}
        }
        let follows_break = line == ".br" && out.last().is_some_and(|last| last == ".br" || last.starts_with(".RE"));
        if follows_break {
            continue;
        }
        if line.starts_with(".RS") && out.last().is_some_and(|last| last == ".br") {
            out.pop();
        }
        let line: String = line.chars().map(in_ascii).collect();
        if !filled || line.starts_with(['.', '\'']) {
            out.push(line);
            continue;
        }
        let mut rest = line.as_str();
        while rest.len() > WIDTH
            && let Some(at) = rest.get(..WIDTH).and_then(|head| head.rfind(' ')).or_else(|| rest.find(' '))
        {
            out.push(rest[..at].to_owned());
            // troff would read a line that starts with a dot as a request.
            rest = &rest[at + 1..];
            if rest.starts_with(['.', '\'']) {
                out.push("\\&".to_owned() + rest);
                rest = "";
            }
        }
        if !rest.is_empty() {
            out.push(rest.to_owned());
        }
    }
    out.join("\n") + "\n"
}

/// Writes a character in troff's ASCII form.
fn in_ascii(c: char) -> String {
    if c.is_ascii() { c.to_string() } else { format!("\\[u{:04X}]", u32::from(c)) }
}

/// The text that help prints below the options.
#[derive(Default)]
struct Below {
    examples: String,
    exit: String,
}

impl Below {
    /// Splits the text into its parts, which start with a line that is not indented.
    fn read(text: &str) -> Self {
        let mut below = Self::default();
        let mut part = &mut below.examples;
        for line in text.lines() {
            let rest = match line.split_once(':') {
                Some(("Examples", rest)) => {
                    part = &mut below.examples;
                    rest.trim_start()
                }
                Some((head, rest)) if head.starts_with("Exit code") => {
                    part = &mut below.exit;
                    rest.trim_start()
                }
                _ => line.strip_prefix("  ").unwrap_or(line),
            };
            if !rest.trim().is_empty() {
                part.push_str(rest.trim_end());
                part.push('\n');
            }
        }
        below
    }
}

/// Writes a section whose lines are not filled.
fn as_typed(out: &mut Vec<u8>, name: &str, text: &str) -> Result<()> {
    if !text.is_empty() {
        writeln!(out, ".SH \"{name}\"\n.nf")?;
        text.lines().try_for_each(|line| writeln!(out, "{}", escaped(line)))?;
        writeln!(out, ".fi")?;
    }
    Ok(())
}

fn entries(out: &mut Vec<u8>, name: &str, all: &[(&str, &str)]) -> Result<()> {
    writeln!(out, ".SH \"{name}\"")?;
    for (what, text) in all {
        writeln!(out, ".TP\n\\fB{}\\fR\n{}", escaped(what), escaped(text))?;
    }
    Ok(())
}

/// Escapes text for troff: no requests, no escapes, and dashes that can be pasted.
fn escaped(text: &str) -> String {
    let text = text.replace('\\', "\\e").replace('-', "\\-");
    if text.starts_with(['.', '\'']) { format!("\\&{text}") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page_of(name: &str) -> String {
        let mut all = systoll::cli::command();
        all.build();
        let command = if name.is_empty() { &all } else { all.find_subcommand(name).unwrap() };
        String::from_utf8(page(command, "2026-01-31").unwrap()).unwrap()
    }

    #[test]
    fn every_page_has_the_usual_sections() {
        let mut all = systoll::cli::command().disable_help_subcommand(true);
        all.build();
        for command in all.get_subcommands().map(Command::get_name).chain([""]) {
            let page = page_of(command);
            for section in ["EXIT STATUS", "ENVIRONMENT", "FILES", "SEE ALSO"] {
                assert!(page.contains(&format!(".SH \"{section}\"")), "{command} lacks {section}");
            }
            assert!(command == "help" || page.contains(".SH \"EXAMPLES\"\n.nf\n"), "{command} has no examples");
        }
    }

    #[test]
    fn examples_are_kept_as_they_are_typed() {
        let run = page_of("run");
        assert!(run.contains("\nsystoll run \\-o report.txt \\-\\- make        the report goes to a file\n"), "{run}");
        assert!(run.contains("\n127") || run.contains("127  CMD was not found"), "{run}");
        assert!(!run.contains("EXTRA"), "{run}");
    }

    #[test]
    fn pages_pass_the_formatters() {
        let mut all = systoll::cli::command().disable_help_subcommand(true);
        all.build();
        let dir = tempfile::tempdir().unwrap();
        write(dir.path()).unwrap();
        let look = std::fs::read_to_string(dir.path().join("systoll-agent-look.1")).unwrap();
        assert!(look.contains("\nsudo systoll agent look nginx \\-\\-for 30s"), "{look}");
        for command in all.get_subcommands().map(Command::get_name).chain([""]) {
            let page = page_of(command);
            let title =
                if command.is_empty() { "SYSTOLL".to_owned() } else { format!("SYSTOLL-{}", command.to_uppercase()) };
            assert!(page.contains(&format!(".TH {title} 1 \"2026-01-31\" \"systoll ")), "{page}");
            assert!(
                page.is_ascii() && page.lines().all(|line| line.trim_end() == line && !line.is_empty()),
                "{command}"
            );
        }
        // mandoc, the strictest formatter, must give no warning, if it is installed.
        let mut pages: Vec<_> = std::fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().path()).collect();
        pages.sort();
        let Ok(lint) = std::process::Command::new("mandoc").args(["-Tlint", "-Wwarning"]).args(&pages).output() else {
            return;
        };
        assert!(lint.stdout.is_empty(), "{}", String::from_utf8_lossy(&lint.stdout));
    }

    #[test]
    fn long_lines_are_filled_and_others_kept() {
        let long = format!("{} .b", "a".repeat(79));
        assert_eq!(
            tidied(&format!("x \n\n.br\n.br\ny\u{b5}\n{long}")),
            format!("x\n.br\ny\\[u00B5]\n{}\n\\&.b\n", "a".repeat(79))
        );
        let kept = format!(".nf\n{}\n.fi\n", "a ".repeat(60).trim_end());
        assert_eq!(tidied(&kept), kept);
    }

    #[test]
    fn help_is_split_into_its_parts() {
        let below = Below::read("Examples:\n  a: b   c\n   d\n\nExit code: 0 well\nExit codes:\n  1  bad\n");
        assert_eq!((below.examples.as_str(), below.exit.as_str()), ("a: b   c\n d\n", "0 well\n1  bad\n"));
    }
}
