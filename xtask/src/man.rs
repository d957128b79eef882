//! Man pages from the one definition of the command line: what help prints below the options becomes sections of
//! their own, its examples as they are typed.

use anyhow::{Context, Result};
use clap_mangen::Man;
use std::io::Write;
use std::path::Path;
use systoll::cli::Definition as Command;

/// The exit codes of commands whose help names no others.
const EXIT: &str = "0  it was done      125  systoll itself failed: wrong arguments, a file it can't read or write
130, 143  interrupted by Ctrl-C, SIGTERM: what was known by then is told, and no verdict given";

const ENVIRONMENT: &[(&str, &str)] = &[
    ("NO_COLOR", "Set to anything, no colours are used; TERM=dumb does the same. --color overrides both."),
    ("COLUMNS", "The width of lines where no terminal tells one."),
    (
        "LC_ALL, LC_CTYPE, LANG",
        "The first that is set names the locale. Where it is no UTF-8 one, reports are in ASCII: us for \u{b5}s, x for \u{d7}.",
    ),
    ("SYSTOLL_DEBUG_PATH", "Folders with debug files, with a colon between; looked into before /usr/lib/debug."),
    ("DEBUGINFOD_URLS", "Where it is set, debuginfod-find fetches debug files that are nowhere here."),
    ("XDG_CACHE_HOME", "The folder of caches; ~/.cache where it is not set."),
    ("TMPDIR", "Where demo, bisect and prove put what is gone when they end."),
    ("CC", "The C compiler that builds the programs of systoll demo."),
    ("BROWSER", "What --open opens a page with; xdg-open where it is not set."),
];

const FILES: &[(&str, &str)] = &[
    (
        "~/.cache/systoll",
        "What systoll has learnt of programs' files: where their system calls lie. 64 MiB at most; it may be removed at any time.",
    ),
    ("systoll.toml", "The budget of systoll check, in the folder where it is started."),
];

/// Writes systoll.1 and one page a command into `dir`.
pub(crate) fn write(dir: &Path) -> Result<()> {
    // `systoll help` needs no page of its own: each command's page is what it prints.
    let mut all = systoll::cli::command().disable_help_subcommand(true);
    all.build();
    let commands: Vec<Command> = all.get_subcommands().cloned().collect();
    for command in commands.iter().chain([&all]) {
        let name = command.get_display_name().unwrap_or_else(|| command.get_name()).to_owned();
        let path = dir.join(format!("{name}.1"));
        std::fs::write(&path, page(command)?).with_context(|| format!("can't write {}", path.display()))?;
    }
    Ok(())
}

fn page(command: &Command) -> Result<Vec<u8>> {
    let below = command.get_after_long_help().or(command.get_after_help()).map(ToString::to_string).unwrap_or_default();
    let below = Below::read(&below);
    let man = Man::new(command.clone());
    let mut out = Vec::new();
    man.render_title(&mut out)?;
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
    entries(&mut out, "ENVIRONMENT", ENVIRONMENT)?;
    entries(&mut out, "FILES", FILES)?;
    let others = if command.has_subcommands() { "systoll-run(1), systoll-prove(1), strace(1)" } else { "systoll(1)" };
    writeln!(out, ".SH \"SEE ALSO\"\n{others}")?;
    Ok(out)
}

/// What help prints below the options.
#[derive(Default)]
struct Below {
    examples: String,
    exit: String,
}

impl Below {
    /// Its parts begin with a line that is not indented.
    fn read(text: &str) -> Self {
        let mut below = Self::default();
        let mut part = &mut below.examples;
        for line in text.lines() {
            let rest = match line.split_once(':') {
                Some(("Examples", rest)) => {
                    part = &mut below.examples;
                    rest
                }
                Some((head, rest)) if head.starts_with("Exit code") => {
                    part = &mut below.exit;
                    rest
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

/// A section whose lines are kept as they are.
fn as_typed(out: &mut Vec<u8>, name: &str, text: &str) -> Result<()> {
    if !text.is_empty() {
        writeln!(out, ".SH \"{name}\"\n.nf")?;
        text.lines().try_for_each(|line| writeln!(out, "{}", escaped(line.strip_prefix(' ').unwrap_or(line))))?;
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

/// For troff: no request, no escape, and dashes that can be pasted.
fn escaped(text: &str) -> String {
    let text = text.replace('\\', "\\e").replace('-', "\\-");
    if text.starts_with(['.', '\'']) { format!("\\&{text}") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(name: &str) -> String {
        let mut all = systoll::cli::command();
        all.build();
        let command = if name.is_empty() { &all } else { all.find_subcommand(name).unwrap() };
        String::from_utf8(page(command).unwrap()).unwrap()
    }

    #[test]
    fn every_page_has_what_readers_look_for() {
        let mut all = systoll::cli::command().disable_help_subcommand(true);
        all.build();
        for command in all.get_subcommands().map(Command::get_name).chain([""]) {
            let page = of(command);
            for section in ["EXIT STATUS", "ENVIRONMENT", "FILES", "SEE ALSO"] {
                assert!(page.contains(&format!(".SH \"{section}\"")), "{command} lacks {section}");
            }
            assert!(command == "help" || page.contains(".SH \"EXAMPLES\"\n.nf\n"), "{command} has no examples");
        }
    }

    #[test]
    fn examples_are_kept_as_they_are_typed() {
        let run = of("run");
        assert!(run.contains("\nsystoll run \\-o report.txt \\-\\- make        the report goes to a file\n"), "{run}");
        assert!(run.contains("\n127") || run.contains("127  CMD was not found"), "{run}");
        assert!(!run.contains("EXTRA"), "{run}");
    }

    #[test]
    fn parts_are_told_apart() {
        let below = Below::read("Examples:\n  a: b   c\n   d\n\nExit code: 0 well\nExit codes:\n  1  bad\n");
        assert_eq!((below.examples.as_str(), below.exit.as_str()), ("a: b   c\n d\n", " 0 well\n1  bad\n"));
    }
}
