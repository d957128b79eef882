//! Checks and writes parts of this repository: `cargo run -p xtask` lists the commands.
//!
//! The tidy rules are also tests (`cargo test -p xtask`), so nobody has to remember them.
#![forbid(unsafe_code)]

mod ablate;
mod edges;
mod generate;
mod home;
mod licences;
mod links;
mod man;
mod modules;
mod picture;
mod promises;
mod repository;
mod rooms;
mod scaffold;
mod screenshot;
mod shell;
mod tidy;
mod words;

use anyhow::{Context, Result, bail};
use std::io::Write;

const USAGE: &str = "usage: cargo run -p xtask -- COMMAND
  tidy                        tell which rules of the repository's shape are broken
  new-cause ID LANGUAGE       write the files of a new cause, with a case in the language
  new-detector NAME           write the files of a new detector, with its tests
  man DIR                     write the man pages
  completions DIR             write the shells' completions
  reports WHAT                hold reports of recordings against the accepted ones, score the cases, run the text cases
  ablate [WORD]               switch each decision of the judge (whose place has WORD): which reports or tests change
  pictures SYSTOLL            draw all pictures of README and docs anew
  picture FILE COMMAND        draw standard input as the screen of a command";

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args.as_slice() {
        ["tidy"] => tidy(),
        ["man", dir] => generate::man(dir.as_ref()),
        ["completions", dir] => generate::completions(dir.as_ref()),
        ["reports", what @ ..] => {
            let same = systoll_reports::command::run(&repository::root(), what)?;
            if same {
                Ok(())
            } else {
                bail!("reports or scores are not those that were accepted, or text cases not as they expect")
            }
        }
        ["ablate"] => ablate::ablate(""),
        ["ablate", word] => ablate::ablate(word),
        ["pictures", systoll] => picture::write_all(systoll.as_ref()),
        ["picture", file, command] => {
            let output = std::io::read_to_string(std::io::stdin()).context("standard input is not text")?;
            picture::write(file.as_ref(), command, &output)
        }
        ["new-cause", id, language] => {
            scaffolded(&scaffold::new_cause(&repository::root(), id, language)?, "docs/develop/adding-a-cause.md")
        }
        ["new-detector", name] => {
            scaffolded(&scaffold::new_detector(&repository::root(), name)?, "docs/develop/adding-a-detector.md")
        }
        _ => bail!("{USAGE}"),
    }
}

/// Prints the files that were written, and the next step.
fn scaffolded(files: &[String], page: &str) -> Result<()> {
    let written = files.join("\n");
    let next = format!("fill in what says FILL IN (cargo test -p xtask tells what is left); {page} has the steps");
    writeln!(std::io::stdout(), "{written}\n{next}").context("stdout is closed")
}

fn tidy() -> Result<()> {
    let root = repository::root();
    let files = repository::files(&root)?;
    let metadata = repository::metadata(&root)?;
    let mut broken = edges::broken(&metadata)?;
    broken.extend(tidy::broken(&root, &files)?);
    broken.extend(links::broken(&root, &files)?);
    broken.extend(promises::broken(&root, &files)?);
    broken.extend(rooms::broken(&root)?);
    broken.extend(licences::broken(&root)?);
    broken.extend(home::broken(&root)?);
    for line in &broken {
        writeln!(std::io::stderr(), "{line}").context("stderr is closed")?;
    }
    if broken.is_empty() { Ok(()) } else { bail!("{} tidy rules broken", broken.len()) }
}
