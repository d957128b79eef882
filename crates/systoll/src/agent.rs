//! Implements `systoll agent`.

use crate::cli::{AgentArgs, AgentCommand};
use crate::explain::catalogue;
use crate::failure::Failure;
use crate::output::to_stderr;
use std::process::ExitCode;
use std::time::Instant;
use systoll_agent::{Options, Receivers, watch_box};

/// Watches the box until a signal, or the requested time, ends that.
pub(crate) fn agent(args: &AgentArgs) -> Result<ExitCode, Failure> {
    if let Some(AgentCommand::Look(look)) = &args.command {
        return crate::attach::look(look);
    }
    let catalogue = catalogue(args.causes.folder.as_deref())?;
    let _limits = systoll_record::Raised::new();
    let options = Options {
        budget: args.budget,
        folder: args.dir.clone().unwrap_or_default(),
        interval: args.interval,
        keep_days: args.keep_days,
        keep_bytes: args.keep_size,
        listen: args.listen,
        receivers: Receivers {
            otlp: args.otlp.clone(),
            otlp_profiles: args.otlp_profiles,
            pprof: args.pprof_push.clone(),
        },
        host: args.host.clone(),
        seed: args.seed.unwrap_or_else(crate::seed::fresh),
    };
    // At a signal, what was found is written, however long that takes on a busy box; a second signal ends it at once.
    systoll_cure::settle();
    let began = Instant::now();
    let stop = || systoll_cure::interrupted().is_some() || args.window.is_some_and(|window| began.elapsed() >= window);
    let mut log = |line: &str| to_stderr(&format!("systoll agent: {}\n", systoll_present::clean(line)));
    watch_box(&options, &catalogue, &stop, &mut log).map_err(|e| match e {
        systoll_agent::AgentError::Record(e) => Failure::Record(e),
        other => Failure::Agent(other),
    })?;
    // Whoever keeps services tells them to end by a signal: that is no failure.
    Ok(ExitCode::SUCCESS)
}
