//! Exact counts of a side, from watched runs.

use super::chosen::Chosen;
use super::expected::expected;
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
use systoll_record::{Launch, Quiet, automatic, run_with_first};

/// What was counted of a side.
pub(super) struct Counted {
    pub(super) calls: CallCounts,
    /// Whether it made any call that a cure is for; also where that can't be told.
    pub(super) made: bool,
    /// The runs.
    pub(super) recordings: Vec<Recording>,
}

/// What was counted of both sides, and what their calls tell together.
pub(super) struct BothCounted {
    pub(super) a: CallCounts,
    pub(super) b: CallCounts,
    /// Whether the side as it is made any call that a cure is for.
    pub(super) made: bool,
    /// What was told to be won by the calls that are gone.
    pub(super) expected: Option<ExpectedWin>,
}

impl BothCounted {
    /// Watches the runs of both sides.
    pub(super) fn of(a: &Spec, b: &Spec, cures: &[Chosen], args: &ProveArgs) -> Result<Self, Failure> {
        let [a, b] = [counted(a, cures, args)?, counted(b, cures, args)?];
        let catalogue = catalogue(args.causes.as_deref())?;
        let expected = expected(&a.recordings, &a.calls, &b.calls, &catalogue);
        Ok(Self { a: a.calls, b: b.calls, made: a.made, expected })
    }
}

fn made(recordings: &[Recording], cures: &[Chosen]) -> bool {
    let none = |r: &Recording| r.exact() && cures.iter().all(|cure| cure.could_explain(r) == Some(0));
    cures.is_empty() || recordings.is_empty() || !recordings.iter().all(none)
}

/// Watches as many runs as asked for. They read what the timed ones read, and are prepared alike.
pub(super) fn counted(spec: &Spec, cures: &[Chosen], args: &ProveArgs) -> Result<Counted, Failure> {
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
            elisions: spec.elisions.clone(),
            linger: Duration::from_secs(1),
            seed: seed.into(),
            ..Launch::default()
        };
        let watched = run_with_first(&mut automatic(), &launch, &mut Quiet);
        let exit = watched.as_ref().ok().and_then(|r| r.header.exit);
        if let Some(signal) = exit.map_or_else(interrupted, interrupted_after) {
            return Err(Failure::Interrupted(signal));
        }
        recordings.push(watched?);
    }
    Ok(Counted { made: made(&recordings, cures), calls: CallCounts::of(&recordings), recordings })
}
