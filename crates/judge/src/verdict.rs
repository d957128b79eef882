//! The price of a group's needless calls, and the verdict on it: a finding, a remark or nothing.

use crate::deferred_cost::deferred_cost;
use crate::detect::{Children, Started};
use crate::excerpt::{Excerpt, InExcerpt};
use crate::expected_gain::{NeedlessCalls, expected_gain};
use crate::fact::Fact;
use crate::finding::{Basis, Confidence, Doubt, Estimate, Evidence, Finding, Kind, Later, ObjectShare, RowNeedless};
use crate::group::Group;
use crate::judged_view::JudgedView;
use crate::options::Options;
use crate::per_unit::{Wanted, per_unit};
use crate::phases::{Phases, toll, waited};
use crate::phrasing;
use crate::row_order::ordered_rows;
use crate::semantics::Semantics;
use crate::share_out::share_out;
use crate::subject::{Objects, objects, subject};
use crate::survey::{Claimed, Interval, LedgerScatter, RowView, interval};
use std::collections::BTreeMap;
use systoll_model::{Phase, Recording, Row, RowId, WindowCall};

/// The needless calls' shares of processor time, 0 to 1.
struct CpuShares {
    /// Share of the phase's time that strongly claimed calls take.
    strong: f64,
    /// Lower bound of `strong`: the same with the uncertain time added to the phase's.
    at_least: f64,
    /// Share of the whole run's time that calls with any claim take, for remarks. A phase's time is read at stops;
    /// small differences of it would make a remark come and go.
    any: f64,
}

/// Figures of a group.
struct Figures {
    calls: u64,
    strong: f64,
    any: f64,
    exact: bool,
    toll: f64,
    needless_toll: f64,
    any_toll: f64,
    waited: f64,
    interval: Interval,
    agreeing: u64,
    octaves: usize,
    seen: u64,
    claimed: u64,
    single_thread: bool,
    /// Number of calls that failed, by exact counts.
    failed: u64,
    /// True if the ledger tells how many calls are needless.
    by_ledger: bool,
    /// True if the group has calls of more than one system call.
    several: bool,
    /// Share of the rows' waiting time that claimed calls have, 0 to 1; `None` if it is unknown.
    waits_claimed: Option<f64>,
    /// True if each claimed call is a wait for something, and timed out.
    wakes_up: bool,
    later: Option<Later>,
    /// Weight of each of the group's rows.
    by_row: BTreeMap<RowId, RowWeight>,
}

/// Number of a row's needless calls, before rounding.
struct RowWeight {
    strong: f64,
    any: f64,
    /// Time saved by leaving out one of the row's needless calls, ns.
    price: f64,
}

fn figures(group: &Group<'_>, shown: JudgedView<'_>, phases: &Phases) -> Figures {
    let JudgedView { recording, views, semantics, .. } = shown;
    let of_group: Vec<&RowView<'_>> = group.rows.iter().filter_map(|id| views.get(id.0 as usize)).collect();
    let mut octaves: Vec<u32> = of_group.iter().flat_map(|v| v.agreeing_octaves()).collect();
    octaves.sort_unstable();
    octaves.dedup();
    let mut threads: BTreeMap<u32, u32> = BTreeMap::new();
    let single = of_group.iter().flat_map(|v| v.threads.iter()).all(|(p, t)| *threads.entry(*p).or_insert(*t) == *t);
    let mut f = Figures {
        calls: 0,
        strong: 0.0,
        any: 0.0,
        exact: true,
        toll: 0.0,
        needless_toll: 0.0,
        any_toll: 0.0,
        waited: 0.0,
        interval: interval(&of_group),
        agreeing: of_group.iter().map(|v| v.strong()).sum(),
        octaves: octaves.len(),
        seen: of_group.iter().map(|v| v.seen()).sum(),
        claimed: of_group.iter().map(|v| v.claimed.len() as u64).sum(),
        single_thread: single && threads.len() <= 1,
        failed: 0,
        by_ledger: false,
        several: group
            .rows
            .windows(2)
            .any(|two| matches!(two, [a, b] if recording.row(*a).syscall != recording.row(*b).syscall)),
        waits_claimed: waits_claimed(group, &of_group),
        wakes_up: of_group.iter().flat_map(|v| &v.claimed).all(|c| wakes_up(c, recording, semantics)),
        later: None,
        by_row: BTreeMap::new(),
    };
    for id in &group.rows {
        f.add_row(*id, group, recording, views, phases);
    }
    f.narrow_by_ledger(group, recording, views);
    if let Some(share) = f.waits_claimed.filter(|_| group.startup.is_none()) {
        f.waited *= share;
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

/// Largest mean length, ns, of timed-out waits for a remark about them. A hundred wake-ups a second keep a processor
/// from its deeper sleep; a program that wakes up less often to look around is usual.
const WAKE_UP_NS: f64 = 10_000_000.0;
/// Least share of the rows' waiting, 0 to 1, that calls claimed for their waiting have.
const OF_WAITING: f64 = 0.2;

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

/// Factor of the lower bound if windows do not show of most calls if they are needless: all of these may be useful.
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
        let needless = if group.startup.is_some() {
            // These waits are exact: they were counted, not sampled. Later calls of the row may be claimed as well.
            let startup = row.counts.startup_calls.min(calls) as f64;
            let counted = crate::survey::Needless { strong: startup, any: startup, exact: true };
            let looked_at = views.get(id.0 as usize).map(|v| v.needless(calls)).unwrap_or_default();
            if looked_at.strong > startup { looked_at } else { counted }
        } else {
            views.get(id.0 as usize).map(|v| v.needless(calls)).unwrap_or_default()
        };
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
                self.interval = Interval { scatter, unseen: 0.0, ..self.interval };
                self.by_ledger = true;
            }
        }
    }

    /// Returns `needless` calls and their toll divided among `rows`, in their order.
    fn by_row(&self, rows: &[RowId], low: bool, started: bool, needless: u64, toll_ns: u64) -> Vec<RowNeedless> {
        let weights = |of: fn(&RowWeight) -> f64| rows.iter().map(move |id| self.by_row.get(id).map_or(0.0, of));
        let calls: Vec<f64> = match low {
            // All calls of the rows that start children are needless.
            _ if started => weights(|_| 1.0).collect(),
            true => weights(|w| w.any).collect(),
            false => weights(|w| w.strong).collect(),
        };
        let tolls: Vec<f64> = calls.iter().zip(weights(|w| w.price)).map(|(calls, price)| calls * price).collect();
        let parts = share_out(needless, &calls).into_iter().zip(share_out(toll_ns, &tolls));
        parts.map(|(calls, toll_ns)| RowNeedless { calls, toll_ns }).collect()
    }

    /// Returns the group's figures for the judgement of an excerpt.
    fn in_excerpt(&self, group: &Group<'_>, of_cpu: &CpuShares, views: &[RowView<'_>]) -> InExcerpt {
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
            of_cpu: of_cpu.strong,
            waited_ns: group.by_wait.then_some(self.waited),
        }
    }

    /// Returns the time that needless calls take, ns; if `low`, of weak claims as well.
    fn toll_of_needless(&self, low: bool) -> f64 {
        if low { self.any_toll } else { self.needless_toll }
    }

    /// Returns the number of needless calls: lower bound, estimate, upper bound.
    fn needless(&self) -> [f64; 3] {
        let e = self.estimate(false);
        [e.low, e.estimate, e.high].map(|n| n as f64)
    }

    /// Returns the needless share of the calls, 0 to 1: lower bound, estimate, upper bound.
    fn shares(&self) -> [f64; 3] {
        self.needless().map(|n| n / self.calls.max(1) as f64)
    }

    /// Returns the share of the calls that is claimed strongly, 0 to 1.
    fn strong_share(&self) -> f64 {
        self.strong / (self.calls.max(1) as f64)
    }

    /// Returns true if enough calls were sampled for a finding. Claimed calls in windows need no interval: windows
    /// show most calls of a short row.
    fn looked_at(&self, options: &Options) -> bool {
        let low = self.strong_share() - self.interval.scatter;
        self.exact
            || self.agreeing as f64 >= options.min_low_share * self.calls as f64
            || (self.by_ledger && low >= options.min_low_share)
            || (self.interval.agree >= options.min_windows
                && self.octaves as u64 >= options.min_octaves
                && low >= options.min_low_share)
    }

    /// Returns true if the calls are enough for a remark, by their number and their price or their number alone.
    fn is_some(&self, options: &Options) -> bool {
        let dear = || self.any_toll + self.surely_later() >= options.low_ns as f64;
        self.any >= options.low_calls as f64 && (dear() || self.any >= options.many_low_calls as f64)
    }

    fn surely_later(&self) -> f64 {
        self.later.map_or(0.0, |l| l.ns.low as f64)
    }

    fn estimate(&self, low_confidence: bool) -> Estimate {
        let calls = self.calls as f64;
        let best = if low_confidence { self.any } else { self.strong }.clamp(0.0, calls);
        if self.exact {
            let best = (best.round() as u64).min(self.calls);
            return Estimate { estimate: best, low: best, high: best };
        }
        let share = best / calls.max(1.0);
        let low = (share - self.interval.scatter).max(0.0) * (1.0 - self.interval.unseen);
        let low = if self.interval.is_blind { low * BLIND } else { low };
        let high = share + self.interval.scatter + (1.0 - share) * self.interval.unseen;
        // Windows show no reason for the remaining calls either, so all of them may be needless.
        let high = if share >= NEARLY_ALL && !self.by_ledger { 1.0 } else { high };
        // Large counts are rounded by floating point; the order of the three must survive that.
        let estimate = (best.round() as u64).min(self.calls);
        let low = ((low * calls).floor() as u64).max(self.agreeing).min(estimate);
        let high = ((high * calls).ceil() as u64).clamp(estimate, self.calls);
        Estimate { estimate, low, high }
    }
}

/// Shares of the run that a group's calls have, 0 to 1.
struct Shares {
    /// The phase with most of the calls, whose times those of the needless calls are compared with.
    phase: Phase,
    cpu: CpuShares,
    /// Share of elapsed time that the calls waited.
    wall: f64,
    /// Share of all calls.
    calls: f64,
}

impl Shares {
    fn new(group: &Group<'_>, f: &Figures, phases: &Phases, recording: &Recording) -> Self {
        let share = |ns: f64, of: f64| if of > 0.0 { (ns / of).clamp(0.0, 1.0) } else { 0.0 };
        let phase = phase(&group.rows, recording);
        let cpu = phases.cpu(phase);
        // Only the lower bound of the deferred cost counts.
        let cpu = CpuShares {
            strong: share(f.needless_toll + f.surely_later(), cpu),
            at_least: share(f.needless_toll + f.surely_later(), cpu + phases.doubt),
            any: share(f.any_toll + f.surely_later(), phases.all_cpu()),
        };
        // The observer's share is an estimate; the phase was at least as long as its waits.
        let wall = share(f.waited, phases.wall(recording, phase, &group.rows).max(f.waited));
        Self { phase, cpu, wall, calls: share(f.calls as f64, phases.calls as f64) }
    }
}

/// Certainty that a group's calls are needless.
struct Certainty {
    confidence: Confidence,
    doubt: Option<Doubt>,
    /// True if an excerpt alone is the reason, of calls that write something out for somebody.
    is_handed_over: bool,
}

impl Certainty {
    fn is_low(&self) -> bool {
        self.confidence == Confidence::Low
    }
}

/// Returns the group as a finding or remark; `None` if it is worth neither.
pub(crate) fn verdict(group: &Group<'_>, shown: JudgedView<'_>, phases: &Phases, options: &Options) -> Option<Finding> {
    let recording = shown.recording;
    let mut f = figures(group, shown, phases);
    // If the price is waiting, or a child, switches are part of it.
    f.later = (!group.by_wait && group.children.is_none())
        .then(|| deferred_cost(&group.rows, f.needless(), f.shares(), shown))
        .flatten();
    let shares = Shares::new(group, &f, phases, recording);
    let certainty = certainty(group, &f, &shares, shown, options)?;
    let mut finding = wordless(group, &f, &shares, &certainty, shown);
    let api = finding.rows.first().and_then(|id| recording.row(*id).api.clone());
    let whole = phrasing::put(&mut finding, group, shown, api.as_deref());
    if certainty.is_handed_over {
        finding.why = phrasing::handed_to_somebody(&finding);
    }
    if !group.by_wait && group.startup.is_none() {
        let gone = NeedlessCalls {
            rows: &finding.rows,
            weak: certainty.is_low(),
            starts: finding.starts,
            whole,
            count: finding.needless,
            toll_ns: f.toll_of_needless(certainty.is_low()),
            later: f.later,
            of_copies: group.children.as_ref().and_then(|children| children.copies).map(|copies| copies.gain),
        };
        finding.expected_gain = expected_gain(&gone, recording.own_cpu_ns().map(|own| own as f64), shown);
    }
    Some(finding)
}

/// Returns how certain it is that the calls are needless and cost enough; `None` if they are not worth a remark.
fn certainty(
    group: &Group<'_>,
    f: &Figures,
    shares: &Shares,
    shown: JudgedView<'_>,
    options: &Options,
) -> Option<Certainty> {
    let usual = confidence(group, f, shares, || phrasing::offers_free_cure(group, shown), options);
    let in_excerpt = f.in_excerpt(group, &shares.cpu, shown.views);
    // If the usual bounds are not met, an excerpt may show too little to meet them.
    let too_few = usual.is_none_or(|usual| usual == Confidence::Low);
    let excerpt = Excerpt::of(shown.recording).filter(|_| too_few).and_then(|e| e.confidence(in_excerpt, options));
    let other_jobs = phrasing::may_have_other_jobs(group, shown);
    let remark = other_jobs || phrasing::makes_a_remark(group, shown);
    let cheap = || !remark && is_cheap_habit(group, f, shares, options) && phrasing::is_of_reader(group, shown);
    let usual = usual.or_else(|| cheap().then_some(Confidence::Low));
    let confidence = usual.max(excerpt).map(|c| if remark { c.min(Confidence::Low) } else { c })?;
    let doubt = (confidence == Confidence::Low).then(|| match usual {
        None => Doubt::Excerpt,
        Some(_) if other_jobs => Doubt::Unsure,
        Some(_) => doubt(group, f, &shares.cpu, options),
    });
    let confidence = if weakened(shown.recording) { confidence.min(Confidence::Medium) } else { confidence };
    Some(Certainty { confidence, doubt, is_handed_over: excerpt.is_some() && in_excerpt.for_somebody })
}

/// Least share of all calls, 0 to 1, of calls that are needless but cheap for a remark: the work around each of them goes
/// with it, which the price of the call alone does not tell. Of 24 programs, the cure of calls that took 0.5 to 1 % of
/// the processor time won 2 to 16 %.
const CHEAP_SHARE: f64 = 0.10;

/// Returns true if the calls are too cheap for a finding, but a large part of all calls.
fn is_cheap_habit(group: &Group<'_>, f: &Figures, shares: &Shares, options: &Options) -> bool {
    let spins = group.kind == crate::finding::Kind::BusyPoll;
    let agreed = f.looked_at(options) && f.agreeing >= options.min_agreeing;
    // A loop that only sleeps may poll memory between its sleeps.
    let sure = if spins { f.several } else { agreed && f.strong_share() >= options.min_row_share };
    let alone = !group.by_wait && group.children.is_none() && group.startup.is_none();
    alone && sure && f.is_some(options) && shares.calls >= CHEAP_SHARE
}

/// Returns the group's finding without words and cures.
fn wordless(group: &Group<'_>, f: &Figures, shares: &Shares, certainty: &Certainty, shown: JudgedView<'_>) -> Finding {
    let recording = shown.recording;
    let low = certainty.is_low();
    let needless = f.estimate(low);
    let needless_toll = f.toll_of_needless(low);
    let needless_toll_ns = needless_toll.round() as u64;
    let sampled = group.children.is_none() && group.startup.is_none();
    let wanted = Wanted { rows: &group.rows, weak: low, needless };
    let per_unit = sampled.then(|| per_unit(wanted, shown)).flatten();
    // The group is judged by its phase, and reported as a share of the whole run, as the header's shares are.
    let own_cpu = recording.own_cpu_ns().map(|own| own as f64);
    // A part above the whole is an error of measurement: the share is then unknown.
    let share_of_cpu = |ns: f64| own_cpu.map(|own| ns / own).filter(|part| *part <= 1.0);
    let rows = ordered_rows(group, shown);
    let (what, objects) = targets(group, &rows, shown);
    Finding {
        cause: group.cause.map(|c| c.id.into()),
        kind: group.kind,
        confidence: certainty.confidence,
        syscalls: by_calls(&rows, recording, |r| Some(r.syscall)),
        apis: by_calls(&rows, recording, |r| r.api.clone()),
        user: rows.first().and_then(|id| recording.row(*id).user),
        what,
        objects: objects.most,
        objects_seen: objects.seen,
        calls: f.calls,
        needless,
        starts: group.children.is_some(),
        copies: group.children.as_ref().is_some_and(|children| children.copies.is_some()),
        toll_ns: f.toll.round() as u64,
        needless_toll_ns,
        by_row: f.by_row(&rows, low, group.children.is_some(), needless.estimate, needless_toll_ns),
        per_unit,
        later: f.later.map(|l| Later { share_of_cpu: share_of_cpu(l.ns.estimate as f64), ..l }),
        waited_ns: match f.waits_claimed {
            Some(_) => Some(f.waited.round() as u64),
            None => waited_total(&rows, recording).or(group.by_wait.then_some(f.waited.round() as u64)),
        },
        share_of_cpu: share_of_cpu(needless_toll),
        share_of_wall: (group.by_wait && f.single_thread).then_some(shares.wall),
        share_of_calls: shares.calls,
        phase: shares.phase,
        evidence: Evidence { windows: f.interval.windows, agree: f.interval.agree, calls: f.seen, claimed: f.claimed },
        basis: match f.by_ledger && 2 * f.interval.agree < f.interval.windows {
            _ if !sampled => Basis::Counts,
            true => Basis::Looks,
            false => Basis::Samples,
        },
        doubt: certainty.doubt,
        rows,
        ..Finding::default()
    }
}

/// Returns the name of the only thing that the calls are about, or else the most frequent ones.
fn targets(group: &Group<'_>, rows: &[RowId], shown: JudgedView<'_>) -> (Option<String>, Objects) {
    let what = match &group.children {
        Some(children) => children.single().map(|started| started.program.to_string()),
        None => subject(rows, shown.recording, shown.views),
    };
    let objects = match &group.children {
        _ if what.is_some() => Objects::default(),
        Some(children) => programs(children),
        None => objects(rows, shown.recording, shown.views),
    };
    (what, objects)
}

/// Returns the programs that are started, each with its share of the starts.
fn programs(children: &Children) -> Objects {
    let share = |started: &Started| started.count as f64 / children.count.max(1) as f64;
    let of = |started: &Started| ObjectShare { name: started.program.to_string(), share: share(started) };
    Objects { most: children.programs.iter().map(of).collect(), seen: children.programs.len() }
}

/// Returns true if a problem of the recording weakens its findings.
fn weakened(recording: &Recording) -> bool {
    recording.problems.iter().any(|p| p.kind.weakens_findings())
}

/// Returns the phase with most of the calls.
fn phase(rows: &[RowId], recording: &Recording) -> Phase {
    let counts = rows.iter().map(|id| &recording.row(*id).counts);
    let (startup, all) =
        counts.fold((0u64, 0u64), |(s, a), c| (s.saturating_add(c.startup_calls), a.saturating_add(c.calls)));
    if startup > all / 2 { Phase::StartUp } else { Phase::Steady }
}

/// Returns the values of a property of the rows, each once, the one with most calls first.
fn by_calls<T: Ord + Clone>(rows: &[RowId], recording: &Recording, of: impl Fn(&Row) -> Option<T>) -> Vec<T> {
    let mut calls: BTreeMap<T, u64> = BTreeMap::new();
    for row in rows.iter().map(|id| recording.row(*id)) {
        if let Some(key) = of(row) {
            let sum = calls.entry(key).or_default();
            *sum = sum.saturating_add(row.counts.calls);
        }
    }
    let mut all: Vec<(T, u64)> = calls.into_iter().collect();
    all.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    all.into_iter().map(|(key, _)| key).collect()
}

fn waited_total(rows: &[RowId], recording: &Recording) -> Option<u64> {
    let known = rows.iter().filter_map(|id| recording.row(*id).counts.waited_ns);
    known.fold(None, |sum: Option<u64>, w| Some(sum.unwrap_or(0).saturating_add(w)))
}

fn confidence(
    group: &Group<'_>,
    f: &Figures,
    shares: &Shares,
    free_cure: impl Fn() -> bool,
    options: &Options,
) -> Option<Confidence> {
    let (of_cpu, of_wall, of_calls) = (&shares.cpu, shares.wall, shares.calls);
    let (share, looked_at) = (f.strong_share(), f.looked_at(options));
    if group.by_wait {
        let costs = of_wall >= options.min_price;
        // Windows show the time of each wait: a few long waits tell more than the number of calls that did not wait.
        let of_waiting = f.waits_claimed.is_some_and(|share| share >= OF_WAITING);
        let enough = group.startup.is_some()
            || (f.strong >= options.min_waits as f64
                && f.agreeing >= options.min_agreeing_waits
                && (of_waiting || looked_at && share >= options.min_row_share));
        if costs && enough && f.waited >= options.min_ns as f64 {
            return Some(Confidence::High);
        }
        return (costs && f.agreeing >= options.min_agreeing_waits).then_some(Confidence::Low);
    }
    if group.children.is_some() {
        let costs = of_cpu.strong >= options.min_start_share && f.needless_toll >= options.min_ns as f64;
        return costs.then_some(Confidence::High);
    }
    let agreed = looked_at && f.agreeing >= options.min_agreeing;
    let small = of_cpu.at_least >= options.small_share && f.strong >= options.low_calls as f64;
    let dear =
        small || f.needless_toll + f.surely_later() >= options.min_ns as f64 || f.strong >= options.many_calls as f64;
    let enough = (small || f.strong >= options.min_calls as f64) && share >= options.min_row_share;
    // Spinning only keeps the processor from others, so it must take much of it, or be most of the calls.
    let spins = group.kind == crate::finding::Kind::BusyPoll;
    let much = !spins || of_cpu.strong >= options.dear_share || of_calls >= options.min_spin_share;
    if agreed && enough && dear && much && of_cpu.strong >= options.min_price {
        return Some(Confidence::High);
    }
    // A loop that only sleeps may poll memory between its sleeps, as Go's monitor does. A loop that
    // polls by several system calls does nothing else, so that a smaller share of it is enough.
    let often = of_calls >= options.min_spin_share;
    let looks = spins && f.several && often;
    // A wake-up costs more than the call: the switch, and a processor that can't rest.
    if spins && f.wakes_up && often && f.any >= options.low_calls as f64 && f.waited <= f.calls as f64 * WAKE_UP_NS {
        return Some(Confidence::Low);
    }
    let least = if spins && !looks { options.dear_share } else { options.min_price };
    let some = f.is_some(options);
    // Failures are counted exactly. Sampled calls only tell their reason, so half as many suffice.
    let fails = group.kind == crate::finding::Kind::Failing
        && f.agreeing >= options.min_agreeing / 2
        && f.failed as f64 >= options.min_row_share * f.calls as f64;
    (some && (of_cpu.any >= least || ((agreed || fails) && free_cure()))).then_some(Confidence::Low)
}

/// Returns the reason for which a remark is no finding: the first that alone would have prevented it.
fn doubt(group: &Group<'_>, f: &Figures, of_cpu: &CpuShares, options: &Options) -> Doubt {
    let enough_agree = if group.by_wait { options.min_agreeing_waits } else { options.min_agreeing };
    let unsure = f.strong < options.min_row_share * f.any;
    let cheap = f.any_toll + f.surely_later() < options.min_ns as f64 && of_cpu.any < options.small_share;
    if !group.by_wait && (of_cpu.any < options.min_price || cheap) {
        return Doubt::Cheap;
    }
    if unsure {
        return Doubt::Unsure;
    }
    if f.any < options.min_row_share * f.calls as f64 {
        return Doubt::PartOfRow;
    }
    if f.strong_share() < options.min_row_share {
        return Doubt::Unsure;
    }
    if !f.looked_at(options) || f.agreeing < enough_agree { Doubt::FewSamples } else { Doubt::Cheap }
}
