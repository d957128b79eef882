//! Types of the JSON contract, field for field and in the order in which they are written.

use super::parts::{Estimate, User};
use serde::Serialize;
use std::collections::BTreeMap;

#[derive(Serialize)]
pub(super) struct Until<'a> {
    pub(super) sign: &'a str,
    pub(super) seen: bool,
}

#[derive(Serialize)]
pub(super) struct Report<'a> {
    pub(super) systoll: Version<'a>,
    pub(super) command: &'a [String],
    pub(super) exit: Option<BTreeMap<&'static str, i32>>,
    pub(super) attached: Option<Attached>,
    pub(super) until: Option<Until<'a>>,
    pub(super) backend: &'static str,
    pub(super) exact: bool,
    pub(super) lost: u64,
    pub(super) uncounted: bool,
    pub(super) wall_ns: u64,
    pub(super) watching_ns: u64,
    pub(super) user_ns: u64,
    pub(super) sys_ns: u64,
    pub(super) own_cpu_ns: Option<u64>,
    pub(super) own_cpu_least_ns: Option<u64>,
    pub(super) own_cpu_most_ns: Option<u64>,
    pub(super) crossing_ns: Crossing,
    pub(super) observer_ns_per_call: Option<f64>,
    pub(super) observer_wall_ns_per_call: Option<f64>,
    pub(super) started_unix: u64,
    pub(super) host: Host<'a>,
    pub(super) threads: u64,
    pub(super) windows: Windows,
    pub(super) sites: Option<Sites>,
    pub(super) calls: u64,
    pub(super) unreturned: u64,
    pub(super) elided: u64,
    pub(super) vdso_calls: Option<u64>,
    pub(super) toll_ns: Option<u64>,
    pub(super) toll_estimated: bool,
    pub(super) waited_ns: Option<u64>,
    pub(super) needless_toll_ns: u64,
    pub(super) starting_ns: u64,
    pub(super) forking_ns: u64,
    pub(super) processes: Vec<Process<'a>>,
    pub(super) prices: BTreeMap<String, WirePrice>,
    pub(super) by_syscall: Vec<BySyscall>,
    pub(super) rows: Vec<WireRow<'a>>,
    pub(super) vdso: Vec<WireVdso<'a>>,
    pub(super) grouped: Option<WireGrouping<'a>>,
    pub(super) requests: Option<super::requests::WireRequests<'a>>,
    pub(super) findings: Vec<WireFinding<'a>>,
    pub(super) also: Vec<WireFinding<'a>>,
    pub(super) rounds: Vec<super::rounds::WireRound<'a>>,
    pub(super) untold: WireUntold,
    pub(super) unjudged: WireUnjudged,
    pub(super) waits: Vec<WireWait<'a>>,
    pub(super) wall: Option<WireWall>,
    pub(super) start: Option<WireStart>,
    pub(super) counted: Vec<WireCounted<'a>>,
    pub(super) excerpt: bool,
    pub(super) told: WireRunTold,
    pub(super) longest: Vec<Longest<'a>>,
    pub(super) problems: Vec<&'a str>,
}

#[derive(Serialize)]
pub(super) struct WireWall {
    pub(super) other_ns: u64,
    pub(super) running_ns: u64,
    pub(super) systoll_ns: u64,
    pub(super) queued_ns: u64,
    pub(super) complete: bool,
    pub(super) waits: Vec<WireWallPart>,
    pub(super) each: Vec<WireEachWait>,
    pub(super) told: String,
}

#[derive(Serialize)]
pub(super) struct WireEachWait {
    pub(super) row: u64,
    pub(super) pid: u32,
    pub(super) tid: u32,
    pub(super) begin_ns: u64,
    pub(super) ns: u64,
    pub(super) waits_for: &'static str,
    pub(super) by: Option<WireThreadId>,
}

#[derive(Serialize)]
pub(super) struct WireThreadId {
    pub(super) pid: u32,
    pub(super) tid: u32,
}

#[derive(Serialize)]
pub(super) struct WireStart {
    pub(super) searched: Vec<WireSearched>,
    pub(super) opened: u64,
    pub(super) read_ns: u64,
    pub(super) told: String,
}

#[derive(Serialize)]
pub(super) struct WireSearched {
    pub(super) by: &'static str,
    pub(super) asked: u64,
    pub(super) missing: u64,
    pub(super) ns: u64,
}

#[derive(Serialize)]
pub(super) struct WireWallPart {
    pub(super) waits_for: &'static str,
    pub(super) syscall: String,
    pub(super) row: u64,
    pub(super) calls: u64,
    pub(super) ns: u64,
    pub(super) longest_ns: u64,
    pub(super) shared: bool,
    pub(super) corrected: bool,
    pub(super) told: String,
}

#[derive(Serialize)]
pub(super) struct WireWait<'a> {
    pub(super) syscall: String,
    pub(super) about: &'a str,
    pub(super) calls: u64,
    pub(super) ran_out: bool,
    pub(super) ns: u64,
    pub(super) longest_ns: u64,
    pub(super) share_of_shown: Option<f64>,
    pub(super) told: String,
}

#[derive(Serialize)]
pub(super) struct WireCounted<'a> {
    pub(super) syscalls: Vec<String>,
    pub(super) process: u64,
    pub(super) shows: &'a str,
    pub(super) may_be: &'a str,
    pub(super) causes: &'a [&'a str],
    pub(super) find_out: Vec<String>,
    pub(super) told: String,
}

#[derive(Serialize)]
pub(super) struct Version<'a> {
    pub(super) version: &'a str,
    pub(super) schema: u32,
}

#[derive(Serialize)]
pub(super) struct Attached {
    pub(super) age_ns: u64,
    pub(super) longest_stop_ns: u64,
    pub(super) left_running: bool,
}

#[derive(Serialize)]
pub(super) struct Crossing {
    pub(super) before: Option<f64>,
    pub(super) after: Option<f64>,
}

#[derive(Serialize)]
pub(super) struct Host<'a> {
    pub(super) cpu: &'a str,
    pub(super) cpus: u32,
    pub(super) kernel: &'a str,
    pub(super) clock_source: &'a str,
    pub(super) virtualization: Option<&'a str>,
}

#[derive(Serialize)]
pub(super) struct Windows {
    pub(super) opened: u64,
    pub(super) refused: u64,
    pub(super) kept: u64,
}

#[derive(Serialize)]
pub(super) struct Sites {
    pub(super) timed: u64,
    pub(super) counted: u64,
    pub(super) on_arrival: u64,
    pub(super) not_covered: u64,
}

#[derive(Serialize)]
pub(super) struct Process<'a> {
    pub(super) process: u64,
    pub(super) parent: Option<u64>,
    pub(super) pid: u32,
    pub(super) exe: &'a str,
    pub(super) argv: Vec<&'a str>,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(super) service: &'a str,
    pub(super) instances: u64,
    pub(super) threads: u64,
    pub(super) start_ns: u64,
    pub(super) end_ns: Option<u64>,
    pub(super) cpu_ns: Option<u64>,
    pub(super) main_at_ns: Option<u64>,
    pub(super) exit: Option<BTreeMap<&'static str, i32>>,
}

#[derive(Serialize)]
pub(super) struct WirePrice {
    pub(super) ns: Option<f64>,
    pub(super) low: Option<f64>,
    pub(super) high: Option<f64>,
    pub(super) source: &'static str,
}

#[derive(Serialize)]
pub(super) struct BySyscall {
    pub(super) syscall: String,
    pub(super) calls: u64,
    pub(super) unreturned: u64,
    pub(super) elided: u64,
    pub(super) errors: BTreeMap<String, u64>,
    pub(super) toll_ns: Option<u64>,
    pub(super) waited_ns: Option<u64>,
    pub(super) max_ns: u64,
    pub(super) min_ns: Option<u64>,
    pub(super) bytes: u64,
}

#[derive(Serialize)]
pub(super) struct WireLine<'a> {
    pub(super) function: &'a str,
    pub(super) file: Option<&'a str>,
    pub(super) line: Option<u32>,
    pub(super) language: Option<&'static str>,
    pub(super) looks: u64,
    pub(super) share: f64,
}

#[derive(Serialize)]
pub(super) struct WireRow<'a> {
    pub(super) syscall: String,
    pub(super) calls: u64,
    pub(super) unreturned: u64,
    pub(super) elided: u64,
    pub(super) errors: BTreeMap<String, u64>,
    pub(super) toll_ns: Option<u64>,
    pub(super) waited_ns: Option<u64>,
    pub(super) elapsed_ns: u64,
    pub(super) elapsed_low_ns: u64,
    pub(super) elapsed_high_ns: u64,
    pub(super) timed: u64,
    pub(super) max_ns: u64,
    pub(super) min_ns: Option<u64>,
    pub(super) bytes: u64,
    pub(super) startup_calls: u64,
    pub(super) histogram_log2_ns: &'a [u64],
    pub(super) process: u64,
    pub(super) api: Option<&'a str>,
    pub(super) module: Option<&'a str>,
    pub(super) user: Option<User<'a>>,
    pub(super) lines: Vec<WireLine<'a>>,
    pub(super) stack: Vec<&'a str>,
    pub(super) ledger: Option<super::ledger::WireLedger<'a>>,
}

#[derive(Serialize)]
pub(super) struct WireVdso<'a> {
    pub(super) function: &'a str,
    pub(super) calls: u64,
    pub(super) process: u64,
    pub(super) api: Option<&'a str>,
    pub(super) user: Option<User<'a>>,
    pub(super) stack: Vec<&'a str>,
}

#[derive(Serialize)]
pub(super) struct WireGrouping<'a> {
    pub(super) by: &'static str,
    pub(super) sampled: bool,
    pub(super) calls: u64,
    pub(super) groups: Vec<WireGroup<'a>>,
}

#[derive(Serialize)]
pub(super) struct WireGroup<'a> {
    pub(super) name: Option<String>,
    pub(super) calls: u64,
    pub(super) low: u64,
    pub(super) high: u64,
    pub(super) failed: Option<u64>,
    pub(super) toll_ns: Option<u64>,
    pub(super) waited_ns: Option<u64>,
    pub(super) share_of_cpu: Option<f64>,
    pub(super) looked_at: Option<u64>,
    pub(super) user: Option<User<'a>>,
    pub(super) process: Option<u64>,
    pub(super) tid: Option<u32>,
    pub(super) rows: Vec<u32>,
}

#[derive(Serialize)]
pub(super) struct WireLater {
    pub(super) faults: Estimate,
    pub(super) switches: Estimate,
    pub(super) ns: Estimate,
    pub(super) share_of_cpu: Option<f64>,
}

#[derive(Serialize)]
pub(super) struct WireGain {
    pub(super) low_ns: u64,
    pub(super) high_ns: u64,
    pub(super) around_ns: u64,
    pub(super) share_low: Option<f64>,
    pub(super) share_high: Option<f64>,
}

#[derive(Serialize)]
pub(super) struct WireRhythm {
    pub(super) per: &'static str,
    pub(super) rounds: u64,
    pub(super) calls: u64,
    pub(super) needless: u64,
    pub(super) looked_at: u64,
    pub(super) agree: u64,
}

#[derive(Serialize)]
pub(super) struct Evidence {
    pub(super) windows: u64,
    pub(super) agree: u64,
    pub(super) calls: u64,
    pub(super) claimed: u64,
}

/// Needless calls that no finding and no remark mentions.
#[derive(Serialize)]
pub(super) struct WireUntold {
    pub(super) calls: u64,
    pub(super) toll_ns: u64,
    pub(super) unsure_calls: u64,
    pub(super) unsure_toll_ns: u64,
}

/// Calls that could not be judged.
#[derive(Serialize)]
pub(super) struct WireUnjudged {
    pub(super) calls: u64,
    pub(super) toll_ns: u64,
    pub(super) share_of_cpu: Option<f64>,
}

/// The sentences about a run, as the report has them.
#[derive(Serialize)]
pub(super) struct WireRunTold {
    pub(super) verdict: String,
    pub(super) good: bool,
    pub(super) ended: String,
    pub(super) beneath: Vec<String>,
    pub(super) problems: Vec<String>,
    pub(super) tables: Vec<String>,
}

/// The sentences about a finding, as the report has them.
#[derive(Serialize)]
pub(super) struct WireTold {
    pub(super) calls: String,
    pub(super) cost: String,
    pub(super) needless: String,
    pub(super) each: Option<String>,
    pub(super) plus: Option<String>,
    pub(super) gain: Option<String>,
    pub(super) evidence: String,
    pub(super) doubt: Option<String>,
    pub(super) shown: Option<String>,
}

/// One of several objects that a finding is about.
#[derive(Serialize)]
pub(super) struct WireObject<'a> {
    pub(super) name: &'a str,
    pub(super) share: f64,
}

/// One cure of a finding.
#[derive(Serialize)]
pub(super) struct WireCure<'a> {
    pub(super) how: &'a str,
    pub(super) kind: Option<&'static str>,
    pub(super) gives_up: &'a str,
    pub(super) language: Option<&'static str>,
    pub(super) applied: bool,
}

/// The callers whose work a pool's threads do.
#[derive(Serialize)]
pub(super) struct WireRequested<'a> {
    pub(super) pool: &'static str,
    pub(super) operations: Vec<String>,
    pub(super) lines: Vec<WireLine<'a>>,
    pub(super) by_waits: bool,
    pub(super) work_calls: u64,
    pub(super) hand_over_calls: u64,
    pub(super) hand_over_ns: u64,
}

#[derive(Serialize)]
pub(super) struct WireFinding<'a> {
    pub(super) cause: Option<&'a str>,
    pub(super) kind: &'static str,
    pub(super) confidence: &'static str,
    pub(super) syscalls: Vec<String>,
    pub(super) apis: Vec<&'a str>,
    pub(super) user: Option<User<'a>>,
    pub(super) lines: Vec<WireLine<'a>>,
    pub(super) requested: Option<WireRequested<'a>>,
    pub(super) what: Option<&'a str>,
    pub(super) calls: u64,
    pub(super) calls_about: Option<Estimate>,
    pub(super) starts: bool,
    pub(super) copies: bool,
    pub(super) needless_calls: Estimate,
    pub(super) toll_ns: u64,
    pub(super) needless_toll_ns: u64,
    pub(super) rhythm: Option<WireRhythm>,
    pub(super) later: Option<WireLater>,
    pub(super) expected_gain: Option<WireGain>,
    pub(super) waited_ns: Option<u64>,
    pub(super) share_of_cpu: Option<f64>,
    pub(super) share_of_wall: Option<f64>,
    pub(super) share_of_calls: Option<f64>,
    pub(super) phase: &'static str,
    pub(super) evidence: Evidence,
    pub(super) why: &'a str,
    pub(super) objects: Vec<WireObject<'a>>,
    pub(super) objects_seen: usize,
    pub(super) language: Option<&'static str>,
    pub(super) language_api: Option<&'a str>,
    pub(super) stop: Vec<&'a str>,
    pub(super) cures: Vec<WireCure<'a>>,
    pub(super) gives_up: &'a str,
    pub(super) prove: &'a [String],
    pub(super) rows: Vec<u32>,
    pub(super) basis: &'static str,
    pub(super) doubt: Option<&'static str>,
    pub(super) told: WireTold,
}

#[derive(Serialize)]
pub(super) struct Longest<'a> {
    pub(super) syscall: String,
    pub(super) ns: u64,
    pub(super) at_ns: u64,
    pub(super) thread: &'a str,
    pub(super) api: Option<&'a str>,
    pub(super) module: Option<&'a str>,
    pub(super) startup: bool,
    pub(super) user: Option<User<'a>>,
}
