//! Exact counts of a side, from watched runs.

use crate::cli::ProveArgs;
use crate::failure::Failure;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use systoll_cure::Spec;
use systoll_prove::{CallCounts, shell};
use systoll_record::{Launch, Quiet, automatic, run_with_first};

/// Watches as many runs as asked for. They read what the timed ones read, and are prepared alike.
pub(super) fn counted(spec: &Spec, args: &ProveArgs) -> Result<CallCounts, Failure> {
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
        recordings.push(run_with_first(&mut automatic(), &launch, &mut Quiet)?);
        systoll_cure::wait_if_ending();
    }
    Ok(CallCounts::of(&recordings))
}
