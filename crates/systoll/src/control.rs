//! Writes output while a program runs: progress, and reports so far.

use crate::output::{Output, to_stderr};
use crate::report::Shown;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{self, IsTerminal};
use std::time::Duration;
use systoll_model::Recording;
use systoll_record::Control;

/// Shortest time of a run that shows progress.
const PATIENCE: Duration = Duration::from_secs(2);

/// Shows the user how a run is going.
pub(crate) struct Live<'a> {
    shown: &'a Shown,
    every: Option<Duration>,
    line: Option<ProgressBar>,
    said_left_behind: bool,
    quiet: bool,
    /// True if a command that systoll started writes to our terminal.
    shares_terminal: bool,
}

impl<'a> Live<'a> {
    pub(crate) fn new(shown: &'a Shown, every: Option<Duration>, quiet: bool, shares_terminal: bool) -> Self {
        // A program that writes to the same terminal has the terminal to itself.
        let free = !shares_terminal || !io::stdout().is_terminal();
        let line = !quiet && io::stderr().is_terminal() && free;
        let line = line.then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(5));
            if let Ok(style) = ProgressStyle::with_template("systoll  {elapsed}  {msg}") {
                bar.set_style(style);
            }
            bar
        });
        Self { shown, every, line, said_left_behind: false, quiet, shares_terminal }
    }

    /// Removes the progress line.
    pub(crate) fn done(&self) {
        if let Some(line) = &self.line {
            line.finish_and_clear();
        }
    }
}

impl Control for Live<'_> {
    fn progress(&mut self, calls: u64, processes: usize, command_ended: bool) {
        if let Some(line) = &self.line
            && line.elapsed() > PATIENCE
        {
            line.set_message(format!("{calls} system calls, {processes} processes"));
            line.tick();
        }
        if command_ended && processes > 0 && !self.said_left_behind && !self.quiet && io::stderr().is_terminal() {
            self.said_left_behind = true;
            to_stderr("systoll: the command has ended, processes it left behind run on; Ctrl-C ends the watching\n");
        }
    }

    fn every(&self) -> Option<Duration> {
        self.every
    }

    fn snapshot(&mut self, recording: Recording) {
        self.done();
        let stream = if self.shares_terminal { Output::Stderr } else { Output::Stdout };
        self.shown.so_far(&recording, stream);
    }
}
