//! Chooses the backend if the user names none: the cheapest one that can watch the program.

use crate::backend::{Backend, Control, Launch};
use crate::bpf::BpfBackend;
use crate::error::Error;
use crate::ptrace::PtraceBackend;
use std::time::Duration;
use systoll_model::{BackendKind, Problem, ProblemKind, Recording};

/// True if [`automatic`] tries the in-process backend first; otherwise that backend watches only when asked for by
/// name. On aarch64 it is a preview.
pub const AUTO_INPROC: bool = cfg!(target_arch = "x86_64");

/// The backend that enters running processes if the user names none: the cheapest one that shows what calls are about.
pub const ENTERING: BackendKind = if cfg!(target_arch = "x86_64") { BackendKind::Inproc } else { BackendKind::Ptrace };

/// Returns the backend of that kind.
#[must_use]
pub fn backend(kind: BackendKind) -> Box<dyn Backend> {
    match kind {
        #[cfg(target_arch = "x86_64")]
        BackendKind::Inproc => Box::new(crate::inproc::InprocBackend::new()),
        #[cfg(target_arch = "aarch64")]
        BackendKind::Inproc => Box::new(PtraceBackend::counting_inside()),
        BackendKind::Bpf => Box::new(BpfBackend::new()),
        // An import has no backend; ptrace can watch nearly anything.
        BackendKind::Ptrace | BackendKind::Import => Box::new(PtraceBackend::new()),
    }
}

/// Returns the backends to try if the user names none, cheapest first: those that show what calls are about,
/// and the lines of scripts that make them.
#[must_use]
pub fn automatic() -> Vec<Box<dyn Backend>> {
    let wanted = |kind: BackendKind| {
        kind.samples_calls() && kind.reads_scripts() && (AUTO_INPROC || kind != BackendKind::Inproc)
    };
    backends().into_iter().filter(|b| wanted(b.kind())).collect()
}

/// Runs `launch` with the first of `backends` that can watch it. A backend that refuses has run nothing of the program.
/// The recording's first problem is then a note that says which backends refused and why.
///
/// # Errors
/// The error that keeps the program from being started at all, or a refusal if all backends refuse.
pub fn run_with_first(
    backends: &mut [Box<dyn Backend>],
    launch: &Launch,
    control: &mut dyn Control,
) -> Result<Recording, Error> {
    let mut refused: Vec<(BackendKind, Error)> = Vec::new();
    for backend in backends {
        let note = note(backend.kind(), &refused);
        let mut noting = Noting { control, note: note.as_ref() };
        match backend.run(launch, &mut noting) {
            Ok(mut recording) => {
                recording.problems.splice(0..0, note);
                return Ok(recording);
            }
            Err(e @ (Error::Refused { .. } | Error::NoElision(_))) => refused.push((backend.kind(), e)),
            Err(e) => return Err(e),
        }
    }
    // The reason of a backend that refused tells the user more than one that merely can't elide calls.
    let skilled = refused.iter().rposition(|(_, e)| matches!(e, Error::Refused { .. }));
    let which = skilled.unwrap_or(refused.len().saturating_sub(1));
    Err(refused.into_iter().nth(which).map_or(Error::NoBackend, |(_, e)| e))
}

/// Explains why `kind` watches instead of the cheaper backends that refused.
fn note(kind: BackendKind, refused: &[(BackendKind, Error)]) -> Option<Problem> {
    let why = |(kind, error): &(BackendKind, Error)| match error {
        Error::Refused { reason, .. } => format!("{} can't here: {reason}", kind.name()),
        other => format!("{} can't: {other}", kind.name()),
    };
    let why: Vec<_> = refused.iter().map(why).collect();
    let text = format!("watched by {} because {}", kind.name(), why.join("; "));
    (!why.is_empty()).then(|| Problem::new(ProblemKind::Note, text))
}

/// A control that adds the note to each report made during the run.
struct Noting<'a> {
    control: &'a mut dyn Control,
    note: Option<&'a Problem>,
}

impl Control for Noting<'_> {
    fn progress(&mut self, calls: u64, processes: usize, command_ended: bool) {
        self.control.progress(calls, processes, command_ended);
    }

    fn every(&self) -> Option<Duration> {
        self.control.every()
    }

    fn leaves(&self) -> bool {
        self.control.leaves()
    }

    fn begins(&mut self) {
        self.control.begins();
    }

    fn seen(&mut self) {
        self.control.seen();
    }

    fn wants_snapshot(&mut self) -> bool {
        self.control.wants_snapshot()
    }

    fn snapshot(&mut self, mut recording: Recording) {
        if let Some(note) = self.note {
            recording.problems.insert(0, note.clone());
        }
        self.control.snapshot(recording);
    }
}

/// Returns every backend of this build, cheapest first.
#[must_use]
pub fn backends() -> Vec<Box<dyn Backend>> {
    [BackendKind::Inproc, BackendKind::Bpf, BackendKind::Ptrace].into_iter().map(backend).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::{Probe, Quiet};
    use systoll_model::{Header, Spread};

    /// A backend that fails with the given error, or watches.
    struct Fake(BackendKind, fn() -> Option<Error>);

    impl Backend for Fake {
        fn kind(&self) -> BackendKind {
            self.0
        }
        fn probe(&self) -> Probe {
            Probe { kind: self.0, can_run: true, found: Vec::new(), missing: Vec::new() }
        }
        fn cost(&self) -> Result<Spread, Error> {
            Ok(Spread::default())
        }
        fn run(&mut self, _: &Launch, control: &mut dyn Control) -> Result<Recording, Error> {
            if let Some(error) = (self.1)() {
                return Err(error);
            }
            let header = Header { backend: self.0, ..Header::default() };
            let recording = Recording { header, ..Recording::default() };
            control.snapshot(recording.clone());
            Ok(recording)
        }
    }

    fn refuses() -> Option<Error> {
        Some(Error::Refused { backend: BackendKind::Inproc, reason: "/bin/x: it uses the gs segment".into() })
    }

    fn run(all: Vec<Fake>, control: &mut dyn Control) -> Result<Recording, Error> {
        let mut all: Vec<Box<dyn Backend>> = all.into_iter().map(|f| Box::new(f) as Box<dyn Backend>).collect();
        run_with_first(&mut all, &Launch::default(), control)
    }

    #[test]
    fn the_first_that_can_watches_and_says_nothing() {
        let recording = run(vec![Fake(BackendKind::Inproc, || None), Fake(BackendKind::Ptrace, || None)], &mut Quiet);
        let recording = recording.unwrap();
        assert_eq!((recording.header.backend, recording.problems.len()), (BackendKind::Inproc, 0));
    }

    #[test]
    fn who_watches_instead_says_why_without_spoiling_exactness() {
        #[derive(Default)]
        struct Snapshots(Vec<usize>);
        impl Control for Snapshots {
            fn progress(&mut self, _: u64, _: usize, _: bool) {}
            fn every(&self) -> Option<Duration> {
                None
            }
            fn snapshot(&mut self, recording: Recording) {
                self.0.push(recording.problems.len());
            }
        }
        let mut snapshots = Snapshots::default();
        let all = vec![Fake(BackendKind::Inproc, refuses), Fake(BackendKind::Ptrace, || None)];
        let recording = run(all, &mut snapshots).unwrap();
        assert_eq!((recording.header.backend, snapshots.0), (BackendKind::Ptrace, vec![1]));
        let expected = "watched by ptrace because inproc can't here: /bin/x: it uses the gs segment";
        assert_eq!(recording.problems.iter().map(|p| &*p.text).collect::<Vec<_>>(), [expected]);
        assert!(recording.exact());
    }

    #[test]
    fn what_no_backend_could_start_is_not_tried_twice() {
        let all = vec![
            Fake(BackendKind::Inproc, || Some(Error::NotFound("x".into()))),
            Fake(BackendKind::Ptrace, || unreachable!("tried again")),
        ];
        assert!(matches!(run(all, &mut Quiet), Err(Error::NotFound(_))));
    }

    #[test]
    fn a_refusal_says_more_than_a_lack_of_skill() {
        let no_skill = || Some(Error::NoElision(BackendKind::Ptrace));
        let all = vec![Fake(BackendKind::Inproc, refuses), Fake(BackendKind::Ptrace, no_skill)];
        assert!(matches!(run(all, &mut Quiet), Err(Error::Refused { backend: BackendKind::Inproc, .. })));
        assert!(matches!(run(vec![], &mut Quiet), Err(Error::NoBackend)));
    }

    #[test]
    fn backends_come_cheapest_first_and_can_be_had_by_kind() {
        let kinds: Vec<_> = backends().iter().map(|b| b.kind()).collect();
        assert_eq!(kinds, [BackendKind::Inproc, BackendKind::Bpf, BackendKind::Ptrace]);
        for kind in kinds {
            assert_eq!(backend(kind).kind(), kind);
        }
        assert_eq!(automatic().last().map(|b| b.kind()), Some(BackendKind::Ptrace));
    }
}
