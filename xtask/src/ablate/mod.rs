//! Switches each place of the judge that decides something, one at a time, and notes which reports or tests change:
//! numeric constants are halved and doubled, early returns never happen, conditions beside others are left out.
//!
//! It works in a copy of the checkout below `target/ablate`, with build products of its own. All switches are compiled
//! at once, and a variable of the environment chooses one, so that only the recordings and tests that reach a place
//! have to be tried. Each result is a line of `target/ablate/table.txt`; what has a line there is not tried again, so
//! that a run can be interrupted and taken up. What changes nothing is held by nothing: it is needed by no case and
//! no test, and can go.

mod sites;

use crate::repository;
use anyhow::{Context, Result, ensure};
use rayon::prelude::*;
use sites::{Change, Constants, Site};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Folder of the sources that are switched.
const SOURCES: &str = "crates/judge/src";
/// Folders of the recordings and of the text cases.
const RECORDINGS: &str = "reports/recordings";
const TEXTS: &str = "cases/text";
/// Script that builds the judge.
const BUILD_SCRIPT: &str = "crates/judge/build.rs";
/// The module that switches, with the number of sites left out.
const RUNTIME: &str = include_str!("runtime.rs.txt");
/// Longest time that a switched judge may take, seconds: a loop without its end runs for ever.
const MOST_SECONDS: u32 = 300;
/// Numbers of recordings or tests tried before all the others: most changes show in few.
const TRIED_FIRST: [usize; 2] = [4, 32];

/// A switched copy of the checkout, built.
struct SwitchedJudge {
    place: PathBuf,
    sites: Vec<Site>,
    /// The tool that checks reports.
    tool: PathBuf,
    /// Programs of the judge's tests.
    tests: Vec<PathBuf>,
}

/// The recordings, text cases and tests that reach each site.
#[derive(Default)]
struct Reached {
    recordings: BTreeMap<usize, BTreeSet<String>>,
    /// Files of text cases.
    texts: BTreeMap<usize, BTreeSet<String>>,
    /// Tests with the index of their program.
    tests: BTreeMap<usize, BTreeSet<(usize, String)>>,
}

/// Tries all sites whose line in the table contains `word`.
pub(crate) fn ablate(word: &str) -> Result<()> {
    let root = repository::root();
    let judge = SwitchedJudge::build(&root)?;
    let same = judge.check(None, &[], None)?;
    ensure!(same.status.success(), "reports differ without a change: cargo xtask reports --bless first");
    let reached = judge.reached(&root)?;
    let table = judge.place.join("table.txt");
    let known = fs::read_to_string(&table).unwrap_or_default();
    let done: BTreeSet<&str> = known.lines().filter_map(|line| line.split('\t').next()).collect();
    let file = OpenOptions::new().create(true).append(true).open(&table)?;
    let all: Vec<(usize, String)> = judge.sites.iter().map(label).enumerate().collect();
    let left: Vec<_> = all.iter().filter(|(_, label)| label.contains(word) && !done.contains(label.as_str())).collect();
    left.par_iter().try_for_each(|(site, label)| {
        let result = judge.tried(*site, &reached)?;
        // A line is written whole.
        (&file).write_all(format!("{label}\t{result}\n").as_bytes()).context("can't write the table")
    })?;
    summarize(&fs::read_to_string(&table)?, word)
}

/// Returns how a site is named in the table.
fn label(site: &Site) -> String {
    format!("{} {}:{} {}", site.change.name(), site.file, site.line, site.text)
}

/// Prints how many sites change nothing, and which.
fn summarize(table: &str, word: &str) -> Result<()> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let mut out = String::new();
    for (label, result) in
        table.lines().filter_map(|line| line.split_once('\t')).filter(|(label, _)| label.contains(word))
    {
        *counts.entry(result.split(':').next().unwrap_or(result)).or_default() += 1;
        if result.starts_with("nothing") {
            out += &format!("{label}: {result}\n");
        }
    }
    counts.iter().for_each(|(result, count)| out += &format!("{count:6} {result}\n"));
    std::io::stdout().write_all(out.as_bytes()).context("stdout is closed")
}

impl SwitchedJudge {
    fn build(root: &Path) -> Result<Self> {
        let place = root.join("target/ablate");
        let checkout = place.join("checkout");
        let (mut sites, mut constants, mut sources) = (Vec::new(), Constants::default(), Vec::new());
        // The script that builds the judge compiles some of its files too, without the switches.
        let script = fs::read_to_string(root.join(BUILD_SCRIPT))?;
        let is_of_build = |inside: &Path| script.contains(&format!("\"src/{}\"", inside.display()));
        for file in repository::files(root)? {
            let (bytes, to) = (fs::read(root.join(&file))?, checkout.join(&file));
            match file.strip_prefix(SOURCES) {
                Ok(inside) if inside.extension().is_some_and(|e| e == "rs") && !is_of_build(inside) => {
                    let text = String::from_utf8(bytes).with_context(|| format!("{} is no text", file.display()))?;
                    sources.push((inside.to_string_lossy().into_owned(), text));
                }
                _ => write_if_new(&to, &bytes)?,
            }
        }
        for (file, text) in &sources {
            constants.declare(file, text, &mut sites).with_context(|| file.clone())?;
        }
        for (file, text) in &sources {
            let mut text = sites::switched(file, text, &constants, &mut sites).with_context(|| file.clone())?;
            if file == "lib.rs" {
                text += "mod ablate;\n";
            }
            write_if_new(&checkout.join(SOURCES).join(file), text.as_bytes())?;
        }
        let runtime = format!("const SITES: usize = {};\n", sites.len());
        let (docs, code) = RUNTIME.split_once("\n\n").context("the runtime has no docs")?;
        write_if_new(&checkout.join(SOURCES).join("ablate.rs"), format!("{docs}\n\n{runtime}{code}").as_bytes())?;
        let cargo = |words: &[&str]| {
            let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
            command.args(words).args(["--release", "--message-format=json-render-diagnostics"]).current_dir(&checkout);
            // Neither linked twice nor with names of lines: the switched judge only has to be quick enough.
            command.envs([("CARGO_PROFILE_RELEASE_LTO", "off"), ("CARGO_PROFILE_RELEASE_DEBUG", "none")]);
            command
                .env("RUSTFLAGS", "-Aunused_parens")
                .env("CARGO_TARGET_DIR", place.join("target"))
                .env("CARGO_INCREMENTAL", "0");
            let out = command.stderr(std::process::Stdio::inherit()).output().context("can't run cargo")?;
            ensure!(out.status.success(), "the switched judge can't be built");
            Ok(executables(&String::from_utf8_lossy(&out.stdout)))
        };
        let tool = cargo(&["build", "-p", "systoll-reports"])?.pop().context("no tool was built")?;
        let tests = cargo(&["test", "-p", "systoll-judge", "--no-run"])?;
        Ok(Self { place, sites, tool, tests })
    }

    /// Runs a command with a site active, and notes the sites that it reaches in a file.
    fn run(&self, mut command: Command, site: Option<usize>, note: Option<&Path>) -> Result<Output> {
        command.current_dir(self.place.join("checkout/crates/judge")).env("RAYON_NUM_THREADS", "1");
        command.envs(site.map(|site| ("SYSTOLL_ABLATE", site.to_string())));
        command.envs(note.map(|path| ("SYSTOLL_ABLATE_REACHED", path)));
        command.output().context("can't run timeout")
    }

    /// Checks the reports of recordings; of all if none are named.
    fn check(&self, site: Option<usize>, names: &[&str], note: Option<&Path>) -> Result<Output> {
        let mut command = limited(&self.tool);
        command.arg("--check").args(names);
        self.run(command, site, note)
    }

    /// Runs the text cases of a file.
    fn text(&self, site: Option<usize>, file: &str, note: Option<&Path>) -> Result<Output> {
        let mut command = limited(&self.tool);
        command.args(["--text", file]);
        self.run(command, site, note)
    }

    fn test(&self, program: usize, site: Option<usize>, names: &[&str], note: Option<&Path>) -> Result<Output> {
        let mut command = limited(&self.tests[program]);
        command.arg("--exact").args(names).env("PROPTEST_CASES", "8");
        self.run(command, site, note)
    }

    /// Notes which sites each recording and each test reaches.
    fn reached(&self, root: &Path) -> Result<Reached> {
        let folder = self.place.join("reached");
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        fs::create_dir_all(&folder)?;
        let mut all = Reached::default();
        for (name, sites) in noting(&names_in(root, RECORDINGS)?, |name| {
            let note = folder.join(name);
            self.check(None, &[name], Some(&note))?;
            noted(&note)
        })? {
            sites.into_iter().for_each(|site| _ = all.recordings.entry(site).or_default().insert(name.clone()));
        }
        for (file, sites) in noting(&names_in(root, TEXTS)?, |file| {
            let note = folder.join(format!("text {file}"));
            ensure!(self.text(None, file, Some(&note))?.status.success(), "{file}.md fails without a change");
            noted(&note)
        })? {
            sites.into_iter().for_each(|site| _ = all.texts.entry(site).or_default().insert(file.clone()));
        }
        for (test, sites) in noting(&self.all_tests()?, |(program, test)| {
            let note = folder.join(format!("{program} {}", test.replace("::", " ")));
            ensure!(self.test(*program, None, &[test], Some(&note))?.status.success(), "{test} fails without a change");
            noted(&note)
        })? {
            sites.into_iter().for_each(|site| _ = all.tests.entry(site).or_default().insert(test.clone()));
        }
        Ok(all)
    }

    /// Returns all tests, each with the index of its program.
    fn all_tests(&self) -> Result<Vec<(usize, String)>> {
        let mut tests = Vec::new();
        for (program, path) in self.tests.iter().enumerate() {
            let mut command = Command::new(path);
            command.arg("--list");
            let listed = self.run(command, None, None)?;
            let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
            tests.extend(listed.lines().filter_map(|line| Some((program, line.strip_suffix(": test")?.to_owned()))));
        }
        Ok(tests)
    }

    /// Returns what changes with a site, in short.
    fn tried(&self, site: usize, reached: &Reached) -> Result<String> {
        // A constant is noted by its first site.
        let seen = if self.sites[site].change == Change::Doubled { site - 1 } else { site };
        let recordings: Vec<&str> = reached.recordings.get(&seen).into_iter().flatten().map(String::as_str).collect();
        for names in parts(&recordings) {
            let check = self.check(Some(site), names, None)?;
            if !check.status.success() {
                let said = String::from_utf8_lossy(&check.stdout);
                let first = said.lines().next().unwrap_or("it fails").trim();
                return Ok(format!("reports: {first}, of {} recordings", names.len()));
            }
        }
        let texts = reached.texts.get(&seen);
        for file in texts.into_iter().flatten() {
            if !self.text(Some(site), file, None)?.status.success() {
                return Ok(format!("text cases: {file}"));
            }
        }
        let tests = reached.tests.get(&seen);
        for program in 0..self.tests.len() {
            let of_program = tests.into_iter().flatten().filter(|(p, _)| *p == program);
            let names: Vec<&str> = of_program.map(|(_, name)| name.as_str()).collect();
            for names in parts(&names) {
                let test = self.test(program, Some(site), names, None)?;
                if !test.status.success() {
                    let said = String::from_utf8_lossy(&test.stdout);
                    let failed = said.lines().find_map(|line| line.strip_prefix("test ")?.strip_suffix(" ... FAILED"));
                    return Ok(format!("tests: {}", failed.unwrap_or("no end")));
                }
            }
        }
        let (texts, tests) = (texts.map_or(0, BTreeSet::len), tests.map_or(0, BTreeSet::len));
        Ok(match recordings.len() + texts + tests {
            0 => "nothing reaches it".into(),
            _ => format!(
                "nothing: {} recordings, {texts} files of text cases and {tests} tests reach it",
                recordings.len()
            ),
        })
    }
}

/// Returns lists of names in the order they are tried.
fn parts<'a, 'b>(names: &'b [&'a str]) -> impl Iterator<Item = &'b [&'a str]> {
    let mut from = 0;
    let ends = TRIED_FIRST.into_iter().chain([usize::MAX]);
    ends.filter_map(move |end| {
        let part = names.get(from..end.min(names.len())).filter(|part| !part.is_empty());
        from = end.min(names.len());
        part
    })
}

fn limited(program: &Path) -> Command {
    let mut command = Command::new("timeout");
    command.arg(MOST_SECONDS.to_string()).arg(program);
    command
}

/// Returns the sites that are noted in a file.
fn noted(note: &Path) -> Result<Vec<usize>> {
    let text = fs::read_to_string(note).unwrap_or_default();
    text.lines().map(|line| line.parse().context("a site is no number")).collect()
}

/// Returns the programs that cargo says it built.
fn executables(messages: &str) -> Vec<PathBuf> {
    let messages = messages.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    messages.filter_map(|message| message["executable"].as_str().map(PathBuf::from)).collect()
}

/// Writes a file unless it has these bytes, so that cargo builds only what changed.
fn write_if_new(path: &Path, bytes: &[u8]) -> Result<()> {
    if fs::read(path).ok().as_deref() != Some(bytes) {
        fs::create_dir_all(path.parent().context("no folder")?)?;
        fs::write(path, bytes)?;
    }
    Ok(())
}

/// Returns the names, without their endings, of the repository's files in a folder.
fn names_in(root: &Path, folder: &str) -> Result<Vec<String>> {
    let files = repository::files(&root.join(folder))?;
    Ok(files.iter().filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned())).collect())
}

/// Returns each item with the sites that `sites` says it reaches; all processors work on it.
fn noting<T: Sync>(items: &[T], sites: impl Fn(&T) -> Result<Vec<usize>> + Sync) -> Result<Vec<(&T, Vec<usize>)>> {
    items.par_iter().map(|item| Ok((item, sites(item)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_are_tried_first_and_none_twice() {
        let names: Vec<String> = (0..50).map(|n| n.to_string()).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        assert_eq!(parts(&names).map(<[&str]>::len).collect::<Vec<_>>(), [4, 28, 18]);
        assert_eq!(parts(&names[..3]).collect::<Vec<_>>(), [&names[..3]]);
        assert_eq!(parts(&[]).count(), 0);
    }
}
