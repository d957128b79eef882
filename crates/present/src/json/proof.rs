//! The JSON of `systoll prove --json` (docs/reference/json.md, docs/reference/prove.schema.json).

use super::common::{SCHEMA_VERSION, exit};
use crate::answered::{self, AnsweredJson};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use systoll_prove::{
    Agreement, CallCounts, Change, Comparison, Difference, Estimate, ExpectedWin, Measured, Outcome, Range, Sameness,
    Side, Stopped,
};

/// One side of a comparison, as the user asked for it.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct SideCommand<'a> {
    /// Program and arguments of the command.
    pub command: &'a [String],
    /// Variables that this side sets, in addition to systoll's own environment; `None` for removed
    /// ones.
    pub env: &'a BTreeMap<String, Option<String>>,
    /// System calls that are answered in place of the kernel on this side.
    pub elided: &'a [&'static str],
}

#[derive(Serialize)]
struct Proof<'a> {
    systoll: super::wire::Version<'a>,
    pairs: u32,
    stopped: Option<&'static str>,
    confidence: Option<f64>,
    same_outcome: bool,
    same_output: Option<&'static str>,
    compared: Vec<&'static str>,
    exit: Option<BTreeMap<&'static str, i32>>,
    a: ProofSide<'a>,
    b: ProofSide<'a>,
    change: Option<ProofChange>,
    verdict: Option<BTreeMap<&'static str, &'static str>>,
    problem: Option<&'static str>,
    difference: Option<&'static str>,
    differs_at: Option<ProofDiffersAt<'a>>,
    watched: bool,
    expected_gain: Option<ProofExpected>,
    undecided: Option<ProofUndecided>,
    beyond: Option<ProofBeyond>,
    answered: Option<AnsweredJson>,
}

#[derive(Serialize)]
struct ProofDiffersAt<'a> {
    line: u64,
    a: Option<&'a str>,
    b: Option<&'a str>,
}

#[derive(Serialize)]
struct ProofExpected {
    low_ns: f64,
    high_ns: f64,
    at_least: bool,
    won_ns: f64,
}

#[derive(Serialize)]
struct ProofUndecided {
    told_ns: f64,
    pairs: Option<u32>,
}

#[derive(Serialize)]
struct ProofBeyond {
    calls_ns: f64,
    cpu_ns: f64,
    why: &'static str,
}

#[derive(Serialize)]
struct ProofSide<'a> {
    #[serde(flatten)]
    asked: SideCommand<'a>,
    calls: Option<ProofRange>,
    by_syscall: Option<Vec<ProofCalls>>,
    exact: Option<bool>,
    toll_ns: Option<u64>,
    #[serde(flatten)]
    figures: Option<ProofFigures>,
}

#[derive(Serialize)]
struct ProofFigures {
    wall_ns: ProofEstimate,
    cpu_ns: ProofEstimate,
    user_ns: ProofEstimate,
    sys_ns: ProofEstimate,
    max_rss: ProofEstimate,
    switches: ProofEstimate,
    faults: ProofEstimate,
}

#[derive(Serialize)]
struct ProofRange {
    low: u64,
    median: u64,
    high: u64,
}

#[derive(Serialize)]
struct ProofCalls {
    syscall: String,
    #[serde(flatten)]
    calls: ProofRange,
}

#[derive(Serialize)]
struct ProofEstimate {
    median: f64,
    low: f64,
    high: f64,
}

#[derive(Serialize)]
struct ProofChange {
    calls: Option<i64>,
    wall: ProofPercent,
    cpu: ProofPercent,
    user: ProofPercent,
    sys: ProofPercent,
    max_rss: ProofPercent,
}

#[derive(Serialize)]
struct ProofPercent {
    percent: f64,
    low: f64,
    high: f64,
    pairs_for_one_percent: u32,
}

/// Converts the comparison of two commands to one JSON object. `version` is that of systoll.
pub fn prove_json(
    comparison: &Comparison,
    counts: Option<(&CallCounts, &CallCounts)>,
    expected: Option<ExpectedWin>,
    sides: (SideCommand<'_>, SideCommand<'_>),
    version: &str,
) -> Value {
    let m = comparison.measured.as_ref();
    let same = match comparison.outcome {
        Outcome::Same(same) => Some(same),
        Outcome::Differs(_) => None,
    };
    let proof = Proof {
        systoll: super::wire::Version { version, schema: SCHEMA_VERSION },
        pairs: m.map_or(0, |m| m.pairs),
        stopped: m.map(|m| stopped(m.stopped)),
        confidence: m.map(|m| m.confidence),
        same_outcome: same.is_some(),
        same_output: same.and_then(|same| same.output()).map(sameness),
        compared: same.map_or_else(Vec::new, compared),
        exit: same.and_then(|same| same.exit).map(exit),
        a: side(sides.0, counts.map(|c| c.0), m.map(|m| &m.a)),
        b: side(sides.1, counts.map(|c| c.1), m.map(|m| &m.b)),
        change: m.map(|m| change(m, counts)),
        verdict: m.map(|m| [("wall", m.wall.verdict.name()), ("cpu", m.cpu.verdict.name())].into()),
        problem: problem(comparison),
        difference: difference(comparison.outcome),
        differs_at: comparison.differs_at.as_ref().map(|at| ProofDiffersAt {
            line: at.line,
            a: at.a.as_deref(),
            b: at.b.as_deref(),
        }),
        watched: comparison.watched,
        expected_gain: comparison.expected(expected).map(|e| ProofExpected {
            low_ns: e.told.low_ns,
            high_ns: e.told.high_ns,
            at_least: e.told.is_at_least,
            won_ns: e.won_ns,
        }),
        undecided: comparison.undecided(counts, expected).map(|undecided| ProofUndecided {
            told_ns: undecided.told_ns,
            pairs: undecided.shown_by.map(|enough| enough.pairs),
        }),
        beyond: counts.and_then(|(a, b)| comparison.gain_source(a, b)).map(|b| ProofBeyond {
            calls_ns: b.calls_ns,
            cpu_ns: b.cpu_ns,
            why: b.why.name(),
        }),
        answered: comparison.answered.as_ref().map(answered::json),
    };
    // This can't fail: the structs are plain and have string keys.
    serde_json::to_value(proof).unwrap_or_default()
}

fn sameness(output: Sameness) -> &'static str {
    match output {
        Sameness::Exact | Sameness::Different => "exact",
        Sameness::ButDigits => "but-numbers",
        Sameness::ButDigitsAndOrder => "but-numbers-and-order",
    }
}

/// Returns the compared parts by their names for `--same`.
fn compared(same: Agreement) -> Vec<&'static str> {
    let looked_at = [
        ("stdout", same.stdout.is_some()),
        ("stderr", same.stderr.is_some()),
        ("exit", same.exit.is_some()),
        ("comparing-command", same.by),
    ];
    looked_at.into_iter().filter_map(|(name, looked)| looked.then_some(name)).collect()
}

fn stopped(stopped: Stopped) -> &'static str {
    match stopped {
        Stopped::Asked => "asked",
        Stopped::Decided => "decided",
        Stopped::LastLook => "last-look",
        Stopped::Time => "time",
        Stopped::Interrupted => "interrupted",
    }
}

fn problem(comparison: &Comparison) -> Option<&'static str> {
    match comparison.outcome {
        Outcome::Same(_) => comparison.is_part().then_some("answered-in-part"),
        Outcome::Differs(Difference::Hangs(_)) => Some("timeout"),
        Outcome::Differs(_) => Some("different-outcome"),
    }
}

fn difference(outcome: Outcome) -> Option<&'static str> {
    let Outcome::Differs(difference) = outcome else { return None };
    Some(match difference {
        Difference::Exit { .. } => "exit",
        Difference::Stdout => "stdout",
        Difference::Stderr => "stderr",
        Difference::By => "comparing-command",
        Difference::Hangs(_) => "hangs",
        Difference::Itself => "varies-by-itself",
    })
}

fn side<'a>(asked: SideCommand<'a>, counts: Option<&CallCounts>, measured: Option<&Side>) -> ProofSide<'a> {
    let calls =
        |(syscall, r): (&systoll_model::Sysno, &Range)| ProofCalls { syscall: syscall.to_string(), calls: range(*r) };
    ProofSide {
        asked,
        calls: counts.map(|c| range(c.total)),
        by_syscall: counts.map(|c| c.by_syscall.iter().map(calls).collect()),
        exact: counts.map(|c| c.exact),
        toll_ns: counts.and_then(|c| c.toll_ns),
        figures: measured.map(|s| ProofFigures {
            wall_ns: estimate(s.wall_ns),
            cpu_ns: estimate(s.cpu_ns),
            user_ns: estimate(s.user_ns),
            sys_ns: estimate(s.sys_ns),
            max_rss: estimate(s.max_rss),
            switches: estimate(s.switches),
            faults: estimate(s.faults),
        }),
    }
}

fn range(r: Range) -> ProofRange {
    ProofRange { low: r.low, median: r.median, high: r.high }
}

fn estimate(e: Estimate) -> ProofEstimate {
    ProofEstimate { median: e.median, low: e.low, high: e.high }
}

fn change(m: &Measured, counts: Option<(&CallCounts, &CallCounts)>) -> ProofChange {
    let of = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
    let percent = |c: &Change| ProofPercent {
        percent: c.percent,
        low: c.low,
        high: c.high,
        pairs_for_one_percent: c.pairs_for_one_percent,
    };
    ProofChange {
        calls: counts.map(|(a, b)| of(b.total.median).saturating_sub(of(a.total.median))),
        wall: percent(&m.wall),
        cpu: percent(&m.cpu),
        user: percent(&m.user),
        sys: percent(&m.sys),
        max_rss: percent(&m.max_rss),
    }
}
