//! From claimed calls in windows to a share of a row: weighted by octave, an interval over windows.

use crate::detect::{Claim, Claims, Judged};
use crate::few::Few;
use crate::hash::Set;
use crate::ledger::{self, LedgerView};
use crate::semantics::Semantics;
use systoll_model::{Before, Recording, RowId, WindowCall};

/// A row of so many times fewer calls than another is rare beside it.
const RARE: u64 = 16;

/// Calls of a row seen in one octave of its count.
#[derive(Clone, Copy, Default)]
struct OctaveTally {
    calls: u64,
    strong: u64,
    any: u64,
    /// Of both, claimed of calls that the ledger does not know from before.
    strong_else: u64,
    any_else: u64,
}

/// Calls of a row seen in one window.
#[derive(Clone, Copy, Default)]
pub(crate) struct InWindow {
    /// Calls but the row's very first, which is never claimed.
    pub calls: u64,
    /// Of these, claimed.
    pub claimed: u64,
}

/// A claimed call.
pub(crate) struct Claimed<'a> {
    /// What is claimed.
    pub claim: &'a Claim,
    /// The call.
    pub call: &'a WindowCall,
}

/// All that windows show of a row.
#[derive(Default)]
pub(crate) struct RowView<'a> {
    /// By octave, as far up as calls were seen.
    octaves: Vec<OctaveTally>,
    /// The same of windows that a row of about as many calls opened, or of more: what a rare call is surrounded by is
    /// seen far more often than it comes. `None` where no rare call opened any: both are then the same.
    unbiased: Option<Vec<OctaveTally>>,
    /// Windows that hold calls of it, by their place in the recording, in order.
    pub windows: Few<(usize, InWindow)>,
    /// Process and thread of its calls, each once at least.
    pub threads: Few<(u32, u32)>,
    /// Claimed calls.
    pub claimed: Vec<Claimed<'a>>,
    /// Any call, for its arguments.
    pub sample: Option<&'a WindowCall>,
    /// What stands for it where no window shows it.
    pub like: Option<Alike>,
    /// What the ledger of the run says of it.
    pub ledger: LedgerView<'a>,
}

/// What stands for a row that no window shows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Alike {
    /// A row with claims, of another process.
    pub row: RowId,
    /// Shares of the calls that are needless: by strong claims, and by any.
    pub strong: f64,
    pub any: f64,
}

/// How many of a row's calls are needless.
#[derive(Clone, Copy, Default)]
pub(crate) struct Needless {
    /// By strong claims.
    pub strong: f64,
    /// By any.
    pub any: f64,
    /// Whether every call of the row was looked at.
    pub exact: bool,
}

impl RowView<'_> {
    /// Calls seen.
    pub(crate) fn seen(&self) -> u64 {
        self.octaves.iter().map(|o| o.calls).sum()
    }

    /// Octaves that hold strongly claimed calls.
    pub(crate) fn agreeing_octaves(&self) -> impl Iterator<Item = u32> {
        (0u32..).zip(&self.octaves).filter(|(_, o)| o.strong > 0).map(|(at, _)| at)
    }

    /// Strongly claimed calls seen.
    pub(crate) fn strong(&self) -> u64 {
        self.octaves.iter().map(|o| o.strong).sum()
    }

    /// Estimates how many of the row's `calls` calls are needless. Windows crowd at the start of
    /// a row, so each octave counts by its size; one without a window is taken to be like the
    /// nearest that has one.
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
        // Rare calls' windows crowd where these are; but they alone may show how what goes on between them ends.
        let all = by_octaves(&self.octaves, calls);
        let unbiased = self.unbiased.as_ref().map(|octaves| by_octaves(octaves, calls));
        let ByOctaves { needless, otherwise } =
            unbiased.filter(|unbiased| unbiased.needless.strong > all.needless.strong).unwrap_or(all);
        // What lies too far apart for windows to know it for a repeat.
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

    /// By how much needless calls may be fewer than [`RowView::needless`] says, where the ledger tells.
    pub(crate) fn ledger_scatter(&self, calls: u64) -> Option<LedgerScatter> {
        let share = self.ledger.settled(calls)?;
        let known = self.ledger.needless(calls)?.strong;
        let needless = self.needless(calls).strong;
        // What is known is all that was asked before, or nearly.
        let least = known * share.low / share.estimate.max(f64::MIN_POSITIVE);
        let decides = known >= 0.999 * needless;
        let scatter = if decides { (share.estimate - share.low) * calls as f64 } else { needless - least };
        Some(LedgerScatter { calls: scatter.max(0.0), decides })
    }
}

/// How sure the ledger is of a row.
pub(crate) struct LedgerScatter {
    /// So many calls fewer may be needless.
    pub calls: f64,
    /// Whether the estimate is the ledger's, and not that of windows, which say more.
    pub decides: bool,
}

impl<'a> RowView<'a> {
    fn add(&mut self, window: usize, thread: (u32, u32), call: &'a WindowCall, claim: Option<&'a Claim>, rare: bool) {
        if rare && self.unbiased.is_none() {
            self.unbiased = Some(self.octaves.clone());
        }
        tally(&mut self.octaves, call, claim);
        if let Some(unbiased) = self.unbiased.as_mut().filter(|_| !rare) {
            tally(unbiased, call, claim);
        }
        self.ledger.show(call, claim);
        let first = call.nth == 1 && claim.is_none();
        if !first {
            if self.windows.last_mut().is_none_or(|(at, _)| *at != window) {
                self.windows.push((window, InWindow::default()));
            }
            if let Some((_, here)) = self.windows.last_mut() {
                here.calls += 1;
                here.claimed += u64::from(claim.is_some());
            }
        }
        if self.threads.last_mut().is_none_or(|last| *last != thread) {
            self.threads.push(thread);
        }
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

/// What octaves say of all calls of a row.
struct ByOctaves {
    needless: Needless,
    /// Of these, of calls that the ledger does not know from before.
    otherwise: Needless,
}

/// How many of a row's `calls` are needless: each octave counts by its size.
fn by_octaves(octaves: &[OctaveTally], calls: u64) -> ByOctaves {
    let mut needless = Needless::default();
    let mut otherwise = Needless::default();
    let seen = (0u32..).zip(octaves).filter(|(_, o)| o.calls > 0).map(|(at, _)| at);
    for (size, nearest) in crate::octave::octaves(calls, seen) {
        let Some(o) = octaves.get(nearest as usize) else { continue };
        let size = size as f64;
        needless.strong += size * o.strong as f64 / o.calls as f64;
        needless.any += size * o.any as f64 / o.calls as f64;
        otherwise.strong += size * o.strong_else as f64 / o.calls as f64;
        otherwise.any += size * o.any_else as f64 / o.calls as f64;
    }
    ByOctaves { needless, otherwise }
}

/// What a recording shows.
#[derive(Clone, Copy)]
pub(crate) struct Shown<'a> {
    /// The recording.
    pub recording: &'a Recording,
    /// What windows show of its rows.
    pub views: &'a [RowView<'a>],
    /// What is claimed of their calls.
    pub claims: &'a Claims,
    /// The tables.
    pub semantics: &'a Semantics,
}

/// One view a row, in the order of [`Recording::rows`].
pub(crate) fn survey<'a>(recording: &'a Recording, claims: &'a Claims) -> Vec<RowView<'a>> {
    let mut views: Vec<RowView<'a>> = recording.rows.iter().map(|_| RowView::default()).collect();
    for (row, ledger) in ledger::of_rows(recording) {
        if let Some(view) = views.get_mut(row.0 as usize) {
            view.ledger.told = Some(ledger);
        }
    }
    let mut claims = claims.iter();
    let mut counted: Vec<Counted> = recording.rows.iter().map(|_| Counted::default()).collect();
    let calls = |row: RowId| recording.row(row).counts.calls;
    for (at, window) in recording.windows.iter().enumerate() {
        let thread = (window.process.0, window.thread);
        let opener = calls(window.row);
        for (call, judged) in window.calls.iter().zip(claims.by_ref()) {
            let claim = match judged {
                Judged::LeftOut => continue,
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

/// The windows that hold calls of the rows, in order.
pub(crate) fn windows(rows: &[RowId], views: &[RowView<'_>]) -> impl Iterator<Item = usize> {
    let of_row = |id: &RowId| views.get(id.0 as usize);
    let mut at: Vec<usize> = rows.iter().filter_map(of_row).flat_map(|v| v.windows.iter().map(|w| w.0)).collect();
    at.sort_unstable();
    at.dedup();
    at.into_iter()
}

/// Which calls of a row were counted: a call may stand in two windows of a merged recording, and
/// is still one call.
#[derive(Default)]
struct Counted {
    /// The newest stretch without a gap: what a window holds of a row mostly is one.
    newest: Option<(u64, u64)>,
    /// Those before it, in order.
    before: Vec<(u64, u64)>,
    /// All of them, once one comes out of its order.
    astray: Option<Box<Set<u64>>>,
}

impl Counted {
    /// Whether it was not there yet.
    fn insert(&mut self, nth: u64) -> bool {
        if let Some(astray) = &mut self.astray {
            return astray.insert(nth);
        }
        match self.newest {
            Some((first, last)) if nth == last.saturating_add(1) => self.newest = Some((first, nth)),
            Some((first, last)) if (first..=last).contains(&nth) => return false,
            Some((first, _)) if nth < first => return self.go_astray().insert(nth),
            newest => {
                self.before.extend(newest);
                self.newest = Some((nth, nth));
            }
        }
        true
    }

    /// All that was counted so far, one by one.
    fn go_astray(&mut self) -> &mut Set<u64> {
        let stretches = self.before.drain(..).chain(self.newest.take());
        let all: Set<u64> = stretches.flat_map(|(first, last)| first..=last).collect();
        self.astray.insert(Box::new(all))
    }
}

/// The share of a group's calls that is needless, over the windows that hold its calls.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Interval {
    /// Windows that hold calls of it.
    pub windows: u64,
    /// Windows in which most of these are claimed.
    pub agree: u64,
    /// Two standard errors of the share, from how windows differ.
    pub scatter: f64,
    /// What windows that were not opened might hide: of `n` alike, 19 times in 20 less than this.
    pub unseen: f64,
}

/// How the windows of several rows, taken together, differ.
pub(crate) fn interval(views: &[&RowView<'_>]) -> Interval {
    let mut seen: Vec<(usize, InWindow)> = views.iter().flat_map(|v| v.windows.iter().copied()).collect();
    seen.sort_unstable_by_key(|(at, _)| *at);
    let windows: Vec<InWindow> = seen
        .chunk_by(|a, b| a.0 == b.0)
        .map(|same| {
            let add = |sum: InWindow, (_, w): &(usize, InWindow)| InWindow {
                calls: sum.calls + w.calls,
                claimed: sum.claimed + w.claimed,
            };
            same.iter().fold(InWindow::default(), add)
        })
        .collect();
    let n = windows.len() as f64;
    if windows.is_empty() {
        return Interval { unseen: 1.0, scatter: 1.0, ..Interval::default() };
    }
    let (calls, claimed) = windows.iter().fold((0, 0), |(c, k), w| (c + w.calls, k + w.claimed));
    let mean = claimed as f64 / calls.max(1) as f64;
    // Weighted by calls: a window with one call of the row says little.
    let square = |w: &InWindow| (w.claimed as f64 - mean * w.calls as f64).powi(2);
    let variance = windows.iter().map(square).sum::<f64>() / (calls.max(1) as f64).powi(2);
    let agree = windows.iter().filter(|w| w.claimed > 0 && 2 * w.claimed >= w.calls).count() as u64;
    Interval {
        windows: windows.len() as u64,
        agree,
        scatter: 2.0 * variance.sqrt(),
        unseen: 1.0 - 0.05_f64.powf(1.0 / n),
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
        let mut counted = Counted::default();
        let news: Vec<bool> = [3, 4, 9, 4, 5, 9, 10, 3].map(|nth| counted.insert(nth)).into();
        assert_eq!(news, [true, true, true, false, true, false, true, false]);
        // Blocks of calls in turned order, twice.
        let mut counted = Counted::default();
        let all = || (0..40u64).rev().flat_map(|block| (1..=20).map(move |nth| 20 * block + nth));
        assert!(all().all(|nth| counted.insert(nth)) && counted.astray.is_some());
        assert!(!all().any(|nth| counted.insert(nth)));
    }

    #[test]
    fn ten_windows_of_ten_say_at_least_three_quarters() {
        let mut view = RowView::default();
        for at in 0..10 {
            view.windows.push((at, InWindow { calls: 32, claimed: 32 }));
        }
        let got = interval(&[&view]);
        assert_eq!((got.windows, got.agree), (10, 10));
        assert!((1.0 - got.unseen - 0.74).abs() < 0.005, "{}", got.unseen);
        assert_eq!(got.scatter, 0.0);
    }
}
