//! Keeps tables in a folder: each file whole or not at all, and no more of them than was asked for.

use std::fs::{self, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use systoll_export::ExportError;

/// Beginning of the name of a file that is being written.
const UNFINISHED: &str = ".systoll-";
/// Rights to a file before the umask takes some away: who reads tables and counters need not be the agent's user.
const MODE: u32 = 0o666;
/// Folders below the one for the day.
const DEPTH: usize = 3;

/// The folder.
pub(crate) struct Store {
    folder: PathBuf,
}

/// The number and bytes of the files that [`Store::prune`] removed, and the bytes of the files that are left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pruned {
    pub(crate) files: usize,
    pub(crate) bytes: u64,
    pub(crate) left: u64,
}

impl Store {
    /// Creates the folder if it does not exist, and removes files that an agent before did not finish.
    ///
    /// # Errors
    /// If the folder can't be made or written to.
    pub(crate) fn open(folder: &Path) -> io::Result<Self> {
        fs::create_dir_all(folder)?;
        nix::unistd::access(folder, nix::unistd::AccessFlags::W_OK)?;
        let unfinished = |path: &Path| path.file_name().is_some_and(|n| n.to_string_lossy().starts_with(UNFINISHED));
        for (path, _) in files(folder).iter().filter(|(path, _)| unfinished(path)) {
            let _ = fs::remove_file(path);
        }
        Ok(Self { folder: folder.to_owned() })
    }

    /// Writes a file at a place in the folder.
    ///
    /// # Errors
    /// The system's; the file is then not there, or is the former one.
    pub(crate) fn keep(&self, place: &Path, bytes: &[u8]) -> io::Result<()> {
        write_whole(&self.folder.join(place), bytes)
    }

    /// Returns true if there is a file at a place in the folder.
    pub(crate) fn has(&self, place: &Path) -> bool {
        self.folder.join(place).exists()
    }

    /// Removes the tables of days before `first_day`, and then the oldest ones until no more than `most` bytes are left.
    pub(crate) fn prune(&self, first_day: &str, most: u64) -> Pruned {
        let mut tables = files(&self.folder);
        tables.retain(|(path, _)| path.extension().is_some_and(|e| e == "parquet"));
        // A table's name begins with its time.
        tables.sort_by_cached_key(|(path, _)| (self.day_of(path), path.file_name().map(ToOwned::to_owned)));
        let mut pruned = Pruned { left: tables.iter().map(|(_, bytes)| bytes).sum(), ..Pruned::default() };
        for (path, bytes) in tables {
            let is_old = self.day_of(&path).is_some_and(|day| *day < *first_day);
            if (is_old || pruned.left > most) && fs::remove_file(&path).is_ok() {
                pruned.left -= bytes;
                (pruned.files, pruned.bytes) = (pruned.files + 1, pruned.bytes + bytes);
                // A folder in which something is left is kept.
                for folder in path.ancestors().skip(1).take(DEPTH).take_while(|f| *f != self.folder) {
                    let _ = fs::remove_dir(folder);
                }
            }
        }
        pruned
    }

    fn day_of(&self, path: &Path) -> Option<String> {
        let first = path.strip_prefix(&self.folder).ok()?.iter().next()?;
        Some(first.to_str()?.strip_prefix("day=")?.to_owned())
    }
}

/// Writes a file that appears whole or not at all, also if the box loses its power.
///
/// # Errors
/// The system's; nothing is left then.
pub(crate) fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    fs::create_dir_all(folder)?;
    // A name that nobody can foresee, so that no link stands there. It does not end as tables do: DuckDB reads hidden ones, too.
    let unfinished = tempfile::Builder::new()
        .prefix(UNFINISHED)
        .suffix(".part")
        .permissions(Permissions::from_mode(MODE))
        .tempfile_in(folder)
        .map_err(without_path)?;
    unfinished.as_file().write_all(bytes)?;
    unfinished.as_file().sync_all()?;
    unfinished.persist(path)?;
    Ok(())
}

/// Returns the system's reason.
pub(crate) fn reason(error: ExportError) -> io::Error {
    match error {
        ExportError::Io(error) => error,
        other => io::Error::other(other),
    }
}

/// Removes the path from an error of the crate tempfile: a name of its own in each would make the same error look new.
fn without_path(error: io::Error) -> io::Error {
    let text = error.to_string();
    text.split_once(" at path ").map_or(error, |(why, _)| io::Error::other(why.to_owned()))
}

/// Returns the files below a folder with their sizes. Links are not followed.
fn files(folder: &Path) -> Vec<(PathBuf, u64)> {
    let mut found = Vec::new();
    let mut folders = vec![(folder.to_owned(), 0)];
    while let Some((folder, depth)) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            match entry.metadata() {
                Ok(meta) if meta.is_dir() && depth < DEPTH => folders.push((entry.path(), depth + 1)),
                Ok(meta) if meta.is_file() => found.push((entry.path(), meta.len())),
                _ => {}
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_go_first_and_unfinished_ones_at_the_start() {
        let place = tempfile::tempdir().unwrap();
        let store = Store::open(place.path()).unwrap();
        let path = |day: u32, run: u32| format!("day=2026-11-{day:02}/service=a/host=h/{run}-x.parquet");
        for (day, run) in [(1, 10), (2, 20), (3, 30), (3, 31)] {
            store.keep(Path::new(&path(day, run)), &[0; 100]).unwrap();
        }
        fs::write(place.path().join("day=2026-11-03/.systoll-40-x.parquet.part"), "half").unwrap();
        fs::write(place.path().join("mine.txt"), [0; 1000]).unwrap();
        let store = Store::open(place.path()).unwrap();
        assert!(!place.path().join("day=2026-11-03/.systoll-40-x.parquet.part").exists());
        assert_eq!(store.prune("2026-11-02", u64::MAX), Pruned { files: 1, bytes: 100, left: 300 });
        assert!(!place.path().join("day=2026-11-01").exists());
        assert_eq!(store.prune("2026-11-02", 150), Pruned { files: 2, bytes: 200, left: 100 });
        assert!(place.path().join(path(3, 31)).exists() && place.path().join("mine.txt").exists());
    }

    #[test]
    fn a_file_that_fails_leaves_nothing() {
        let place = tempfile::tempdir().unwrap();
        fs::create_dir(place.path().join("a")).unwrap();
        // A folder can't be replaced by a file.
        assert!(write_whole(&place.path().join("a"), b"x").is_err());
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_link_is_replaced_and_what_it_leads_to_is_left() {
        let place = tempfile::tempdir().unwrap();
        let (link, file) = (place.path().join("systoll.prom"), place.path().join("other"));
        fs::write(&file, "theirs").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        write_whole(&link, b"ours").unwrap();
        assert_eq!((fs::read(&file).unwrap(), fs::read(&link).unwrap()), (b"theirs".to_vec(), b"ours".to_vec()));
        assert!(fs::symlink_metadata(&link).unwrap().is_file());
    }
}
