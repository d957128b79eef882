//! Takes exact counts of both sides from watched runs.

use super::cure_choice::ChosenCure;
use super::prediction::expected;
use crate::cli::ProveArgs;
use crate::explain::catalogue;
use crate::failure::Failure;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use systoll_cure::{Spec, interrupted, interrupted_after};
use systoll_model::Recording;
use systoll_prove::{CallCounts, ExpectedWin, shell};
use systoll_record::{HowToWatch, Launch, Quiet, automatic, run_with_first};

/// The counts of one side's calls.
pub(super) struct SideCounts {
    pub(super) calls: CallCounts,
    /// True if the side made a call that a cure is for, or if that can't be told.
    pub(super) made: bool,
    /// The watched runs.
    pub(super) recordings: Vec<Recording>,
}

/// The counts of both sides, and the gain predicted from them.
pub(super) struct PairCounts {
    pub(super) a: CallCounts,
    pub(super) b: CallCounts,
    /// True if the unchanged side made a call that a cure is for.
    pub(super) made: bool,
    /// The predicted gain from the calls that are gone.
    pub(super) expected: Option<ExpectedWin>,
}

impl PairCounts {
    /// Watches runs of both sides.
    pub(super) fn of(a: &Spec, b: &Spec, cures: &[ChosenCure], args: &ProveArgs) -> Result<Self, Failure> {
        let [a, b] = [counted(a, cures, args)?, counted(b, cures, args)?];
        let catalogue = catalogue(args.causes.folder.as_deref())?;
        let expected = expected(&a.recordings, &a.calls, &b.calls, &catalogue);
        Ok(Self { a: a.calls, b: b.calls, made: a.made, expected })
    }
}

fn made(recordings: &[Recording], cures: &[ChosenCure]) -> bool {
    let none = |r: &Recording| r.exact() && cures.iter().all(|cure| cure.could_explain(r) == Some(0));
    cures.is_empty() || recordings.is_empty() || !recordings.iter().all(none)
}

/// Watches the requested number of runs of one side, with the same input and preparation as the
/// timed runs.
pub(super) fn counted(spec: &Spec, cures: &[ChosenCure], args: &ProveArgs) -> Result<SideCounts, Failure> {
    let mut recordings = Vec::new();
    for seed in 0..args.watched {
        if let Some(prepare) = &args.prepare {
            shell(prepare, Vec::new())?;
        }
        let path = args.input.as_deref().unwrap_or(Path::new("/dev/null"));
        let input = File::open(path).map_err(|e| Failure::file("read", path, e))?;
        let launch = Launch {
            command: spec.argv(),
            env: spec.env.clone(),
            cwd: spec.cwd.clone(),
            discard_output: true,
            streams: [Some(Arc::new(input)), None, None],
            linger: Duration::from_secs(1),
            how: HowToWatch { elisions: spec.elisions.clone(), seed: seed.into(), ..HowToWatch::default() },
            ..Launch::default()
        };
        let watched = run_with_first(&mut automatic(), &launch, &mut Quiet);
        let exit = watched.as_ref().ok().and_then(|r| r.header.exit);
        if let Some(signal) = exit.map_or_else(interrupted, interrupted_after) {
            return Err(Failure::Interrupted(signal));
        }
        recordings.push(watched?);
    }
    Ok(SideCounts { made: made(&recordings, cures), calls: CallCounts::of(&recordings), recordings })
}
