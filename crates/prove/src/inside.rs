//! Runs programs watched in-process, for calls that are answered in place of the kernel: nothing
//! else can show their gain.
//!
//! Both sides run with the same hooks, which only count: their cost is on both sides.

use crate::executor::Files;
use crate::{Answered, Executor, Output, Processes, ProveError, Run, missed, words_of};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use systoll_cure::{Deadline, RunError, Spec, Usage, children_so_far, interrupted, interrupted_after};
use systoll_model::{BackendKind, Exit, ProblemKind, Recording};
use systoll_record::{Closely, HowToWatch, Launch, Quiet, backend};

/// Time for which processes that a program left behind are waited for after it was told to end.
const LINGER: Duration = Duration::from_secs(1);

/// Runs programs watched by the in-process backend.
#[derive(Clone, Debug, Default)]
pub struct Inside {
    /// The actions around each run.
    pub around: Processes,
    /// Counts of the calls that were to be answered in place.
    pub answered: Answered,
}

impl Inside {
    fn watched(spec: &Spec, files: Files, limit: Option<Duration>) -> Result<(Usage, Recording), ProveError> {
        let launch = Launch {
            command: spec.argv(),
            env: spec.env.clone(),
            cwd: spec.cwd.clone(),
            streams: [files.stdin, files.stdout, files.stderr].map(|f| Some(Arc::new(f))),
            linger: LINGER,
            how: HowToWatch { elisions: spec.elisions.clone(), closely: Closely::CountsOnly, ..HowToWatch::default() },
            ..Launch::default()
        };
        let mut inproc = backend(BackendKind::Inproc);
        let before = children_so_far();
        let deadline = Deadline::after(limit);
        if let Some(signal) = interrupted() {
            return Err(ProveError::Interrupted { signal });
        }
        let recording = inproc.run(&launch, &mut Quiet);
        let late = deadline.has_come();
        let exit = recording.as_ref().ok().and_then(|r| r.header.exit);
        if let Some(signal) = exit.map_or_else(interrupted, interrupted_after) {
            return Err(ProveError::Interrupted { signal });
        }
        let recording = recording?;
        if let (true, Some(limit)) = (late, limit) {
            return Err(RunError::Timeout { program: spec.program.display().to_string(), limit }.into());
        }
        let after = children_so_far();
        let header = &recording.header;
        let usage = Usage {
            exit: header.exit.unwrap_or(Exit::Code(0)),
            wall_ns: header.wall_ns,
            user_ns: header.user_ns,
            sys_ns: header.sys_ns,
            max_rss: 0,
            switches: after.0.saturating_sub(before.0),
            faults: after.1.saturating_sub(before.1),
        };
        Ok((usage, recording))
    }
}

impl Executor for Inside {
    fn run(&mut self, spec: &Spec, output: &Output, limit: Option<Duration>) -> Result<Run, ProveError> {
        let limit = self.around.shortest(limit);
        let looked_at = matches!(output, Output::Digested(_));
        let answered = &mut self.answered;
        self.around.around(output, |files| {
            let (usage, recording) = Self::watched(spec, files, limit)?;
            if spec.elisions.is_empty() {
                return Ok(usage);
            }
            if looked_at && recording.total().elided == 0 {
                return Err(nothing_answered(spec, &recording));
            }
            answered.add(&recording);
            Ok(usage)
        })
    }

    fn answered(&self) -> Option<Answered> {
        (self.answered.runs > 0).then(|| self.answered.clone())
    }

    fn watches(&self) -> bool {
        true
    }
}

/// Returns the error that no call was answered in place, with the reason from the recording.
fn nothing_answered(spec: &Spec, recording: &Recording) -> ProveError {
    let names: Vec<&str> = spec.elisions.iter().map(|e| e.name()).collect();
    let made: u64 = recording
        .by_syscall()
        .iter()
        .filter(|t| t.syscall.name().is_some_and(|n| names.contains(&n)))
        .map(|t| t.counts.calls)
        .sum();
    let told: BTreeSet<&str> = recording
        .problems
        .iter()
        .filter(|p| p.kind == ProblemKind::Lost || p.text.contains("not answered in place"))
        .map(|p| p.text.as_str())
        .collect();
    let why = if !told.is_empty() {
        told.into_iter().collect::<Vec<_>>().join("; ")
    } else if made == 0 {
        "the program makes no such calls".into()
    } else {
        let needed = recording.in_place.iter().map(|p| p.needed).fold(0, u64::saturating_add);
        let parts = missed(&recording.in_place).into_iter().map(|(why, n)| format!("{n} {}", words_of(why)));
        let first = (needed > 0).then(|| format!("{needed} changed something, failed, or were their thread's first"));
        format!("of {made}, {}", parts.chain(first).collect::<Vec<_>>().join("; "))
    };
    ProveError::NothingAnswered { calls: names.join(", "), why }
}
