//! Writes the page for a browser: its file, its excerpts of sources, and the program that opens it.

use crate::environment;
use crate::failure::Failure;
use crate::output::to_stderr;
use std::collections::HashMap;
use std::ffi::OsStr;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use systoll_export::JudgedRecording;
use systoll_export::html::{AROUND, Excerpt, page};
use systoll_files::Links;
use systoll_judge::Judgement;
use systoll_model::Recording;

/// Largest size of a source file that is read, bytes.
const MAX_SOURCE: u64 = 4 << 20;
/// Largest number of source files that are read for one page.
const MAX_FILES: usize = 64;
/// Extensions of source files. A recording can name any file, and people send pages to others:
/// lines of files that are no source must not get into one.
const SOURCES: [&str; 33] = [
    "c", "cc", "cpp", "cxx", "h", "hh", "hpp", "hxx", "inc", "S", "s", "m", "rs", "go", "py", "pyx", "rb", "pl", "pm",
    "php", "js", "mjs", "cjs", "ts", "java", "kt", "scala", "lua", "tcl", "swift", "zig", "nim", "d",
];

/// Writes the page.
pub(crate) fn write(w: &mut dyn Write, recording: &Recording, judgement: &Judgement) -> io::Result<()> {
    let mut files: HashMap<String, Option<String>> = HashMap::new();
    let mut source = |file: &str, line: u32| {
        if !files.contains_key(file) && files.len() >= MAX_FILES {
            return None;
        }
        let text = files.entry(file.to_owned()).or_insert_with(|| read_source(Path::new(file)));
        excerpt(text.as_deref()?, line)
    };
    w.write_all(page(&JudgedRecording::new(recording, judgement), &mut source).as_bytes())
}

/// Returns the lines around a line, if there is such a line.
fn excerpt(text: &str, line: u32) -> Option<Excerpt> {
    let first = line.saturating_sub(AROUND).max(1);
    // A recording may have the invalid line 0.
    let before = line.checked_sub(first)?;
    let some = text.lines().skip(first as usize - 1).take((before + AROUND + 1) as usize);
    let some: Vec<String> = some.map(str::to_owned).collect();
    (some.len() > before as usize).then_some(Excerpt { first, text: some })
}

fn read_source(path: &Path) -> Option<String> {
    let named = path.extension().and_then(OsStr::to_str).is_some_and(|e| SOURCES.contains(&e));
    if !named || !path.is_absolute() {
        return None;
    }
    let (file, meta) = systoll_files::open(path, Links::Follow).ok()?;
    if !meta.is_file() || meta.len() > MAX_SOURCE {
        return None;
    }
    let mut bytes = Vec::new();
    file.take(MAX_SOURCE).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// Returns the file of a page that is to be opened: the named file, or a new one.
pub(crate) fn place(named: Option<&Path>) -> Result<PathBuf, Failure> {
    if let Some(named) = named {
        return Ok(named.to_owned());
    }
    let folder = std::env::temp_dir();
    let new = tempfile::Builder::new().prefix("systoll-").suffix(".html").tempfile_in(&folder);
    let kept = new.and_then(|file| file.keep().map_err(|e| e.error));
    kept.map(|(_, path)| path).map_err(|e| Failure::file("write", &folder, e))
}

/// Opens the page with the user's browser and does not wait for it.
pub(crate) fn open(path: &Path) -> Result<(), Failure> {
    let browser = environment::browser();
    let quiet = Stdio::null;
    let started = Command::new(&browser).arg(path).stdin(quiet()).stdout(quiet()).stderr(quiet()).spawn();
    match started {
        Ok(_) => to_stderr(&format!("systoll: the page is {}\n", path.display())),
        Err(e) => {
            let browser = browser.to_string_lossy();
            to_stderr(&format!("systoll: the page is {}; {browser} can't open it: {e}\n", path.display()));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn excerpts_are_the_lines_around() {
        let text = "one\ntwo\nthree\nfour\nfive\nsix\n";
        let of = |line| excerpt(text, line).map(|e| (e.first, e.text.len()));
        assert_eq!([of(1), of(3), of(6)], [Some((1, 4)), Some((1, 6)), Some((3, 4))]);
        assert_eq!([of(0), of(7), of(u32::MAX)], [None, None, None]);
    }

    #[test]
    fn only_sources_are_read() {
        let dir = tempfile::tempdir().unwrap();
        let put = |name: &str| {
            let path = dir.path().join(name);
            std::fs::write(&path, "secret\n").unwrap();
            read_source(&path)
        };
        assert_eq!(put("a.c").as_deref(), Some("secret\n"));
        assert_eq!([put("id_rsa"), put("shadow"), put("key.pem"), put("notes.txt")], [None, None, None, None]);
        nix::unistd::mkfifo(&dir.path().join("fifo.c"), nix::sys::stat::Mode::S_IRUSR).unwrap();
        assert_eq!(read_source(&dir.path().join("fifo.c")), None);
    }
}
