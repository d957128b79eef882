//! The kept recordings, and the accepted report beside each of them.

use crate::document::Document;
use anyhow::{Context, Result, ensure};
use std::path::{Path, PathBuf};

/// Extension of recordings.
const RECORDING: &str = "systoll";
/// Extension of accepted reports.
const REPORT: &str = "txt";

/// A folder with recordings, and one with their accepted reports.
#[derive(Clone, Debug)]
pub struct Corpus {
    folder: PathBuf,
}

impl Corpus {
    /// Returns the corpus in a folder: `recordings/NAME.systoll` and `accepted/NAME.txt`.
    pub fn at(folder: &Path) -> Self {
        Self { folder: folder.to_owned() }
    }

    /// Returns the names of all recordings, in order.
    ///
    /// # Errors
    /// If the folder can't be read or has no recording.
    pub fn names(&self) -> Result<Vec<String>> {
        let names = names(&self.folder.join("recordings"), RECORDING)?;
        ensure!(!names.is_empty(), "no recordings in {}", self.folder.display());
        Ok(names)
    }

    /// Returns the file of a recording.
    pub fn recording(&self, name: &str) -> PathBuf {
        self.folder.join("recordings").join(format!("{name}.{RECORDING}"))
    }

    /// Returns the file of a recording's accepted report.
    pub fn report(&self, name: &str) -> PathBuf {
        self.folder.join("accepted").join(format!("{name}.{REPORT}"))
    }

    /// Returns the accepted report of a recording; `None` if there is none.
    ///
    /// # Errors
    /// If it can't be read.
    pub fn accepted(&self, name: &str) -> Result<Option<Document>> {
        let path = self.report(name);
        if !path.exists() {
            return Ok(None);
        }
        let text = std::fs::read_to_string(&path).with_context(|| format!("can't read {}", path.display()))?;
        Document::parse(&text).map(Some).with_context(|| format!("{} is no report", path.display()))
    }

    /// Accepts a recording's report.
    ///
    /// # Errors
    /// If it can't be written.
    pub fn accept(&self, name: &str, report: &Document) -> Result<()> {
        let path = self.report(name);
        std::fs::create_dir_all(self.folder.join("accepted"))?;
        std::fs::write(&path, report.text()).with_context(|| format!("can't write {}", path.display()))
    }

    /// Returns the names of accepted reports whose recordings are gone.
    ///
    /// # Errors
    /// If the folder can't be read.
    pub fn left_over(&self) -> Result<Vec<String>> {
        let folder = self.folder.join("accepted");
        let mut all = if folder.exists() { names(&folder, REPORT)? } else { Vec::new() };
        all.retain(|name| !self.recording(name).exists());
        Ok(all)
    }
}

/// Returns the names of the files in a folder that have an extension, in order.
fn names(folder: &Path, extension: &str) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder).with_context(|| format!("can't read {}", folder.display()))? {
        let path = entry?.path();
        if path.extension().is_some_and(|e| e == extension) {
            names.extend(path.file_stem().and_then(|stem| stem.to_str()).map(str::to_owned));
        }
    }
    names.sort();
    Ok(names)
}
