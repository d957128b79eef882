//! The command `reports`.

use crate::check::{accept, check};
use crate::choose::choose;
use crate::corpus::Corpus;
use crate::reasons::{cases_by_reason, is_needed};
use crate::render::read;
use crate::score::score;
use crate::text;
use anyhow::{Context, Result, bail, ensure};
use std::fs;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use systoll_judge::ReasonId;
use systoll_model::Recording;

/// The help of the command.
pub const USAGE: &str = "usage: cargo xtask reports WHAT [--at FOLDER] [WORD...]
  --check [WORD...]       hold the reports of all recordings (whose names contain a WORD) against the accepted ones; 1 if any differ
  --diff [WORD...]        the same, with the lines that differ
  --bless [WORD...]       accept the reports, and the scores
  --score                 score the cases by their recordings; 1 if a number is smaller than the accepted one
  --choose FOLDER [MB]    choose recordings of FOLDER for the repository, 12 MB in all if not said
  --text [WORD]           run the text cases (whose file or heading contains WORD); 1 if any is not as it expects
  --trace WORD            print the traces of these text cases, as they are read
  --reasons [WORD]        find for each good reason (whose id contains WORD) the cases that need it; 1 if one is named that does not
  --migrate               write all recordings anew, after a change of their format
FOLDER has recordings/, as reports/record.py makes it; the repository's own is reports/.";

/// Largest size of the repository's recordings, MB.
const MOST_MB: u64 = 12;

/// Runs the command in the checkout at `root`. Returns true if nothing differs.
///
/// # Errors
/// If a file can't be read or written, or the words are no command.
pub fn run(root: &Path, words: &[&str]) -> Result<bool> {
    let mut rest = words.to_vec();
    let mut folder = root.join("reports");
    if let Some(at) = rest.iter().position(|word| *word == "--at") {
        folder = PathBuf::from(rest.get(at + 1).context(USAGE)?);
        rest.drain(at..at + 2);
    }
    let corpus = Corpus::at(&folder);
    match rest.as_slice() {
        ["--check", words @ ..] => checked(&corpus, words, false),
        ["--diff", words @ ..] => checked(&corpus, words, true),
        ["--bless"] => {
            say(&format!("{} reports are accepted that were not\n", accept(&corpus, &[])?))?;
            let scores = score(&corpus, &cases(root))?.text();
            fs::write(folder.join(SCORES), scores).context("can't write the scores")?;
            Ok(true)
        }
        ["--bless", words @ ..] => {
            say(&format!("{} reports are accepted that were not\n", accept(&corpus, words)?))?;
            Ok(true)
        }
        ["--score"] => scored(&corpus, root, &folder),
        ["--choose", from] => chosen(&corpus, Path::new(from), MOST_MB),
        ["--choose", from, most] => chosen(&corpus, Path::new(from), most.parse().context(USAGE)?),
        ["--text"] => text_cases(root, ""),
        ["--text", word] => text_cases(root, word),
        ["--trace", word] => {
            say(&text::traces(&root.join(TEXT_CASES), word)?)?;
            Ok(true)
        }
        ["--reasons"] => reasons(&corpus, root, ""),
        ["--reasons", word] => reasons(&corpus, root, word),
        ["--migrate"] => migrated(&corpus),
        _ => bail!("{USAGE}"),
    }
}

/// Folder of the text cases.
const TEXT_CASES: &str = "cases/text";
/// Name of the file with the accepted scores.
const SCORES: &str = "scores.txt";

fn cases(root: &Path) -> PathBuf {
    root.join("cases/cases")
}

/// Prints text. A reader that wants no more of it, such as `head`, is no error.
fn say(text: &str) -> Result<()> {
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error).context("can't print"),
        _ => Ok(()),
    }
}

fn checked(corpus: &Corpus, words: &[&str], lines: bool) -> Result<bool> {
    let differences = check(corpus, words)?;
    say(&differences.text(lines))?;
    Ok(differences.is_none())
}

fn scored(corpus: &Corpus, root: &Path, folder: &Path) -> Result<bool> {
    let scores = score(corpus, &cases(root))?;
    say(&scores.text())?;
    let accepted = fs::read_to_string(folder.join(SCORES)).context("no accepted scores: --bless makes them")?;
    let fallen = scores.fallen(&accepted);
    fallen.iter().try_for_each(|line| say(&format!("fallen: {line}\n")))?;
    Ok(fallen.is_empty())
}

/// Runs the text cases.
fn text_cases(root: &Path, word: &str) -> Result<bool> {
    let checked = text::check(&root.join(TEXT_CASES), word)?;
    checked.wrong.iter().try_for_each(|wrong| say(&format!("{TEXT_CASES}/{wrong}\n")))?;
    say(&format!("{} text cases, {} not as they expect\n", checked.cases, checked.wrong.len()))?;
    Ok(checked.wrong.is_empty())
}

/// Prints the cases that need each good reason.
fn reasons(corpus: &Corpus, root: &Path, word: &str) -> Result<bool> {
    let cases = cases_by_reason(corpus, &root.join(TEXT_CASES))?;
    let mut all = true;
    for id in ReasonId::ALL.iter().filter(|id| id.reason().id.contains(word)) {
        let reason = id.reason();
        let of: Vec<&str> = cases.get(reason.id).into_iter().flatten().map(String::as_str).collect();
        let names_one = of.contains(&reason.case) || is_needed(corpus, &root.join(TEXT_CASES), *id)?;
        let wrong = if names_one { "" } else { " NOT BY THE CASE THAT IT NAMES" };
        say(&format!("{}: {}{wrong}\n", reason.id, of.join(" | ")))?;
        all &= names_one;
    }
    Ok(all)
}

/// Replaces the corpus' recordings by a choice of those in another folder.
fn chosen(corpus: &Corpus, from: &Path, most: u64) -> Result<bool> {
    let all = Corpus::at(from);
    let choice = choose(&all, most * 1_000_000)?;
    ensure!(!choice.names.is_empty(), "no recording is small enough");
    for old in corpus.names().unwrap_or_default() {
        fs::remove_file(corpus.recording(&old))?;
    }
    for name in &choice.names {
        let to = corpus.recording(name);
        fs::create_dir_all(to.parent().context("no folder")?)?;
        fs::copy(all.recording(name), &to).with_context(|| format!("can't copy {name}"))?;
    }
    let (recordings, bytes) = (choice.names.len(), choice.bytes);
    say(&format!(
        "{recordings} recordings, {bytes} bytes, {} features, {} of them left out\n",
        choice.features, choice.left_out
    ))?;
    Ok(true)
}

/// Writes all recordings anew, in today's format.
fn migrated(corpus: &Corpus) -> Result<bool> {
    for name in corpus.names()? {
        let path = corpus.recording(&name);
        let recording: Recording = read(&path)?;
        let mut bytes = Vec::new();
        recording.write(&mut bytes).with_context(|| format!("can't write {name}"))?;
        fs::write(&path, bytes).with_context(|| format!("can't write {name}"))?;
    }
    Ok(true)
}
