//! `cargo run -p xtask -- tidy | man DIR | completions DIR | pictures SYSTOLL | picture FILE COMMAND`.
//!
//! The tidy rules are also tests (`cargo test -p xtask`), so that they need not be remembered.
#![forbid(unsafe_code)]

mod edges;
mod generate;
mod home;
mod licences;
mod links;
mod man;
mod modules;
mod picture;
mod repository;
mod rooms;
mod screenshot;
mod shell;
mod tidy;

use anyhow::{Context, Result, bail};
use std::io::Write;

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args.as_slice() {
        ["tidy"] => tidy(),
        ["man", dir] => generate::man(dir.as_ref()),
        ["completions", dir] => generate::completions(dir.as_ref()),
        ["pictures", systoll] => picture::write_all(systoll.as_ref()),
        ["picture", file, command] => {
            let output = std::io::read_to_string(std::io::stdin()).context("standard input is not text")?;
            picture::write(file.as_ref(), command, &output)
        }
        _ => bail!(
            "usage: cargo run -p xtask -- tidy | man DIR | completions DIR | pictures SYSTOLL | picture FILE COMMAND"
        ),
    }
}

fn tidy() -> Result<()> {
    let root = repository::root();
    let files = repository::files(&root)?;
    let metadata = repository::metadata(&root)?;
    let mut broken = edges::broken(&metadata)?;
    broken.extend(tidy::broken(&root, &files)?);
    broken.extend(links::broken(&root, &files)?);
    broken.extend(rooms::broken(&root)?);
    broken.extend(licences::broken(&root)?);
    broken.extend(home::broken(&root)?);
    for line in &broken {
        writeln!(std::io::stderr(), "{line}").context("stderr is closed")?;
    }
    if broken.is_empty() { Ok(()) } else { bail!("{} tidy rules broken", broken.len()) }
}
