//! Implements `systoll mcp`: offers systoll's functions as tools for agents (docs/use/agents.md).
//!
//! Each call runs this command in a process of its own, with the words that a person would type.
//! Therefore a program's output never gets into the protocol, a call can be ended with everything
//! it started, and there is one contract.

mod arguments;
mod child;
mod clip;
mod orphans;
mod shorten;
mod tools;

use crate::failure::{Failure, ended_by};
use std::io::{self, BufReader};
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use systoll_cure::{PrivateFolder, interrupted};
use systoll_mcp::Server;

/// Text that a model reads before it chooses a tool.
const INSTRUCTIONS: &str = "systoll finds system calls that a Linux program makes needlessly, says who makes them, \
what they cost, why, and how to stop them, and proves a change by running with and without. From a finding to a \
proved patch: `run` a command that does the work (some tenths of a second at least); take the first of `findings`: \
its `user` is the file and line, `what` the object, `stop` the cures, best first; `explain` its `cause`; change the \
code or the environment; `prove` the old command against the new one (`vs`), or a cure by name before you write \
it (`cure`); `import` a trace that a bug report shows; `diff` two recordings for exact counts. No finding means that nothing was found that is worth a change: then change \
nothing. Counts are exact; a gain is claimed only by `prove`.";

/// Serves tools over standard input and output until the input ends.
pub(crate) fn serve() -> Result<ExitCode, Failure> {
    orphans::adopt();
    let shop = Arc::new(PrivateFolder::new()?);
    let server = Server {
        name: "systoll",
        version: env!("CARGO_PKG_VERSION"),
        instructions: INSTRUCTIONS,
        tools: tools::all(&shop, &Arc::new(Mutex::new(()))),
    };
    let over = || interrupted().is_some();
    systoll_mcp::serve(&server, BufReader::new(io::stdin()), io::stdout(), &over)
        .map_err(|e| Failure::Stream("standard input", e))?;
    Ok(interrupted().map_or(ExitCode::SUCCESS, |signal| ExitCode::from(ended_by(signal))))
}
