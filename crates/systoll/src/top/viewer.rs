//! Runs a thread that shows snapshots: on the terminal until the user leaves, or as text.

use super::judging::Snapshot;
use crate::environment;
use crate::failure::Failure;
use crate::output::Output;
use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;
use systoll_top::{Did, Screen, State, height, text};

/// Time between two looks for something new, unless a key is pressed.
const LOOK: Duration = Duration::from_millis(100);
/// Time that the thread gets to notice that the terminal is gone.
const TO_NOTICE: Duration = Duration::from_millis(500);
/// Width of text if no terminal tells one, columns.
const COLUMNS: usize = 100;

/// The way in which snapshots are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// On the terminal, with keys.
    Terminal,
    /// As text: this number of screens.
    Batch(u32),
}

/// The state that the threads share.
#[derive(Debug, Default)]
pub(super) struct Shared {
    /// True once the user leaves.
    leaves: AtomicBool,
    /// True once nothing is watched any more, and the last snapshot has been sent.
    is_over: AtomicBool,
    /// True if the screen is to stay once nothing is watched any more.
    stays: AtomicBool,
    /// True if the screen is on a terminal.
    on_terminal: bool,
}

impl Shared {
    /// Returns true if the user leaves, or has left.
    pub(super) fn leaves(&self) -> bool {
        self.leaves.load(Ordering::Acquire) || self.has_lost_terminal()
    }

    /// Returns true if the terminal is gone on which the screen was shown.
    pub(super) fn has_lost_terminal(&self) -> bool {
        self.on_terminal && !io::stdout().is_terminal()
    }

    /// Notes that nothing is watched any more. If `stays`, the screen stays until the user leaves.
    pub(super) fn end(&self, stays: bool) {
        self.stays.store(stays, Ordering::Release);
        self.is_over.store(true, Ordering::Release);
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }
}

/// A viewer that is not started yet.
pub(super) struct Viewer {
    state: State,
    kind: Kind,
    /// True if a program was started, which Ctrl-C ends.
    has_command: bool,
    pub(super) shared: Arc<Shared>,
}

/// The thread that shows snapshots.
pub(super) struct Viewing {
    thread: JoinHandle<Result<(), Failure>>,
    shared: Arc<Shared>,
    /// Disconnected once the thread ends.
    ends: Receiver<()>,
}

impl Viewing {
    /// Waits until the thread ends.
    ///
    /// # Errors
    ///
    /// The terminal failed, or is gone.
    pub(super) fn join(self) -> Result<(), Failure> {
        let failed = |what: &str| Failure::Terminal(io::Error::other(what.to_owned()));
        let mut lost = false;
        while self.ends.recv_timeout(TO_NOTICE) == Err(RecvTimeoutError::Timeout) {
            // The thread may hang in a read of a terminal that is gone: it ends with the process.
            if std::mem::replace(&mut lost, self.shared.has_lost_terminal()) && lost {
                return Err(failed("it is gone"));
            }
        }
        self.thread.join().map_err(|_| failed("the thread that draws has ended by a fault"))?
    }
}

impl Viewer {
    pub(super) fn new(state: State, kind: Kind, has_command: bool) -> Self {
        let shared = Shared { on_terminal: kind == Kind::Terminal, ..Shared::default() };
        Self { state, kind, has_command, shared: Arc::new(shared) }
    }

    /// Returns true if the first snapshot should come as soon as possible.
    pub(super) fn is_impatient(&self) -> bool {
        self.kind == Kind::Terminal
    }

    /// Starts the thread.
    ///
    /// # Errors
    ///
    /// No thread can be started.
    pub(super) fn start(self, snapshots: Receiver<Snapshot>) -> io::Result<Viewing> {
        let shared = Arc::clone(&self.shared);
        let (running, ends) = channel();
        let work = move || {
            let leaving = Leaving(Arc::clone(&self.shared));
            let result = match self.kind {
                Kind::Terminal => self.show_on_terminal(&snapshots).map_err(Failure::Terminal),
                Kind::Batch(screens) => self.print_texts(&snapshots, screens),
            };
            drop(leaving);
            drop::<Sender<()>>(running);
            result
        };
        let thread = std::thread::Builder::new().name("systoll-screen".into()).spawn(work)?;
        Ok(Viewing { thread, shared, ends })
    }

    fn show_on_terminal(mut self, snapshots: &Receiver<Snapshot>) -> io::Result<()> {
        let mut screen = Screen::open()?;
        screen.draw(&mut self.state)?;
        loop {
            let mut is_new = false;
            let mut time = LOOK;
            while let Some(did) = screen.wait(time)? {
                time = Duration::ZERO;
                is_new = true;
                if self.leaves_by(did) {
                    return Ok(());
                }
            }
            // `is_over` is read before the channel is emptied: it becomes true after the last
            // snapshot was sent, which is then in the channel.
            let is_over = self.shared.is_over();
            while let Ok(snapshot) = snapshots.try_recv() {
                show(&mut self.state, snapshot);
                is_new = true;
            }
            if is_over {
                if !self.shared.stays.load(Ordering::Acquire) || systoll_cure::interrupted().is_some() {
                    return Ok(());
                }
                is_new |= !self.state.has_ended;
                self.state.has_ended = true;
            }
            if is_new {
                screen.draw(&mut self.state)?;
            }
        }
    }

    /// Does what the user requested. Returns true if that is to leave.
    fn leaves_by(&mut self, did: Did) -> bool {
        match did {
            Did::Event(event) => self.state.on(event),
            Did::Interrupt if self.has_command && !self.shared.is_over() => {
                // The terminal sends no signal while the screen has it: the program gets the signal
                // from here.
                let _ = nix::sys::signal::kill(nix::unistd::Pid::this(), nix::sys::signal::Signal::SIGINT);
                false
            }
            Did::Interrupt => true,
            Did::Other => false,
        }
    }

    fn print_texts(mut self, snapshots: &Receiver<Snapshot>, screens: u32) -> Result<(), Failure> {
        let columns = u16::try_from(environment::columns().unwrap_or_else(width)).unwrap_or(u16::MAX);
        let mut output = Output::open(None, Output::Stdout)?;
        for screen in 0..screens {
            // The program may end before so many screens are printed.
            let Ok(snapshot) = snapshots.recv() else { return Ok(()) };
            show(&mut self.state, snapshot);
            let lines = height(&self.state);
            let space = if screen > 0 { "\n" } else { "" };
            let text = text(&self.state, columns.clamp(1, 1_000), lines);
            output.write("screen", |w| write!(w, "{space}{text}"))?;
        }
        Ok(())
    }
}

/// Returns the width of the terminal on standard output, or a usual width.
fn width() -> usize {
    terminal_size::terminal_size_of(io::stdout()).map_or(COLUMNS, |(width, _)| width.0.into())
}

fn show(state: &mut State, snapshot: Snapshot) {
    state.push(snapshot.tally);
    if let Some(judged) = snapshot.judged {
        state.judge(judged);
    }
}

/// Notes, when it is dropped, that the user leaves; also after a panic.
struct Leaving(Arc<Shared>);

impl Drop for Leaving {
    fn drop(&mut self) {
        self.0.leaves.store(true, Ordering::Release);
    }
}
