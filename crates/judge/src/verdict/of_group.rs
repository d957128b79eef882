//! The price of a group's needless calls, and the verdict on it: a finding, a remark or nothing.

use crate::code::author::Author;
use crate::code::owner::Actor;
use crate::detect::{Children, READ_ANEW, Started};
use crate::evidence::phases::{Phases, startup_calls};
use crate::evidence::survey::RowView;
use crate::excerpt::Excerpt;
use crate::groups::group::Group;
use crate::groups::judged_view::JudgedView;
use crate::groups::late_waits;
use crate::groups::row_order::ordered_rows;
use crate::groups::subject::{Objects, objects, subject};
use crate::options::Options;
use crate::price::deferred_cost::deferred_cost;
use crate::price::expected_gain::{NeedlessCalls, expected_gain, work_around_ns};
use crate::price::figures::{Figures, figures};
use crate::price::per_unit::{Wanted, per_unit};
use crate::results::finding::{Basis, Confidence, Doubt, Estimate, Evidence, Finding, Kind, Later, ObjectShare};
use crate::words::phrasing;
use systoll_model::{Phase, Recording, Row, RowId};

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

/// Least price of a finding, ns, at which [`Options::small_share`] takes the place of [`Options::min_ns`]. Below it a short
/// command would be reported for what its user can't notice, and on slow boxes only: 165 calls of `find /etc -maxdepth 1` are 105
/// of 4,030 us, 205 of 3,800 on a slow box, and 347 of 5,250 beside other tests, so that few calls must cost more. Of the kept
/// reports (`cargo xtask reports`) none changes, four lose a finding at 500 us for any number of calls.
const SMALL_NS: f64 = 250_000.0;
const SMALL_NS_OF_FEW: f64 = 500_000.0;
/// Number of needless calls that are few.
const FEW_CALLS: f64 = 200.0;
/// Largest mean length, ns, of timed-out waits for a remark about them. A hundred wake-ups a second keep a processor
/// from its deeper sleep; a program that wakes up less often to look around is usual.
const WAKE_UP_NS: f64 = 10_000_000.0;
/// Largest mean length, ns, of waits that last no longer than waking a thread takes, with the kernel's slack of 50 µs.
const SHORT_WAIT_NS: f64 = 100_000.0;
/// Least share of the rows' waiting, 0 to 1, that calls claimed for their waiting have.
const OF_WAITING: f64 = 0.2;

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
        // A wait before `main` may have been the last that the program did.
        let phase = if group.startup.is_some() { Phase::StartUp } else { phase(&group.rows, recording) };
        let cpu = phases.cpu(phase);
        // Only the lower bound of the deferred cost counts.
        let cpu = CpuShares {
            strong: share(f.needless_toll + f.surely_later(), cpu),
            at_least: share(f.needless_toll + f.surely_later(), cpu + phases.doubt),
            any: share(f.any_toll + f.surely_later(), phases.all_cpu()),
        };
        // The observer's share is an estimate; the phase was at least as long as its waits.
        let of_phase = || share(f.waited, phases.wall(recording, phase, &group.rows).max(f.waited));
        let wall = group.late.as_ref().map_or_else(of_phase, |late| late.share_of_wall);
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
    // Calls that lead others cost nothing later.
    let only_leads = |id: &RowId| shown.views.get(id.0 as usize).is_some_and(RowView::only_leads);
    let rows: Vec<RowId> = group.rows.iter().copied().filter(|id| !only_leads(id)).collect();
    f.later = (!group.by_wait && group.children.is_none())
        .then(|| deferred_cost(&rows, f.needless(), f.strong > 0.0, shown))
        .flatten();
    let shares = Shares::new(group, &f, phases, recording);
    let certainty = certainty(group, &f, &shares, shown, options)?;
    let mut finding = wordless(group, &f, &shares, &certainty, shown);
    let api = finding.rows.first().and_then(|id| recording.row(*id).api.clone());
    let whole = phrasing::put(&mut finding, group, shown, api.as_deref());
    if is_for_others_and_cheap(&finding) {
        (finding.confidence, finding.doubt) = (Confidence::Low, Some(Doubt::Cheap));
    }
    if let Some(late) = &group.late {
        finding.why = late_waits::why(&finding, group);
        late_waits::advise_users(&mut finding, late, recording);
    }
    if certainty.is_handed_over {
        finding.why = phrasing::handed_to_somebody(&finding);
    }
    if !group.by_wait && group.startup.is_none() {
        let gone = NeedlessCalls {
            rows: &finding.rows,
            weak: certainty.is_low(),
            starts: finding.starts,
            whole,
            reads_anew: reads_anew(group, shown),
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
    let in_excerpt = f.in_excerpt(group, shares.cpu.strong, shown.views);
    // If the usual bounds are not met, an excerpt may show too little to meet them.
    let too_few = usual.is_none_or(|usual| usual == Confidence::Low);
    let excerpt = Excerpt::of(shown.recording).filter(|_| too_few).and_then(|e| e.confidence(in_excerpt, options));
    let other_jobs = phrasing::may_have_other_jobs(group, shown);
    if other_jobs && is_only_run(group, shown) {
        // Starting programs is the job of make and its like, and a user can't change that.
        return None;
    }
    let remark = other_jobs || phrasing::makes_a_remark(group, shown);
    let habit = || is_cheap_habit(group, f, shares, options) && phrasing::is_of_reader(group, shown);
    let work = || is_read_for_work(group, f, shown, options) && phrasing::is_of_reader_or_package(group, shown);
    let cheap = || !remark && (habit() || work());
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

/// Least share of the elapsed time, 0 to 1, of needless waits for a finding. [`crate::Judgement::considered`] shows
/// remarks about waiting from the same share on.
const LATE_SHARE: f64 = 0.05;
/// Least share of the elapsed time, 0 to 1, of waits for a finding if their time in vain is only known as a mean: a healthy
/// program that waited for a file in sleeps of 2 ms had 5.7 % on a busy box.
const MEAN_SHARE: f64 = 0.1;

/// Share of the run's processor time, 0 to 1, below which calls are a remark if only others can remove them: a user of pip is
/// not helped by 0.8 % of pip.
const OF_OTHERS: f64 = 0.05;

/// Returns true if only others can remove the finding's calls, and these cost little of the run.
fn is_for_others_and_cheap(finding: &Finding) -> bool {
    let later = finding.later.and_then(|later| later.share_of_cpu).unwrap_or(0.0);
    let is_cheap = finding.share_of_cpu.is_some_and(|share| share + later < OF_OTHERS);
    is_cheap && !finding.is_about_waiting() && !finding.is_for_reader()
}

/// Returns true if the reader only runs the program that makes the calls of the group's first row.
fn is_only_run(group: &Group<'_>, shown: JudgedView<'_>) -> bool {
    let lead = group.rows.first().map(|id| shown.recording.row(*id));
    lead.is_some_and(|row| Author::of(shown.recording, row).owner.reader() == Actor::User)
}

/// Least share of all calls, 0 to 1, of calls that are needless but cheap for a remark: the work around each of them goes
/// with it, which the price of the call alone does not tell. Of 24 programs, the cure of calls that took 0.5 to 1 % of
/// the processor time won 2 to 16 %.
const CHEAP_SHARE: f64 = 0.10;

/// Returns true if the calls are too cheap for a finding, but a large part of all calls.
fn is_cheap_habit(group: &Group<'_>, f: &Figures, shares: &Shares, options: &Options) -> bool {
    let spins = group.kind == crate::results::finding::Kind::BusyPoll;
    let agreed = f.looked_at(options) && f.agreeing >= options.min_agreeing;
    // A loop that only sleeps may poll memory between its sleeps.
    let sure = if spins { f.several } else { agreed && f.strong_share() >= options.min_row_share };
    let alone = !group.by_wait && group.children.is_none() && group.startup.is_none();
    alone && sure && f.is_some(options) && shares.calls >= CHEAP_SHARE
}

/// Least share of the processor time, 0 to 1, of the work around the reads of an unchanged file, which goes with them.
const WORK_SHARE: f64 = 0.10;

/// Returns true if a file is read again and again, and the program spends a large part of its time on what it read, as on
/// parsing: its reads alone are cheap.
fn is_read_for_work(group: &Group<'_>, f: &Figures, shown: JudgedView<'_>, options: &Options) -> bool {
    let reread = reads_anew(group, shown);
    let often = f.any >= options.low_calls as f64 && f.any >= options.min_row_share * f.calls as f64;
    let looked_at = f.claimed >= options.min_agreeing;
    let own = shown.recording.own_cpu_ns().filter(|_| reread && often && looked_at);
    let worked_ns = || work_around_ns(&group.rows, f.any, shown);
    own.zip(own.and_then(|_| worked_ns())).is_some_and(|(own, worked_ns)| worked_ns >= WORK_SHARE * own as f64)
}

/// Returns true if the group's calls read again what they had read.
fn reads_anew(group: &Group<'_>, shown: JudgedView<'_>) -> bool {
    let mut claimed = group.rows.iter().filter_map(|id| shown.views.get(id.0 as usize)).flat_map(|view| &view.claimed);
    group.kind == Kind::Repeat && claimed.any(|claimed| claimed.claim.about == READ_ANEW)
}

/// Returns the group's finding without words and cures.
fn wordless(group: &Group<'_>, f: &Figures, shares: &Shares, certainty: &Certainty, shown: JudgedView<'_>) -> Finding {
    let recording = shown.recording;
    let low = certainty.is_low();
    let needless = f.estimate(low);
    let needless_toll = f.toll_of_needless(low);
    let needless_toll_ns = needless_toll.round() as u64;
    let sampled = group.children.is_none() && group.startup.is_none() && group.late.is_none();
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
        syscalls: in_order(&rows, recording, |r| Some(r.syscall)),
        apis: in_order(&rows, recording, |r| r.api.clone()),
        user: rows.first().and_then(|id| recording.row(*id).user),
        what,
        objects: objects.most,
        objects_seen: objects.seen,
        calls: f.calls,
        calls_about: group.children.as_ref().and_then(|children| served(children, f.calls)),
        needless,
        starts: group.children.is_some(),
        copies: group.children.as_ref().is_some_and(|children| children.copies.is_some()),
        toll_ns: f.toll.round() as u64,
        needless_toll_ns,
        by_row: f.by_row(&rows, low, group.children.as_ref(), needless.estimate, needless_toll_ns),
        per_unit,
        later: f.later.map(|l| Later { share_of_cpu: share_of_cpu(l.ns.estimate as f64), ..l }),
        waited_ns: match f.waits_claimed {
            waits if waits.is_some() || group.late.is_some() => Some(f.waited.round() as u64),
            _ => waited_total(&rows, recording).or(group.by_wait.then_some(f.waited.round() as u64)),
        },
        share_of_cpu: share_of_cpu(needless_toll),
        share_of_wall: (group.by_wait && (f.single_thread || group.late.is_some())).then_some(shares.wall),
        share_of_calls: shares.calls,
        phase: shares.phase,
        evidence: Evidence { windows: f.interval.windows, agree: f.interval.agree, calls: f.seen, claimed: f.claimed },
        basis: match f.by_ledger && 2 * f.interval.agree < f.interval.windows {
            _ if !sampled => Basis::Counts,
            true => Basis::Looks,
            false => Basis::Samples,
        },
        doubt: certainty.doubt,
        strands: rows.clone(),
        at_lines: match &group.children {
            Some(children) => children.lines.clone(),
            None => group.late.as_ref().map(crate::groups::late_waits::lines),
        },
        rows,
        ..Finding::default()
    }
}

/// Returns the number of calls that served children, if others of the rows did not.
fn served(children: &Children, calls: u64) -> Option<Estimate> {
    let served = children.served.values().fold(0u64, |sum, calls| sum.saturating_add(*calls));
    (served < calls).then_some(Estimate { estimate: served, low: served, high: served })
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
    let (startup, all) = rows.iter().map(|id| recording.row(*id)).fold((0u64, 0u64), |(startup, all), row| {
        (startup.saturating_add(startup_calls(recording, row)), all.saturating_add(row.counts.calls))
    });
    if startup > all / 2 { Phase::StartUp } else { Phase::Steady }
}

/// Returns the values of a property of the rows, each once, in the order of the rows.
fn in_order<T: PartialEq>(rows: &[RowId], recording: &Recording, of: impl Fn(&Row) -> Option<T>) -> Vec<T> {
    let mut all = Vec::new();
    for value in rows.iter().filter_map(|id| of(recording.row(*id))) {
        if !all.contains(&value) {
            all.push(value);
        }
    }
    all
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
    if let Some(late) = &group.late {
        // Every wait is known; only its price decides.
        let least = if late.kind.is_measured() { LATE_SHARE } else { MEAN_SHARE };
        let high = late.kind.doubt().is_none() && of_wall >= least && f.waited >= options.long_wait_ns as f64;
        let some = of_wall >= options.min_price && f.waited >= options.min_ns as f64;
        return some.then_some(if high { Confidence::High } else { Confidence::Low });
    }
    if group.by_wait {
        // Waits as short as waking a thread takes are as cheap as calls, and as many make a habit.
        if f.waited < f.any * SHORT_WAIT_NS && f.any < options.low_calls as f64 {
            return None;
        }
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
    if let Some(children) = &group.children {
        let much = of_cpu.strong >= options.min_start_share && !children.works;
        let costs = of_cpu.strong >= options.small_share && f.needless_toll >= options.min_ns as f64;
        return costs.then_some(if much { Confidence::High } else { Confidence::Low });
    }
    let agreed = looked_at && f.agreeing >= options.min_agreeing;
    let small = of_cpu.at_least >= options.small_share
        && f.strong >= options.low_calls as f64
        && f.needless_toll + f.surely_later() >= if f.strong < FEW_CALLS { SMALL_NS_OF_FEW } else { SMALL_NS };
    let dear =
        small || f.needless_toll + f.surely_later() >= options.min_ns as f64 || f.strong >= options.many_calls as f64;
    let enough = (small || f.strong >= options.min_calls as f64) && share >= options.min_row_share;
    // Spinning only keeps the processor from others, so it must take much of it, or be most of the calls.
    let spins = group.kind == crate::results::finding::Kind::BusyPoll;
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
    let least = if spins && !looks && !f.of_locks { options.dear_share } else { options.min_price };
    let some = f.is_some(options);
    // Failures are counted exactly. Sampled calls only tell their reason, so half as many suffice.
    let fails = group.kind == crate::results::finding::Kind::Failing
        && f.agreeing >= options.min_agreeing / 2
        && f.failed as f64 >= options.min_row_share * f.calls as f64;
    (some && (of_cpu.any >= least || ((agreed || fails) && free_cure()))).then_some(Confidence::Low)
}

/// Returns the reason for which a remark is no finding: the first that alone would have prevented it.
fn doubt(group: &Group<'_>, f: &Figures, of_cpu: &CpuShares, options: &Options) -> Doubt {
    if let Some(late) = &group.late {
        return late.kind.doubt().unwrap_or(Doubt::Cheap);
    }
    if group.children.as_ref().is_some_and(|children| children.works) {
        return Doubt::Unsure;
    }
    let enough_agree = if group.by_wait { options.min_agreeing_waits } else { options.min_agreeing };
    let unsure = f.strong < options.min_row_share * f.any;
    // Starts are counted exactly; for programs that work little only their price leaves them a remark.
    let cheap = group.children.is_some()
        || f.any_toll + f.surely_later() < options.min_ns as f64 && of_cpu.any < options.small_share;
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
