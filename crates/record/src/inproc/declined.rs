//! The in-process backend on machines for which no counting code is written: it declines, so that ptrace watches.

use crate::backend::{Backend, Control, HowToWatch, Launch, Probe, Running};
use crate::error::Error;
use systoll_model::{BackendKind, Machine, Recording, Spread};

/// The backend that would watch from inside.
#[derive(Debug, Default)]
pub struct InprocBackend(());

impl InprocBackend {
    /// Creates a backend.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

/// Returns the reason why the backend watches nothing.
fn why() -> String {
    format!("its counting code is written for x86-64, and this machine is {}", Machine::HERE.name())
}

fn refused(how: &HowToWatch) -> Error {
    match how.elisions.is_empty() {
        true => Error::refused(BackendKind::Inproc, why()),
        false => no_answers(),
    }
}

fn no_answers() -> Error {
    Error::refused(BackendKind::Inproc, format!("{}, and {STOPS}", why()))
}

/// Refuses to answer calls in place.
///
/// # Errors
/// Always.
pub fn can_answer() -> Result<(), Error> {
    Err(no_answers())
}

/// Why no other backend answers calls in place.
const STOPS: &str = "ptrace, which watches here, would stop the program twice for a call that it answers: nothing to win \
                     could be measured";

impl Backend for InprocBackend {
    fn kind(&self) -> BackendKind {
        BackendKind::Inproc
    }

    fn probe(&self) -> Probe {
        Probe { kind: BackendKind::Inproc, can_run: false, found: Vec::new(), missing: vec![(why(), None)] }
    }

    fn cost(&self) -> Result<Spread, Error> {
        Err(Error::refused(BackendKind::Inproc, why()))
    }

    fn run(&mut self, launch: &Launch, _: &mut dyn Control) -> Result<Recording, Error> {
        Err(refused(&launch.how))
    }

    fn attach(&mut self, running: &Running, _: &mut dyn Control) -> Result<Recording, Error> {
        Err(refused(&running.how))
    }
}

/// Returns false: no systoll can have left counting code in process `pid`.
///
/// # Errors
/// None here.
pub fn clean(_pid: i32) -> Result<bool, Error> {
    Ok(false)
}
