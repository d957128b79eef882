//! The needless share of a row, from claimed calls in windows: weighted by octave, with an interval from the scatter
//! of windows.

use crate::collections::small_list::SmallList;
use crate::evidence::claim::{Claim, Claims, Judged, Saving};
use crate::evidence::ledger::{self, LedgerView};
use std::collections::BTreeMap;
use systoll_model::{Before, Recording, RowId, WindowCall};

/// Ratio of two rows' calls from which on the one with fewer is rare beside the other.
const RARE: u64 = 16;

/// A row's calls in windows, in one octave of its count.
#[derive(Clone, Copy, Default)]
struct OctaveTally {
    calls: u64,
    strong: u64,
    any: u64,
    /// Number of strongly claimed calls that the ledger does not know from before.
    strong_else: u64,
    /// Number of claimed calls that the ledger does not know from before.
    any_else: u64,
}

/// A row's calls in one window.
#[derive(Clone, Copy, Default)]
pub(crate) struct InWindow {
    /// Number of calls, without the row's first if that is not claimed.
    pub calls: u64,
    /// Number of calls that are claimed.
    pub claimed: u64,
    /// Octave of the first of these calls; the others are mostly of the same.
    pub octave: u32,
}

/// A claimed call.
pub(crate) struct Claimed<'a> {
    /// The claim.
    pub claim: &'a Claim,
    /// The call.
    pub call: &'a WindowCall,
}

/// All that windows show of a row.
#[derive(Default)]
pub(crate) struct RowView<'a> {
    /// The row's calls by octave, up to the last octave in windows.
    octaves: Vec<OctaveTally>,
    /// The row's calls by octave in windows that a row with about as many calls, or more, opened:
    /// calls around a rare call are sampled far more often than they are made. `None` if no rare
    /// call opened a window, so that `octaves` holds the same.
    unbiased: Option<Vec<OctaveTally>>,
    /// Windows that hold calls of the row, by index in the recording, in order.
    pub windows: SmallList<(usize, InWindow)>,
    /// Process and thread of the row's calls, each at least once.
    pub threads: SmallList<(u32, u32)>,
    /// The row's claimed calls.
    pub claimed: Vec<Claimed<'a>>,
    /// Number of the row's calls of which windows do not show if they are needless. No other field counts them.
    pub hidden: u64,
    /// Time that the row's calls in windows waited, ns; `None` if it is unknown for one of them.
    pub waited_ns: Option<u64>,
    /// One of the row's calls, for its arguments.
    pub sample: Option<&'a WindowCall>,
    /// A like row that represents this row if no window shows it.
    pub like: Option<Alike>,
    /// The ledger of the row.
    pub ledger: LedgerView<'a>,
}

/// A like row that represents one without windows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Alike {
    /// The like row, which has claims, of another process.
    pub row: RowId,
    /// Needless share of the calls by strong claims, 0 to 1.
    pub strong: f64,
    /// Needless share of the calls by any claim, 0 to 1.
    pub any: f64,
}

/// Number of a row's needless calls.
#[derive(Clone, Copy, Default)]
pub(crate) struct Needless {
    /// Number of needless calls by strong claims.
    pub strong: f64,
    /// Number of needless calls by any claim.
    pub any: f64,
    /// True if windows show every call of the row.
    pub exact: bool,
}

impl RowView<'_> {
    /// Returns the number of the row's calls in windows.
    pub(crate) fn seen(&self) -> u64 {
        self.octaves.iter().map(|o| o.calls).sum()
    }

    /// Returns true if some of the row's calls are the ones to change, which saves others.
    pub(crate) fn leads(&self) -> bool {
        self.claimed.iter().any(|of| of.claim.saves == Saving::OfOthers)
    }

    /// Returns true if the row leads, and none of its own calls is needless.
    pub(crate) fn only_leads(&self) -> bool {
        self.leads() && self.claimed() == 0
    }

    /// Returns the number of the row's calls that are claimed as needless.
    pub(crate) fn claimed(&self) -> u64 {
        self.claimed.iter().filter(|of| of.claim.saves != Saving::OfOthers).count() as u64
    }

    /// Returns the octaves that hold strongly claimed calls.
    pub(crate) fn agreeing_octaves(&self) -> impl Iterator<Item = u32> {
        (0u32..).zip(&self.octaves).filter(|(_, o)| o.strong > 0).map(|(at, _)| at)
    }

    /// Returns the number of the row's `calls` calls that one call in a window represents, by the octave of that call.
    fn weights(&self, calls: u64) -> Vec<f64> {
        let mut sizes = vec![0.0; self.octaves.len()];
        let seen = (0u32..).zip(&self.octaves).filter(|(_, o)| o.calls > 0).map(|(at, _)| at);
        for (size, nearest) in systoll_model::octaves(calls, seen) {
            if let Some(sum) = sizes.get_mut(nearest as usize) {
                *sum += size as f64;
            }
        }
        sizes.iter().zip(&self.octaves).map(|(size, o)| size / o.calls.max(1) as f64).collect()
    }

    /// Returns the number of strongly claimed calls in windows.
    pub(crate) fn strong(&self) -> u64 {
        self.octaves.iter().map(|o| o.strong).sum()
    }

    /// Estimates how many of the row's `calls` calls are needless. Most windows open where a row begins, so each
    /// octave has the weight of its size; an octave without a window is taken to be like the nearest that has one.
    pub(crate) fn needless(&self, calls: u64) -> Needless {
        let seen = self.seen();
        if seen == 0 || calls == 0 {
            let of = |share: f64| share * calls as f64;
            let lent = self.like.map(|l| Needless { strong: of(l.strong), any: of(l.any), exact: false });
            return lent.unwrap_or_default();
        }
        if seen >= calls {
            let any: u64 = self.octaves.iter().map(|o| o.any).sum();
            return Needless { strong: self.strong().min(calls) as f64, any: any.min(calls) as f64, exact: true };
        }
        // Windows of rare calls are dense around these, but they alone may show the end of a sequence between two of
        // them.
        let all = by_octaves(&self.octaves, calls);
        let unbiased = self.unbiased.as_ref().map(|octaves| by_octaves(octaves, calls));
        let ByOctaves { needless, otherwise } =
            unbiased.filter(|unbiased| unbiased.needless.strong > all.needless.strong).unwrap_or(all);
        // The ledger adds repeats that lie too far apart for windows.
        let Some(known) = self.ledger.needless(calls) else { return needless };
        let whole = self.ledger.nearly_whole(calls);
        let most = |windows: f64, ledger: f64, other: f64| {
            let told = (ledger + other).min(calls as f64);
            if whole { told } else { told.max(windows) }
        };
        Needless {
            strong: most(needless.strong, known.strong, otherwise.strong),
            any: most(needless.any, known.any, otherwise.any),
            exact: false,
        }
    }

    /// Returns by how much the number of needless calls may lie below [`RowView::needless`], if the ledger tells
    /// that.
    pub(crate) fn ledger_scatter(&self, calls: u64) -> Option<LedgerScatter> {
        let share = self.ledger.decisive_share(calls)?;
        let known = self.ledger.needless(calls)?.strong;
        let needless = self.needless(calls).strong;
        // If the ledger knows nearly all needless calls, its estimate decides.
        let least = known * share.low / share.estimate.max(f64::MIN_POSITIVE);
        let decides = known >= 0.999 * needless;
        let scatter = if decides { (share.estimate - share.low) * calls as f64 } else { needless - least };
        Some(LedgerScatter { calls: scatter.max(0.0), decides })
    }
}

/// Uncertainty of the ledger about a row.
pub(crate) struct LedgerScatter {
    /// Number of calls by which fewer may be needless.
    pub calls: f64,
    /// True if the estimate is the ledger's; false if it is that of windows, which is larger.
    pub decides: bool,
}

impl<'a> RowView<'a> {
    fn add(&mut self, window: usize, thread: (u32, u32), call: &'a WindowCall, claim: Option<&'a Claim>, rare: bool) {
        if rare && self.unbiased.is_none() {
            self.unbiased = Some(self.octaves.clone());
        }
        let needless = claim.filter(|claim| claim.saves != Saving::OfOthers);
        tally(&mut self.octaves, call, needless);
        if let Some(unbiased) = self.unbiased.as_mut().filter(|_| !rare) {
            tally(unbiased, call, needless);
        }
        self.ledger.show(call, needless);
        let first = call.nth == 1 && claim.is_none();
        if !first {
            if self.windows.last_mut().is_none_or(|(at, _)| *at != window) {
                self.windows.push((window, InWindow { octave: call.nth.ilog2(), ..InWindow::default() }));
            }
            if let Some((_, here)) = self.windows.last_mut() {
                here.calls += 1;
                here.claimed += u64::from(needless.is_some());
            }
        }
        if self.threads.last_mut().is_none_or(|last| *last != thread) {
            self.threads.push(thread);
        }
        let before = if self.sample.is_some() { self.waited_ns } else { Some(0) };
        self.waited_ns = before.zip(call.waited_ns).map(|(sum, waited)| sum.saturating_add(waited));
        self.sample.get_or_insert(call);
        if let Some(claim) = claim {
            self.claimed.push(Claimed { claim, call });
        }
    }
}

fn tally(octaves: &mut Vec<OctaveTally>, call: &WindowCall, claim: Option<&Claim>) {
    let octave = call.nth.ilog2() as usize;
    if octaves.len() <= octave {
        octaves.resize(octave + 1, OctaveTally::default());
    }
    let Some(seen) = octaves.get_mut(octave) else { return };
    let (strong, any) = (u64::from(claim.is_some_and(|c| !c.weak)), u64::from(claim.is_some()));
    seen.calls += 1;
    seen.strong += strong;
    seen.any += any;
    if call.before == Before::Unknown {
        seen.strong_else += strong;
        seen.any_else += any;
    }
}

/// Numbers of a row's needless calls, from octaves.
struct ByOctaves {
    needless: Needless,
    /// The needless calls that the ledger does not know from before.
    otherwise: Needless,
}

/// Returns how many of a row's `calls` are needless; each octave has the weight of its size.
fn by_octaves(octaves: &[OctaveTally], calls: u64) -> ByOctaves {
    let mut needless = Needless::default();
    let mut otherwise = Needless::default();
    let seen = (0u32..).zip(octaves).filter(|(_, o)| o.calls > 0).map(|(at, _)| at);
    for (size, nearest) in systoll_model::octaves(calls, seen) {
        let Some(o) = octaves.get(nearest as usize) else { continue };
        let size = size as f64;
        needless.strong += size * o.strong as f64 / o.calls as f64;
        needless.any += size * o.any as f64 / o.calls as f64;
        otherwise.strong += size * o.strong_else as f64 / o.calls as f64;
        otherwise.any += size * o.any_else as f64 / o.calls as f64;
    }
    ByOctaves { needless, otherwise }
}

/// Returns one view for each row, in the order of [`Recording::rows`].
pub(crate) fn survey<'a>(recording: &'a Recording, claims: &'a Claims) -> Vec<RowView<'a>> {
    let mut views: Vec<RowView<'a>> = recording.rows.iter().map(|_| RowView::default()).collect();
    for (row, ledger) in ledger::of_rows(recording) {
        if let Some(view) = views.get_mut(row.0 as usize) {
            view.ledger.told = Some(ledger);
        }
    }
    let mut claims = claims.iter();
    let mut counted: Vec<CountedCalls> = recording.rows.iter().map(|_| CountedCalls::default()).collect();
    let calls = |row: RowId| recording.row(row).counts.calls;
    for (at, window) in recording.windows.iter().enumerate() {
        let thread = (window.process.0, window.thread);
        let opener = calls(window.row);
        for (call, judged) in window.calls.iter().zip(claims.by_ref()) {
            let claim = match judged {
                Judged::LeftOut => {
                    if let Some(view) = views.get_mut(call.row.0 as usize) {
                        view.hidden += 1;
                    }
                    continue;
                }
                Judged::Unclaimed => None,
                Judged::Claimed(claim) => Some(claim),
            };
            let row = call.row.0 as usize;
            let Some(view) = views.get_mut(row).filter(|_| call.nth > 0) else { continue };
            if counted.get_mut(row).is_some_and(|counted| counted.insert(call.nth)) {
                view.add(at, thread, call, claim, RARE.saturating_mul(opener) < calls(call.row));
            }
        }
    }
    views
}

/// Returns the indices of the windows that hold calls of the rows, in order.
pub(crate) fn windows(rows: &[RowId], views: &[RowView<'_>]) -> impl Iterator<Item = usize> {
    let of_row = |id: &RowId| views.get(id.0 as usize);
    let mut at: Vec<usize> = rows.iter().filter_map(of_row).flat_map(|v| v.windows.iter().map(|w| w.0)).collect();
    at.sort_unstable();
    at.dedup();
    at.into_iter()
}

/// The set of a row's calls that were counted, as stretches without a gap: the number of the last call by that of the first.
/// A call may be in two windows of a merged recording, and is still one call.
#[derive(Default)]
struct CountedCalls(BTreeMap<u64, u64>);

impl CountedCalls {
    /// Adds a call. Returns true if it was not in the set.
    fn insert(&mut self, nth: u64) -> bool {
        match self.0.range_mut(..=nth).next_back() {
            Some((_, last)) if nth <= *last => return false,
            Some((_, last)) if nth == *last + 1 => *last = nth,
            _ => drop(self.0.insert(nth, nth)),
        }
        true
    }
}

/// The scatter of a group's needless share over the windows that hold its calls.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Interval {
    /// Number of windows that hold calls of the group.
    pub windows: u64,
    /// Number of windows in which at least half of these are claimed.
    pub agree: u64,
    /// Two standard errors of the share, from the differences between windows, each weighted by its calls.
    pub scatter: f64,
    /// Two standard errors of the estimate, in which a window has the weight of all calls that it represents: where most
    /// windows opened early in a run, a few late ones represent most of its calls.
    pub spread: f64,
    /// Upper 95 % bound of the share of calls that differ, if `n` sampled windows were all alike (1 - 0.05^(1/n)).
    pub unseen: f64,
    /// Share of the calls in windows, 0 to 1, that hide whether they are needless.
    pub hidden: f64,
}

/// The calls of a group in one window.
#[derive(Clone, Copy, Default)]
struct GroupInWindow {
    calls: u64,
    claimed: u64,
    /// Number of all calls that the window's calls represent.
    represented: f64,
    /// Number of all calls that the window's claimed calls represent.
    represented_claimed: f64,
}

/// Returns the standard error of a share, 0 to 1, from the calls and the claimed calls of each window.
fn standard_error(windows: impl Iterator<Item = (f64, f64)> + Clone) -> f64 {
    let (calls, claimed) = windows.clone().fold((0.0, 0.0), |(c, k), (calls, claimed)| (c + calls, k + claimed));
    let calls = f64::max(calls, 1.0);
    let mean = claimed / calls;
    windows.map(|(calls, claimed)| (claimed - mean * calls).powi(2)).sum::<f64>().sqrt() / calls
}

/// Returns the scatter over the windows of several rows taken together; each view comes with the number of its row's
/// calls.
pub(crate) fn interval(views: &[(&RowView<'_>, u64)]) -> Interval {
    let weighted = |(view, calls): &(&RowView<'_>, u64)| {
        let weights = view.weights(*calls);
        let of_window = |(at, w): &(usize, InWindow)| {
            let weight = weights.get(w.octave as usize).copied().unwrap_or(1.0);
            let [represented, represented_claimed] = [w.calls, w.claimed].map(|n| weight * n as f64);
            (*at, GroupInWindow { calls: w.calls, claimed: w.claimed, represented, represented_claimed })
        };
        view.windows.iter().map(of_window).collect::<Vec<_>>()
    };
    let mut seen: Vec<(usize, GroupInWindow)> = views.iter().flat_map(weighted).collect();
    seen.sort_unstable_by_key(|(at, _)| *at);
    let windows: Vec<GroupInWindow> = seen
        .chunk_by(|a, b| a.0 == b.0)
        .map(|same| {
            let add = |sum: GroupInWindow, (_, w): &(usize, GroupInWindow)| GroupInWindow {
                calls: sum.calls + w.calls,
                claimed: sum.claimed + w.claimed,
                represented: sum.represented + w.represented,
                represented_claimed: sum.represented_claimed + w.represented_claimed,
            };
            same.iter().fold(GroupInWindow::default(), add)
        })
        .collect();
    let n = windows.len() as f64;
    if windows.is_empty() {
        return Interval { unseen: 1.0, scatter: 1.0, spread: 1.0, ..Interval::default() };
    }
    let calls = windows.iter().map(|w| w.calls).sum::<u64>();
    let hidden = views.iter().map(|(view, _)| view.hidden).sum::<u64>();
    // Windows are weighted by their calls: a window with one call of the row says little.
    let scatter = 2.0 * standard_error(windows.iter().map(|w| (w.calls as f64, w.claimed as f64)));
    let spread = 2.0 * standard_error(windows.iter().map(|w| (w.represented, w.represented_claimed)));
    let agree = windows.iter().filter(|w| w.claimed > 0 && 2 * w.claimed >= w.calls).count() as u64;
    Interval {
        windows: windows.len() as u64,
        agree,
        scatter,
        spread: spread.max(scatter),
        unseen: 1.0 - 0.05_f64.powf(1.0 / n),
        hidden: hidden as f64 / (calls + hidden).max(1) as f64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl RowView<'_> {
        fn put(&mut self, octave: usize, seen: OctaveTally) {
            self.octaves.resize(self.octaves.len().max(octave + 1), OctaveTally::default());
            self.octaves[octave] = seen;
        }
    }

    #[test]
    fn an_octave_counts_by_its_size_not_by_its_windows() {
        let mut view = RowView::default();
        for (octave, strong) in [(0, 0), (1, 0), (2, 0), (3, 0), (9, 32)] {
            view.put(octave, OctaveTally { calls: 32.min(1 << octave), strong, any: strong, ..OctaveTally::default() });
        }
        // Octaves 7 to 9 are taken to be like the ninth, 4 and 5 like the third, 6 like the ninth.
        let got = view.needless(1023);
        assert!((got.strong - 960.0).abs() < 1e-9, "{}", got.strong);
        assert!(!got.exact);
    }

    #[test]
    fn looked_at_whole_is_exact() {
        let mut view = RowView::default();
        view.put(0, OctaveTally { calls: 1, ..OctaveTally::default() });
        view.put(1, OctaveTally { calls: 2, strong: 1, any: 2, ..OctaveTally::default() });
        let got = view.needless(3);
        assert_eq!((got.strong, got.any, got.exact), (1.0, 2.0, true));
    }

    #[test]
    fn a_call_that_stands_in_two_windows_is_one() {
        let mut counted = CountedCalls::default();
        let news: Vec<bool> = [3, 4, 9, 4, 5, 9, 10, 3].map(|nth| counted.insert(nth)).into();
        assert_eq!(news, [true, true, true, false, true, false, true, false]);
        // Blocks of calls in descending order, twice.
        let mut counted = CountedCalls::default();
        let all = || (0..40u64).rev().flat_map(|block| (1..=20).map(move |nth| 20 * block + nth));
        assert!(all().all(|nth| counted.insert(nth)) && counted.0.len() == 40);
        assert!(!all().any(|nth| counted.insert(nth)));
    }

    #[test]
    fn a_late_window_that_differs_weighs_as_much_as_the_calls_that_it_represents() {
        let mut view = RowView::default();
        let all = (0..20).map(|at| (6 + at / 8, 32)).chain([(14, 32), (14, 0)]);
        let mut tallies: Vec<OctaveTally> = vec![OctaveTally::default(); 15];
        for (at, (octave, claimed)) in all.enumerate() {
            view.windows.push((at, InWindow { calls: 32, claimed, octave }));
            let tally = &mut tallies[octave as usize];
            (tally.calls, tally.strong, tally.any) = (tally.calls + 32, tally.strong + claimed, tally.any + claimed);
        }
        view.octaves = tallies;
        let got = interval(&[(&view, 32_767)]);
        assert!(got.scatter < 0.1 && got.spread > 4.0 * got.scatter, "{got:?}");
        // All calls were made early, where windows agree.
        let early = interval(&[(&view, 700)]);
        assert_eq!(early.scatter, got.scatter);
        assert!(early.spread < got.spread, "{early:?}");
    }

    #[test]
    fn ten_windows_of_ten_say_at_least_three_quarters() {
        let mut view = RowView::default();
        for at in 0..10 {
            view.windows.push((at, InWindow { calls: 32, claimed: 32, octave: 0 }));
        }
        let got = interval(&[(&view, 1_000)]);
        assert_eq!((got.windows, got.agree), (10, 10));
        assert!((1.0 - got.unseen - 0.74).abs() < 0.005, "{}", got.unseen);
        assert_eq!(got.scatter, 0.0);
    }
}
