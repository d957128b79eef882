//! Implements `systoll demo --prove`: measures every way to avoid a story's calls, beside the
//! program that is built without them.

use crate::environment;
use crate::failure::Failure;
use std::path::Path;
use std::time::Duration;
use systoll_cure::{Pair, Shim, Spec, preload};
use systoll_judge::{Catalogue, Finding};
use systoll_model::{Elision, EnvChange};
use systoll_prove::{Comparison, Executor, Inside, Options, Pairs, Processes, compare};

/// Number of pairs of timed runs: enough for an interval at 99 %, and few enough for five stories
/// in a minute.
pub(super) const PAIRS: u32 = 9;
/// Time after which a demo program counts as stuck.
pub(super) const LIMIT: Duration = Duration::from_secs(60);

/// A way to avoid the calls, and its measured gain.
pub(super) struct Way {
    pub(super) name: String,
    pub(super) measured: Comparison,
}

/// Measures the ways that need no new build of the sick program: a preloaded library, and calls
/// answered in place.
pub(super) fn measure(cause: Option<&str>, finding: Option<&Finding>, pair: &Pair) -> Result<Vec<Way>, Failure> {
    let around = Processes { limit: Some(LIMIT), ..Processes::default() };
    let mut ways = Vec::new();
    if let Some(shim) = cause.and_then(shim_of) {
        let library = shim.at_hand()?;
        let changed = with_library(&pair.sick, &library);
        let measured = one(&mut around.clone(), &pair.sick, &changed)?;
        ways.push(Way { name: format!("shim {}, same binary", shim.name()), measured });
    }
    if let Some(elisions) = finding.and_then(answered) {
        let names: Vec<&str> = elisions.iter().map(|e| e.name()).collect();
        let name = format!("{} answered in place", names.join(", "));
        let changed = Spec { elisions, ..pair.sick.clone() };
        let measured = one(&mut Inside { around, ..Inside::default() }, &pair.sick, &changed)?;
        ways.push(Way { name, measured });
    }
    Ok(ways)
}

fn one(exec: &mut dyn Executor, a: &Spec, b: &Spec) -> Result<Comparison, Failure> {
    let options = Options { pairs: Pairs::Fixed(PAIRS), ..Options::default() };
    Ok(compare(exec, a, b, &options, &mut |_| {})?)
}

/// Returns the library that is a cure of the cause, if there is one.
fn shim_of(cause: &str) -> Option<&'static Shim> {
    Catalogue::builtin().get(cause)?.cures.iter().find_map(|cure| cure.shim.as_deref()).and_then(Shim::named)
}

fn with_library(spec: &Spec, library: &Path) -> Spec {
    let others = environment::preload();
    let value = preload([library.as_os_str()], others.as_deref());
    spec.clone().env(EnvChange::Set("LD_PRELOAD".into(), value))
}

/// Returns the finding's system calls, if all of them can be answered in place.
fn answered(finding: &Finding) -> Option<Vec<Elision>> {
    let all: Option<Vec<Elision>> = finding.syscalls.iter().map(|s| s.name().and_then(Elision::from_name)).collect();
    all.filter(|all| !all.is_empty())
}
