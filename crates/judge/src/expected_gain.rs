//! What being rid of needless calls is expected to win: their price, and what is known to follow them.
//!
//! A call's price is the time inside it. With the call goes some of what lies right around it: the library's and the
//! interpreter's own work to make it, registers saved, caches that the kernel emptied; of a file that is opened again,
//! what is made of its content. How much of that would go nothing tells, so that it is in no bound; windows tell how
//! much there is at most: the time that the thread ran between a needless call and its neighbours. docs/evidence/price-against-gain.md has
//! how the bounds compare with what was won.

use crate::fact::Fact;
use crate::finding::{Estimate, ExpectedGain, Later};
use crate::hash::Set;
use crate::survey::{Shown, windows};
use systoll_model::{BackendKind, RowId, Window, WindowCall};

/// Gaps that must have been seen before they say anything.
const ENOUGH: usize = 4;
/// A gap that is so many times as long as all but one in twenty was not spent by the program: the thread had to wait
/// for a processor.
const ODD: u64 = 4;

/// Parts of the price that are won at least and at most.
const PRICE: [f64; 2] = [0.9, 1.1];
/// An interval whose end is so many times its beginning helps nobody to decide: what is known to go is then told
/// alone, and where that is as vague, nothing.
const WIDEST: f64 = 3.0;

/// What a finding says of its needless calls.
pub(crate) struct NeedlessCalls<'a> {
    /// Their rows.
    pub rows: &'a [RowId],
    /// Whether weak claims count too.
    pub weak: bool,
    /// Whether they are starts of programs, which no window shows whole.
    pub starts: bool,
    /// Whether the advice leaves out the library's function that makes them, with all that this does besides.
    pub whole: bool,
    /// How many there are.
    pub count: Estimate,
    /// Their toll, ns.
    pub toll_ns: f64,
    /// What they cost later.
    pub later: Option<Later>,
}

/// What windows show around needless calls.
struct Around {
    /// Time that threads ran right before and after one, ns; what lies between two of them is shared by both.
    ns_a_call: f64,
    /// Share of them that move messages, which stay messages: one call for many of them saves the way into the kernel,
    /// and takes what a message costs as before.
    messages: f64,
}

/// What being rid of `needless` wins, and of that no more than `own_cpu_ns`, where that is known. `None` where windows
/// show too little of them, or their times are a tracer's.
pub(crate) fn expected_gain(
    needless: &NeedlessCalls<'_>,
    own_cpu_ns: Option<f64>,
    shown: Shown<'_>,
) -> Option<ExpectedGain> {
    let most = own_cpu_ns.unwrap_or(f64::INFINITY);
    let whole = |ns: f64| ns.clamp(0.0, most).round() as u64;
    let [least, more] = PRICE.map(|part| part * needless.toll_ns);
    if needless.starts {
        return Some(ExpectedGain { low: whole(least), high: whole(more), around_ns: 0 });
    }
    let around = around(needless, shown)?;
    let least = least * (1.0 - around.messages);
    let calls = needless.count.estimate as f64;
    let later = needless.later.unwrap_or_default().ns;
    let of = |n: u64| n as f64 / calls.max(1.0);
    let low = least * of(needless.count.low) + later.low as f64;
    let high = more * of(needless.count.high) + later.high as f64;
    let around_ns = around.ns_a_call * calls;
    // Of a function that is left out all goes; an end that is far off says less than that of the calls alone.
    let high = Some(high + around_ns).filter(|high| needless.whole && *high <= WIDEST * low).unwrap_or(high);
    Some(ExpectedGain { low: whole(low), high: whole(high), around_ns: whole(around_ns) }).filter(ExpectedGain::helps)
}

impl ExpectedGain {
    /// Whether it helps to decide.
    pub(crate) fn helps(&self) -> bool {
        self.high as f64 <= WIDEST * self.low as f64
    }
}

fn around(needless: &NeedlessCalls<'_>, shown: Shown<'_>) -> Option<Around> {
    let Shown { recording, views, claims, .. } = shown;
    if recording.header.backend != BackendKind::Inproc {
        return None;
    }
    let rows: Set<RowId> = needless.rows.iter().copied().collect();
    let (mut gaps, mut calls, mut messages) = (Vec::new(), 0u64, 0u64);
    for at in windows(needless.rows, views) {
        let Some(window) = recording.windows.get(at) else { continue };
        let claim = |index: usize, call: &WindowCall| {
            claims.at(at, index).filter(|c| rows.contains(&call.row) && (needless.weak || !c.weak))
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

/// Times between calls of which one is needless, ns.
fn beside(window: &Window, needless: &[bool]) -> Vec<u64> {
    let pairs = window.calls.windows(2).zip(needless.windows(2));
    let gap = |pair: &[WindowCall]| match pair {
        [a, b] => b.entry_ns.saturating_sub(a.entry_ns.saturating_add(a.elapsed_ns)),
        _ => 0,
    };
    pairs.filter(|(_, is)| is.contains(&true)).map(|(pair, _)| gap(pair)).collect()
}
