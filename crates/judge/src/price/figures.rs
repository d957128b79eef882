//! The figures of a group of calls: how many are needless, with an interval, and what they cost.

use crate::causes::fact::Fact;
use crate::detect::Children;
use crate::evidence::phases::{Phases, toll, waited};
use crate::evidence::survey::{Claimed, Interval, LedgerScatter, Needless, RowView, interval};
use crate::excerpt::InExcerpt;
use crate::groups::group::Group;
use crate::groups::judged_view::JudgedView;
use crate::options::Options;
use crate::price::share_out::share_out;
use crate::results::finding::{Estimate, Kind, Later, RowNeedless};
use crate::semantics::Semantics;
use std::collections::BTreeMap;
use systoll_model::{Recording, RowId, WindowCall};

/// Figures of a group.
#[derive(Default)]
pub(crate) struct Figures {
    /// Number of all calls of the rows.
    pub calls: u64,
    /// Number of needless calls by strong claims.
    pub strong: f64,
    /// Number of needless calls by any claim.
    pub any: f64,
    /// True if windows show every call.
    pub exact: bool,
    /// Toll of all calls, ns.
    pub toll: f64,
    /// Toll of the needless calls by strong claims, ns.
    pub needless_toll: f64,
    /// Toll of the needless calls by any claim, ns.
    pub any_toll: f64,
    /// Time waited in the calls, ns.
    pub waited: f64,
    /// Scatter of the needless share over windows.
    pub interval: Interval,
    /// Number of strongly claimed calls in windows.
    pub agreeing: u64,
    /// Number of octaves of the rows' counts with strongly claimed calls.
    pub octaves: usize,
    /// Number of calls in windows.
    pub seen: u64,
    /// Number of claimed calls in windows.
    pub claimed: u64,
    /// True if one thread of each process makes the calls.
    pub single_thread: bool,
    /// Number of calls that failed, by exact counts.
    pub failed: u64,
    /// True if the ledger tells how many calls are needless.
    pub by_ledger: bool,
    /// True if the group has calls of more than one system call.
    pub several: bool,
    /// Share of the rows' waiting time that claimed calls have, 0 to 1; `None` if it is unknown.
    pub waits_claimed: Option<f64>,
    /// True if all rows wait at locks or give them back: who comes too late there does not poll.
    pub of_locks: bool,
    /// True if each claimed call is a wait for something, and timed out.
    pub wakes_up: bool,
    /// Cost that the needless calls cause after they return.
    pub later: Option<Later>,
    /// Weight of each of the group's rows.
    pub by_row: BTreeMap<RowId, RowWeight>,
}

/// Number of a row's needless calls, before rounding.
pub(crate) struct RowWeight {
    /// Number by strong claims.
    pub strong: f64,
    /// Number by any claim.
    pub any: f64,
    /// Time saved by leaving out one of the row's needless calls, ns.
    pub price: f64,
}

/// Returns the figures of a group.
pub(crate) fn figures(group: &Group<'_>, shown: JudgedView<'_>, phases: &Phases) -> Figures {
    let JudgedView { recording, views, semantics, .. } = shown;
    let of_group: Vec<&RowView<'_>> = group.rows.iter().filter_map(|id| views.get(id.0 as usize)).collect();
    let calls = |id: &RowId| Some((views.get(id.0 as usize)?, recording.row(*id).counts.calls));
    let with_calls: Vec<_> = group.rows.iter().filter_map(calls).filter(|(view, _)| !view.only_leads()).collect();
    let mut octaves: Vec<u32> = of_group.iter().flat_map(|v| v.agreeing_octaves()).collect();
    octaves.sort_unstable();
    octaves.dedup();
    let mut threads: BTreeMap<u32, u32> = BTreeMap::new();
    let single = of_group.iter().flat_map(|v| v.threads.iter()).all(|(p, t)| *threads.entry(*p).or_insert(*t) == *t);
    let mut f = Figures {
        exact: true,
        interval: interval(&with_calls),
        agreeing: of_group.iter().map(|v| v.strong()).sum(),
        octaves: octaves.len(),
        seen: with_calls.iter().map(|(view, _)| view.seen()).sum(),
        claimed: of_group.iter().map(|view| view.claimed()).sum(),
        single_thread: single && threads.len() <= 1,
        several: group
            .rows
            .windows(2)
            .any(|two| matches!(two, [a, b] if recording.row(*a).syscall != recording.row(*b).syscall)),
        waits_claimed: waits_claimed(group, &of_group),
        of_locks: group.rows.iter().all(|id| semantics.lines_of(recording.row(*id).syscall).may_wake()),
        wakes_up: of_group.iter().flat_map(|v| &v.claimed).all(|c| wakes_up(c, recording, semantics)),
        ..Figures::default()
    };
    for id in &group.rows {
        f.add_row(*id, group, recording, views, phases);
    }
    f.narrow_by_ledger(group, recording, views);
    if let Some(share) = f.waits_claimed.filter(|_| group.startup.is_none()) {
        f.waited *= share;
    }
    if let Some(late) = &group.late {
        // Each of these waits is known with its times.
        let count = late.calls.min(f.calls) as f64;
        let sure = if late.kind.doubt().is_none() { count } else { 0.0 };
        (f.strong, f.any, f.exact, f.waited) = (sure, count, true, late.ns as f64);
        (f.needless_toll, f.any_toll, f.waits_claimed) = (0.0, 0.0, None);
    }
    if let Some(children) = &group.children {
        // Processes are counted exactly; the price is that of starting them.
        let count = children.count.min(f.calls) as f64;
        (f.strong, f.any, f.exact) = (count, count, true);
        (f.needless_toll, f.any_toll) = (children.start_ns, children.start_ns);
        f.toll = f.toll.max(children.start_ns);
    }
    f
}

/// Returns true if a claimed call waited for something, in vain. A sleep waits for nothing: a program may look at its
/// memory between two of them.
fn wakes_up(claimed: &Claimed<'_>, recording: &Recording, semantics: &Semantics) -> bool {
    let may_wait = || semantics.lines_of(recording.row(claimed.call.row).syscall).tells_ready();
    let facts = claimed.claim.facts;
    facts.contains(Fact::RunsOut) || facts.contains(Fact::Sleeps) && may_wait()
}

/// Returns the share of the rows' waiting, as windows show it, that calls claimed for it have, 0 to 1.
fn waits_claimed(group: &Group<'_>, views: &[&RowView<'_>]) -> Option<f64> {
    // Floating, because the waits of a damaged recording may be more than 64 bits hold together.
    let ns_of = |view: &&RowView<'_>| view.waited_ns.map(|ns| ns as f64);
    let all = views.iter().map(ns_of).sum::<Option<f64>>().filter(|ns| group.by_wait && *ns > 0.0)?;
    let claimed = views.iter().flat_map(|view| &view.claimed).filter(|claimed| claimed.claim.by_wait);
    let waited: f64 = claimed.filter_map(|claimed| claimed.call.waited_ns).map(|ns| ns as f64).sum();
    Some((waited / all).clamp(0.0, 1.0))
}

/// Returns the share of the price of a row's claimed calls, 0 to 1, that leaving them out saves.
fn saved_share(view: &RowView<'_>, price: f64) -> f64 {
    let saved: f64 = view.claimed.iter().map(|claimed| claimed.claim.saves.share_of(price)).sum();
    if view.claimed.is_empty() { 1.0 } else { saved / view.claimed.len() as f64 }
}

/// Share of calls in windows, 0 to 1, from which on those that hide whether they are needless may all be of use, and the
/// factor of the lower bound then.
const BLIND: f64 = 0.5;
/// Needless share of the calls, 0 to 1, from which on all of them may be needless: a detector claims only calls of which
/// a window proves it.
const NEARLY_ALL: f64 = 0.9;

impl Figures {
    /// Adds the figures of one of the group's rows.
    fn add_row(&mut self, id: RowId, group: &Group<'_>, recording: &Recording, views: &[RowView<'_>], phases: &Phases) {
        let row = recording.row(id);
        let calls = row.counts.calls;
        let toll = toll(recording, row);
        let mut needless = views.get(id.0 as usize).map(|v| v.needless(calls)).unwrap_or_default();
        // Waits before `main` are exact: they were counted, not sampled. Later calls of the row may be claimed as well.
        let startup = row.counts.startup_calls.min(calls) as f64;
        if group.startup.is_some() && needless.strong <= startup {
            needless = Needless { strong: startup, any: startup, exact: true };
        }
        self.calls = self.calls.saturating_add(calls);
        self.failed = self.failed.saturating_add(row.counts.failed());
        self.strong += needless.strong;
        self.any += needless.any;
        self.exact &= needless.exact;
        self.toll += toll;
        let price = toll / calls.max(1) as f64;
        let saved = views.get(id.0 as usize).map_or(1.0, |view| saved_share(view, price));
        self.by_row.insert(id, RowWeight { strong: needless.strong, any: needless.any, price: price * saved });
        self.needless_toll += price * saved * needless.strong;
        self.any_toll += price * saved * needless.any;
        self.waited += match group.startup {
            Some(_) if row.counts.waited_ns.is_some() => row.counts.startup_waited_ns as f64,
            _ => waited(phases, recording, row),
        };
    }

    /// Takes the interval from the ledger if it has all rows and is narrower than the windows'.
    fn narrow_by_ledger(&mut self, group: &Group<'_>, recording: &Recording, views: &[RowView<'_>]) {
        let of_row = |id: &RowId| views.get(id.0 as usize)?.ledger_scatter(recording.row(*id).counts.calls);
        let scatters: Option<Vec<LedgerScatter>> = group.rows.iter().map(of_row).collect();
        if let Some(scatters) = scatters.filter(|all| !all.is_empty()) {
            let scatter = scatters.iter().map(|s| s.calls).sum::<f64>() / self.calls.max(1) as f64;
            // If windows claim more than the ledger, the ledger is the lower bound.
            if scatters.iter().all(|s| s.decides) || scatter < self.interval.scatter {
                self.interval = Interval { scatter, spread: scatter, unseen: 0.0, hidden: 0.0, ..self.interval };
                self.by_ledger = true;
            }
        }
    }

    /// Returns `needless` calls and their toll divided among `rows`, in their order.
    pub(crate) fn by_row(
        &self,
        rows: &[RowId],
        low: bool,
        started: Option<&Children>,
        needless: u64,
        toll_ns: u64,
    ) -> Vec<RowNeedless> {
        let weights = |of: fn(&RowWeight) -> f64| rows.iter().map(move |id| self.by_row.get(id).map_or(0.0, of));
        let served = |id: &RowId| started.and_then(|children| children.served.get(id)).copied().unwrap_or(0);
        let calls: Vec<f64> = match low {
            _ if started.is_some() => rows.iter().map(|id| served(id) as f64).collect(),
            true => weights(|w| w.any).collect(),
            false => weights(|w| w.strong).collect(),
        };
        let tolls: Vec<f64> = calls.iter().zip(weights(|w| w.price)).map(|(calls, price)| calls * price).collect();
        // Starts are no calls: the calls that served them are told row by row.
        let counted = match started {
            Some(_) => rows.iter().map(served).collect(),
            None => share_out(needless, &calls),
        };
        let parts = counted.into_iter().zip(share_out(toll_ns, &tolls));
        parts.map(|(calls, toll_ns)| RowNeedless { calls, toll_ns }).collect()
    }

    /// Returns the group's figures for the judgement of an excerpt.
    pub(crate) fn in_excerpt(&self, group: &Group<'_>, of_cpu: f64, views: &[RowView<'_>]) -> InExcerpt {
        let of_group = group.rows.iter().filter_map(|id| views.get(id.0 as usize));
        let mut claimed = of_group.flat_map(|view| &view.claimed).peekable();
        let given = |call: &WindowCall| call.fd.is_none() && matches!(call.args.first(), Some(1 | 2));
        InExcerpt {
            for_somebody: group.kind == Kind::SmallIo && claimed.peek().is_some() && claimed.all(|c| given(c.call)),
            calls: self.calls,
            sure: self.agreeing,
            share: self.strong_share(),
            any: self.any,
            toll_ns: self.needless_toll,
            of_cpu,
            waited_ns: group.by_wait.then_some(self.waited),
        }
    }

    /// Returns the time that needless calls take, ns; if `low`, of weak claims as well.
    pub(crate) fn toll_of_needless(&self, low: bool) -> f64 {
        if low { self.any_toll } else { self.needless_toll }
    }

    /// Returns the number of needless calls, or if none surely is, of those that may be; and its share of the calls, 0 to 1.
    /// Each is a lower bound, an estimate, an upper bound.
    pub(crate) fn needless(&self) -> ([f64; 3], [f64; 3]) {
        let e = self.estimate(self.strong == 0.0);
        let needless = [e.low, e.estimate, e.high].map(|n| n as f64);
        (needless, needless.map(|n| n / self.calls.max(1) as f64))
    }

    /// Returns the share of the calls that is claimed strongly, 0 to 1.
    pub(crate) fn strong_share(&self) -> f64 {
        self.strong / (self.calls.max(1) as f64)
    }

    /// Returns true if enough calls were sampled for a finding. Claimed calls in windows need no interval: windows
    /// show most calls of a short row.
    pub(crate) fn looked_at(&self, options: &Options) -> bool {
        let low = self.strong_share() - self.interval.scatter;
        self.exact
            || self.agreeing as f64 >= options.min_low_share * self.calls as f64
            || (self.by_ledger && low >= options.min_low_share)
            || (self.interval.agree >= options.min_windows
                && self.octaves as u64 >= options.min_octaves
                && low >= options.min_low_share)
    }

    /// Returns true if the calls are enough for a remark, by their number and their price or their number alone.
    pub(crate) fn is_some(&self, options: &Options) -> bool {
        let dear = || self.any_toll + self.surely_later() >= options.low_ns as f64;
        self.any >= options.low_calls as f64 && (dear() || self.any >= options.many_low_calls as f64)
    }

    /// Returns the lower bound of the cost after the calls, ns.
    pub(crate) fn surely_later(&self) -> f64 {
        self.later.map_or(0.0, |l| l.ns.low as f64)
    }

    /// Returns the number of needless calls with its bounds; if `low_confidence`, the best estimate includes weak claims.
    pub(crate) fn estimate(&self, low_confidence: bool) -> Estimate {
        let calls = self.calls as f64;
        let best = if low_confidence { self.any } else { self.strong }.clamp(0.0, calls);
        // Calls that are claimed less surely may be needless as well.
        let most = self.any.clamp(best, calls.max(best));
        if self.exact {
            let [best, most] = [best, most].map(|n| (n.round() as u64).min(self.calls));
            return Estimate { estimate: best, low: best, high: most };
        }
        let (share, most) = (best / calls.max(1.0), most / calls.max(1.0));
        let Interval { spread, unseen, hidden, .. } = self.interval;
        let low = (share - spread).max(0.0) * (1.0 - unseen);
        let low = if hidden > BLIND { low * BLIND } else { low };
        // So may those of which no window shows it: most of them lie where like calls are claimed.
        let most = most + (1.0 - most) * hidden;
        let high = most + spread + (1.0 - most) * unseen;
        // Nothing speaks for the rest, of which windows show no reason.
        let high = if most >= NEARLY_ALL && !self.by_ledger { 1.0 } else { high };
        // Large counts are rounded by floating point; the order of the three must survive that.
        let estimate = (best.round() as u64).min(self.calls);
        let low = ((low * calls).floor() as u64).max(self.agreeing).min(estimate);
        let high = ((high * calls).ceil() as u64).clamp(estimate, self.calls);
        Estimate { estimate, low, high }
    }
}
