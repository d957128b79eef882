//! Implements `systoll import`: reports another tool's trace as a run of our own.

use crate::cli::ImportArgs;
use crate::failure::Failure;
use crate::output::{Left, Output, progress_line};
use crate::report::{Shown, place_to_save, save};
use indicatif::ProgressBar;
use std::io::{self, BufReader, IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use systoll_cure::end_at_once;
use systoll_import::{Import, ImportError, calls_to_price, price};
use systoll_model::{Prices, Recording};
use systoll_price::{CROSSING_BUDGET, crossing, host, price_of_failing, prices_of};

/// Number of bytes that are read at a time.
const CHUNK: usize = 1 << 18;
/// Largest number of system calls that are priced by making them: those with most calls.
const MAX_PRICED: usize = 40;

/// Reads traces and shows the requested results.
pub(crate) fn import(args: &ImportArgs) -> Result<ExitCode, Failure> {
    let traces = match args.traces.as_slice() {
        [] if io::stdin().is_terminal() => {
            return Err(Failure::Usage("which trace? systoll import FILE, or a trace on standard input"));
        }
        [] => vec![PathBuf::from("-")],
        traces => traces.to_vec(),
    };
    let runs = if args.together { vec![traces] } else { runs(&traces) };
    if runs.len() > 1 && args.save.is_some() {
        return Err(Failure::Usage("--save keeps one trace: name one, or --together where the files are of one run"));
    }
    let (mut output, shown) = Shown::open(&args.show, Output::Stdout)?;
    let mut kept = args.save.as_deref().map(|path| place_to_save(path, args.force)).transpose()?;
    let [traces] = runs.as_slice() else { return each(args, runs, &mut output, &shown) };
    let mut recording = read(args, traces)?;
    end_at_once(": all is read, and not judged yet");
    price_here(&mut recording);
    let told = shown.tell(&mut output, &recording);
    kept.as_mut().map_or(Ok(()), |place| save(place, &recording))?;
    told?;
    Ok(ExitCode::SUCCESS)
}

/// Reports each of several runs. A run that can't be read is reported as such and left out.
fn each(args: &ImportArgs, runs: Vec<Vec<PathBuf>>, output: &mut Output, shown: &Shown) -> Result<ExitCode, Failure> {
    let mut all = Vec::new();
    let mut trouble = None;
    for traces in runs {
        match read(args, &traces) {
            Ok(mut recording) => {
                price_here(&mut recording);
                all.push((traces.into_iter().next().unwrap_or_default(), recording));
            }
            Err(failure) => trouble = Some(failure.tell()),
        }
    }
    if !all.is_empty() {
        shown.tell_each(output, &all)?;
    }
    Ok(trouble.unwrap_or(ExitCode::SUCCESS))
}

/// Returns the files of each run. Files that `strace -ff` wrote of one run differ in the thread's
/// id at the end of their names, and are together; every other file is a run of its own.
fn runs(traces: &[PathBuf]) -> Vec<Vec<PathBuf>> {
    let mut runs: Vec<(Option<PathBuf>, Vec<PathBuf>)> = Vec::new();
    for path in traces {
        let of = (tid(path) > 0).then(|| path.with_extension(""));
        match runs.iter_mut().find(|(stem, _)| of.is_some() && *stem == of) {
            Some((_, files)) => files.push(path.clone()),
            None => runs.push((of, vec![path.clone()])),
        }
    }
    runs.into_iter().map(|(_, files)| files).collect()
}

fn read(args: &ImportArgs, traces: &[PathBuf]) -> Result<Recording, Failure> {
    let mut import = Import::new(args.seed);
    let mut traces = traces.to_vec();
    // A thread's creator exists before it, and usually has a lower id.
    traces.sort_by_key(|path| tid(path));
    let several = traces.len() > 1;
    let mut reading = Reading::of(&traces);
    for path in &traces {
        match reading.one(&mut import, path) {
            // A thread without calls leaves an empty file.
            Err(ImportError::Empty) if several => {}
            done => done.map_err(|e| Failure::Trace(path.clone(), e))?,
        }
    }
    reading.line.finish_and_clear();
    import.finish().map_err(|e| Failure::Trace(traces.first().cloned().unwrap_or_default(), e))
}

/// The progress of reading traces.
struct Reading {
    done: u64,
    /// Number of bytes of all traces; `None` if one has no size.
    all: Option<u64>,
    line: ProgressBar,
    left: Left,
}

impl Reading {
    fn of(traces: &[PathBuf]) -> Self {
        let size = |path: &PathBuf| std::fs::metadata(path).ok().filter(|m| m.is_file()).map(|m| m.len());
        let all = traces.iter().map(size).sum();
        Self { done: 0, all, line: progress_line(false), left: Left::new() }
    }

    fn one(&mut self, import: &mut Import, path: &Path) -> Result<(), ImportError> {
        if path == Path::new("-") {
            let input = CountedTrace { input: io::stdin().lock(), reading: self };
            return import.read("-", BufReader::with_capacity(CHUNK, input));
        }
        let input = CountedTrace { input: systoll_files::input(path)?, reading: self };
        import.read(&path.to_string_lossy(), BufReader::with_capacity(CHUNK, input))
    }

    /// Reports `bytes` more bytes as read.
    fn add(&mut self, bytes: usize) {
        const MIB: u64 = 1 << 20;
        self.done += bytes as u64;
        let (done, all) = (self.done / MIB, self.all.map(|all| all.div_ceil(MIB)));
        let far = all.map_or_else(|| format!("{done} MiB read"), |all| format!("{done} of {all} MiB read"));
        end_at_once(format!(": {far}, and half a trace is not reported"));
        let left = self.all.map_or_else(String::new, |all| self.left.words(self.done, all));
        self.line.set_message(far + &left);
        self.line.tick();
    }
}

/// A trace whose reading is counted.
struct CountedTrace<'a, R> {
    input: R,
    reading: &'a mut Reading,
}

impl<R: Read> Read for CountedTrace<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let got = self.input.read(buffer)?;
        self.reading.add(got);
        Ok(got)
    }
}

/// Returns the id of the thread whose file this is, if the name ends with an id; else 0.
fn tid(path: &Path) -> u64 {
    path.extension().and_then(|e| e.to_str()).and_then(|e| e.parse().ok()).unwrap_or(0)
}

/// Prices the calls on this box: a trace does not say what they cost where it was made.
fn price_here(recording: &mut Recording) {
    let before = crossing(CROSSING_BUDGET);
    let calls = prices_of(calls_to_price(recording).into_iter().take(MAX_PRICED));
    let prices =
        Prices { crossing_before: before, crossing_after: crossing(CROSSING_BUDGET), calls, ..Prices::default() };
    price(recording, prices, price_of_failing);
    recording.header.host = host();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_files_are_one_run() {
        let paths: Vec<PathBuf> = ["a.trace", "b.4711", "b.4712", "c.txt", "a.trace"].map(PathBuf::from).into();
        let runs: Vec<usize> = runs(&paths).iter().map(Vec::len).collect();
        assert_eq!(runs, [1, 2, 1, 1]);
    }
}
