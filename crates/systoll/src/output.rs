//! Opens the outputs that reports are written to.

pub(crate) mod ascii;
mod place;
mod stderr;

use crate::cli::When;
use crate::environment;
use crate::failure::Failure;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::Path;
use std::time::{Duration, Instant};
use systoll_present::Style;

use ascii::Ascii;
pub(crate) use place::ResultPath;
pub(crate) use stderr::{stderr_columns, to_stderr};

/// Largest size of a report that is shown on a terminal if its file fails, bytes. JSON is longer.
const SOME_SCREENS: usize = 8 << 10;

/// An output for a report, checked before anything is started.
pub(crate) enum Output {
    Stdout,
    Stderr,
    File(ResultPath),
}

impl When {
    /// Returns true if output is coloured; `terminal` is true if it goes to a terminal.
    pub(crate) fn colours(self, terminal: bool) -> bool {
        match self {
            Self::Always => true,
            Self::Never => false,
            Self::Auto => terminal && environment::allows_colours(),
        }
    }
}

impl Output {
    /// Opens the file that is named, else `stream`.
    pub(crate) fn open(path: Option<&Path>, stream: Output) -> Result<Self, Failure> {
        let Some(path) = path else {
            let (fd, name) = match stream {
                Output::Stdout => (1, "standard output"),
                _ => (2, "standard error"),
            };
            return if systoll_record::was_closed(fd) { Err(Failure::Closed(name)) } else { Ok(stream) };
        };
        ResultPath::open(path).map(Self::File).map_err(|e| Failure::file("write", path, e))
    }

    /// Returns true if people read the output directly.
    pub(crate) fn is_terminal_or_stderr(&self) -> bool {
        match self {
            Self::Stdout => io::stdout().is_terminal(),
            Self::Stderr => true,
            Self::File(_) => false,
        }
    }

    /// Returns the style for this output.
    pub(crate) fn style(&self, when: When) -> Style {
        let terminal = match self {
            Self::Stdout => io::stdout().is_terminal(),
            Self::Stderr => io::stderr().is_terminal(),
            Self::File(_) => false,
        };
        Style { color: when.colours(terminal), width: self.width(terminal), whole_names: !terminal }
    }

    fn width(&self, terminal: bool) -> usize {
        let size = match self {
            Self::Stdout => terminal_size::terminal_size_of(io::stdout()),
            _ => terminal_size::terminal_size_of(io::stderr()),
        };
        let seen = if terminal { size.map(|(w, _)| usize::from(w.0)).filter(|w| *w > 0) } else { None };
        seen.or_else(environment::columns).unwrap_or(Style::default().width)
    }

    /// Writes the output of `write`, replacing a file's content. If the reader of our own streams
    /// went away, writing ends quietly. If a file can't be written, the report goes to standard
    /// error (to a terminal only if it is short), and the failure is returned all the same. `what`
    /// names the content in messages.
    pub(crate) fn write(
        &mut self,
        what: &'static str,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), Failure> {
        let as_wanted = |w: &mut dyn Write| if ascii::wanted() { write(&mut Ascii::new(w)) } else { write(w) };
        let Self::File(place) = self else { return self.write_as_is(what, as_wanted) };
        let bytes = whole(as_wanted).map_err(|e| Failure::file("write", &place.path, e))?;
        keep(what, place, &bytes).inspect_err(|_| {
            if bytes.len() <= SOME_SCREENS || !io::stderr().is_terminal() {
                // If that fails too, no way is left to tell.
                let _ = io::stderr().lock().write_all(&bytes);
            }
        })
    }

    /// Works as [`Output::write`] but ignores the locale: for other tools' files, which nobody
    /// reads on a screen.
    pub(crate) fn write_as_is(
        &mut self,
        what: &'static str,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), Failure> {
        systoll_cure::telling();
        let (result, name) = match self {
            Self::Stdout => (buffered(io::stdout().lock(), write), "standard output"),
            Self::Stderr => (buffered(io::stderr().lock(), write), "standard error"),
            Self::File(place) => {
                let bytes = whole(write).map_err(|e| Failure::file("write", &place.path, e))?;
                return keep(what, place, &bytes);
            }
        };
        match result {
            Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            result => result.map_err(|e| Failure::Stream(name, e)),
        }
    }
}

/// Writes `bytes` to `place`. `what` names the content in messages.
pub(crate) fn keep(what: &'static str, place: &mut ResultPath, bytes: &[u8]) -> Result<(), Failure> {
    match place.put(bytes) {
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe && place.goes_on => Ok(()),
        result => result.map_err(|source| Failure::NotKept {
            what,
            path: place.path.clone(),
            source,
            bytes: bytes.len() as u64,
        }),
    }
}

/// Returns the whole output of `write`: a file is replaced at once or not at all.
pub(crate) fn whole(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    write(&mut bytes)?;
    Ok(bytes)
}

fn buffered(to: impl Write, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let mut to = BufWriter::new(to);
    write(&mut to)?;
    to.flush()
}

/// Returns a progress line on standard error, which is hidden if that is no terminal.
pub(crate) fn progress_line(quiet: bool) -> ProgressBar {
    if quiet || !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let line = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(5));
    if let Ok(style) = ProgressStyle::with_template("systoll  {elapsed}  {msg}") {
        line.set_style(style);
    }
    line
}

/// Estimates the time that the remaining steps take, from the time of the finished ones.
pub(crate) struct Left(Instant);

impl Left {
    /// Starts the clock.
    pub(crate) fn new() -> Self {
        Self(Instant::now())
    }

    /// Returns `, about 12 s left`; nothing before the first step is done.
    pub(crate) fn words(&self, done: u64, of: u64) -> String {
        let left = of.saturating_sub(done);
        if done == 0 || left == 0 {
            return String::new();
        }
        let seconds = self.0.elapsed().as_secs_f64() * (left as f64 / done as f64);
        format!(", about {} left", shown_time(Duration::from_secs_f64(seconds.min(1e9))))
    }
}

/// Returns a time with the precision of a guess: `0.4 s`, `12 s`, `3 min 40 s`.
pub(crate) fn shown_time(time: Duration) -> String {
    let seconds = time.as_secs_f64().ceil() as u64;
    match seconds {
        0..=1 if time < Duration::from_secs(1) => format!("{:.1} s", time.as_secs_f64()),
        0..=59 => format!("{seconds} s"),
        _ if seconds.is_multiple_of(60) => format!("{} min", seconds / 60),
        _ => format!("{} min {} s", seconds / 60, seconds % 60),
    }
}
