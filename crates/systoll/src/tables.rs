//! Writes a run's table into a folder of many, for `systoll fleet`.

use crate::failure::Failure;
use crate::output::{ResultPath, keep, to_stderr};
use std::path::Path;
use systoll_export::{JudgedRecording, Labels, for_fleet};
use systoll_judge::{Catalogue, judge};
use systoll_model::Recording;

/// Creates the folder if it does not exist. An unwritable folder is reported before anything runs.
pub(crate) fn prepare(folder: &Path) -> Result<(), Failure> {
    std::fs::create_dir_all(folder).map_err(|e| Failure::file("write to", folder, e))?;
    nix::unistd::access(folder, nix::unistd::AccessFlags::W_OK).map_err(|e| Failure::file("write to", folder, e.into()))
}

/// Writes the table, and prints its path unless `quiet`.
pub(crate) fn add(
    folder: &Path,
    recording: &Recording,
    catalogue: &Catalogue,
    labels: &Labels,
    quiet: bool,
) -> Result<(), Failure> {
    let judgement = judge(recording, catalogue, &systoll_judge::Options::default());
    let written = for_fleet(&JudgedRecording::new(recording, &judgement), labels);
    let (place, bytes) = written.map_err(Failure::Export)?;
    let path = folder.join(place);
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(|e| Failure::file("write to", folder, e))?;
    }
    let mut place = ResultPath::open(&path).map_err(|e| Failure::file("write", &path, e))?;
    keep("table", &mut place, &bytes)?;
    if !quiet {
        to_stderr(&format!("systoll: the table is {}\n", path.display()));
    }
    Ok(())
}
