//! The sentences about a run.

use super::Sentences;
use crate::access::processes;
use crate::narrowing::Narrowing;
use crate::units::{calls, counted, percent, percent_of_cpu, time};
use systoll_judge::Finding;
use systoll_model::{Exit, Phase, ProblemKind, Process, RowId, signal_name};

/// The verdict on a run without findings.
pub(crate) struct Nothing {
    /// Text of the verdict.
    pub(crate) text: String,
    /// True if the verdict is good news; false if nothing can be said.
    pub(crate) is_good: bool,
}

/// Processor time and waiting that findings explain, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Claimed {
    /// Toll of needless calls, ns.
    pub(crate) calls: u64,
    /// Processor time of needlessly started programs, which is in no call's toll, ns.
    pub(crate) starts: u64,
    /// Processor time of processes that are forked needlessly and run no program of their own, ns.
    pub(crate) copies: u64,
    /// Costs that needless calls cause after they have returned, ns.
    pub(crate) later: u64,
    /// Time of needless waiting, ns.
    pub(crate) waited: u64,
}

/// What can't be said of a trace that holds counts only.
const TRACE_SHOWS_COUNTS: &str = "the trace does not show which were needless";

/// Least share of processor time, 0 to 1, of further processes that `--all` reports where nothing is found.
const CHILDREN_SHARE: f64 = 0.1;

impl Sentences<'_> {
    /// Returns the sum of all findings' claims.
    pub(crate) fn claimed(&self) -> Claimed {
        let mut claimed = Claimed::default();
        let add = |sum: &mut u64, ns: u64| *sum = sum.saturating_add(ns);
        for finding in &self.judgement.findings {
            if finding.is_about_waiting() {
                add(&mut claimed.waited, self.waited(finding).1);
                continue;
            }
            let of = match (finding.copies, finding.starts) {
                (true, _) => &mut claimed.copies,
                (false, true) => &mut claimed.starts,
                (false, false) => &mut claimed.calls,
            };
            add(of, finding.needless_toll_ns);
            add(&mut claimed.later, finding.later.map_or(0, |l| l.ns.estimate));
        }
        claimed
    }

    /// Writes the verdict of a run with findings: the needless part of its time, without the number
    /// of findings.
    pub(crate) fn verdict(&self) -> String {
        let claimed = self.claimed();
        let mut parts: Vec<String> = vec![];
        let mut paid = |ns: u64, goes: &str| {
            parts.push(match self.part_of_cpu(ns) {
                Some(share) => format!("{share} of its CPU time goes to {goes}"),
                None => format!("about {} of CPU time goes to {goes}", time(ns)),
            });
        };
        if claimed.calls > 0 {
            paid(claimed.calls, "needless system calls");
        } else if claimed.later > 0 {
            paid(claimed.later, "needless system calls after them, or while others ran");
        }
        if claimed.starts > 0 {
            paid(claimed.starts, "starting programs");
        }
        if claimed.copies > 0 {
            paid(claimed.copies, "forking processes");
        }
        if claimed.waited > 0 {
            let (at_least, waited) = self.waited_by(self.judgement.findings.iter().filter(|f| f.is_about_waiting()));
            let share = self.share_of_run(waited);
            let share = share.and_then(percent).map_or_else(String::new, |p| format!(", {p} of the run,"));
            let mut waiting = self.judgement.findings.iter().filter(|f| f.is_about_waiting());
            let before = if waiting.all(|f| self.all_before_main(f)) { " before main begins" } else { "" };
            parts.push(format!("{at_least}{}{share} is waited for nothing{before}", time(waited)));
        }
        if parts.is_empty() {
            parts.push("needless system calls; what they cost is not known".into());
        }
        parts.extend(self.considered());
        parts.join("; ")
    }

    /// Returns the time, ns, that findings about waiting say is waited in vain, and a word before it. Several threads may wait at
    /// the same time: where the sum is longer than the run, it is at least what held the run up, or the longest of those whose
    /// share of the elapsed time is known.
    fn waited_by<'f>(&self, waits: impl Iterator<Item = &'f Finding> + Clone) -> (&'static str, u64) {
        let wall_ns = self.rec.header.wall_ns;
        let each = || waits.clone().map(|f| self.waited(f).1);
        let sum = each().fold(0, u64::saturating_add);
        if wall_ns == 0 || sum <= wall_ns {
            return ("", sum);
        }
        let is_meant = |row: RowId| waits.clone().any(|f| f.rows.contains(&row));
        let parts = self.judgement.wall_time.iter().flat_map(|wall| &wall.parts).filter(|part| is_meant(part.row));
        let held_up = parts.fold(0u64, |sum, part| sum.saturating_add(part.ns));
        let shared = waits.clone().filter(|f| f.share_of_wall.is_some()).map(|f| self.waited(f).1).max();
        let least = held_up.max(shared.unwrap_or(0));
        let least = if least > 0 { least } else { each().max().unwrap_or(0) };
        ("at least ", least.min(wall_ns))
    }

    /// Returns waiting as a share of the run, if one thread after another holds the program up. If
    /// watching made the run longer, the judge's shares are used, which refer only to the phase of
    /// the waits.
    fn share_of_run(&self, waited_ns: u64) -> Option<f64> {
        let waiting = || self.judgement.findings.iter().filter(|f| f.is_about_waiting());
        let shares: Option<Vec<f64>> = waiting().map(|f| f.share_of_wall).collect();
        let shares = shares.filter(|_| self.rec.header.wall_ns > 0)?;
        if self.slowed() {
            return waiting().all(|f| f.phase == Phase::Steady).then(|| shares.iter().sum());
        }
        Some(waited_ns as f64 / self.rec.header.wall_ns as f64)
    }

    /// Writes the number of findings.
    pub(crate) fn findings(&self) -> String {
        counted(self.judgement.findings.len() as u64, "finding", "findings")
    }

    /// Writes how many remarks there are to consider, and what they cost together: `2 things to consider: 24 % of CPU`.
    /// Returns `None` if there are none.
    pub(crate) fn considered(&self) -> Option<String> {
        let considered = self.judgement.considered(self.rec);
        if considered.is_empty() {
            return None;
        }
        let more = if self.judgement.findings.is_empty() { "" } else { "more " };
        let n = considered.len() as u64;
        let things = counted(n, &format!("{more}thing to consider"), &format!("{more}things to consider"));
        let (waits, calls): (Vec<&Finding>, Vec<&Finding>) = considered.into_iter().partition(|f| f.is_about_waiting());
        let later = |f: &&Finding| f.later.map_or(0, |later| later.ns.estimate);
        let paid = calls.iter().fold(0u64, |sum, f| sum.saturating_add(f.needless_toll_ns).saturating_add(later(f)));
        let (at_least, waited) = self.waited_by(waits.into_iter());
        let paid = (paid > 0).then(|| match self.part_of_cpu(paid) {
            Some(share) => format!("{share} of CPU"),
            None => format!("about {} of CPU time", time(paid)),
        });
        let waited = (waited > 0).then(|| format!("{at_least}{} of waiting", time(waited)));
        let costs: Vec<String> = paid.into_iter().chain(waited).collect();
        Some(if costs.is_empty() { things } else { format!("{things}: {}", costs.join(", ")) })
    }

    /// Writes the verdict on a run without findings. `only` are the requested calls.
    pub(crate) fn nothing(&self, only: Option<&Narrowing>) -> Nothing {
        let total = self.rec.total();
        let cost = match total.toll_ns {
            Some(ns) => format!(", {}{}{}", self.about(), time(ns), self.about_share_of_cpu(ns)),
            None => String::new(),
        };
        let exact = match (self.rec.exact(), self.rec.header.lost) {
            (true, _) => ", exact".to_owned(),
            (false, 0) => ", not counted exactly".to_owned(),
            (false, lost) => format!(", not counted exactly ({} lost)", calls(lost)),
        };
        let n = counted(total.calls, "system call", "system calls");
        let only = only.map_or_else(String::new, |o| format!(" (only {})", o.text()));
        let bad = |text| Nothing { text, is_good: false };
        if self.stripped() {
            return bad(format!("{n}{cost}: which were needless is unknown, since another tool dropped the samples"));
        }
        let backend = self.rec.header.backend;
        if !backend.samples_calls() && self.rec.windows.is_empty() && self.judgement.also.is_empty() {
            return bad(format!("{n}{only}{exact}{cost}; {TRACE_SHOWS_COUNTS}"));
        }
        if self.judgement.is_excerpt {
            let also = if self.judgement.also.is_empty() {
                "no call is needless that it shows"
            } else {
                "what it shows is below"
            };
            return bad(format!("an excerpt of {n}{cost}: {also}; it does not show the whole run"));
        }
        if self.uncounted() {
            return bad(format!("nothing found in {n}{cost}, but others were not counted"));
        }
        if let Some(considered) = self.considered() {
            return bad(format!("{considered}; {n}{only}{exact}{cost}"));
        }
        if self.rec.problems.iter().any(|problem| problem.kind == ProblemKind::Unsampled) {
            return bad(format!("nothing found in what was sampled: {n}{only}{exact}{cost}; most of the run was not"));
        }
        let most = self.most();
        if most.is_empty() {
            return Nothing { text: format!("nothing found worth your time: {n}{only}{exact}{cost}"), is_good: true };
        }
        let most = most.join(", ");
        // Some may be needless, and cost too little to be worth a line.
        let untold = &self.judgement.untold;
        let is_none = self.judgement.also.is_empty() && untold.calls == 0 && untold.unsure_calls == 0;
        let found = if is_none { "no needless calls found" } else { "no needless calls worth your time" };
        Nothing { text: format!("{found}; {most}: {n}{only}{exact}{cost}"), is_good: true }
    }

    /// Writes a share as in `, 11 % of CPU`, without its interval, for a verdict of one line: `, about 11 % of CPU` if it has one.
    fn about_share_of_cpu(&self, ns: u64) -> String {
        let Some(own) = self.own_cpu_ns().filter(|own| *own > 0) else { return String::new() };
        let with_interval = self.share_of_cpu(ns);
        let share = percent_of_cpu(ns as f64 / own as f64).map(|share| format!(", {share} of CPU"));
        match share {
            Some(share) if share == with_interval => share,
            Some(share) => share.replacen(", ", ", about ", 1),
            None => with_interval,
        }
    }

    /// Returns true if calls were made that were not counted: those of a library without hooks, or of a program that ran
    /// unwatched.
    pub(crate) fn uncounted(&self) -> bool {
        self.rec.problems.iter().any(|problem| matches!(problem.kind, ProblemKind::Lost | ProblemKind::Unwatched))
    }

    /// Writes the processor time of the processes besides the first, if it is a tenth of the whole: it is in no call's
    /// cost. Returns `None` if it is less, or unknown.
    pub(crate) fn children(&self) -> Option<String> {
        let first = |(at, image): &(usize, &Process)| {
            *at == 0 || self.rec.processes.first().is_some_and(|p| p.pid == image.pid)
        };
        let others = || self.rec.processes.iter().enumerate().filter(|of| !first(of)).map(|(_, image)| image);
        let ns = others().try_fold(0u64, |sum, image| Some(sum.saturating_add(image.cpu_ns?)));
        let (ns, own) = ns.zip(self.own_cpu_ns())?;
        let share = ns as f64 / own.max(1) as f64;
        let number = processes(self.rec).saturating_sub(1);
        if number == 0 || !(CHILDREN_SHARE..=1.0).contains(&share) {
            return None;
        }
        let n = counted(number, "further process", "further processes");
        Some(format!("{n} took {}{}", time(ns), self.share_of_cpu(ns)))
    }

    /// Returns a sentence for each of these that there are: needless calls that no finding
    /// mentions, calls that may be needless, and calls that could not be judged.
    pub(crate) fn beneath(&self) -> Vec<String> {
        let (untold, unjudged) = (self.judgement.untold, self.judgement.unjudged);
        let cost = |ns: u64| format!("{}{}", time(ns), self.share_of_cpu(ns));
        let mut told = vec![];
        // Only what is shown with its reason is said to be needless.
        let beneath = untold.calls.saturating_add(untold.unsure_calls);
        if beneath > 0 {
            let another =
                if self.judgement.findings.is_empty() && self.judgement.also.is_empty() { "" } else { "another " };
            let toll_ns = untold.toll_ns.saturating_add(untold.unsure_toll_ns);
            told.push(format!("{another}{} may be unnecessary ({})", calls(beneath), cost(toll_ns)));
        }
        if unjudged.calls > 0 {
            let n = calls(unjudged.calls);
            told.push(match self.part_of_cpu(unjudged.toll_ns) {
                Some(share) => format!("{n}, {share} of CPU, could not be judged"),
                None => format!("{n}, {}, could not be judged", time(unjudged.toll_ns)),
            });
        }
        told
    }

    /// Writes how the program ended. Returns `None` if another tool's copy of a recording does not
    /// tell.
    pub(crate) fn ended(&self) -> Option<String> {
        Some(match self.rec.header.exit {
            Some(Exit::Code(code)) => format!("exit {code}"),
            Some(Exit::Signal(signal)) => format!("killed by {}", signal_name(signal)),
            None if let Some(until) = self.rec.header.until.as_ref().filter(|until| until.seen) => {
                until_seen(&until.sign)
            }
            None if let Some(attached) = &self.rec.header.attached => match attached.left_running {
                true => format!("ran for {} before, runs on", time(attached.age_ns)),
                false => format!("ran for {} before, has ended", time(attached.age_ns)),
            },
            None if self.stripped() => return None,
            None if self.rec.header.backend.is_trace() => "the trace does not show how it ended".into(),
            None => "still running".into(),
        })
    }

    /// Returns true if another tool rewrote the file and dropped the data that findings come from.
    pub(crate) fn stripped(&self) -> bool {
        self.rec.problems.iter().any(|p| p.kind == ProblemKind::Stripped)
    }
}

/// Writes the moment until which a run was watched, by its sign as typed.
fn until_seen(sign: &str) -> String {
    match sign.split_once(':') {
        Some(("port", port)) => format!("until it listened on port {port}"),
        Some(("line", text)) => format!("until it wrote \"{text}\""),
        Some(("file", path)) => format!("until {path} appeared"),
        Some(("answer", at)) => {
            let (port, path) = at.split_once('/').unwrap_or((at, ""));
            format!("until port {port} answered /{path}")
        }
        _ => format!("until {sign} began"),
    }
}
