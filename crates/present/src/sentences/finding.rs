//! The sentences about a finding.

use super::{LONG_RUN_NS, Sentences};
use crate::access::row;
use crate::style::{Line, Role, Style};
use crate::text::{clean, sentence};
use crate::units::{calls, counted, grouped, percent, rate, time, time_span};
use systoll_judge::{Basis, Confidence, Doubt, Finding, Kind};
use systoll_model::Phase;

/// Columns of a finding's object in its first line, at most.
pub(crate) const OBJECT: usize = 48;

/// Total cost below which the price of a single call is shown, ns: the run was too short to show what the calls cost in
/// a longer one.
const LITTLE_NS: u64 = 1_000_000;

/// Largest share of the waiting of a finding's calls, 0 to 1, that is called a part of it.
const MOST_OF_WAITS: f64 = 0.9;

/// The cost of a finding, in words.
pub(crate) struct Cost {
    /// The time: `about 1.9 ms`, `waited 12 ms`, `at a price unknown`.
    pub(crate) time: String,
    /// The share: `32 % of CPU, before main`; empty if nothing is known.
    pub(crate) share: String,
    /// True if `time` has a figure.
    pub(crate) is_known: bool,
    /// True if `share` has a figure.
    pub(crate) has_share: bool,
}

impl Cost {
    /// Returns time and share in one text.
    pub(crate) fn text(&self) -> String {
        if self.share.is_empty() { self.time.clone() } else { format!("{}, {}", self.time, self.share) }
    }
}

impl Sentences<'_> {
    /// Writes the number of calls that a finding is about, or of starts: `about 5,003 calls`.
    pub(crate) fn count(&self, f: &Finding) -> String {
        // A finding about started programs counts starts.
        if f.starts {
            let [one, many] = if f.copies { ["fork", "forks"] } else { ["start", "starts"] };
            return counted(f.needless.estimate, one, many);
        }
        match f.calls_about {
            Some(n) if n.low == n.high => calls(n.estimate),
            Some(n) => format!("about {}", calls(n.estimate)),
            None => calls(f.calls),
        }
    }

    /// Writes the number of calls, with a rate if the run is long enough.
    pub(crate) fn count_and_rate(&self, f: &Finding) -> String {
        let n = if f.starts { f.needless.estimate } else { f.calls_about.map_or(f.calls, |about| about.estimate) };
        let wall = self.rec.header.wall_ns;
        // A rate of a run that watching slowed down isn't the program's own.
        let rate = if wall >= LONG_RUN_NS && !self.slowed() { rate(n, wall) } else { None };
        format!("{}{}", self.count(f), rate.map_or_else(String::new, |rate| format!(", {rate}")))
    }

    /// Returns the cost of a finding: the time paid, or the time waited if the finding is about waiting.
    pub(crate) fn cost(&self, f: &Finding) -> Cost {
        let phase = match f.phase {
            Phase::StartUp if self.all_before_main(f) => ", before main",
            Phase::StartUp => ", mostly before main",
            Phase::Steady => "",
            Phase::Exit => ", at exit",
        };
        let words = |share: f64, of: &str| if of == "CPU" { self.share_of_own_cpu(share) } else { percent(share) };
        let cost = |time: String, is_known, share: Option<f64>, of: &str| match share.and_then(|s| words(s, of)) {
            Some(p) => Cost { time, is_known, share: format!("{p} of {of}{phase}"), has_share: true },
            None => Cost { time, is_known, share: phase.trim_start_matches(", ").to_owned(), has_share: false },
        };
        if f.is_about_waiting() {
            let (word, ns) = self.waited(f);
            let of = if self.is_of_steady_wall(f, ns) { "wall since main" } else { "wall" };
            // What a cure may win can be a small part of a long wait.
            let all_too_long = f.waited_ns.is_some() && self.all_needless(f);
            let is_sure = f.confidence != Confidence::Low;
            let is_part = is_sure && all_too_long && (ns as f64) < MOST_OF_WAITS * self.waited_in_all(f) as f64;
            let part = if is_part { " too long" } else { "" };
            return cost(format!("{word} {}{part}", time(ns)), true, f.share_of_wall, of);
        }
        if let Some(later) = f.later.filter(|l| f.needless_toll_ns == 0 && l.ns.estimate > 0) {
            return cost(format!("about {}", time(later.ns.estimate)), true, later.share_of_cpu, "CPU");
        }
        if f.needless_toll_ns == 0 {
            return cost("at a price unknown".into(), false, f.share_of_cpu, "CPU");
        }
        cost(format!("{}{}", self.about(), time(f.needless_toll_ns)), true, f.share_of_cpu, "CPU")
    }

    /// Returns true if the finding's share of the wall time, which is that of its phase, differs from that of the run.
    fn is_of_steady_wall(&self, f: &Finding, waited_ns: u64) -> bool {
        let wall = self.rec.header.wall_ns;
        let of_run = (wall > 0 && !self.slowed()).then(|| percent(waited_ns as f64 / wall as f64));
        f.phase == Phase::Steady && of_run.is_some_and(|of_run| of_run != f.share_of_wall.and_then(percent))
    }

    /// Returns true if all calls of a finding's rows were made before `main`.
    pub(crate) fn all_before_main(&self, f: &Finding) -> bool {
        let mut rows = f.rows.iter().filter_map(|id| row(self.rec, *id));
        f.phase == Phase::StartUp && rows.all(|r| r.counts.startup_calls >= r.counts.calls)
    }

    /// Returns the time for which a finding's calls kept their threads, ns: the time waited if that is known, otherwise
    /// the elapsed time.
    pub(crate) fn waited(&self, f: &Finding) -> (&'static str, u64) {
        if let Some(ns) = f.waited_ns {
            return ("waited", ns);
        }
        let rows = f.rows.iter().filter_map(|id| row(self.rec, *id));
        ("inside for", rows.fold(0, |sum, r| sum.saturating_add(r.counts.elapsed_ns)))
    }

    /// Returns the time that all calls of a finding's rows waited, ns.
    fn waited_in_all(&self, f: &Finding) -> u64 {
        let rows = f.rows.iter().filter_map(|id| row(self.rec, *id));
        rows.fold(0, |sum, r| sum.saturating_add(r.counts.waited_ns.unwrap_or(0)))
    }

    /// Writes the number of needless calls; for starts of programs, the calls that start them.
    pub(crate) fn needless(&self, f: &Finding) -> String {
        if f.starts {
            let doing = if f.copies { "forking and awaiting" } else { "starting" };
            let taken = f.calls_about.map_or_else(|| calls(f.calls), |of| format!("about {}", calls(of.estimate)));
            return format!("{doing} them takes {taken}: {}", syscall_names(f));
        }
        let n = f.needless;
        // Where a call waits too long, the call itself may well be needed.
        let are_needless = match (f.kind, n.estimate) {
            (Kind::Blocking, 1) => "waits without need",
            (Kind::Blocking, _) => "wait without need",
            (_, 1) => "is needless",
            _ => "are needless",
        };
        if n.low == n.high {
            let of = f.calls_about.map_or(f.calls, |about| about.estimate);
            return format!("{} of the {} {are_needless}", grouped(n.estimate), calls(of));
        }
        // Where the place makes calls about other objects too, the number of those about this one is an estimate, which may
        // lie below the upper bound of the needless ones. The place's own number is exact.
        let of_place = if f.calls_about.is_some() { "place's " } else { "" };
        let bounds = format!("{} to {}", grouped(n.low), grouped(n.high.min(f.calls)));
        format!("about {} of the {of_place}{} ({bounds}) {are_needless}", grouped(n.estimate), calls(f.calls))
    }

    /// Returns true if so nearly all calls are needless that their number is not worth a line: first calls and rounding
    /// take up to a tenth.
    pub(crate) fn all_needless(&self, f: &Finding) -> bool {
        let of = f.calls_about.map_or(f.calls, |about| about.estimate);
        !f.starts && f.needless.estimate >= of - of / 10
    }

    /// Writes how many needless calls there are for each request, connection, …, and their cost. If all of them
    /// together cost little, because the run was short, writes the cost of one.
    pub(crate) fn per_unit(&self, f: &Finding) -> Option<String> {
        let Some(r) = f.per_unit else { return self.each_call(f) };
        let name = r.per.name();
        let mut rounds = counted(r.rounds, name, &format!("{name}s"));
        if let Some(each) = self.each_unit(f) {
            rounds = format!("{rounds}, {}{} each", self.about(), time(each));
        }
        Some(if r.calls == r.needless {
            format!("{} per {name}; {rounds}", counted(r.needless, "needless call", "needless calls"))
        } else {
            let is = if r.needless == 1 { "is" } else { "are" };
            format!("{} of the {} per {name} {is} needless; {rounds}", grouped(r.needless), calls(r.calls))
        })
    }

    /// Writes the cost of one needless call, if all of them together cost little.
    fn each_call(&self, f: &Finding) -> Option<String> {
        let is_priced = f.needless_toll_ns < LITTLE_NS && !f.starts && !f.is_about_waiting();
        let each = f.needless_toll_ns.checked_div(f.needless.estimate).filter(|each| *each > 0 && is_priced)?;
        Some(format!("{}{} per needless call", self.about(), time(each)))
    }

    /// Returns the cost of the needless calls of each request, connection, …, ns. Returns `None` if it is not known, or
    /// if the calls' waiting is what counts.
    pub(crate) fn each_unit(&self, f: &Finding) -> Option<u64> {
        let rounds = f.per_unit?.rounds;
        f.needless_toll_ns.checked_div(rounds).filter(|each| *each > 0 && !f.is_about_waiting())
    }

    /// Writes the costs that the needless calls cause after they have returned.
    pub(crate) fn later(&self, f: &Finding) -> Option<String> {
        let later = f.later?;
        let share = later
            .share_of_cpu
            .and_then(|share| self.share_of_own_cpu(share))
            .map_or_else(String::new, |p| format!(", {p} of CPU"));
        let bounds = time_span(later.ns.low, later.ns.high);
        let kinds =
            [(later.faults, "page fault", "page faults"), (later.switches, "context switch", "context switches")];
        let some = kinds.iter().filter(|(n, ..)| n.high > 0).map(|(n, one, many)| counted(n.estimate, one, many));
        let counts = some.collect::<Vec<_>>().join(", ");
        let time = time(later.ns.estimate);
        Some(format!("about {time}{share} ({bounds}) beside the calls themselves: {counts}"))
    }

    /// Writes the expected gain of avoiding the calls: `12 ms to 14 ms`, or `at least 12 ms` if the
    /// work around them that may go too is more than the width of the interval.
    pub(crate) fn gain(&self, f: &Finding) -> Option<String> {
        let gain = f.expected_gain.filter(|gain| gain.low > 0)?;
        Some(if f.gains_at_least() { format!("at least {}", time(gain.low)) } else { time_span(gain.low, gain.high) })
    }

    /// Writes the evidence of a finding.
    pub(crate) fn evidence(&self, f: &Finding) -> String {
        let e = f.evidence;
        let sure = match f.confidence {
            Confidence::High => "",
            Confidence::Medium => "; samples were incomplete: see the problems",
            Confidence::Low => "; too little for a finding",
        };
        let claimed = format!("{} of the {} sampled {} needless", grouped(e.claimed), calls(e.calls), are(e.claimed));
        match f.basis {
            Basis::Counts if f.copies => "every fork was counted, with the processor time it took".to_owned(),
            Basis::Counts if f.starts => "every start was counted, with the processor time it took".to_owned(),
            Basis::Counts if self.all_before_main(f) => "every wait before main was counted".to_owned(),
            Basis::Counts => format!("every wait before main was counted; of all, {claimed}"),
            Basis::Looks => format!("single calls sampled from the run's start to its end; {claimed}{sure}"),
            Basis::Samples if e.calls == 0 => format!("the same calls of the same program in other processes{sure}"),
            Basis::Samples => {
                format!("{} of {} agree; {claimed}{sure}", grouped(e.agree), counted(e.windows, "sample", "samples"))
            }
        }
    }

    /// Writes the reason why this is a remark and not a finding.
    pub(crate) fn doubt(&self, f: &Finding) -> Option<String> {
        let sampled = || format!("{} of {}", grouped(f.evidence.calls), calls(f.calls));
        Some(match f.doubt? {
            Doubt::Cheap => "they cost too little, or are too few, for a finding".to_owned(),
            Doubt::Unsure if f.gives_up().is_empty() => "the program may have a reason for each of them".to_owned(),
            Doubt::Unsure => format!("optional, because the fix has a price: {}", sentence(f.gives_up())),
            Doubt::Pace => "they may keep a pace that is meant".to_owned(),
            Doubt::PartOfRow => "most calls from this place may be necessary".to_owned(),
            Doubt::Excerpt => {
                format!("the excerpt shows {}: it does not show what they cost in the whole run", calls(f.calls))
            }
            Doubt::FewSamples => format!("too few of them were sampled, or the samples differ: {}", sampled()),
        })
    }
}

fn are(n: u64) -> &'static str {
    if n == 1 { "is" } else { "are" }
}

/// Returns the subject of a finding: its system calls, and their object if there is one.
pub(crate) fn subject(f: &Finding, style: Style) -> Line {
    let mut line = Line::default();
    let subject = match (f.copies, f.starts) {
        (true, _) => "fork of".to_owned(),
        (false, true) => "start of".to_owned(),
        (false, false) => syscall_names(f),
    };
    line.push_name(Role::Name, subject);
    let api = || f.language_api.as_ref().map(|api| format!(" by {}", style.name(&clean(api), OBJECT)));
    // Words such as "umask by umask" would say nothing.
    let told = |api: &String| f.syscalls.first().is_none_or(|call| api.as_str() != format!(" by {call}"));
    if let Some(api) = api().filter(|api| !f.starts && told(api)) {
        line.push_name(Role::Plain, api);
    }
    if f.starts && f.what.is_none() && f.objects_seen > 0 {
        line.push_name(Role::Plain, format!(" {}", counted(f.objects_seen as u64, "program", "programs")));
    }
    if let Some(what) = &f.what {
        line.push_name(Role::Plain, format!(" {}", style.name(&clean(what), OBJECT)));
    } else if let Some(most) = f.objects.first().filter(|_| !f.starts) {
        line.push_name(Role::Plain, format!(" {}", style.name(&clean(&most.name), OBJECT)));
        // The number is that of the calls looked at. If these are not all, there may be more.
        let least = if f.evidence.calls < f.calls { "at least " } else { "" };
        match f.objects_seen {
            0 | 1 => {}
            2 => line.push(Role::Plain, format!(" and {least}one more")),
            n => line.push(Role::Plain, format!(" and {least}{} more", grouped(n as u64 - 1))),
        }
    }
    if let Some(api) = api().filter(|_| f.starts) {
        line.push_name(Role::Plain, api);
    }
    line
}

/// Writes the finding's system calls: `rt_sigprocmask`, `open, read and 2 more`.
fn syscall_names(f: &Finding) -> String {
    let names: Vec<_> = f.syscalls.iter().take(2).map(ToString::to_string).collect();
    let more = f.syscalls.len().saturating_sub(names.len());
    match (names.is_empty(), more) {
        (true, _) => "system calls".into(),
        (false, 0) => names.join(", "),
        (false, n) => format!("{} and {n} more", names.join(", ")),
    }
}
