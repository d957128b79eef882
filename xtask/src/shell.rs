//! Runs the scripts that pictures show.

use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Width of a picture's terminal, in columns.
const COLUMNS: &str = "100";

/// The programs that a script may use.
pub(crate) struct Run<'a> {
    pub(crate) systoll: &'a Path,
    /// The folder in which the script runs.
    pub(crate) folder: &'a Path,
    /// A Python with DuckDB, for queries over many runs.
    pub(crate) python: Option<&'a Path>,
}

impl Run<'_> {
    /// Returns the output of a script. `$0` in it is systoll.
    pub(crate) fn shell(&self, script: &str) -> Result<String> {
        let mut sh = Command::new("sh");
        sh.args(["-c", script]).arg(self.systoll).current_dir(self.folder).stdin(Stdio::null());
        sh.env("COLUMNS", COLUMNS).env("LC_ALL", "C.UTF-8").env_remove("TZ").env_remove("NO_COLOR");
        if let Some(python) = self.python {
            sh.env("SYSTOLL_PYTHON", python);
        }
        let said = sh.output().context("there is no shell")?;
        let told = String::from_utf8_lossy(&said.stdout).into_owned();
        if !said.status.success() {
            bail!("{script}: {told}{}", String::from_utf8_lossy(&said.stderr));
        }
        Ok(told)
    }
}

/// Returns the folder of the pictures, beside the pages that show them.
pub(crate) fn pictures() -> PathBuf {
    crate::repository::root().join("docs/use")
}
