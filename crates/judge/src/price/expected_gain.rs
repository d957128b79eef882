//! The expected gain of removing needless calls: their price, and the costs that follow from them.
//!
//! A call's price is the time inside it. With the call goes some of the work right around it: the library and the
//! interpreter that prepare it, saved registers, caches that the kernel emptied, and, for a file that is opened
//! again, the parsing of its content. Nothing tells how much of that would go, so no bound holds it. Windows give its
//! upper limit: the time that the thread ran between a needless call and its neighbours.
//! docs/evidence/price-against-gain.md compares the bounds with measured gains.

use crate::causes::fact::Fact;
use crate::collections::hash::Set;
use crate::evidence::survey::windows;
use crate::groups::judged_view::JudgedView;
use crate::results::finding::{Estimate, ExpectedGain, Later};
use systoll_model::{RowId, Window, WindowCall};

/// Least number of gaps in windows for an estimate.
const ENOUGH: usize = 4;
/// Factor above the 95th percentile of the gaps, beyond which a gap is cut: the thread had to wait for a processor.
const ODD: u64 = 4;

/// Lower and upper bound of the gain, as multiples of the needless calls' toll.
const PRICE: [f64; 2] = [0.9, 1.1];
/// Largest ratio of an interval's bounds that helps to decide. If the work around the calls would
/// widen the interval further, the calls alone are counted; if the calls' interval is as wide, no
/// gain is reported.
const WIDEST: f64 = 3.0;

/// The needless calls of a finding.
pub(crate) struct NeedlessCalls<'a> {
    /// Rows of the calls.
    pub rows: &'a [RowId],
    /// True if weak claims count too.
    pub weak: bool,
    /// True if the calls are starts of programs, which no window shows whole.
    pub starts: bool,
    /// True if the advice leaves out the library function that makes the calls, with everything else that this
    /// function does.
    pub whole: bool,
    /// True if the calls read a file anew, for the work on what it holds.
    pub reads_anew: bool,
    /// Number of the needless calls.
    pub count: Estimate,
    /// Toll of the needless calls, ns.
    pub toll_ns: f64,
    /// Bounds of the gain of forking no copies, ns; `None` if the calls fork none.
    pub of_copies: Option<[f64; 2]>,
    /// Cost that follows after the calls.
    pub later: Option<Later>,
}

/// Time and share of messages at needless calls, from windows.
struct Around {
    /// Time that the thread ran right before and after a needless call, ns, on average; a gap between two of them is
    /// shared by both.
    ns_a_call: f64,
    /// Share of the calls that send a message of their own, 0 to 1. One call for many messages saves entering the
    /// kernel only: each message still costs the same.
    messages: f64,
}

/// Returns the gain of removing `needless`, at most `own_cpu_ns` if that is known. Returns `None` if windows show too
/// few of the calls, or their times are a tracer's.
pub(crate) fn expected_gain(
    needless: &NeedlessCalls<'_>,
    own_cpu_ns: Option<f64>,
    shown: JudgedView<'_>,
) -> Option<ExpectedGain> {
    let most = own_cpu_ns.unwrap_or(f64::INFINITY);
    let whole = |ns: f64| ns.clamp(0.0, most).round() as u64;
    let [least, more] = PRICE.map(|part| part * needless.toll_ns);
    if let Some([low, high]) = needless.of_copies {
        return Some(ExpectedGain { low: whole(low), high: whole(high), ..ExpectedGain::default() });
    }
    if needless.starts {
        return Some(ExpectedGain { low: whole(least), high: whole(more), ..ExpectedGain::default() });
    }
    let around = around(needless.rows, needless.weak, shown)?;
    let least = least * (1.0 - around.messages);
    let calls = needless.count.estimate as f64;
    let later = needless.later.unwrap_or_default().ns;
    let of = |n: u64| n as f64 / calls.max(1.0);
    let low = least * of(needless.count.low) + later.low as f64;
    let high = more * of(needless.count.high) + later.high as f64;
    let around_ns = around.ns_a_call * calls;
    // If the cure leaves out the library function that makes the calls, the function's other work
    // goes too. If counting that work makes the interval too wide, the calls alone are counted.
    let high = Some(high + around_ns).filter(|high| needless.whole && *high <= WIDEST * low).unwrap_or(high);
    let with_work = needless.whole || needless.reads_anew;
    Some(ExpectedGain { low: whole(low), high: whole(high), around_ns: whole(around_ns), with_work })
        .filter(ExpectedGain::helps)
}

impl ExpectedGain {
    /// Returns true if the interval is narrow enough to decide by.
    pub(crate) fn helps(&self) -> bool {
        self.high as f64 <= WIDEST * self.low as f64
    }
}

/// Returns the time that the program ran right around so many claimed calls of the rows, ns; `None` if windows show too few
/// of them, or their times are a tracer's.
pub(crate) fn work_around_ns(rows: &[RowId], calls: f64, shown: JudgedView<'_>) -> Option<f64> {
    around(rows, true, shown).map(|around| around.ns_a_call * calls)
}

fn around(needless_rows: &[RowId], weak: bool, shown: JudgedView<'_>) -> Option<Around> {
    let JudgedView { recording, views, claims, .. } = shown;
    let backend = recording.header.backend;
    if !backend.samples_calls() || backend.stops_at_calls() {
        return None;
    }
    let rows: Set<RowId> = needless_rows.iter().copied().collect();
    let (mut gaps, mut calls, mut messages) = (Vec::new(), 0u64, 0u64);
    for at in windows(needless_rows, views) {
        let Some(window) = recording.windows.get(at) else { continue };
        let claim = |index: usize, call: &WindowCall| {
            claims.at(at, index).filter(|c| rows.contains(&call.row) && (weak || !c.weak))
        };
        let here: Vec<_> = window.calls.iter().enumerate().map(|(index, call)| claim(index, call)).collect();
        messages += here.iter().flatten().filter(|c| c.facts.contains(Fact::Message)).count() as u64;
        let is: Vec<bool> = here.iter().map(Option::is_some).collect();
        calls += is.iter().filter(|is| **is).count() as u64;
        gaps.extend(beside(window, &is));
    }
    if gaps.len() < ENOUGH || calls == 0 {
        return None;
    }
    gaps.sort_unstable();
    let odd = gaps.get(gaps.len() * 19 / 20).copied()?.saturating_mul(ODD);
    let sum: f64 = gaps.iter().map(|gap| (*gap).min(odd) as f64).sum();
    let observer = recording.header.observer_wall_ns_per_call;
    let observer = if observer.is_finite() { observer.max(0.0) } else { 0.0 };
    let ran = (sum - observer * gaps.len() as f64).max(0.0);
    Some(Around { ns_a_call: ran / calls as f64, messages: messages as f64 / calls as f64 })
}

/// Returns the gaps next to needless calls, ns.
fn beside(window: &Window, needless: &[bool]) -> Vec<u64> {
    let pairs = window.calls.windows(2).zip(needless.windows(2));
    let gap = |pair: &[WindowCall]| match pair {
        [a, b] => b.entry_ns.saturating_sub(a.entry_ns.saturating_add(a.elapsed_ns)),
        _ => 0,
    };
    pairs.filter(|(_, is)| is.contains(&true)).map(|(pair, _)| gap(pair)).collect()
}
