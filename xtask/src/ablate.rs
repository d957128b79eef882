//! Halves and doubles each numeric constant of the judge, one at a time, and notes which reports and scores change.
//!
//! It works in a copy of the checkout below `target/ablate`, with build products of its own. Each result is a line of
//! `target/ablate/table.txt`; what has a line there is not tried again, so a run can be interrupted and taken up.

use crate::repository;
use anyhow::{Context, Result, ensure};
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Folder of the sources whose constants are changed.
const SOURCES: &str = "crates/judge/src";
/// Types of constants that can be halved and doubled.
const NUMBERS: [&str; 8] = ["u8", "u16", "u32", "u64", "usize", "i32", "i64", "f64"];

/// A numeric constant.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Constant {
    /// File, relative to the checkout.
    file: PathBuf,
    /// Number of its line, from 1.
    line: usize,
    name: String,
    value: String,
}

/// Tries all constants whose file or name contains `word`.
pub(crate) fn ablate(word: &str) -> Result<()> {
    let root = repository::root();
    let place = root.join("target/ablate");
    let (copy, table) = (place.join("checkout"), place.join("table.txt"));
    copy_checkout(&root, &copy)?;
    ensure!(differences(&copy)? == "nothing", "reports differ without a change: cargo xtask reports --bless first");
    for constant in constants(&root)? {
        let name = format!("{}:{} {}", constant.file.display(), constant.line, constant.name);
        if !name.contains(word) {
            continue;
        }
        for change in ["/ 2", "* 2"] {
            let label = format!("{name} = {} {change}: ", constant.value);
            let known = fs::read_to_string(&table).unwrap_or_default();
            if known.lines().any(|line| line.starts_with(&label)) {
                continue;
            }
            let path = copy.join(&constant.file);
            let before = fs::read_to_string(&path)?;
            fs::write(&path, changed(&before, &constant, change))?;
            let result = differences(&copy);
            fs::write(&path, before)?;
            let mut file = OpenOptions::new().create(true).append(true).open(&table)?;
            let line = format!("{label}{}\n", result?);
            file.write_all(line.as_bytes())?;
            std::io::stdout().write_all(line.as_bytes()).context("stdout is closed")?;
        }
    }
    Ok(())
}

/// Copies the repository's files that differ to a folder, with their times, so that cargo builds only what changed.
fn copy_checkout(root: &Path, to: &Path) -> Result<()> {
    for file in repository::files(root)? {
        let (from, to) = (root.join(&file), to.join(&file));
        let bytes = fs::read(&from)?;
        if fs::read(&to).ok().as_ref() != Some(&bytes) {
            fs::create_dir_all(to.parent().context("no folder")?)?;
            fs::write(&to, bytes)?;
        }
    }
    Ok(())
}

/// Builds the tool of a checkout, and returns in short what it says of the reports and scores.
fn differences(copy: &Path) -> Result<String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let run = |what: &str| {
        let mut command = Command::new(&cargo);
        command.args(["run", "--quiet", "-p", "systoll-reports", "--", what]).current_dir(copy);
        command.env("CARGO_TARGET_DIR", copy.with_file_name("target")).output().context("can't run cargo")
    };
    let check = run("--check")?;
    if check.status.success() {
        return Ok("nothing".into());
    }
    let said = String::from_utf8_lossy(&check.stdout);
    let Some(reports) = said.lines().rev().find(|line| line.ends_with("accepted ones")) else {
        let failure = String::from_utf8_lossy(&check.stderr);
        return Ok(format!(
            "fails: {}",
            failure.lines().find(|line| line.contains("error") || line.contains("panicked")).unwrap_or("?")
        ));
    };
    let score = run("--score")?;
    let said = String::from_utf8_lossy(&score.stdout);
    let fallen: Vec<&str> = said.lines().filter_map(|line| line.strip_prefix("fallen: ")).collect();
    Ok(format!("{reports}; fallen: {}", if fallen.is_empty() { "none".into() } else { fallen.join("; ") }))
}

/// Returns the numeric constants of the judge's sources, without those of tests.
fn constants(root: &Path) -> Result<Vec<Constant>> {
    let mut all = Vec::new();
    for file in repository::files(root)?.into_iter().filter(|file| file.starts_with(SOURCES)) {
        let text = fs::read_to_string(root.join(&file))?;
        let code = text.split("#[cfg(test)]\nmod ").next().unwrap_or(&text);
        let found = code.lines().enumerate().filter_map(|(at, line)| constant(line).map(|found| (at + 1, found)));
        all.extend(found.map(|(line, (name, value))| Constant { file: file.clone(), line, name, value }));
    }
    Ok(all)
}

/// Returns the name and value of a line that declares a numeric constant.
fn constant(line: &str) -> Option<(String, String)> {
    let (before, rest) = line.split_once("const ")?;
    let (name, rest) = rest.split_once(": ")?;
    let (kind, value) = rest.strip_suffix(';')?.split_once(" = ")?;
    let visible = before.trim().is_empty() || before.trim().starts_with("pub");
    (visible && NUMBERS.contains(&kind)).then(|| (name.to_owned(), value.to_owned()))
}

/// Returns the text with the constant's value halved or doubled.
fn changed(text: &str, constant: &Constant, change: &str) -> String {
    let declared = format!(" = {};", constant.value);
    let lines = text.lines().enumerate().map(|(at, line)| match at + 1 == constant.line {
        true => line.replace(&declared, &format!(" = ({}) {change}{};", constant.value, fraction(line))),
        false => line.to_owned(),
    });
    lines.map(|line| line + "\n").collect()
}

/// Returns what makes a whole number one of the line's type.
fn fraction(line: &str) -> &'static str {
    if line.contains(": f64 ") { ".0" } else { "" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numeric_constants_are_found_and_changed() {
        let of = |line| constant(line).map(|(name, value)| format!("{name} {value}"));
        assert_eq!(of("pub(crate) const MANY: u64 = 8 << 10;").as_deref(), Some("MANY 8 << 10"));
        assert_eq!(of("    const SHARE: f64 = 0.5;").as_deref(), Some("SHARE 0.5"));
        assert_eq!(
            [of("const NAME: &str = \"x\";"), of("pub const fn x() {"), of("// const A: u8 = 1;")],
            [None, None, None]
        );
        let change = |text: &str, by| {
            let (name, value) = constant(text.lines().nth(1).unwrap()).unwrap();
            changed(text, &Constant { file: "x.rs".into(), line: 2, name, value }, by)
        };
        assert_eq!(change("// x\nconst A: f64 = 0.5;\n", "/ 2"), "// x\nconst A: f64 = (0.5) / 2.0;\n");
        assert_eq!(change("\nconst A: u64 = 1 << 3;\n", "* 2"), "\nconst A: u64 = (1 << 3) * 2;\n");
    }

    #[test]
    fn the_judge_has_constants() {
        assert!(constants(&repository::root()).unwrap().len() > 100);
    }
}
