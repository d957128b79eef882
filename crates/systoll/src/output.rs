//! Where reports go.

use crate::cli::When;
use crate::failure::Failure;
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};
use systoll_present::Style;

/// A place for a report, checked before anything is started.
pub(crate) enum Output {
    Stdout,
    Stderr,
    File { path: PathBuf, file: File, made: bool },
}

impl Output {
    /// A file if one is named, else `stream`.
    pub(crate) fn open(path: Option<&Path>, stream: Output) -> Result<Self, Failure> {
        let Some(path) = path else {
            let (fd, name) = match stream {
                Output::Stdout => (1, "standard output"),
                _ => (2, "standard error"),
            };
            return if systoll_record::was_closed(fd) { Err(Failure::Closed(name)) } else { Ok(stream) };
        };
        let made = !path.exists();
        let file = OpenOptions::new().write(true).create(true).truncate(false).open(path);
        let file = file.map_err(|e| Failure::file("write", path, e))?;
        Ok(Self::File { path: path.to_owned(), file, made })
    }

    /// How to write there.
    pub(crate) fn style(&self, when: When) -> Style {
        let terminal = match self {
            Self::Stdout => io::stdout().is_terminal(),
            Self::Stderr => io::stderr().is_terminal(),
            Self::File { .. } => false,
        };
        let wanted = std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty())
            && std::env::var_os("TERM").is_none_or(|t| t != "dumb");
        let color = match when {
            When::Always => true,
            When::Never => false,
            When::Auto => terminal && wanted,
        };
        Style { color, width: self.width(terminal) }
    }

    fn width(&self, terminal: bool) -> usize {
        let columns = std::env::var("COLUMNS").ok().and_then(|c| c.parse().ok()).filter(|c| *c > 0);
        let size = match self {
            Self::Stdout => terminal_size::terminal_size_of(io::stdout()),
            _ => terminal_size::terminal_size_of(io::stderr()),
        };
        let seen = if terminal { size.map(|(w, _)| usize::from(w.0)).filter(|w| *w > 0) } else { None };
        seen.or(columns).unwrap_or(Style::default().width)
    }

    /// Writes what `write` gives, in place of what was there. A reader that has gone away ends
    /// the writing quietly.
    pub(crate) fn write(&mut self, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Failure> {
        let (result, name) = match self {
            Self::Stdout => (buffered(io::stdout().lock(), write), "standard output"),
            Self::Stderr => (buffered(io::stderr().lock(), write), "standard error"),
            Self::File { path, file, .. } => {
                // Devices and pipes can't be cut short and need not be.
                let _ = file.set_len(0);
                let result = io::Seek::rewind(file).or(Ok(())).and_then(|()| buffered(&mut *file, write));
                return result.map_err(|e| Failure::file("write", path, e));
            }
        };
        match result {
            Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            result => result.map_err(|e| Failure::Stream(name, e)),
        }
    }

    /// Nothing will be written: a file that was made for it goes again.
    pub(crate) fn abandon(self) {
        if let Self::File { path, made: true, .. } = self {
            let _ = std::fs::remove_file(path);
        }
    }
}

fn buffered(to: impl Write, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let mut to = BufWriter::new(to);
    write(&mut to)?;
    to.flush()
}

/// Tells the user something on standard error; where that fails there is nobody to tell.
pub(crate) fn to_stderr(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}
